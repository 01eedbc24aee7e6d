// Stacked against the reference: single groups, its rule, what it refuses.
#ifdef COLLAGE_HAS_STACKED
#include "stacked_testing.hpp"

#include <collage/backends/stacked.hpp>
#include <collage/error.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace backends_stacked_test {

using namespace collage_test;
using namespace collage_test::stacked_testing;

TEST(stacked, every_target_is_chosen) {
  for_each_target([] {});
}

value mean_of(graph_builder& g, value x) { return g(op::reduce_mean, x, {.axes = {-1}}); }
/// As exporters spell it: nine operators.
value norm_of(graph_builder& g, data_source& data, value x) {
  const shape scale = g.type_of(x).dims.from(g.type_of(x).dims.size() - 1);
  const value distance = g(op::sub, x, mean_of(g, x));
  const value variance = mean_of(g, g(op::pow, distance, g.scalar("two", 2)));
  const value deviation = g(op::sqrt, g(op::add, variance, g.scalar("epsilon", 1e-5)));
  return g(op::add, g(op::mul, g(op::div, distance, deviation), data.constant(g, "scale", f32(scale))),
           data.constant(g, "shift", f32(scale)));
}
value part_of(graph_builder& g, value x, std::int64_t first, std::int64_t count) {
  const shape dims = g.type_of(x).dims;
  return g(op::slice, x, {.starts = {0, first}, .steps = {1, 1}, .extents = {dims[0], count}});
}

TEST(stacked, transformer_blocks) {
  stacked_checker check;
  collage_test::some_cases takes;
  for_each_target([&] {
    for (const data_range& range : {ranges()[0], ranges()[1]})
      for (const shape& x : {shape{2, 5, 768}, shape{7, 33}, shape{3, 1}, shape{1, 1, 1}, shape{2, 4096},
                             shape{2, 4097}, shape{3, 9001}, shape{0, 5}, shape{64, 16}}) {
        if (!takes()) continue;
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value sum = g(op::add, g.input("x", f32(x)), g.input("y", f32(x)));
              g.output("sum", sum);
              g.output("norm", norm_of(g, data, sum));
            },
            range);
        check.whole(
            [&](graph_builder& g, data_source&) {
              const value scaled = g(op::mul, g.input("x", f32(x)), g.scalar("scale", 0.125));
              g.output("y",
                       g(op::softmax, g(op::add, scaled, g.input("mask", f32(x.from(x.size() - 1)))), {.axis = -1}));
            },
            range);
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value biased =
                  g(op::add, g.input("x", f32(x)), data.constant(g, "bias", f32(x.from(x.size() - 1))));
              const value half = g(op::erf, g(op::div, biased, g.scalar("root", 1.4142135623730951)));
              g.output("y",
                       g(op::mul, biased, g(op::mul, g(op::add, half, g.scalar("one", 1)), g.scalar("half", 0.5))));
            },
            range);
      }
  });
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

TEST(stacked, recurrent_cell_of_slices) {
  stacked_checker check;
  for (const std::int64_t size : {1, 7, 512})
    for (const std::int64_t batch : {1, 3})
      check.whole([&](graph_builder& g, data_source&) {
        const value gates = g.input("gates", f32({batch, 4 * size}));
        const value keep = g(op::sigmoid, part_of(g, gates, size, size));
        const value add =
            g(op::mul, g(op::sigmoid, part_of(g, gates, 0, size)), g(op::tanh, part_of(g, gates, 2 * size, size)));
        const value cell = g(op::add, g(op::mul, keep, g.input("cell", f32({batch, size}))), add);
        g.output("cell_out", cell);
        g.output("hidden", g(op::mul, g(op::sigmoid, part_of(g, gates, 3 * size, size)), g(op::tanh, cell)));
      });
}

