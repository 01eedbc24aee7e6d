// Layouts: how values lie in them, conversions in engines and plans, and placing that chooses between them.
#include "random_placement.hpp"
#include "support/engine_check.hpp"
#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"
#include "support/plan_making.hpp"
#include "support/random_numbers.hpp"

#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/graph/print.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/layout.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/verify.hpp>
#include <collage/run/views.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/problem.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace run_layouts_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::conversion_by;
using collage_test::kernel_group;
using collage_test::kernel_of;
using collage_test::message_of;
using collage_test::view_group;
using collage_test::view_of;

// ---- Memory -----------------------------------------------------------------------------------------------------------

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(layouts, there_and_back_is_the_same) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {1, 3, 4, 5},    {2, 16, 3, 3}, {1, 17, 2, 2}, {3, 1, 1, 1},     {1, 8, 7},
      {2, 5, 2, 3, 4}, {1, 0, 4, 4},  {0, 16, 2, 2}, {1, 33, 1, 1, 1}, {4, 9}};
  for (const auto& extents : shapes)
    for (const c::layout& order : c::shared_layouts) {
      c::tensor_type type{c::dtype::f32, {}};
      for (const std::int64_t extent : extents) type.dims.push_back(extent);
      std::vector<float> numbers(static_cast<std::size_t>(type.dims.elements()));
      std::iota(numbers.begin(), numbers.end(), 1.0F);
      const std::vector<std::byte> plain = bytes_of(numbers);
      std::vector<std::byte> other(c::bytes_in(type, order), std::byte{0xFF}), back(plain.size(), std::byte{0xFF});
      c::from_plain(type, order, plain.data(), other.data());
      EXPECT_TRUE(c::is_filled_with_zeros(type, order, other.data())) << order.name;
      c::to_plain(type, order, other.data(), back.data());
      EXPECT_EQ(back, plain) << order.name;
    }
}

TEST(layouts, elements_lie_where_the_names_say) {
  const c::tensor_type type{c::dtype::f32, {1, 10, 1, 2}};
  std::vector<float> numbers(20);  // channel c, place p: 10 p + c
  for (std::size_t channel = 0; channel < 10; ++channel)
    for (std::size_t place = 0; place < 2; ++place)
      numbers[2 * channel + place] = static_cast<float>(10 * place + channel);
  const std::vector<std::byte> plain = bytes_of(numbers);
  const auto laid_out = [&](const c::layout& order) {
    std::vector<float> made(c::bytes_in(type, order) / sizeof(float));
    c::from_plain(type, order, plain.data(), reinterpret_cast<std::byte*>(made.data()));
    return made;
  };
  std::vector<float> last(20);
  std::iota(last.begin(), last.end(), 0.0F);
  EXPECT_EQ(laid_out(c::channels_last), last);
  EXPECT_EQ(laid_out(c::blocked_8),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17,  // the first block, both places
                                8, 9, 0, 0, 0, 0, 0, 0, 18, 19, 0,  0,  0,  0,  0,  0}));
  EXPECT_EQ(laid_out(c::blocked_16).size(), 32U);
}

TEST(layouts, what_fills_up_blocks_must_be_zero) {
  const c::tensor_type type{c::dtype::f32, {2, 10, 3}};
  std::vector<float> made(c::bytes_in(type, c::blocked_8) / sizeof(float), 0.0F);
  auto* const bytes = reinterpret_cast<std::byte*>(made.data());
  EXPECT_TRUE(c::is_filled_with_zeros(type, c::blocked_8, bytes));
  made[3 * 8 + 1] = 1;  // a channel that is there
  EXPECT_TRUE(c::is_filled_with_zeros(type, c::blocked_8, bytes));
  made[3 * 8 + 2] = 1;
  EXPECT_FALSE(c::is_filled_with_zeros(type, c::blocked_8, bytes));
}

TEST(layouts, tensors_without_channels_have_none) {
  EXPECT_THROW((void)c::bytes_in({c::dtype::f32, {4}}, c::blocked_8), c::error);
  EXPECT_THROW((void)c::bytes_in({c::dtype::f32, {1, 4, 2}}, c::layout("a library's own")), c::error);
}

// ---- Views --------------------------------------------------------------------------------------------------------------

/// A concat or a slice, and whether it is a view in each of the shared layouts.
struct viewed {
  c::value made;
  std::vector<bool> is_view;
};

