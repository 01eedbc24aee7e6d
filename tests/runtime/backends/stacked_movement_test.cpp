// Stacked against the reference: what puts elements together or around, booleans, reductions over any dimensions, short
// rows, norms of large numbers.
#ifdef COLLAGE_HAS_STACKED
#include "stacked_testing.hpp"

#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace backends_stacked_movement_test {

using namespace collage_test;
using namespace collage_test::stacked_testing;

constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<float>::infinity();

shape with(shape dims, std::size_t axis, std::int64_t extent) {
  dims[axis] = extent;
  return dims;
}

// Movers --------------------------------------------------------------------------------------------------------------------

TEST(stacked_movers, concat_of_arguments_and_of_what_is_computed) {
  stacked_checker check;
  collage_test::some_cases takes;
  for_each_target([&] {
    for (const shape& x : {shape{3, 5, 40}, shape{1, 1}, shape{7, 33}, shape{2, 64, 7, 7}, shape{5}, shape{4, 3, 2}})
      for (std::size_t axis = 0; axis < x.size(); ++axis)
        for (const std::vector<std::int64_t>& extents :
             std::vector<std::vector<std::int64_t>>{{1}, {3, 1}, {0, 2, 70, 0}})
          if (takes())
            check.whole(
                [&](graph_builder& g, data_source& data) {
                  std::vector<value> parts = {g(op::relu, g.input("x", f32(x)))};
                  for (const std::int64_t extent : extents)
                    parts.push_back(g.input("part" + std::to_string(parts.size()), f32(with(x, axis, extent))));
                  parts.push_back(g(op::tanh, parts.back()));
                  const value all = g(op::concat, parts, {.axis = static_cast<std::int64_t>(axis)});
                  const value scale =
                      data.constant(g, "scale", f32(with(shape::filled(x.size(), 1), axis, g.type_of(all).dims[axis])));
                  g.output("y", g(op::relu, g(op::mul, all, scale)));
                },
                {-4, 4, 0.05});
  });
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

TEST(stacked_movers, concat_into_rows) {
  stacked_checker check;
  collage_test::some_cases takes;
  for_each_target([&] {
    for (const std::int64_t rows : {1, 6, 100})
      for (const std::int64_t columns : {1, 2, 31, 5000})
        if (takes())
          check.whole([&](graph_builder& g, data_source&) {
            const value a = g.input("a", f32({rows, columns})), b = g.input("b", f32({rows, 3}));
            const value c = g(op::transpose, g.input("c", f32({7, rows})), {});
            const value zero = g(op::expand, g.scalar("zero", 0), {.dims = {rows, 1}});
            g.output("y", g(op::softmax, g(op::concat, {a, zero, b, c}, {.axis = 1}), {.axis = 1}));
          });
    // Along the first of two dimensions of a row, along the second, and along both; behind it rows of other rows' parts.
    for (const std::int64_t axis : {0, 1, 2, 3})
      check.whole([&](graph_builder& g, data_source& data) {
        const shape x = {2, 3, 4, 9};
        const value a = g.input("a", f32(x)), b = g.input("b", f32(with(x, static_cast<std::size_t>(axis), 5)));
        const value all = g(op::concat, {b, a, b}, {.axis = axis});
        const value twice =
            g(op::pad, all, g.scalar("fill", -2), {.pads_begin = {0, 0, 0, 1}, .pads_end = {0, 0, 2, 0}});
        const shape row = g.type_of(twice).dims.from(2);
        g.output("y", g(op::layer_norm, twice, data.constant(g, "scale", f32(row)), {.axis = 2}));
      });
  });
}

TEST(stacked_movers, halves_turned) {  // as rotary embeddings do
  stacked_checker check;
  for (const std::int64_t half : {1, 8, 32, 100})
    check.whole([&](graph_builder& g, data_source& data) {
      const value x = g.input("x", f32({2, 3, 17, 2 * half}));
      const auto part = [&](std::int64_t first) {
        return g(op::slice, x, {.starts = {0, 0, 0, first}, .steps = {1, 1, 1, 1}, .extents = {2, 3, 17, half}});
      };
      const value turned = g(op::concat, {g(op::neg, part(half)), part(0)}, {.axis = 3});
      const shape angles = {17, 2 * half};
      g.output("y", g(op::add, g(op::mul, x, data.constant(g, "cos", f32(angles))),
                      g(op::mul, turned, data.constant(g, "sin", f32(angles)))));
    });
}

TEST(stacked_movers, pads_and_tiles) {
  stacked_checker check;
  for_each_target([&] {
    for (const op::pad_mode mode :
         {op::pad_mode::constant, op::pad_mode::reflect, op::pad_mode::edge, op::pad_mode::wrap})
      for (const auto& [x, begin, end] :
           std::vector<std::array<shape, 3>>{{shape{2, 3, 9, 40}, {0, 0, 1, 2}, {0, 0, 1, 2}},
                                             {shape{5, 4}, {9, 1}, {0, 11}},
                                             {shape{5, 40}, {-2, -3}, {7, 4}},
                                             {shape{5, 40}, {3, 5}, {-1, -30}},
                                             {shape{1, 1}, {2, 0}, {3, 4}},
                                             {shape{600}, {3}, {3}}}) {
        check.whole([&](graph_builder& g, data_source&) {
          const value in = g(op::exp, g.input("x", f32(x)));
          const value fill = g.scalar("fill", -1.5);
          const op::pad_attributes a{.pads_begin = begin, .pads_end = end, .mode = mode};
          g.output("y", g(op::relu, mode == op::pad_mode::constant ? g(op::pad, in, fill, a) : g(op::pad, in, a)));
        });
        check.whole([&](graph_builder& g, data_source&) {
          const value padded = g(op::pad, g.input("x", f32(x)), {.pads_begin = begin, .pads_end = end, .mode = mode});
          g.output("y", g(op::reduce_mean, padded, {.axes = {-1}}));
        });
      }
    for (const shape& repeats : {shape{1, 1, 3}, shape{2, 1, 1}, shape{2, 3, 2}, shape{1, 0, 1}})
      check.whole([&](graph_builder& g, data_source&) {
        g.output("y", g(op::relu, g(op::tile, g(op::neg, g.input("x", f32({3, 1, 17}))), {.repeats = repeats})));
      });
  });
  graph_builder g;  // a value that is not known before the run
  g.output("y",
           g(op::pad, g.input("x", f32({4, 5})), g.input("fill", f32({})), {.pads_begin = {1, 1}, .pads_end = {1, 1}}));
  EXPECT_TRUE(check(g.finish(), {0}));
}

TEST(stacked_movers, triangles) {
  stacked_checker check;
  for_each_target([&] {
    for (const shape& x : {shape{4, 4}, shape{3, 5, 70}, shape{2, 70, 5}, shape{1, 9}, shape{9, 1}, shape{0, 3},
                           shape{0, 1}, shape{2, 0, 0}})
      for (const std::int64_t k : {-80, -3, 0, 1, 80})
        for (const bool upper : {false, true}) {
          check.whole(
              [&](graph_builder& g, data_source&) {
                const value half = g(op::trilu, g.input("x", f32(x)), {.upper = upper, .k = k});
                g.output("y", g(op::add, half, g.input("z", f32(x))));
              },
              {-4, 4, 0.1});
          check.whole([&](graph_builder& g, data_source&) {  // a mask of what came before
            const value seen = g(op::trilu, g.input("mask", boolean(x)), {.upper = upper, .k = k});
            const value masked = g(op::where, seen, g.input("x", f32(x)), g.scalar("low", -1e9));
            g.output("y", g(op::softmax, masked, {.axis = -1}));
          });
        }
  });
}

TEST(stacked_movers, its_rule_lists_concats) {
  graph_builder g;
  const value x = g.input("x", f32({8, 64})), y = g.input("y", f32({8, 64}));
  const value all = g(op::concat, {g(op::relu, x), y}, {.axis = 0});
  g.output("y", g(op::where, g(op::less, all, g.scalar("zero", 0)), all, g(op::tanh, all)));
  const graph network = g.finish();
  fuse::node_set whole;
  for (const std::uint32_t n : all_nodes(network)) whole.insert(n);
  EXPECT_TRUE(groups_of(network).contains(whole));
}

// Booleans ------------------------------------------------------------------------------------------------------------------

/// Both operands have every pair of awkward numbers.
TEST(stacked_booleans, comparisons_of_awkward_numbers) {
  const std::vector<float> list = {0.0F, -0.0F, 1.0F, -1.0F, 1e-45F, -1e-45F, 3e38F, infinity, -infinity, not_a_number};
  std::vector<float> a, b;
  for (const float x : list)
    for (const float y : list) {
      a.push_back(x);
      b.push_back(y);
    }
  const auto count = static_cast<std::int64_t>(a.size());
  graph_builder g;
  const value x = g.input("x", f32({count})), y = g.input("y", f32({count}));
  std::vector<value> made = {g(op::less, x, y),          g(op::less_equal, x, y), g(op::greater, x, y),
                             g(op::greater_equal, x, y), g(op::equal, x, y),      g(op::is_nan, x),
                             g(op::is_infinite, x)};
  made.push_back(g(op::cast, x, {.to = collage::dtype::boolean}));
  for (std::size_t i = 0; i < made.size(); ++i) g.output("y" + std::to_string(i), made[i]);
  const graph network = g.finish();
  for_each_target([&] {
    collage::packed_weights packed;
    collage::build_context context(network, 1, packed);
    const collage::kernel built = stacked::build(collage::group_of(network, all_nodes(network)), context);
    std::vector<std::vector<std::uint8_t>> found(made.size(), std::vector<std::uint8_t>(a.size(), 77));
    std::vector<void*> out;
    for (std::vector<std::uint8_t>& f : found) out.push_back(f.data());
    const void* const in[] = {a.data(), b.data()};
    const collage::buffer workspace(built.workspace());
    built(collage::kernel_call{in, out.data(), workspace.data()});
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool wanted[] = {a[i]<b[i], a[i] <= b[i], a[i]> b[i],
                             a[i] >= b[i],
                             a[i] == b[i],
                             std::isnan(a[i]),
                             std::isinf(a[i]),
                             a[i] != 0};
      for (std::size_t k = 0; k < made.size(); ++k)
        ASSERT_EQ(found[k][i], wanted[k] ? 1 : 0) << k << " of " << a[i] << ", " << b[i];
    }
  });
}