TEST(stacked, operands_that_broadcast) {
  stacked_checker check;
  const std::vector<std::pair<shape, shape>> cases = {{{2, 8, 30, 9}, {8, 1, 1}},
                                                      {{2, 8, 9, 40}, {1, 8, 1, 40}},
                                                      {{4, 1, 6}, {1, 5, 1}},
                                                      {{1}, {7, 3}},
                                                      {{}, {}},
                                                      {{5, 300}, {5, 1}},
                                                      {{300}, {70, 1}},
                                                      {{0, 3}, {1, 3}},
                                                      {{4, 0}, {4, 1}},
                                                      {{3, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2}},
                                                      {{1280, 3}, {3}},
                                                      {{2, 3, 5000}, {3, 1}},
                                                      {{1, 64, 56, 56}, {1, 64, 1, 1}}};
  collage_test::some_cases takes;
  for (const auto& [a, b] : cases)
    for (const data_range& range : ranges())
      if (takes())
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32(a)), y = g.input("y", f32(b));
              const value scaled = g(op::add, g(op::mul, x, data.constant(g, "scale", f32(b))), y);
              g.output("positive", g(op::relu, scaled));
              g.output("ratio", g(op::div, g(op::max, y, x), g(op::exp, data.constant(g, "w", f32(b)))));
              g.output("less", g(op::min, g(op::sub, g(op::neg, y), x), scaled));
            },
            range);
}

/// What one group of all operators makes of `x`, on every target.
template <class Write>
void expect_exactly(const std::vector<float>& x, const std::vector<float>& wanted, const Write& write) {
  graph_builder g;
  const value in = g.input("x", f32({static_cast<std::int64_t>(x.size())}));
  g.output("y", write(g, in));
  const graph network = g.finish();
  std::vector<std::uint32_t> nodes(network.nodes().size());
  for (std::uint32_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
  for_each_target([&] {
    collage::packed_weights packed;
    collage::build_context context(network, 1, packed);
    const collage::node_group group = collage::group_of(network, nodes);
    const collage::kernel made = collage::stacked::build(group, context);
    collage::buffer workspace(made.workspace());
    std::vector<float> y(wanted.size());
    std::vector<const void*> read;
    for (const std::uint32_t v : group.arguments)
      read.push_back(network.at(v).role == collage::value_role::constant
                         ? static_cast<const void*>(network.bytes_of(v).data())
                         : x.data());
    void* const written[] = {y.data()};
    made({read.data(), written, workspace.data()});
    EXPECT_EQ(y, wanted) << made.name();
  });
}

TEST(stacked, quotients_are_exact) {
  std::vector<float> x, whole;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(static_cast<float>(i));
    whole.push_back(static_cast<float>(i / 41));
  }
  expect_exactly(x, whole, [](graph_builder& g, value v) { return g(op::floor, g(op::div, v, g.scalar("by", 41))); });
}

TEST(stacked, differences_of_equal_products_vanish) {
  std::vector<float> x;
  for (int i = 0; i < 100; ++i) x.push_back(0.1F + 0.37F * static_cast<float>(i));
  expect_exactly(x, std::vector<float>(x.size(), 0.0F), [](graph_builder& g, value v) {
    return g(op::sqrt, g(op::add, g(op::mul, v, v), g(op::mul, g(op::neg, v), v)));
  });
}

TEST(stacked, means_of_large_squares_are_finite) {
  stacked_checker check;
  for (const float size : {1e4F, 9e18F})
    for (const std::int64_t columns : {100, 771})
      check.whole(
          [&](graph_builder& g, data_source&) {
            const value x = g.input("x", f32({16, columns}));
            const value large = g(op::add, x, g.scalar("mean", static_cast<double>(size)));
            g.output("squares", g(op::reduce_mean, g(op::mul, large, large), {.axes = {1}}));
          },
          ranges()[0]);
}