/// Networks of one node each would do as well; one has them all.
class views_network {
 public:
  views_network() {
    // plain, channels last, blocks of 8 and of 16. A piece begins at a multiple of 64 bytes.
    concat({{1, 16, 4, 4}, {1, 32, 4, 4}}, 1, {true, false, true, true});
    concat({{1, 8, 4, 4}, {1, 32, 4, 4}}, 1, {true, false, true, false});
    concat({{1, 16, 4, 4}, {1, 9, 4, 4}}, 1, {true, false, true, true});  // the last may end within a block
    concat({{1, 12, 4, 4}, {1, 16, 4, 4}}, 1, {true, false, false, false});
    concat({{2, 16, 4, 4}, {2, 16, 4, 4}}, 1, {false, false, false, false});
    concat({{2, 3, 4, 4}, {1, 3, 4, 4}}, 0, {true, true, true, true});
    concat({{1, 4, 4, 4}, {1, 4, 4, 4}}, 0, {true, true, true, true});
    concat({{1, 3, 1, 1}, {1, 3, 1, 1}}, 0, {false, false, false, true});
    concat({{1, 3, 4, 4}, {1, 3, 2, 4}}, 2, {false, true, true, true});
    concat({{1, 16, 4, 4}, {1, 16, 2, 4}}, 2, {false, true, false, true});
    concat({{1, 1, 4, 4}, {1, 1, 4, 4}}, 2, {true, true, true, true});
    concat({{1, 16, 4, 4}, {1, 16, 4, 2}}, 3, {false, false, false, false});
    concat({{1, 16, 1, 4}, {1, 16, 1, 2}}, 3, {false, true, false, true});
    concat({{2, 16, 4, 4}, {2, 16, 2, 4}}, 2, {false, false, false, false});
    concat({{1, 16}, {1, 16}}, 1, {true, false, true, true});
    concat({{16}, {16}}, 0, {true, false, false, false});
    concat({{1, 0, 4, 4}, {1, 16, 4, 4}}, 1, {false, false, false, false});
    slice({1, 64, 4, 4}, {0, 16, 0, 0}, {1, 1, 1, 1}, {1, 32, 4, 4}, {true, false, true, true});
    slice({1, 64, 4, 4}, {0, 8, 0, 0}, {1, 1, 1, 1}, {1, 32, 4, 4}, {true, false, true, false});
    slice({1, 64, 4, 4}, {0, 16, 0, 0}, {1, 1, 1, 1}, {1, 30, 4, 4}, {true, false, false, false});
    slice({1, 62, 4, 4}, {0, 32, 0, 0}, {1, 1, 1, 1}, {1, 30, 4, 4}, {true, false, true, true});
    slice({1, 64, 4, 4}, {0, 0, 0, 0}, {1, 2, 1, 1}, {1, 32, 4, 4}, {false, false, false, false});
    slice({1, 16, 4, 4}, {0, 0, 0, 0}, {1, 2, 1, 1}, {1, 8, 4, 4}, {false, false, false, false});
    slice({1, 64, 4, 4}, {0, 32, 0, 0}, {1, 1, 1, 1}, {1, 1, 4, 4}, {true, false, false, false});
    slice({1, 1, 4, 4}, {0, 0, 1, 0}, {1, 1, 1, 1}, {1, 1, 2, 4}, {false, false, true, true});
    slice({1, 16, 4, 4}, {0, 0, 1, 0}, {1, 1, 1, 1}, {1, 16, 2, 4}, {false, true, false, true});
    slice({2, 64, 4, 4}, {0, 16, 0, 0}, {1, 1, 1, 1}, {2, 32, 4, 4}, {false, false, false, false});
    slice({2, 64, 4, 4}, {1, 16, 0, 0}, {1, 1, 1, 1}, {1, 32, 4, 4}, {true, false, true, true});
    slice({3, 5, 4, 4}, {1, 0, 0, 0}, {1, 1, 1, 1}, {2, 5, 4, 4}, {true, true, true, true});
    slice({3, 5, 4, 4}, {0, 0, 0, 0}, {2, 1, 1, 1}, {2, 5, 4, 4}, {false, false, false, false});
    slice({1, 64, 4, 4}, {0, 63, 0, 0}, {1, -1, 1, 1}, {1, 64, 4, 4}, {false, false, false, false});
    slice({1, 64, 4, 4}, {0, 0, 0, 0}, {1, 1, 1, 1}, {1, 0, 4, 4}, {false, false, false, false});
    for (const viewed& v : expected) g_.output("y" + std::to_string(v.made.index), v.made);
    network = g_.finish();
  }

  std::vector<viewed> expected;
  std::optional<c::graph> network;

 private:
  /// What a node computes from an input: as such it may be written elsewhere. Its elements differ, and are outputs, too.
  c::value value(const c::shape& dims) {
    const std::string number = std::to_string(g_.node_count());
    return g_(op::neg, g_.input("x" + number, {c::dtype::f32, dims}));
  }
  void concat(const std::vector<c::shape>& parts, std::int64_t axis, const std::vector<bool>& is_view) {
    std::vector<c::value> list;
    for (const c::shape& s : parts) list.push_back(value(s));
    expected.push_back({g_(op::concat, list, {.axis = axis}), is_view});
  }
  void slice(const c::shape& of, const c::shape& starts, const c::shape& steps, const c::shape& extents,
             const std::vector<bool>& is_view) {
    const c::value x = value(of);
    expected.push_back({g_(op::slice, x, {.starts = starts, .steps = steps, .extents = extents}), is_view});
  }

  c::graph_builder g_;
};