TEST(stacked_booleans, masks) {
  stacked_checker check;
  for_each_target([&] {
    for (const shape& x : {shape{2, 3, 33}, shape{1, 1}, shape{7, 2}, shape{64, 100}, shape{3, 0}, shape{3, 5000}}) {
      const std::size_t last = x.size() - 1;
      for (const shape& m : {x, with(x, last, 1), x.from(last), with(x, 0, 1), shape{}})
        check.whole(
            [&](graph_builder& g, data_source&) {
              const value in = g.input("x", f32(x)), mask = g.input("mask", boolean(m));
              const value masked = g(op::where, mask, in, g.scalar("low", -1e9));
              g.output("y", g(op::softmax, masked, {.axis = -1}));
            },
            {-4, 4});
      check.whole(
          [&](graph_builder& g, data_source&) {
            const value in = g.input("x", f32(x)), a = g.input("a", boolean(x)),
                        b = g.input("b", boolean(x.from(last)));
            const value positive = g(op::greater, in, g.scalar("zero", 0));
            const value first = g(op::logical_and, g(op::logical_not, a), g(op::logical_or, positive, b));
            const value second = g(op::logical_xor, first, g(op::equal, a, b));
            g.output("first", first);
            g.output("second", second);
            g.output("chosen", g(op::where, second, g(op::cast, a, {.to = collage::dtype::f32}), in));
            g.output("boolean", g(op::where, a, b, positive));
          },
          {-4, 4, 0.1});
      check.whole([&](graph_builder& g, data_source&) {  // one boolean for each row
        const value in = g.input("x", f32(x)), rows = g.input("rows", boolean(with(x, last, 1)));
        const value most = g(op::reduce_max, in, {.axes = {-1}});
        const value is_large = g(op::greater, most, g.scalar("half", 0.5));
        g.output("is_large", is_large);
        g.output("either", g(op::logical_or, is_large, rows));
        g.output("y", g(op::where, is_large, in, most));
      });
    }
    check.whole([&](graph_builder& g, data_source&) {  // moved
      const value turned = g(op::transpose, g.input("a", boolean({40, 37})), {});
      const value part =
          g(op::slice, g.input("b", boolean({37, 90})), {.starts = {36, 1}, .steps = {-1, 2}, .extents = {37, 40}});
      const value all = g(op::concat, {turned, part, turned}, {.axis = 1});
      g.output("all", g(op::logical_not, all));
      g.output("y", g(op::where, all, g.input("x", f32({37, 120})), g.scalar("low", 0)));
    });
    check.whole([&](graph_builder& g, data_source&) {  // put together within rows
      const value all = g(op::concat, {g.input("a", boolean({37, 5})), g.input("b", boolean({37, 90}))}, {.axis = 1});
      g.output("y", g(op::reduce_sum, g(op::cast, all, {.to = collage::dtype::f32}), {.axes = {1}}));
    });
    check.whole([&](graph_builder& g, data_source&) {  // nothing but a number
      g.output("y", g(op::expand, g.scalar("yes", 1, collage::dtype::boolean), {.dims = {3, 40}}));
    });
  });
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

// Rows ----------------------------------------------------------------------------------------------------------------------

TEST(stacked_rows, reductions_over_any_dimensions) {
  stacked_checker check;
  collage_test::some_cases takes;
  for_each_target([&] {
    for (const shape& x :
         {shape{3, 4, 5, 6}, shape{2, 70, 1, 33}, shape{9, 1, 8, 100}, shape{2, 0, 3, 9}, shape{1, 1, 1, 1}})
      for (unsigned axes = 1; axes < 16; ++axes)
        for (const bool keeps : {false, true}) {
          if (!takes()) continue;
          op::reduce_attributes a{.keep_dims = keeps};
          for (std::int64_t i = 0; i < 4; ++i)
            if ((axes >> i & 1U) != 0) a.axes.push_back(i);
          check.whole(
              [&](graph_builder& g, data_source&) {
                const value in = g(op::add, g.input("x", f32(x)), g.input("bias", f32({x[2], 1})));
                g.output("mean", g(op::reduce_mean, g(op::tanh, in), a));
                const value most = g(op::reduce_max, in, a);
                g.output("most", g(op::relu, most));
                g.output("sum", g(op::reduce_log_sum_exp, in, a));
                if (keeps) g.output("y", g(op::sub, in, most));
              },
              {-4, 4, axes % 3 == 0 ? 0.02 : 0});
        }
  });
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

TEST(stacked_rows, neighbours_side_by_side) {
  stacked_checker check;
  for_each_target([&] {
    for (const std::int64_t row : {2, 17, 65, 300})
      for (const std::int64_t beside : {8, 15, 150})
        check.whole([&](graph_builder& g, data_source&) {
          const value x = g.input("x", f32({2, row, beside})), mask = g.input("mask", boolean({row, 1}));
          const value in = g(op::where, mask, x, g.input("z", f32({2, 1, beside})));
          const value mean = g(op::reduce_mean, in, {.axes = {1}});
          g.output("mean", mean);
          g.output("y", g(op::mul, g(op::sub, in, mean), g.input("scale", f32({row, 1}))));
          g.output("above", g(op::greater, in, mean));
          g.output("least", g(op::reduce_min, g(op::exp, in), {.axes = {1}}));
          g.output("squares", g(op::reduce_sum, g(op::mul, in, in), {.axes = {1}, .keep_dims = false}));
        });
  });
}

TEST(stacked_rows, short_ones) {
  stacked_checker check;
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{1, 9},   {1, 700}, {2, 1},    {2, 700}, {3, 8},
                                                                    {3, 600}, {4, 37},  {5, 37},   {6, 9},   {7, 100},
                                                                    {8, 15},  {9, 16},  {16, 200}, {17, 200}};
  for_each_target([&] {
    for (const data_range& range : {ranges()[1], ranges()[3]})
      for (const auto& [row, rows] : sizes) {
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({rows, row}));
              const value biased = g(op::add, x, data.constant(g, "bias", f32({row})));
              const value each = g(op::mul, biased, g.input("scale", f32({rows, 1})));
              g.output("y", g(op::softmax, g(op::where, g.input("mask", boolean({rows, row})), each, x), {.axis = -1}));
              g.output("mean", g(op::reduce_mean, each, {.axes = {-1}}));
            },
            range);
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({rows, row})),
                          turned = g(op::transpose, g.input("t", f32({row, rows})), {});
              const value norm = g(op::layer_norm, g(op::add, x, turned), data.constant(g, "scale", f32({row})),
                                   data.constant(g, "shift", f32({row})), {.axis = -1});
              g.output("norm", norm);
              g.output("is_positive", g(op::greater, norm, g.scalar("zero", 0)));
            },
            range);
        check.whole(
            [&](graph_builder& g, data_source&) {
              const value x = g.input("x", f32({rows, row, 2}));
              const op::slice_attributes turned = {
                  .starts = {0, row - 1, 1}, .steps = {1, -1, 1}, .extents = {rows, row, 1}};
              const value part = g(op::slice, x, turned);
              g.output("y", g(op::log_softmax, part, {.axis = 2}));
              g.output("all", g(op::reduce_max, part, {.axes = {2}}));
            },
            range);
      }
    // Sums that overflow on the way.
    for (const std::int64_t rows : {3, 40})
      check.whole([&](graph_builder& g,
                      data_source&) { g.output("y", g(op::reduce_mean, g.input("x", f32({rows, 3})), {.axes = {1}})); },
                  {1e38, 3e38});
  });
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

/// The norm's squares may be beyond the largest float, and below the smallest.
/// With smaller numbers one row in fifty thousand has a deviation below 3e-39. No float holds its inverse, and the row is infinite.
TEST(stacked_rows, norms_of_large_and_small_numbers) {
  stacked_checker check;
  for_each_target([&] {
    for (const double size : {1e-35, 1e-30, 1e-20, 1e18, 1e20, 1e30, 1.6e38})
      for (const shape& x : {shape{40, 3}, shape{5, 64}, shape{2, 4500}})
        for (const double epsilon : {0.0, 1e-5})
          check.whole(
              [&](graph_builder& g, data_source& data) {
                const value in = g.input("x", f32(x));
                g.output("y", g(op::layer_norm, in, data.constant(g, "scale", f32(x.from(1))),
                                {.axis = -1, .epsilon = epsilon}));
              },
              {-size, size});
  });
}

}  // namespace backends_stacked_movement_test
#endif
