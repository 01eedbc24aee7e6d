// Evaluating networks, groups and single nodes with the reference.
#include "support/messages.hpp"
#include "support/reference_check.hpp"

#include <collage/backend_set.hpp>
#include <collage/graph/graph.hpp>

#include <algorithm>
#include <set>

namespace backends_reference_graph_test {

using namespace collage_test::reference;
using collage::const_tensor_view;
using collage::graph;
using collage::graph_builder;
using collage::known_value;
using collage_test::message_of;

static_assert(collage::backend_type<collage::reference>);

/// y = relu(x w + b) and z = x w, with w and b constant; and a node that no output needs.
struct small_network {
  graph network;
  std::uint32_t x = 0, w = 0, b = 0, product = 0, sum = 0, y = 0, dead = 0;
  std::vector<float> input{1, 2, 3, 4, 5, 6};

  small_network() {
    graph_builder g;
    const auto in = g.input("x", {dtype::f32, {2, 3}});
    const auto weights = g.constant("w", {dtype::f32, {3, 2}}, bytes_of(reals({3, 2}, {1, -1, 1, 0, -1, 1})));
    const auto bias = g.constant("b", {dtype::f32, {2}}, bytes_of(reals({2}, {0.5, -1})));
    const auto first = g(op::matmul, in, weights);
    const auto second = g(op::add, first, bias);
    const auto third = g(op::relu, second);
    const auto unused = g(op::exp, second);
    g.output("y", third);
    g.output("z", first);
    x = in.index, w = weights.index, b = bias.index;
    product = first.index, sum = second.index, y = third.index, dead = unused.index;
    network = g.finish();
  }
  const_tensor_view view() const { return {input.data(), {dtype::f32, {2, 3}}}; }
};

// x w = [[0, 2], [3, 2]]
const oracle_value expected_product = reals({2, 2}, {0, 2, 3, 2});
const oracle_value expected_y = reals({2, 2}, {0.5, 1, 3.5, 1});

TEST(reference_graph, answers_the_outputs_in_order) {
  const small_network n;
  const const_tensor_view inputs[] = {n.view()};
  const std::vector<oracle_value> out = collage::evaluate(n.network, inputs);
  ASSERT_EQ(out.size(), 2U);
  expect_same(out[0], expected_y, "y");
  expect_same(out[1], expected_product, "z");
}

TEST(reference_graph, answers_any_values_and_computes_no_more_than_they_need) {
  const small_network n;
  const const_tensor_view inputs[] = {n.view()};
  std::vector<std::uint32_t> seen;
  const auto observer = [&](std::uint32_t value, const oracle_value& computed) {
    seen.push_back(value);
    if (value == n.sum) expect_same(computed, reals({2, 2}, {0.5, 1, 3.5, 1}), "sum");
  };
  // An input, a constant, a value twice.
  const std::uint32_t wanted[] = {n.product, n.x, n.w, n.product};
  const std::vector<oracle_value> out = collage::evaluate(n.network, inputs, wanted, observer);
  ASSERT_EQ(out.size(), 4U);
  expect_same(out[0], expected_product, "product");
  expect_same(out[1], reals({2, 3}, {1, 2, 3, 4, 5, 6}), "x");
  expect_same(out[2], reals({3, 2}, {1, -1, 1, 0, -1, 1}), "w");
  expect_same(out[3], expected_product, "product again");
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{n.product}));

  seen.clear();
  (void)collage::evaluate(n.network, inputs, n.network.outputs(), observer);
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{n.product, n.sum, n.y}));
}

TEST(reference_graph, evaluates_a_group_from_the_values_around_it) {
  const small_network n;
  const auto node = [&](std::uint32_t value) { return static_cast<std::uint32_t>(n.network.at(value).producer); };
  const std::vector<float> given{-3, 1, 5, 7};
  const known_value known[] = {{n.product, const_tensor_view(given.data(), {dtype::f32, {2, 2}})}};
  const std::uint32_t nodes[] = {node(n.y), node(n.sum)};
  const std::uint32_t wanted[] = {n.y, n.sum};
  const std::vector<oracle_value> out = collage::evaluate_group(n.network, nodes, known, wanted);
  expect_same(out[0], reals({2, 2}, {0, 0, 5.5, 6}), "y");
  expect_same(out[1], reals({2, 2}, {-2.5, 0, 5.5, 6}), "sum");

  // A known value is taken as given, also where the group has its node.
  const std::uint32_t all[] = {node(n.product), node(n.sum), node(n.y)};
  expect_same(collage::evaluate_group(n.network, all, known, wanted)[0], out[0], "y");

  // A constant may be replaced.
  const std::vector<float> bias{100, 200};
  const known_value both[] = {known[0], {n.b, const_tensor_view(bias.data(), {dtype::f32, {2}})}};
  expect_same(collage::evaluate_group(n.network, nodes, both, wanted)[1], reals({2, 2}, {97, 201, 105, 207}), "sum");
}