TEST(views, in_other_layouts_are_whole_blocks_rows_or_images) {
  const views_network of;
  const c::graph& network = *of.network;
  // All values as they are, in double precision.
  c::run_buffers memory(network);
  memory.randomise(5);
  std::vector<std::vector<float>> contents(network.values().size());
  const std::vector<c::oracle_value> results = c::evaluate(network, memory.inputs);
  for (std::size_t i = 0; i < network.outputs().size(); ++i)
    for (const double x : results[i].real) contents[network.outputs()[i]].push_back(static_cast<float>(x));
  for (std::size_t i = 0; i < network.inputs().size(); ++i)
    for (const float x : memory.in[i].as<float>())
      contents[network.view().output_of(network.view().uses_of(network.inputs()[i])[0].node)].push_back(-x);
  const auto laid_out = [&](std::uint32_t v, const c::layout& order) {
    std::vector<std::byte> made(c::bytes_in(network.type_of(v), order));
    c::from_plain(network.type_of(v), order, bytes_of(contents[v]).data(), made.data());
    return made;
  };
  for (const viewed& one : of.expected) {
    const auto node = static_cast<std::uint32_t>(network.at(one.made.index).producer);
    for (std::size_t i = 0; i < c::shared_layouts.size(); ++i) {
      const c::layout& order = c::shared_layouts[i];
      const std::vector<c::value_view> views = c::views_of(network, node, order);
      EXPECT_EQ(!views.empty(), one.is_view[i]) << order.name << " " << c::to_string(network, node);
      for (const c::value_view& v : views) {
        const std::vector<std::byte> whole = laid_out(v.of, order), part = laid_out(v.value, order);
        ASSERT_LE(v.offset + part.size(), whole.size());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(v.offset)))
            << order.name << " " << c::to_string(network, node);
      }
    }
  }
}

// ---- A backend that works faster on blocks ----------------------------------------------------------------------------

/// What kernels take, on a clock that stands still otherwise.
double now_ms = 0;
constexpr double plain_relu_ms = 10, blocked_relu_ms = 4, neg_ms = 3, conversion_ms = 5;

struct blocks : c::backend<"blocks"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::neg>, c::single<op::convert_layout>>;
  static inline bool forgets_zeros = false, packs_wrongly = false;

  static std::size_t choices(const c::match<c::single<op::relu>>&) { return 2; }
  static std::size_t choices(const c::match<c::single<op::convert_layout>>&) { return 2; }
  static void layouts(const c::match<c::single<op::relu>>& m, std::size_t choice, c::value_forms& to) {
    if (choice == 0) return;
    to.set(m.record().argument[0], c::blocked_8);
    to.set(m.record().output[0], c::blocked_8);
  }
  static void layouts(const c::match<c::single<op::convert_layout>>& m, std::size_t choice, c::value_forms& to) {
    to.set(choice == 0 ? m.record().output[0] : m.record().argument[0], c::blocked_8);
  }

  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context& context) {
    const c::tensor_type type = m.graph().values[m.record().output[0]].type;
    const bool plain = context.choice() == 0;
    const std::size_t count = c::bytes_in(type, plain ? c::plain : c::blocked_8) / sizeof(float);
    c::kernel made(plain ? "relu" : "relu of blocks", [=](const c::kernel_call& call) {
      const auto* from = static_cast<const float*>(call.in[0]);
      auto* to = static_cast<float*>(call.out[0]);
      for (std::size_t i = 0; i < count; ++i) to[i] = from[i] < 0 ? 0 : from[i];
      if (forgets_zeros && !plain) to[count - 1] = 1;
      now_ms += plain ? plain_relu_ms : blocked_relu_ms;
    });
    return std::move(made.may_write_over(0));
  }
  static c::kernel build(const c::match<c::single<op::neg>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.graph().values[m.record().output[0]].type.dims.elements());
    c::kernel made("neg", [=](const c::kernel_call& call) {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<float*>(call.out[0])[i] = -static_cast<const float*>(call.in[0])[i];
      now_ms += neg_ms;
    });
    return std::move(made.may_write_over(0));
  }
  static c::kernel build(const c::match<c::single<op::convert_layout>>& m, c::build_context& context) {
    const c::tensor_type type = m.graph().values[m.record().output[0]].type;
    const bool packs = context.choice() == 0;
    return {packs ? "pack" : "unpack", [=](const c::kernel_call& call) {
              const auto* from = static_cast<const std::byte*>(call.in[0]);
              auto* to = static_cast<std::byte*>(call.out[0]);
              if (packs) c::from_plain(type, c::blocked_8, from, to);
              if (packs && packs_wrongly) std::memset(to, 1, 4);
              if (!packs) c::to_plain(type, c::blocked_8, from, to);
              now_ms += conversion_ms;
            }};
  }
};
/// Takes the same operators, in plain values alone.
struct plain_loops : c::backend<"plain_loops"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::neg>>;
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.graph().values[m.record().output[0]].type.dims.elements());
    return {"loop", [=](const c::kernel_call& call) {
              const auto* from = static_cast<const float*>(call.in[0]);
              auto* to = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < count; ++i)
                to[i] = std::is_same_v<P, c::single<op::neg>> ? -from[i] : from[i] < 0 ? 0 : from[i];
              now_ms += 20;
            }};
  }
};

