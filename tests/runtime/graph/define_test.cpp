// Graphs defined at compile time where run-time graphs are wanted: equal records, contents bound by name, every door.
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/collage.hpp>
#include <collage/graph/define.hpp>
#include <collage/graph/print.hpp>
#include <collage/graph/totals.hpp>
#include <collage/io/dot.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/verify.hpp>
#include <collage/zoo/all.hpp>
#include <collage/zoo/statics.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "support/messages.hpp"

namespace graph_define_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;
using set = c::backend_set<c::portable>;

/// Records, names and contents, one by one.
void expect_equal(const c::graph& a, const c::graph& b) {
  ASSERT_EQ(a.nodes().size(), b.nodes().size());
  ASSERT_EQ(a.values().size(), b.values().size());
  const c::graph_view x = a.view(), y = b.view();
  for (std::uint32_t n = 0; n < x.nodes.size(); ++n) {
    const c::node_record &p = x.nodes[n], &q = y.nodes[n];
    EXPECT_EQ(p.kind, q.kind) << n;
    EXPECT_EQ(p.first_input, q.first_input) << n;
    EXPECT_EQ(p.inputs, q.inputs) << n;
    EXPECT_EQ(p.first_output, q.first_output) << n;
    EXPECT_EQ(p.outputs, q.outputs) << n;
    EXPECT_EQ(p.first_word, q.first_word) << n;
    EXPECT_EQ(p.words, q.words) << n;
    EXPECT_EQ(p.first_body, q.first_body) << n;
    EXPECT_EQ(p.bodies, q.bodies) << n;
    EXPECT_EQ(a.node_name(n), b.node_name(n));
  }
  for (std::uint32_t v = 0; v < x.values.size(); ++v) {
    const c::value_record &p = x.values[v], &q = y.values[v];
    const std::string& name = b.value_name(v);
    EXPECT_EQ(a.value_name(v), name);
    EXPECT_EQ(p.type, q.type) << name;
    EXPECT_EQ(p.role, q.role) << name;
    EXPECT_EQ(p.is_output, q.is_output) << name;
    EXPECT_EQ(p.has_scalar, q.has_scalar) << name;
    EXPECT_EQ(p.scalar, q.scalar) << name;
    EXPECT_EQ(p.producer, q.producer) << name;
    EXPECT_EQ(p.first_use, q.first_use) << name;
    EXPECT_EQ(p.uses, q.uses) << name;
    if (p.role != c::value_role::constant) continue;
    const c::constant_data &s = a.constant(v), &t = b.constant(v);
    EXPECT_EQ(s.source, t.source) << name;
    EXPECT_EQ(s.fill.low, t.fill.low) << name;
    EXPECT_EQ(s.fill.high, t.fill.high) << name;
    ASSERT_EQ(s.bytes == nullptr, t.bytes == nullptr) << name;
    if (s.bytes != nullptr) { EXPECT_EQ(std::memcmp(s.bytes.get(), t.bytes.get(), p.type.bytes()), 0) << name; }
  }
  const auto equal = [](const auto& left, const auto& right) {
    return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin());
  };
  EXPECT_TRUE(equal(x.operands, y.operands));
  EXPECT_TRUE(equal(x.words, y.words));
  EXPECT_TRUE(equal(a.inputs(), b.inputs()));
  EXPECT_TRUE(equal(a.outputs(), b.outputs()));
  ASSERT_EQ(x.uses.size(), y.uses.size());
  for (std::size_t i = 0; i < x.uses.size(); ++i)
    EXPECT_TRUE(x.uses[i].node == y.uses[i].node && x.uses[i].operand == y.uses[i].operand) << i;
  for (std::size_t i = 0; i < b.outputs().size(); ++i) EXPECT_EQ(a.output_name(i), b.output_name(i));
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
}

template <class Tag>
void expect_built_in(const char* name) {
  c::graph_builder g;
  ASSERT_TRUE(c::zoo::build(name, g));
  expect_equal(Tag{}, g.finish());
}