TEST(reference_graph, says_what_is_missing_or_does_not_fit) {
  const small_network n;
  const std::uint32_t wanted[] = {n.y};
  EXPECT_EQ(message_of([&] { (void)collage::evaluate(n.network, {}); }),
            "reference: the network has 1 inputs, but 0 were given");
  const const_tensor_view turned[] = {const_tensor_view(n.input.data(), {dtype::f32, {3, 2}})};
  EXPECT_EQ(message_of([&] { (void)collage::evaluate(n.network, turned); }),
            "value x: the elements given for it have another type or shape");
  const std::uint32_t node[] = {static_cast<std::uint32_t>(n.network.at(n.y).producer)};
  EXPECT_NE(message_of([&] {
              (void)collage::evaluate_group(n.network, node, {}, wanted);
            }).find("neither given nor computed"),
            std::string::npos);
  const std::uint32_t nowhere[] = {1000};
  EXPECT_NE(message_of([&] { (void)collage::evaluate_group(n.network, node, {}, nowhere); }).find("no value 1000"),
            std::string::npos);

  graph_builder g;
  g.output("y", g(op::add, g.input("x", {dtype::f32, {2}}), g.constant("unfilled", {dtype::f32, {2}}, {-1, 1})));
  graph unfilled = g.finish();
  const std::vector<float> x{1, 2};
  const const_tensor_view inputs[] = {const_tensor_view(x.data(), {dtype::f32, {2}})};
  EXPECT_NE(message_of([&] { (void)collage::evaluate(unfilled, inputs); }).find("unfilled"), std::string::npos);
  collage::fill_constants(unfilled);
  EXPECT_EQ(message_of([&] { (void)collage::evaluate(unfilled, inputs); }), "no error");
}

constexpr struct mystery : collage::kind<mystery> {
  static constexpr char name[] = "test_mystery";
  static constexpr collage::verdict infer(const attributes&, collage::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} mystery{};

// A kind of a user's own, with two outputs.
constexpr struct halves : collage::kind<halves> {
  static constexpr char name[] = "test_halves";
  static constexpr std::uint32_t outputs = 2;
  static constexpr collage::verdict infer(const attributes&, collage::inference& io) {
    io.out[0] = io.out[1] = {io.in[0].type, {io.in[0].dims[0] / 2}};
    return {};
  }
  static void reference(const attributes&, const collage::reference_call& call) {
    for (std::size_t i = 0; i < call.in[0].real.size(); ++i) {
      const std::size_t half = call.out[0].real.size();
      (i < half ? call.out[0].real[i] : call.out[1].real[i - half]) = call.in[0].real[i];
    }
  }
} halves{};

TEST(reference_graph, runs_users_kinds_and_names_those_without_a_reference) {
  EXPECT_NE(message_of([&] { (void)run(mystery, {reals({1}, {1})}); }).find("test_mystery: its kind has no reference"),
            std::string::npos);
  graph_builder g;
  const auto low = g(halves, g.input("x", {dtype::f32, {4}}));
  const collage::value high{low.index + 1};
  g.output("y", g(op::sub, high, low));
  g.output("high", high);
  const graph network = g.finish();
  const std::vector<float> x{1, 2, 30, 40};
  const const_tensor_view inputs[] = {const_tensor_view(x.data(), {dtype::f32, {4}})};
  const std::vector<oracle_value> out = collage::evaluate(network, inputs);
  expect_same(out[0], reals({2}, {29, 38}), "y");
  expect_same(out[1], reals({2}, {30, 40}), "high");
}

TEST(reference_graph, a_node_checks_its_operands) {
  std::vector<oracle_value> one{reals({1}, {1})};
  const std::vector<std::uint64_t> none;
  EXPECT_NE(message_of([&] {
              (void)collage::evaluate_node(collage::kind_of<std::remove_cv_t<decltype(op::add)>>, none, one);
            }).find("wrong number of operands"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { (void)run(op::add, {reals({2}, {1, 2}), reals({3}, {1, 2, 3})}); }),
            "add: its operands' shapes must broadcast");
}

TEST(reference_graph, is_a_backend_without_patterns) {
  EXPECT_STREQ(collage::reference::name, "reference");
  const collage::probe_result found = collage::reference::probe();
  EXPECT_TRUE(found.available);
  EXPECT_NE(std::string(found.version), "");
}

}  // namespace backends_reference_graph_test