using set = c::backend_set<blocks>;

c::value input(c::graph_builder& g) { return g.input("x", {c::dtype::f32, {1, 10, 3, 3}}); }
c::value relus(c::graph_builder& g, c::value x, int count) {
  for (int i = 0; i < count; ++i) x = g(op::relu, x);
  return x;
}

c::place_options exact_clock() { return collage_test::clock_options(now_ms); }

std::size_t steps_in_blocks(const c::placement& p) {
  return static_cast<std::size_t>(
      std::ranges::count_if(p.groups, [](const c::plan_group& g) { return g.layout == "blocked-8"; }));
}

// ---- Engines ----------------------------------------------------------------------------------------------------------

c::plan_group group(std::vector<std::uint32_t> nodes, const std::string& pattern, std::size_t configuration) {
  return kernel_group(std::move(nodes), "blocks", pattern, configuration);
}
c::plan_conversion conversion(std::uint32_t value, const c::form& from, const c::form& to) {
  return conversion_by("blocks", value, from, to, to == c::plain ? 1 : 0);
}

/// relu, relu, neg of the first, and the second as a result: value 1 is read in both layouts, value 2 leaves the network.
c::graph forked() {
  c::graph_builder g;
  const c::value x = input(g);
  const c::value a = g(op::relu, x), b = g(op::relu, a);
  g.output("b", b);
  g.output("n", g(op::neg, a));
  return g.finish();
}

TEST(layouts, engines_convert_what_is_read_otherwise) {
  const c::graph network = forked();
  const std::uint32_t x = network.inputs()[0], a = network.view().output_of(0), b = network.view().output_of(1);
  c::placement p;
  p.groups = {group({0}, "relu", 1), group({1}, "relu", 1), group({2}, "neg", 0)};
  p.conversions = {conversion(x, c::plain, c::blocked_8), conversion(a, c::blocked_8, c::plain),
                   conversion(b, c::blocked_8, c::plain)};
  const c::dynamic_engine engine(network, p, c::table_of<set>, 1);
  ASSERT_EQ(engine.steps().size(), 6U);
  EXPECT_EQ(engine.steps()[0].pattern, "convert_layout");
  EXPECT_EQ(engine.steps()[0].label, "x");
  EXPECT_TRUE(engine.steps()[0].nodes.empty());
  EXPECT_EQ(engine.steps()[0].written, c::blocked_8);
  EXPECT_EQ(engine.steps()[1].written, c::blocked_8);
  c::run_buffers memory(network);
  memory.randomise(7);
  c::dynamic_context context = engine.context();
  context.run(memory.inputs, memory.outputs);
  const auto in = memory.in[0].as<float>(), second = memory.out[0].as<float>(), negative = memory.out[1].as<float>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(second[i], std::max(in[i], 0.0F));
    EXPECT_EQ(negative[i], -std::max(in[i], 0.0F));
  }
  EXPECT_EQ(context.form_of(a), c::blocked_8);
  EXPECT_EQ(context.form_of(network.outputs()[1]), c::plain);
  EXPECT_GE(engine.arena_bytes(), c::bytes_in(network.type_of(a), c::blocked_8));
}