TEST(stacked, rows) {
  stacked_checker check;
  for (const data_range& range : ranges())
    for (const shape& x : {shape{3, 4, 5, 6}, shape{1, 256, 7, 7}, shape{5, 1, 7, 1}, shape{2, 3, 70, 70},
                           shape{2, 2, 0, 3}, shape{0, 2, 3, 3}, shape{1, 1, 1, 1}})
      for (const bool keeps : {false, true}) {
        const auto fold = [&](const auto& kind) {
          check.whole(
              [&](graph_builder& g, data_source&) {
                const value folded = g(kind, g(op::relu, g.input("x", f32(x))), {.axes = {2, 3}, .keep_dims = keeps});
                g.output("y", g(op::add, folded, g.input("z", f32(g.type_of(folded).dims))));
              },
              range);
        };
        fold(op::reduce_sum);
        fold(op::reduce_mean);
        fold(op::reduce_max);
        fold(op::reduce_min);
      }
  // A sum that overflows on the way, and a mean that does not.
  check.whole([](graph_builder& g,
                 data_source&) { g.output("y", g(op::reduce_mean, g.input("x", f32({3, 100})), {.axes = {1}})); },
              {1e38, 3e38});
}

TEST(stacked, movers) {
  stacked_checker check;
  for (const shape& x : {shape{5, 7}, shape{64, 48}, shape{200, 300}, shape{1, 1}, shape{0, 3}, shape{3000, 2}})
    check.whole([&](graph_builder& g, data_source&) {
      const value in = g.input("x", f32(x));
      g.output("y", g(op::relu, g(op::transpose, in, {})));
    });
  check.whole([](graph_builder& g, data_source&) {  // a transpose and what it is made of
    const value x = g(op::exp, g.input("x", f32({6, 6})));
    g.output("y", g(op::add, x, g(op::transpose, x, {})));
  });
  check.whole([](graph_builder& g, data_source&) {
    g.output("y", g(op::expand,
                    g(op::slice, g.input("x", f32({9, 5})), {.starts = {8, 2}, .steps = {-3, 1}, .extents = {3, 1}}),
                    {.dims = {4, 3, 6}}));
  });
  check.whole([](graph_builder& g, data_source&) {  // nothing but numbers
    g.output("y", g(op::expand, g(op::exp, g.scalar("c", 2)), {.dims = {3, 40}}));
  });
}

// Rules and refusals ----------------------------------------------------------------------------------------------------------

TEST(stacked, takes_what_it_computes) {
  graph_builder g;
  const value x = g.input("x", f32({2, 6})), i = g.input("i", {collage::dtype::i64, {2, 6}});
  const value yes = g.input("yes", {collage::dtype::boolean, {2, 6}});
  g.output("0", g(op::add, x, x));
  g.output("1", g(op::add, i, i));
  g.output("2", g(op::less, x, x));
  g.output("3", g(op::where, yes, x, x));
  g.output("4", g(op::softmax, x, {.axis = 1}));
  g.output("5", g(op::softmax, x, {.axis = 0}));
  g.output("6", g(op::reduce_sum, x, {.axes = {0, 1}}));
  g.output("7", g(op::reduce_sum, x, {.axes = {0}}));
  g.output("8", g(op::reshape, x, {.dims = {3, 4}}));
  g.output("9", g(op::concat, {x, x}, {.axis = 0}));
  g.output("10", g(op::transpose, x, {}));
  g.output("11", g(op::matmul, x, g(op::transpose, x, {})));
  g.output("12", g(op::add, g.input("n", f32({collage::unknown, 6})), x));
  g.output("13", g(op::add, yes, yes));
  g.output("14", g(op::logical_xor, yes, yes));
  g.output("15", g(op::equal, yes, yes));
  g.output("16", g(op::equal, i, i));
  g.output("17", g(op::cast, yes, {.to = collage::dtype::f32}));
  g.output("18", g(op::cast, x, {.to = collage::dtype::boolean}));
  g.output("19", g(op::cast, i, {.to = collage::dtype::f32}));
  g.output("20", g(op::concat, {yes, yes}, {.axis = 0}));
  g.output("21", g(op::pad, x, {.pads_begin = {1, 0}, .pads_end = {0, 0}}));
  g.output("22", g(op::tile, x, {.repeats = {1, 2}}));
  g.output("23", g(op::trilu, yes));
  g.output("24", g(op::gather, x, i, {.axis = 0}));
  g.output("25", g(op::reduce_log_sum_exp, x, {.axes = {1}}));
  g.output("26", g(op::arg_max, x));
  const graph network = g.finish();
  std::string taken;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) taken += stacked::takes(network, n) ? '1' : '0';
  EXPECT_EQ(taken, "1011101101110001101101111010");
}