TEST(static_graph, built_in_networks_equal_those_of_graph_builder) {
  namespace statics = c::zoo::statics;
  expect_built_in<statics::bert_paper>("bert-paper");
  expect_built_in<statics::dcgan_paper>("dcgan-paper");
  expect_built_in<statics::nasnet_a_paper>("nasnet-a-paper");
  expect_built_in<statics::resnet50_3d_paper>("resnet50-3d-paper");
  expect_built_in<statics::resnext50_paper>("resnext50-paper");
  expect_built_in<statics::resnet50>("resnet50");
  expect_built_in<statics::mobilenet_v2>("mobilenet-v2");
  expect_built_in<statics::bert_base_128>("bert-base-128");
}

/// Every call that builders offer.
constexpr auto every_call = [](auto& g) {
  const c::value x = g.input("x", {2, 6});
  const c::value ids = g.input("ids", {c::dtype::i64, {4}});
  const c::value given = g.input("given", c::tensor_type{c::dtype::f32, {3, -1}});
  const c::value w = g.constant("w", {6, 6});
  const c::value half = g.constant("half", {c::dtype::f16, {6}});
  const c::value filled = g.constant(c::label("fill") + 1, {6}, {-1, 1});
  const c::value third = g.scalar("third", 1.0 / 3);
  const c::value target = g.integers("target", {3, 2, 2});
  g.integers("one", {-7});
  g.integers("none", {});
  for (const auto& [name, type, number] :
       {std::tuple{"f64", c::dtype::f64, 0.1}, std::tuple{"i8", c::dtype::i8, -128.0},
        std::tuple{"i16", c::dtype::i16, 300.0}, std::tuple{"i32", c::dtype::i32, -2147483648.0},
        std::tuple{"i64", c::dtype::i64, 0x1p53}, std::tuple{"u8", c::dtype::u8, 255.0},
        std::tuple{"u16", c::dtype::u16, 65535.0}, std::tuple{"u32", c::dtype::u32, 7.0},
        std::tuple{"u64", c::dtype::u64, 0x1p63}, std::tuple{"boolean", c::dtype::boolean, 2.0},
        std::tuple{"huge", c::dtype::f32, 1e300}, std::tuple{"most", c::dtype::f32, -0x1.fffffefp127},
        std::tuple{"tiny", c::dtype::f32, 1e-46}})
    g.scalar(name, number, type);

  const c::value y = g.named("product")(op::matmul, x, w);
  const c::value z = g(op::clip, y, third, third);
  const c::value largest = g(op::top_k, g(op::add, z, filled), {.k = 2});
  const c::value parts[] = {y, z, largest[0]};
  const c::value all = g(op::concat, parts, {.axis = 1});
  g.output("all", all);
  g.output(largest[1]);
  g.output(g(op::reshape, g(op::concat, {y}, {.axis = 0}), target));
  g.output("again", all);
  g.output(g(op::neg, given));
  g.output(ids);
  g.output(half);
};
struct every {
  static constexpr auto graph = c::define(every_call);
};

TEST(static_graph, equals_that_of_graph_builder_whatever_is_called) {
  c::graph_builder g;
  every_call(g);
  const c::graph made = every{};
  expect_equal(made, g.finish());
  EXPECT_EQ(made.output_name(1), "top_k_2:1");
  EXPECT_EQ(made.node_name(0), "product");
  EXPECT_EQ(made.output_name(5), "ids");
}

TEST(static_graph, a_node_must_have_the_output_that_is_asked_for) {
  const auto ask = [](std::uint32_t k) {
    c::graph_builder g;
    const c::value x = g.input("x", {2, 6});
    const c::value y = g(op::top_k, x);
    g(op::neg, x);
    g.output(g(op::neg, y[k]));
  };
  EXPECT_EQ(message_of([&] { ask(0); }), "no error");
  EXPECT_EQ(message_of([&] { ask(2); }),
            "node neg_2 (neg): asks for output 2 of top_k_0, which has 2; count outputs from 0");
  EXPECT_EQ(message_of([] {
              c::graph_builder g;
              g.output(g.input("x", {1})[1]);
            }),
            "output: asks for output 1 of x, which has none: no node computes it; count outputs from 0");
}