TEST(layouts, engines_refuse_plans_that_convert_too_little_or_otherwise) {
  const c::graph network = forked();
  const std::uint32_t x = network.inputs()[0], a = network.view().output_of(0), b = network.view().output_of(1);
  c::placement good;
  good.groups = {group({0}, "relu", 1), group({1}, "relu", 1), group({2}, "neg", 0)};
  good.conversions = {conversion(x, c::plain, c::blocked_8), conversion(a, c::blocked_8, c::plain),
                      conversion(b, c::blocked_8, c::plain)};
  const auto why = [&](const c::placement& p) {
    return message_of([&] { const c::dynamic_engine engine(network, p, c::table_of<set>, 1); });
  };
  EXPECT_EQ(why(good), "no error");
  for (std::size_t i = 0; i < 3; ++i) {
    c::placement p = good;
    p.conversions.erase(p.conversions.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(why(p).find("not converted"), std::string::npos) << why(p);
  }
  c::placement p = good;
  p.conversions[0].step.from = "channels-last";
  EXPECT_NE(why(p).find("not converted"), std::string::npos) << why(p);
  p = good;
  p.conversions[1].step.configuration = "0";
  EXPECT_NE(why(p).find("converts other forms"), std::string::npos) << why(p);
  p.conversions[1].step.configuration = "2";
  EXPECT_NE(why(p).find("cannot make this conversion"), std::string::npos) << why(p);
  p = good;
  p.conversions[2].step.backend = "nobody";
  EXPECT_NE(why(p).find("not in this program's set"), std::string::npos) << why(p);
}

/// Places nodes by chance: relu plain or in blocks, concat and slice as a view in either where that is one, and whatever that
/// takes of conversions.
class any_placement : public collage_test::random_placement {
 public:
  any_placement(const c::graph& network, std::mt19937& random) : random_placement(network, random) { place_all(); }

  std::size_t views_of_blocks = 0;

 private:
  void add(std::uint32_t n) override {
    const std::string kind = network_.node(n).kind->name;
    c::plan_group g = group({n}, kind, 0);
    const c::layout& order = random_() % 2 == 0 ? c::plain : c::blocked_8;
    const bool is_view = !c::views_of(network_, n, order).empty();
    if (kind == "relu") {
      kernel_of(g).configuration = order == c::plain ? "0" : "1";
    } else if (is_view && random_() % 8 != 0) {
      g = view_group(n, order);
      views_of_blocks += order == c::plain ? 0U : 1U;
    } else if (kind != "neg") {
      g = kernel_group({n}, "portable", "loops");
    }
    const bool in_order = kind == "relu" || g.is_view();
    for (const std::uint32_t v : network_.view().inputs_of(n)) need(v, in_order ? order : c::plain);
    written_[network_.view().output_of(n)] = in_order ? order : c::plain;
    made.groups.push_back(g);
  }
  void need(std::uint32_t v, const c::form& wanted) override {
    if (written_[v] != wanted && c::find_conversion(made, v, c::to_text(wanted)) == nullptr)
      made.conversions.push_back(conversion(v, written_[v], wanted));
  }
};

TEST(layouts, random_graphs_of_views_agree_with_the_reference) {
  using both = c::backend_set<blocks, c::portable>;
  std::mt19937 random(static_cast<std::uint32_t>(collage_test::fresh_seed()));
  std::size_t views = 0;
  for (unsigned trial = 0; trial < 200; ++trial) {
    c::graph_builder g;
    std::vector<c::value> values{g.input("x", {c::dtype::f32, {1, 16, 2, 4}}),
                                 g.input("y", {c::dtype::f32, {1, 24, 2, 4}})};
    const auto any = [&] { return values[random() % values.size()]; };
    for (std::size_t count = 2 + random() % 25; count > 0; --count) {
      const c::value x = any();
      const std::int64_t channels = g.type_of(x).dims[1];
      switch (random() % 5) {
        case 0:
        case 1: values.push_back(g(op::relu, x)); break;
        case 2: values.push_back(g(op::neg, x)); break;
        case 3: {
          std::vector<c::value> parts{x};
          for (std::size_t k = 1 + random() % 2; k > 0; --k) parts.push_back(any());
          std::int64_t sum = 0;
          for (const c::value v : parts) sum += g.type_of(v).dims[1];
          if (sum < 200) values.push_back(g(op::concat, parts, {.axis = 1}));
          break;
        }
        default: {
          const std::int64_t start = random() % 4 == 0 ? 3 : 8 * static_cast<std::int64_t>(random() % 2);
          const std::int64_t taken = random() % 3 == 0 ? 8 : channels - start;
          if (start + taken <= channels && taken > 0)
            values.push_back(
                g(op::slice, x, {.starts = {0, start, 0, 0}, .steps = {1, 1, 1, 1}, .extents = {1, taken, 2, 4}}));
        }
      }
    }
    g.output("last", values.back());
    g.output("some", any());
    g.output("some more", any());
    const c::graph network = g.finish();
    const any_placement p(network, random);
    views += p.views_of_blocks;
    c::run_buffers memory(network);
    memory.randomise(trial);
    std::vector<std::vector<float>> before;
    for (const c::tensor& t : memory.in) before.emplace_back(t.as<float>().begin(), t.as<float>().end());
    collage_test::expect_agreement(network, {network, p.made, c::table_of<both>, 1}, memory,
                                   "trial " + std::to_string(trial) + ", ");
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(before[i], memory.in[i].as<float>())) << "trial " << trial;
  }
  EXPECT_GT(views, 60U);
}

// ---- Placing ----------------------------------------------------------------------------------------------------------

TEST(layouts, placing_converts_where_it_pays) {
  for (int count = 1; count <= 6; ++count) {
    c::graph_builder g;
    g.output("y", g(op::neg, relus(g, input(g), count)));
    const c::graph network = g.finish();
    const c::plan made = c::place<set>(network, exact_clock());
    const bool pays = 2 * conversion_ms + count * blocked_relu_ms < count * plain_relu_ms;
    EXPECT_EQ(steps_in_blocks(made.chosen), pays ? static_cast<std::size_t>(count) : 0U) << count;
    EXPECT_EQ(made.chosen.conversions.size(), pays ? 2U : 0U) << count;
    const double cost = neg_ms + (pays ? 2 * conversion_ms + count * blocked_relu_ms : count * plain_relu_ms);
    EXPECT_NEAR(made.chosen.cost_ms, cost, 1e-6) << count;
    EXPECT_NEAR(made.runs[0].median_ms, cost, 1e-6) << count;
    EXPECT_NEAR(made.lower_bound_ms, cost, 1e-6) << count;
    EXPECT_TRUE(made.optimal);
    EXPECT_EQ(made.origin, "search");
    const c::verification found = c::verify<set>(network, made);
    EXPECT_TRUE(found) << found.why();
    if (!pays) continue;
    EXPECT_EQ(made.chosen.conversions[0].kernel, "pack");
    EXPECT_EQ(made.chosen.conversions[1].kernel, "unpack");
    EXPECT_DOUBLE_EQ(made.chosen.conversions[0].cost_ms, conversion_ms);
  }
}

