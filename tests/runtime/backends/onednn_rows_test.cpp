// oneDNN's poolings, rows, elementwise operators and movements against the reference. Where this build is without
// oneDNN there is nothing to test.
#ifdef COLLAGE_HAS_ONEDNN
#include "onednn_fixture.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace backends_onednn_rows_test {

using namespace collage_test;

class onednn_rows_test : public onednn_test {
 protected:
  void expect_all_layouts() const {
    EXPECT_TRUE(built_as(" blocked-16") || built_as(" blocked-8"));
    EXPECT_TRUE(built_as(" channels-last"));
  }
};
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Poolings of rank 1 to 3, ordinary and odd.
struct pool_case {
  shape x;
  op::pool_attributes a;
};
std::vector<pool_case> pool_cases() {
  return {
      {{1, 16, 12, 12}, {.window = {2, 2}, .strides = {2, 2}}},
      {{2, 5, 13, 17}, {.window = {3, 3}, .strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}}},
      {{1, 3, 9, 8}, {.window = {3, 2}, .strides = {1, 3}, .pads_begin = {0, 1}, .pads_end = {2, 0}}},
      {{1, 3, 10, 11}, {.window = {3, 3}, .strides = {2, 2}, .round_up = true}},
      {{1, 3, 10, 11}, {.window = {3, 3}, .strides = {2, 2}, .round_up = true, .count_padding = true}},
      {{1, 3, 10, 10}, {.window = {2, 2}, .strides = {5, 5}}},
      {{1, 20, 7, 7}, {.window = {7, 7}}},
      {{1, 20, 8, 8}, {.window = {3, 3}, .pads_begin = {2, 2}, .pads_end = {2, 2}, .count_padding = true}},
      {{1, 20, 8, 8}, {.window = {3, 3}, .dilations = {2, 2}}},
      {{1, 1, 1, 1}, {.window = {1, 1}}},
      {{2, 6, 30}, {.window = {4}, .strides = {3}, .pads_begin = {1}, .pads_end = {2}}},
      {{1, 4, 5, 6, 7}, {.window = {2, 3, 2}, .strides = {2, 1, 2}, .pads_begin = {0, 1, 1}, .pads_end = {1, 1, 0}}},
      {{0, 4, 5, 6}, {.window = {2, 2}}},
  };
}

TEST_F(onednn_rows_test, pooling) {
  for (const pool_case& c : pool_cases())
    for (const check_options* options : {&lenient, &special}) {
      check([&](graph_builder& g, data_source&) { return g(op::max_pool, g.input("x", f32(c.x)), c.a); }, *options);
      check([&](graph_builder& g, data_source&) { return g(op::average_pool, g.input("x", f32(c.x)), c.a); }, *options);
    }
  check(  // windows of nothing but -infinity
      [&](graph_builder& g, data_source& data) {
        return g(op::max_pool, data.constant(g, "x", f32({1, 3, 9, 9}), {-infinity, -infinity}), {.window = {3, 3}});
      },
      lenient);
  for (const char* pattern : {"max_pool", "average_pool"}) EXPECT_GT(check.checked(pattern), 18U) << pattern;
  expect_all_layouts();
  EXPECT_EQ(check.refused("max_pool"), 4U);  // dilated and empty
}

TEST_F(onednn_rows_test, rows) {
  lenient.range.low = special.range.low = 0;  // sums that cancel out say nothing
  const shape shapes[] = {{7}, {1, 1}, {5, 3}, {3, 1, 33}, {2, 3, 4, 65}, {128, 256}, {4, 0, 5}, {300, 7}};
  for (const shape& s : shapes)
    for (const check_options* options : {&lenient, &special}) {
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(s.size()); ++axis)
        check([&](graph_builder& g, data_source&) { return g(op::softmax, g.input("x", f32(s)), {.axis = axis}); },
              *options);
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(s.size()); ++axis)
        for (const bool bias : {false, true})
          check(
              [&](graph_builder& g, data_source& data) {
                const shape row = s.from(static_cast<std::size_t>(axis));
                const value x = g.input("x", f32(s));
                const value scale = data.constant(g, "scale", f32(row));
                if (!bias) return g(op::layer_norm, x, scale, {.axis = axis});
                return g(op::layer_norm, x, scale, g.input("bias", f32(row)), {.axis = axis, .epsilon = 1e-3});
              },
              *options);
      for (std::int64_t first = 0; first < static_cast<std::int64_t>(s.size()); ++first)
        for (std::int64_t last = first; last < static_cast<std::int64_t>(s.size()); ++last) {
          shape axes;
          for (std::int64_t a = first; a <= last; ++a) axes.push_back(a);
          check(
              [&](graph_builder& g, data_source&) { return g(op::reduce_mean, g.input("x", f32(s)), {.axes = axes}); },
              *options);
          check(
              [&](graph_builder& g, data_source&) {
                return g(op::reduce_sum, g.input("x", f32(s)), {.axes = axes, .keep_dims = false});
              },
              *options);
        }
    }
  for (const char* pattern : {"softmax", "layer_norm", "reduce_mean", "reduce_sum"})
    EXPECT_GE(check.checked(pattern), 16U) << pattern;
  EXPECT_GT(check.refused("softmax"), 0U);
  EXPECT_GT(check.refused("reduce_mean"), 0U);
}