/// y = relu(x w + b): two constants to bind.
struct layer {
  static constexpr auto graph = c::define([](auto& g) {
    const c::value x = g.input("x", {2, 3});
    const c::value product = g(op::matmul, x, g.constant("w", {3, 2}));
    g.output("y", g(op::relu, g(op::add, product, g.constant("b", {2}))));
  });
};
constexpr std::array<float, 6> weights = {1, 2, 3, 4, 5, 6};
constexpr std::array<float, 2> bias = {-40, 0.5F};

c::graph bound_layer() {
  c::graph network = layer{};
  network.bind("w", weights);
  network.bind("b", std::vector<float>(bias.begin(), bias.end()));
  return network;
}

std::vector<float> run(const c::graph& network, const c::plan& plan) {
  const c::tensor x({c::dtype::f32, {2, 3}}), y({c::dtype::f32, {2, 2}});
  for (std::size_t i = 0; i < 6; ++i) x.as<float>()[i] = static_cast<float>(i + 1);
  c::dynamic_context context = c::engine<set>(network, plan).context();
  context.run({x}, {y});
  return {y.as<float>().begin(), y.as<float>().end()};
}

TEST(static_graph, runs_with_the_contents_that_are_bound) {
  c::graph network = bound_layer();
  const c::plan plan = c::place<set>(network, {.threads = 1, .costs = c::placing_costs::none});
  EXPECT_EQ(run(network, plan), (std::vector<float>{0, 28.5F, 9, 64.5F}));
  network.bind("b", {0, -1000});  // contents may change, plans hold
  EXPECT_EQ(run(network, plan), (std::vector<float>{22, 0, 49, 0}));
}

TEST(static_graph, shares_contents_that_are_bound_as_a_pointer) {
  c::graph network = layer{};
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(24);
  std::memcpy(bytes.get(), weights.data(), 24);
  network.bind("w", bytes, 24);
  EXPECT_EQ(network.bytes_of(1).data(), bytes.get());
  EXPECT_EQ(message_of([&] { network.bind("w", bytes, 20); }),
            "bind w: it has 24 bytes, float32[3x2], but was given 20; give as many bytes as it has");
  const std::shared_ptr<const std::byte> odd(bytes, bytes.get() + 1);
  EXPECT_EQ(message_of([&] { network.bind("w", odd, 24); }),
            "bind w: its memory must be aligned to 64 bytes; take it from allocate_bytes, or bind a span to be copied");
}