/// Where processors may come apart, conversions count twice until that was seen. Two or three relus in blocks do not pay then, but
/// do where they ran.
TEST(layouts, what_is_presumed_of_conversions_keeps_no_kernel_from_a_trial) {
  for (const int count : {1, 2, 3, 4}) {
    c::graph_builder g;
    g.output("y", relus(g, input(g), count));
    const c::graph network = g.finish();
    c::place_options o = exact_clock();
    o.threads = 2;
    o.measuring.splits_caches = true;
    const c::plan made = c::place<set>(network, o);
    EXPECT_EQ(steps_in_blocks(made.chosen), count > 1 ? static_cast<std::size_t>(count) : 0U) << count;
    EXPECT_NEAR(made.runs[0].median_ms, count > 1 ? 2 * conversion_ms + count * blocked_relu_ms : plain_relu_ms, 1e-6)
        << count;
    EXPECT_EQ(made.origin, "search") << count;
  }
}

TEST(layouts, a_preference_is_worth_any_conversion) {
  c::search::problem p{.nodes = 2, .edges = {{0, 1}}, .candidates = {}, .outputs = {1}};
  p.values = {{.producer = 0, .readers = {1}, .is_output = false, .forms = 2, .convert_ms = {0, 50, 50, 0}}};
  p.candidates.push_back({c::search::node_set{0}, 1});
  p.candidates.back().borders = {{0, 1}};
  p.candidates.push_back({c::search::node_set{0}, 1});
  p.candidates.push_back({c::search::node_set{1}, 1});
  const std::uint32_t rank[] = {0, 1, 0};
  const c::search::placement found = c::search::exact_by_rank(p, rank);
  EXPECT_EQ(found.chosen, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_DOUBLE_EQ(found.cost_ms, 52);
}

TEST(layouts, readers_share_a_conversion) {
  c::graph_builder g;
  const c::value a = relus(g, input(g), 4);
  g.output("first", g(op::neg, a));
  g.output("second", g(op::neg, a));
  g.output("third", relus(g, a, 3));
  const c::graph network = g.finish();
  const c::plan made = c::place<set>(network, exact_clock());
  EXPECT_EQ(steps_in_blocks(made.chosen), 7U);
  EXPECT_EQ(made.chosen.conversions.size(), 3U);  // x, a and the third result
  EXPECT_NEAR(made.chosen.cost_ms, 7 * blocked_relu_ms + 2 * neg_ms + 3 * conversion_ms, 1e-6);
  EXPECT_NEAR(made.runs[0].median_ms, made.chosen.cost_ms, 1e-6);
  EXPECT_TRUE(c::verify<set>(network, made));
}

TEST(layouts, reshapes_are_of_plain_values) {
  c::graph_builder g;
  const c::value a = relus(g, input(g), 4);
  const c::value flat = g(op::reshape, a, {.dims = {1, 90}});
  g.output("y", g(op::neg, flat));
  const c::graph network = g.finish();
  const c::plan made = c::place<set>(network, exact_clock());
  EXPECT_EQ(steps_in_blocks(made.chosen), 4U);
  EXPECT_EQ(made.chosen.conversions.size(), 2U);
  const c::verification found = c::verify<set>(network, made);
  EXPECT_TRUE(found) << found.why();
}

/// Two rows of relus, their results joined, and another row of them behind that.
c::graph joined_relus(const c::shape& half, std::int64_t axis) {
  c::graph_builder g;
  const c::value parts[] = {relus(g, g.input("x", {c::dtype::f32, half}), 3),
                            relus(g, g.input("y", {c::dtype::f32, half}), 3)};
  g.output("z", relus(g, g(op::concat, parts, {.axis = axis}), 3));
  return g.finish();
}
/// Joined as a view may be in the plain layout and in blocks.
c::graph joined_channels() { return joined_relus({1, 16, 2, 2}, 1); }
/// The same in channels-last and in blocks, but not in the plain layout.
c::graph joined_rows() { return joined_relus({1, 8, 2, 4}, 2); }

TEST(layouts, views_may_lie_in_blocks) {
  const c::graph network = joined_channels();
  const c::plan made = c::place<set>(network, exact_clock());
  EXPECT_NEAR(made.chosen.cost_ms, 9 * blocked_relu_ms + 3 * conversion_ms, 1e-6);  // what comes in, and what goes out
  EXPECT_NEAR(made.runs[0].median_ms, made.chosen.cost_ms, 1e-6);
  EXPECT_NEAR(made.lower_bound_ms, made.chosen.cost_ms, 1e-6);
  const auto view = std::ranges::find_if(made.chosen.groups, &c::plan_group::is_view);
  ASSERT_NE(view, made.chosen.groups.end());
  EXPECT_EQ(view->layout, "blocked-8");
  EXPECT_EQ(std::get<c::view_step>(view->step).form, "blocked-8");
  EXPECT_EQ(c::engine<set>(network, made).steps().size(), 12U);
  EXPECT_EQ(c::verify<set>(network, made).why(), "");
  const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "plan.json");
  EXPECT_EQ(c::verify<set>(network, read).why(), "");
  // Where nothing may be converted any more, the previous plan still runs, and is faster.
  c::place_options o = exact_clock();
  o.previous = &made;
  o.rules = {{c::place_rule::action::exclude, "blocks", "convert_layout"}};
  const c::plan kept = c::place<set>(network, o);
  EXPECT_EQ(kept.origin, "previous");
  EXPECT_EQ(steps_in_blocks(kept.chosen), 10U);
  // Costs of conversions are not known by rank.
  o = exact_clock();
  o.costs = c::placing_costs::none;
  const c::plan unmeasured = c::place<set>(network, o);
  EXPECT_EQ(std::get<c::view_step>(std::ranges::find_if(unmeasured.chosen.groups, &c::plan_group::is_view)->step).form,
            "plain");
}