TEST_F(onednn_rows_test, norms_of_instances_and_groups) {
  lenient.range.low = special.range.low = 0;
  struct norm_case {
    shape x, scale;
    std::int64_t axis;
  };
  const norm_case list[] = {{{2, 5, 7, 9}, {5, 1, 1}, 2},  // instances
                            {{1, 64, 100}, {64, 1}, 2},
                            {{3, 4, 6, 35}, {4, 6, 1}, 2},  // groups, one scale for each channel
                            {{3, 4, 6, 35}, {4, 1, 1}, 2},  // groups, one scale for each
                            {{2, 3, 4, 5, 6}, {3, 1, 1, 1}, 2},
                            {{4, 33}, {1}, 1},  // one scale in all
                            {{4, 33}, {4, 1}, 1},
                            {{2, 6, 8}, {2, 6, 8}, 2},
                            {{2, 1, 8}, {2, 1, 1}, 1},
                            {{5, 7, 1}, {7, 1}, 2}};
  for (const norm_case& c : list)
    for (const check_options* options : {&lenient, &special})
      for (const bool bias : {false, true})
        for (const bool constant : {false, true})
          check(
              [&](graph_builder& g, data_source& data) {
                const value x = g.input("x", f32(c.x));
                const value scale = constant ? data.constant(g, "scale", f32(c.scale)) : g.input("scale", f32(c.scale));
                if (!bias) return g(op::layer_norm, x, scale, {.axis = c.axis});
                return g(op::layer_norm, x, scale, g.input("bias", f32(c.scale)), {.axis = c.axis, .epsilon = 1e-3});
              },
              *options);
  EXPECT_EQ(check.checked("layer_norm"), std::size(list) * 8);
  EXPECT_TRUE(built_as(" scaled afterwards"));
  check(
      [](graph_builder& g, data_source&) {
        return g(op::layer_norm, g.input("x", f32({4, 33})), g.input("scale", f32({4, 1})), g.input("bias", f32({1})),
                 {.axis = 1});
      },
      lenient);
  EXPECT_EQ(check.refused("layer_norm"), 1U);
}

TEST_F(onednn_rows_test, elementwise) {
  const shape shapes[] = {{}, {1}, {5, 3}, {2, 3, 4, 65}, {100, 257}, {4, 0, 5}, {2, 21, 5, 3}, {1, 16, 2, 3, 5}};
  const auto each = [&](const auto& kind, const auto& attributes) {
    for (const shape& s : shapes)
      for (const check_options* options : {&lenient, &special})
        check([&](graph_builder& g, data_source&) { return g(kind, g.input("x", f32(s)), attributes); }, *options);
  };
  each(op::relu, collage::no_attributes{});
  each(op::sigmoid, collage::no_attributes{});
  each(op::tanh, collage::no_attributes{});
  each(op::sqrt, collage::no_attributes{});
  each(op::reciprocal, collage::no_attributes{});
  each(op::neg, collage::no_attributes{});
  each(op::abs, collage::no_attributes{});
  for (const double alpha : {-0.5, 0.0, 0.01, 2.0}) {
    each(op::leaky_relu, op::alpha_attributes{alpha});
    each(op::elu, op::alpha_attributes{alpha});
  }
  for (const char* pattern : {"relu", "sigmoid", "tanh", "sqrt", "reciprocal", "neg", "abs", "leaky_relu", "elu"})
    EXPECT_GE(check.checked(pattern), 14U) << pattern;
  EXPECT_GE(check.in_place(), 100U);
  expect_all_layouts();
}