TEST(stacked, refuses_what_is_no_group_of_its_rule) {
  stacked_checker check;
  const auto refusal = [&](const std::function<void(graph_builder&)>& build) -> std::string {
    graph_builder g;
    build(g);
    const graph network = g.finish();
    collage::packed_weights packed;
    collage::build_context context(network, 1, packed);
    try {
      stacked::build(collage::group_of(network, all_nodes(network)), context);
    } catch (const collage::error& e) {
      EXPECT_EQ(e.kind(), collage::error_kind::unsupported);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](graph_builder& g) {
              const value x = g.input("x", f32({4, 6}));
              g.output("y", g(op::softmax, g(op::transpose, g(op::softmax, x, {.axis = 1}), {}), {.axis = 1}));
            }),
            "stacked: its operators reduce rows of different shapes");
  EXPECT_EQ(refusal([](graph_builder& g) {
              g.output("y", g(op::transpose, g(op::softmax, g.input("x", f32({4, 4})), {.axis = 1}), {}));
            }),
            "stacked: a result of its rows is read in another order or at other rows");
  EXPECT_EQ(refusal([](graph_builder& g) {
              const value x = g.input("x", f32({4, 6}));
              g.output("y", g(op::relu, x));
              g.output("z", g(op::transpose, x, {}));
            }),
            "stacked: its outputs have different shapes");
  EXPECT_EQ(refusal([](graph_builder& g) {
              const value x = g.input("x", f32({4, 6}));
              g.output("y", g(op::softmax, g(op::concat, {g(op::relu, x), x}, {.axis = 1}), {.axis = 1}));
            }),
            "stacked: a concatenation of rows reads values that the group computes");
  EXPECT_EQ(refusal([](graph_builder& g) {
              std::vector<value> many(100, g.input("x", f32({4, 6})));
              g.output("y", g(op::relu, g(op::concat, many, {.axis = 0})));
            }),
            "stacked: it concatenates too many parts");
  EXPECT_EQ(refusal([](graph_builder& g) {
              g.output("y", g(op::matmul, g.input("x", f32({4, 6})), g.input("z", f32({6, 4}))));
            }),
            "stacked: it does not compute matmul_0");
}

TEST(stacked, says_what_it_does_not_read) {
  graph_builder g;
  const value x = g.input("x", f32({2, 6}));
  g.output("y", g(op::add, g(op::mul, g.scalar("two", 2), x), g.scalar("one", 1)));
  const graph network = g.finish();
  collage::packed_weights packed;
  collage::build_context context(network, 1, packed);
  const collage::node_group group = collage::group_of(network, all_nodes(network));
  const collage::kernel built = stacked::build(group, context);
  ASSERT_EQ(group.arguments.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(built.reads(i), group.arguments[i] == x.index);
}

TEST(stacked, its_rule_lists_trees_and_several_outputs) {
  graph_builder g;
  data_source data;
  const value sum = g(op::add, g.input("x", f32({8, 64})), g.input("y", f32({8, 64})));
  g.output("sum", sum);
  g.output("norm", norm_of(g, data, sum));
  const graph network = g.finish();
  const fuse::group_list groups = groups_of(network);
  fuse::node_set whole;
  for (const std::uint32_t n : all_nodes(network)) {
    whole.insert(n);
    EXPECT_TRUE(groups.contains({n}));
  }
  EXPECT_TRUE(groups.contains(whole));
}

}  // namespace backends_stacked_test
#endif