TEST(layouts, plans_with_views_in_other_layouts_than_they_can_have_are_refused) {
  const c::graph network = joined_channels();
  c::plan made = c::place<set>(network, exact_clock());
  const auto view = std::ranges::find_if(made.chosen.groups, &c::plan_group::is_view);
  const auto why = [&](const char* form) {
    view_of(*view).form = form;
    return message_of([&] { (void)c::engine<set>(network, made); });
  };
  EXPECT_EQ(why("blocked-8"), "no error");
  EXPECT_NE(why("channels-last").find("as a view in channels-last, which it is not"), std::string::npos);
  EXPECT_NE(why("blocked-4").find("as a view in form blocked-4, which does not exist"), std::string::npos);
  EXPECT_NE(why("plain").find("not converted"), std::string::npos) << why("plain");
}

TEST(layouts, views_that_take_conversions_are_a_last_resort_by_rank) {
  using others = c::backend_set<blocks, plain_loops, c::portable>;
  const c::graph network = joined_rows();
  const auto who_joins = [&](const c::placement& p) {
    for (const c::plan_group& g : p.groups)
      if (network.node(g.nodes.back()).kind->id == c::kind_id<struct op::concat>) return g.backend();
    return std::string();
  };
  const c::plan made = c::place<others>(network, exact_clock());
  for (const c::placement& single : made.singles) {
    EXPECT_EQ(who_joins(single), "portable") << single.name;
    EXPECT_EQ(std::ranges::count(single.borrowed, "concat_6"), single.name == "portable" ? 0 : 1) << single.name;
  }
  // Whose patterns lack a concat still can run it as a view, but not where nothing is measured.
  const c::plan viewed = c::place<set>(network, exact_clock());
  EXPECT_EQ(who_joins(viewed.chosen), c::view_runner);
  EXPECT_EQ(c::verify<set>(network, viewed).why(), "");
  c::place_options o = exact_clock();
  o.costs = c::placing_costs::none;
  try {
    (void)c::place<set>(network, o);
    FAIL() << "was placed";
  } catch (const c::error& e) {
    EXPECT_NE(std::string(e.what()).find("no backend runs concat_6"), std::string::npos) << e.what();
  }
  // Nor where what it takes turns out wrong.
  blocks::packs_wrongly = true;
  EXPECT_THROW((void)c::place<set>(network, exact_clock()), c::error);
  const c::plan plain = c::place<set>(joined_channels(), exact_clock());
  blocks::packs_wrongly = false;
  EXPECT_EQ(steps_in_blocks(plain.chosen), 0U);
}

/// A network for which blocks would pay, placed.
c::plan six_relus(c::place_report& report) {
  c::graph_builder g;
  g.output("y", relus(g, input(g), 6));
  c::place_options o = exact_clock();
  const c::placed_plan made = c::place<set>(g.finish(), o);
  report = made.report;
  return made;
}

TEST(layouts, kernels_that_leave_rubbish_behind_the_channels_are_refused) {
  blocks::forgets_zeros = true;
  c::place_report report;
  const c::plan made = six_relus(report);
  blocks::forgets_zeros = false;
  EXPECT_EQ(steps_in_blocks(made.chosen), 0U);
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.reason.find("the padding of form blocked-8 is not zero") != std::string::npos;
  }));
}

TEST(layouts, what_nobody_converts_any_more_is_not_used) {
  blocks::packs_wrongly = true;
  c::place_report report;
  const c::plan made = six_relus(report);
  blocks::packs_wrongly = false;
  EXPECT_EQ(steps_in_blocks(made.chosen), 0U);
  EXPECT_TRUE(made.chosen.conversions.empty());
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.pattern == "convert_layout" && r.reason.starts_with("wrong result");
  }));
}