TEST(static_graph, binding_says_what_is_wrong) {
  c::graph network = layer{};
  EXPECT_EQ(network.unbound(), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(message_of([&] { network.bind("v", weights); }),
            "bind v: the network has no constant of this name; constants without contents: w and b");
  EXPECT_EQ(message_of([&] { network.bind("x", weights); }),
            "bind x: this value is no constant; constants without contents: w and b");
  EXPECT_EQ(message_of([&] { network.bind("w", bias); }),
            "bind w: it has 24 bytes, float32[3x2], but was given 8; give as many bytes as it has");
  EXPECT_EQ(
      message_of([&] { network.bind("w", std::vector<double>(6)); }),
      "bind w: it has type float32, but the given elements have float64; convert the elements, or give them as bytes");
  EXPECT_EQ(network.unbound().size(), 2U);
  EXPECT_EQ(message_of([&] { network.bind("w", std::vector<std::byte>(24)); }), "no error");
  EXPECT_EQ(network.unbound(), (std::vector<std::uint32_t>{3}));

  c::graph parts = every{};
  for (const std::string name : {"third", "target", "one", "i64"})
    EXPECT_EQ(
        message_of([&] { parts.bind(name, std::vector<std::byte>(8)); }),
        "bind " + name + ": its contents are part of the network; bind constants that were added without contents");
  EXPECT_EQ(
      message_of([&] { parts.bind("half", std::vector<std::uint16_t>(6)); }),
      "bind half: it has type float16, but the given elements have uint16; convert the elements, or give them as bytes");
  EXPECT_EQ(message_of([&] { parts.bind("half", std::vector<std::byte>(12)); }), "no error");
}

TEST(static_graph, constants_without_contents_are_named_before_anything_runs) {
  const std::string expected = "constants w and b: their contents are missing; call bind(name, data) for each first";
  EXPECT_EQ(message_of([] { c::place<set>(layer{}); }), expected);
  const c::plan plan = c::place<set>(bound_layer(), {.threads = 1, .costs = c::placing_costs::none});
  EXPECT_EQ(message_of([&] { c::engine<set>(layer{}, plan); }), expected);
  EXPECT_EQ(message_of([] { (void)c::graph(layer{}).bytes_of(3); }),
            "constant b: its contents were not bound; call bind(\"b\", data) first");
  // fill_constants makes what a rule describes, and nothing else.
  c::graph network = layer{};
  c::fill_constants(network);
  EXPECT_EQ(network.unbound().size(), 2U);

  c::graph_builder g;
  g.output(g(op::neg, g.constant("r", {2}, {-1, 1})));
  EXPECT_EQ(message_of([&] { c::check_contents(g.finish()); }),
            "constant r: its contents are missing; call fill_constants(graph) first");
}

TEST(static_graph, bound_contents_take_the_place_of_those_made_by_a_rule) {
  c::graph_builder g;
  g.output(g(op::neg, g.constant("r", {2}, {-1, 1})));
  c::graph network = g.finish();
  network.bind("r", bias);
  c::fill_constants(network);
  EXPECT_EQ(std::memcmp(network.bytes_of(0).data(), bias.data(), 8), 0);
}

/// Complete as it stands: its one constant is a scalar.
struct complete {
  static constexpr auto graph = c::define([](auto& g) {
    const c::value x = g.input("x", {2, 3});
    g.output("y", g(op::relu, g(op::mul, x, g.scalar("two", 2))));
  });
};

/// Each function that takes a run-time graph, called with a tag.
TEST(static_graph, is_accepted_wherever_a_run_time_graph_is) {
  c::graph_builder g;
  const c::value x = g.input("x", {2, 3});
  g.output("y", g(op::relu, g(op::mul, x, g.scalar("two", 2))));
  const c::graph same = g.finish();
  const c::tensor in({c::dtype::f32, {2, 3}}), out({c::dtype::f32, {2, 3}});
  for (std::size_t i = 0; i < 6; ++i) in.as<float>()[i] = static_cast<float>(i) - 2;

  EXPECT_EQ(c::to_string(complete{}), c::to_string(same));
  EXPECT_EQ(c::summary(complete{}), c::summary(same));
  EXPECT_EQ(c::totals_of(complete{}).flops, c::totals_of(same).flops);
  expect_equal(c::optimise(complete{}), c::optimise(same));
  expect_equal(c::fold_constants(complete{}), c::fold_constants(same));
  expect_equal(c::remove_dead(complete{}), c::remove_dead(same));
  std::ostringstream dot, dot_of_same;
  c::write_dot(dot, complete{});
  c::write_dot(dot_of_same, same);
  EXPECT_EQ(dot.str(), dot_of_same.str());
  EXPECT_NE(dot.str().find("relu_1"), std::string::npos);

  const std::vector<c::const_tensor_view> inputs = {in};
  const c::oracle_value expected = c::evaluate(complete{}, inputs)[0];
  c::place_options options;
  options.threads = 1;
  options.comparing.seconds = 0.02;
  for (const bool measure : {false, true}) {
    options.costs = measure ? c::placing_costs::measured : c::placing_costs::none;
    const c::plan plan = c::place<set>(complete{}, options);
    EXPECT_EQ(plan.fingerprint, same.fingerprint());
    const c::dynamic_engine engine = c::engine<set>(complete{}, plan);
    engine.context().run({in}, {out});
    EXPECT_TRUE(c::compare(out, expected).agrees);
    EXPECT_EQ(out.as<float>()[5], 6.0F);
    EXPECT_TRUE(c::verify(complete{}, plan, c::table_of<set>).placements.at(0).passed());
  }
}

// What is a graph, and what is not.
static_assert(c::static_graph<complete> && std::is_convertible_v<complete, c::graph>);
static_assert(!c::static_graph<int> && !c::static_graph<c::graph> && !c::static_graph<c::graph_builder>);
static_assert(!std::is_convertible_v<int, c::graph> && !std::is_convertible_v<c::value, c::graph>);
static_assert(std::is_copy_constructible_v<c::graph> && std::is_nothrow_move_constructible_v<c::graph>);

}  // namespace graph_define_test