TEST_F(onednn_rows_test, two_operands) {
  struct shapes {
    shape a, b;
  };
  const shapes list[] = {{{5, 7}, {5, 7}},
                         {{2, 3, 4, 5}, {1, 3, 1, 1}},
                         {{2, 21, 4, 5}, {2, 21, 4, 5}},
                         {{128, 96}, {96}},
                         {{40, 30}, {}},
                         {{4, 5, 6}, {4, 1, 6}},
                         {{4, 5, 6}, {5, 1}},
                         {{4, 5, 6}, {4, 1, 1}},
                         {{2, 3, 4, 5, 6}, {3, 1, 5, 1}},
                         {{}, {}},
                         {{1, 1}, {1}},
                         {{3, 0}, {3, 1}},
                         {{4, 1, 8}, {1, 5, 8}}};
  const auto each = [&](const auto& kind) {
    for (const shapes& s : list)
      for (const check_options* options : {&lenient, &special}) {
        check([&](graph_builder& g, data_source&) { return g(kind, g.input("a", f32(s.a)), g.input("b", f32(s.b))); },
              *options);
        check([&](graph_builder& g, data_source&) { return g(kind, g.input("b", f32(s.b)), g.input("a", f32(s.a))); },
              *options);
        check([&](graph_builder& g,
                  data_source& data) { return g(kind, g.input("a", f32(s.a)), data.constant(g, "b", f32(s.b))); },
              *options);
      }
    check([&](graph_builder& g, data_source&) {
      const value x = g.input("x", f32({6, 7}));
      return g(kind, x, x);
    });
  };
  each(op::add);
  each(op::sub);
  each(op::mul);
  each(op::div);
  for (const char* pattern : {"add", "sub", "mul", "div"}) EXPECT_GT(check.checked(pattern), 40U) << pattern;
  EXPECT_GE(check.in_place(), 100U);
  expect_all_layouts();
}

TEST_F(onednn_rows_test, resizing) {
  using enum op::resize_coordinates;
  using enum op::resize_rounding;
  struct sizes {
    shape from, to;
  };
  const sizes list[] = {
      {{1, 8, 6, 6}, {1, 8, 12, 12}},      {{2, 3, 5, 7}, {2, 3, 15, 14}}, {{1, 3, 5, 7}, {1, 3, 8, 11}},
      {{1, 3, 9, 8}, {1, 3, 3, 4}},        {{1, 3, 9, 8}, {1, 3, 1, 5}},   {{1, 4, 6}, {1, 4, 18}},
      {{1, 2, 3, 4, 5}, {1, 2, 6, 4, 10}}, {{1, 3, 4, 4}, {1, 6, 4, 4}},   {{3, 4}, {6, 8}}};
  for (const sizes& s : list)
    for (const auto mode : {op::resize_mode::nearest, op::resize_mode::linear})
      for (const auto coordinates : {half_pixel, asymmetric, align_corners, pytorch_half_pixel})
        for (const auto rounding : {prefer_floor, prefer_ceil, down, up})
          for (const check_options* options : {&lenient, &special}) {
            if (mode == op::resize_mode::linear && (options == &special || rounding != down)) continue;
            check(
                [&](graph_builder& g, data_source&) {
                  return g(op::resize, g.input("x", f32(s.from)), {s.to, mode, coordinates, rounding});
                },
                *options);
          }
  EXPECT_GT(check.checked("resize"), 40U);
  EXPECT_GT(check.refused("resize"), 40U);
}

TEST_F(onednn_rows_test, movement) {
  const auto concat = [&](std::vector<shape> parts, std::int64_t axis) {
    check(
        [&](graph_builder& g, data_source& data) {
          std::vector<value> list;
          for (const shape& s : parts) {
            const std::string name = "x" + std::to_string(list.size());
            list.push_back(list.size() == 2 ? data.constant(g, name, f32(s)) : g.input(name.c_str(), f32(s)));
          }
          if (parts.size() == 2 && parts[0] == parts[1]) list[1] = list[0];
          return g(op::concat, std::span<const value>(list), {.axis = axis});
        },
        special);
  };
  concat({{2, 3, 4}, {2, 5, 4}, {2, 1, 4}}, 1);
  concat({{2, 3, 4}, {2, 3, 4}}, 0);
  concat({{2, 3, 4}, {2, 3, 4}}, 2);
  concat({{7}, {1}, {64}}, 0);
  concat({{5, 5}}, 1);
  concat(std::vector<shape>(40, {3, 2}), 1);
  concat({{2, 16, 3, 5}, {2, 32, 3, 5}}, 1);
  concat({{2, 17, 3, 5}, {2, 20, 3, 5}}, 1);  // no whole blocks
  const auto transpose = [&](const shape& s, const shape& permutation) {
    check([&](graph_builder& g,
              data_source&) { return g(op::transpose, g.input("x", f32(s)), {.permutation = permutation}); },
          special);
  };
  transpose({3, 5}, {});
  transpose({1, 128, 12, 64}, {0, 2, 1, 3});
  transpose({1, 64, 8, 32}, {0, 2, 3, 1});
  transpose({2, 3, 4, 5, 6}, {4, 2, 0, 3, 1});
  transpose({2, 3, 2, 3, 2, 3, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0});
  transpose({1, 7, 1}, {2, 0, 1});
  transpose({}, {});
  transpose({0, 7}, {1, 0});
  EXPECT_EQ(check.checked("concat"), 8U);
  expect_all_layouts();
  EXPECT_EQ(check.checked("transpose"), 7U);
}

}  // namespace backends_onednn_rows_test
#endif