TEST(layouts, rules_hold_for_conversions) {
  c::graph_builder g;
  g.output("y", relus(g, input(g), 6));
  const c::graph network = g.finish();
  c::place_options o = exact_clock();
  o.rules = {{c::place_rule::action::exclude, "blocks", "convert_layout"}};
  EXPECT_EQ(steps_in_blocks(c::place<set>(network, o).chosen), 0U);
  o.rules = {{c::place_rule::action::pin, "blocks", "convert_layout"}};
  EXPECT_EQ(steps_in_blocks(c::place<set>(network, o).chosen), 6U);
}

TEST(layouts, values_without_channels_stay_plain) {
  c::graph_builder g;
  g.output("y", relus(g, input(g), 5));
  g.output("z", g(op::relu, g.input("row", {c::dtype::f32, {7}})));
  const c::plan made = c::place<set>(g.finish(), exact_clock());
  EXPECT_EQ(steps_in_blocks(made.chosen), 5U);
  c::value_forms said;
  said.set(3, c::blocked_8);
  said.set(3, c::plain);
  EXPECT_TRUE(said.list().empty());
}

TEST(layouts, plans_without_measuring_have_no_costs) {
  c::graph_builder g;
  g.output("y", g(op::neg, relus(g, input(g), 3)));
  const c::graph network = g.finish();
  c::place_options o = exact_clock();
  o.costs = c::placing_costs::none;
  const c::plan made = c::place<set>(network, o);
  EXPECT_EQ(made.chosen.cost_ms, 0);
  for (const c::plan_conversion& x : made.chosen.conversions) EXPECT_EQ(x.cost_ms, 0);
  EXPECT_TRUE(c::verify<set>(network, made));
}

TEST(layouts, previous_plans_may_have_conversions_that_are_no_more) {
  using both = c::backend_set<blocks, plain_loops>;
  c::graph_builder g;
  g.output("y", g(op::neg, relus(g, input(g), 5)));
  const c::graph network = g.finish();
  const c::plan before = c::place<both>(network, exact_clock());
  ASSERT_EQ(before.chosen.conversions.size(), 2U);
  c::place_options o = exact_clock();
  o.previous = &before;
  const c::plan again = c::place<both>(network, o);
  EXPECT_EQ(again.chosen.conversions.size(), 2U);
  o.rules = {{c::place_rule::action::exclude, "blocks", "convert_layout"}};
  const c::plan without = c::place<both>(network, o);  // the previous one still runs, and is faster
  EXPECT_EQ(without.origin, "previous");
  EXPECT_TRUE(c::verify<both>(network, without));
  o.rules.clear();
  o.backends = {"plain_loops"};
  const c::plan alone = c::place<both>(network, o);  // of what may be used now
  EXPECT_TRUE(alone.chosen.conversions.empty());
  for (const c::plan_group& x : alone.chosen.groups) EXPECT_EQ(x.backend(), "plain_loops");
}

TEST(layouts, plans_and_stores_keep_them) {
  const collage_test::temporary_folder folder;
  c::graph_builder g;
  g.output("y", g(op::neg, relus(g, input(g), 5)));
  const c::graph network = g.finish();
  c::place_options o = exact_clock();
  o.store = folder.path("costs.db");
  o.progress = [](const c::place_progress& p) {
    if (p.stage == std::string("measuring")) { EXPECT_GE(p.remaining, 1U) << p.what; }
  };
  c::place_report report;
  const c::placed_plan made = c::place<set>(network, o);
  report = made.report;
  EXPECT_GT(report.measured, 0U);
  // Conversions are counted apart.
  EXPECT_EQ(report.distinct, report.measured + report.from_store + report.skipped + report.refused);
  EXPECT_TRUE(report.conversions != 0 || made.chosen.conversions.empty());
  const c::placed_plan again = c::place<set>(network, o);
  report = again.report;
  EXPECT_EQ(report.measured, 0U);
  EXPECT_EQ(c::plan_to_json(again, network), c::plan_to_json(made, network));

  const std::string path = folder.path("plan.json");
  c::save_plan(made, network, path);
  const c::plan read = c::load_plan(path, network);
  EXPECT_EQ(c::plan_to_json(read, network), c::plan_to_json(made, network));
  EXPECT_TRUE(c::verify<set>(network, read));

  c::json wrong = c::plan_to_json(made, network);
  wrong["chosen"]["conversions"][0]["from"] = "spiral";
  EXPECT_THROW((void)c::plan_from_json(wrong, network, "plan.json"), c::error);
  wrong = c::plan_to_json(made, network);
  wrong["chosen"]["conversions"][0]["value"] = {999, "x"};
  EXPECT_THROW((void)c::plan_from_json(wrong, network, "plan.json"), c::error);
}

}  // namespace run_layouts_test
