// Eigen's rows, movers and elementwise kernels against the reference.
#ifdef COLLAGE_HAS_EIGEN
#include "eigen_fixture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace backends_eigen_elements_test {

using namespace collage_test;

// Rows ------------------------------------------------------------------------------------------------------------------

TEST_F(eigen_test, softmax) {
  for (const check_options& options : {check_options{}, specials, check_options{.range = {-90, 90, 0}}})
    for (const auto& [x, axis] : std::vector<std::pair<shape, std::int64_t>>{{{7, 33}, -1},
                                                                             {{2, 3, 64}, 2},
                                                                             {{5, 7, 3}, 1},
                                                                             {{5, 300, 3}, -2},
                                                                             {{6, 700}, 0},
                                                                             {{9}, 0},
                                                                             {{4, 1}, 1},
                                                                             {{1, 1}, 0},
                                                                             {{0, 5}, 1},
                                                                             {{5, 0}, 1},
                                                                             {{12, 80, 80}, -1}}) {
      one(op::softmax, {x}, {.axis = axis}, options);
      check(
          [&](graph_builder& g, data_source&) {
            return g(op::softmax, g(op::div, g.input("x", f32(x)), g.scalar("scale", 8)), {.axis = axis});
          },
          options);
      if (options.range.high > 10) continue;  // float32 cannot hold such products closely enough for an exponential
      check(
          [&](graph_builder& g, data_source&) {
            return g(op::softmax, g(op::mul, g.input("scale", f32(x)), g.input("x", f32(x))), {.axis = axis});
          },
          options);
    }
  EXPECT_GT(check.checked("scaled_softmax"), 0U);
}

TEST_F(eigen_test, layer_norm) {
  for (const check_options& options : {check_options{}, specials}) {
    one(op::layer_norm, {{5, 40}, {40}, {40}}, {}, options);
    one(op::layer_norm, {{5, 40}, {40}}, {.epsilon = 1e-12}, options);
    one(op::layer_norm, {{2, 3, 4, 50}, {4, 50}, {50}}, {.axis = -2}, options);
    one(op::layer_norm, {{2, 3, 5}, {3, 1}, {1}}, {.axis = 1, .epsilon = 0.1}, options);
    one(op::layer_norm, {{2, 3, 5}, {2, 1, 5}, {}}, {.axis = 2}, options);  // another scale for each row
    one(op::layer_norm, {{3, 1}, {1}, {1}}, {}, options);
    one(op::layer_norm, {{0, 4}, {4}, {4}}, {}, options);
    one(op::layer_norm, {{64, 300}, {300}, {300}}, {}, options);
    check(
        [](graph_builder& g, data_source& data) {
          const value sum = g(op::add, g.input("x", f32({6, 70})), g.input("y", f32({6, 70})));
          return g(op::layer_norm, sum, data.constant(g, "scale", f32({70})), g.scalar("shift", 0.25));
        },
        options);
  }
  EXPECT_GT(check.checked("add_layer_norm"), 0U);
}

TEST_F(eigen_test, reductions) {
  const std::vector<std::pair<shape, op::reduce_attributes>> cases = {
      {{7, 33}, {}},
      {{7, 33}, {.axes = {1}}},
      {{7, 33}, {.axes = {0}, .keep_dims = false}},
      {{3, 4, 5, 6}, {.axes = {2, 3}}},
      {{3, 4, 5, 6}, {.axes = {0, 2}, .keep_dims = false}},
      {{3, 4, 5, 6}, {.axes = {1, -1}}},
      {{3, 4, 5, 6}, {.axes = {1, 2}}},
      {{2, 3000}, {.axes = {0}}},
      {{1, 1, 1}, {}},
      {{}, {}},
      {{5, 1, 7}, {.axes = {1}}},
      {{5, 1, 7}, {.axes = {1, 2}}},
      {{0, 5}, {.axes = {0}}},
      {{5, 0}, {.axes = {1}}},
      {{5, 0}, {.axes = {0}}},
      {{1, 256, 30, 30}, {.axes = {2, 3}}},
  };
  for (const auto& [x, attributes] : cases)
    for (const check_options& options : {check_options{}, specials}) {
      one(op::reduce_sum, {x}, attributes, options);
      one(op::reduce_mean, {x}, attributes, options);
      one(op::reduce_max, {x}, attributes, options);
      one(op::reduce_min, {x}, attributes, options);
    }
}

// Movement --------------------------------------------------------------------------------------------------------------

TEST_F(eigen_test, transpose) {
  const std::vector<std::pair<shape, shape>> cases = {{{5, 7}, {}},
                                                      {{64, 48}, {1, 0}},
                                                      {{1, 12, 6, 64}, {0, 2, 1, 3}},
                                                      {{1, 20, 3, 33}, {0, 2, 3, 1}},
                                                      {{2, 3, 4, 5}, {3, 1, 0, 2}},
                                                      {{2, 3, 4, 5}, {1, 0, 3, 2}},
                                                      {{2, 3, 4}, {0, 1, 2}},
                                                      {{6}, {}},
                                                      {{}, {}},
                                                      {{0, 3}, {1, 0}},
                                                      {{1, 1}, {1, 0}},
                                                      {{3, 1, 5}, {2, 1, 0}},
                                                      {{2, 2, 2, 2, 2, 2}, {5, 3, 1, 0, 2, 4}},
                                                      {{200, 300}, {1, 0}},
                                                      {{70, 2, 90}, {2, 1, 0}}};
  for (const auto& [x, permutation] : cases) {
    for (const collage::dtype type :
         {collage::dtype::f32, collage::dtype::i64, collage::dtype::u8, collage::dtype::i16})
      one(op::transpose, {x}, {.permutation = permutation}, {}, type);
    one(op::transpose, {x}, {.permutation = permutation}, specials);
  }
  for (int i = 0; i < 40; ++i) {
    const shape x = check.data().extents(static_cast<std::size_t>(check.data().number(2, 5)), 1, 20);
    shape permutation;
    for (std::size_t d = 0; d < x.size(); ++d) permutation.push_back(static_cast<std::int64_t>(d));
    for (std::size_t d = x.size(); d-- > 1;) {
      const auto other = static_cast<std::size_t>(check.data().number(0, static_cast<std::int64_t>(d)));
      std::swap(permutation[d], permutation[other]);
    }
    one(op::transpose, {x}, {.permutation = permutation});
  }
}

TEST_F(eigen_test, concat) {
  for (const collage::dtype type : {collage::dtype::f32, collage::dtype::i64, collage::dtype::boolean}) {
    one(op::concat, {{3, 4}}, {.axis = 0}, {}, type);
    one(op::concat, {{3, 4}, {5, 4}, {1, 4}}, {.axis = 0}, {}, type);
    one(op::concat, {{3, 4}, {3, 7}}, {.axis = -1}, {}, type);
    one(op::concat, {{2, 3, 5}, {2, 1, 5}, {2, 0, 5}, {2, 4, 5}}, {.axis = 1}, {}, type);
    one(op::concat, {{1, 8, 40, 40}, {1, 16, 40, 40}, {1, 24, 40, 40}}, {.axis = 1}, {}, type);
    one(op::concat, {{0}, {0}}, {.axis = 0}, {}, type);
    check([&](graph_builder& g, data_source&) {  // the same operand twice
      const value x = g.input("x", {type, {3, 4}});
      return g(op::concat, {x, x}, {.axis = 1});
    });
  }
}

TEST_F(eigen_test, resize) {
  using mode = op::resize_mode;
  using how = op::resize_coordinates;
  using rounding = op::resize_rounding;
  const std::vector<std::pair<shape, shape>> cases = {{{1, 2, 5, 7}, {1, 2, 10, 14}},
                                                      {{1, 2, 5, 7}, {1, 2, 8, 3}},
                                                      {{1, 3, 6, 40}, {1, 3, 6, 80}},
                                                      {{1, 3, 6, 40}, {1, 3, 12, 40}},
                                                      {{2, 3, 4, 5, 6}, {2, 3, 7, 5, 9}},
                                                      {{4}, {9}},
                                                      {{3, 3}, {1, 1}},
                                                      {{1, 1, 1}, {1, 4, 4}},
                                                      {{0, 4}, {0, 8}},
                                                      {{2, 5}, {2, 5}},
                                                      {{}, {}}};
  for (const auto& [x, y] : cases)
    for (const how coordinates : {how::half_pixel, how::asymmetric, how::align_corners, how::pytorch_half_pixel}) {
      one(op::resize, {x}, {.sizes = y, .mode = mode::linear, .coordinates = coordinates});
      one(op::resize, {x}, {.sizes = y, .mode = mode::linear, .coordinates = coordinates}, specials);
      for (const rounding r : {rounding::prefer_floor, rounding::prefer_ceil, rounding::down, rounding::up})
        for (const collage::dtype type : {collage::dtype::f32, collage::dtype::i64})
          one(op::resize, {x}, {.sizes = y, .coordinates = coordinates, .rounding = r}, {}, type);
    }
}

// Elementwise -----------------------------------------------------------------------------------------------------------

TEST_F(eigen_test, functions_of_one_operand) {
  const check_options wide{.range = {-20, 20, 0.05}};
  const check_options large{.range = {-1e4, 1e4, 0.05}};
  for (const shape& x : {shape{}, shape{1}, shape{17}, shape{3, 5, 7}, shape{40, 1000}, shape{0, 3}}) {
    const auto all = [&](const auto& kind) {
      for (const check_options& options : {check_options{}, specials, wide}) one(kind, {x}, {}, options);
    };
    all(op::relu);
    all(op::leaky_relu);
    all(op::elu);
    all(op::hard_sigmoid);
    all(op::sigmoid);
    all(op::tanh);
    all(op::erf);
    all(op::exp);
    all(op::log);
    all(op::sqrt);
    all(op::reciprocal);
    all(op::neg);
    all(op::abs);
    all(op::floor);
    all(op::ceil);
    all(op::sin);
    all(op::cos);
    all(op::softplus);
    all(op::round);
    all(op::sign);
    all(op::celu);
    all(op::selu);
    all(op::thresholded_relu);
    all(op::shrink);
    all(op::hard_swish);
    all(op::gelu_tanh);
    all(op::mish);
    all(op::softsign);
    one(op::floor, {x}, {}, large);
    one(op::sin, {x}, {}, large);
    one(op::leaky_relu, {x}, {.alpha = 0.01}, wide);
    one(op::elu, {x}, {.alpha = 1.7}, wide);
  }
}

TEST_F(eigen_test, functions_of_several_operands_broadcast) {
  const std::vector<std::pair<shape, shape>> cases = {{{3, 40}, {3, 40}},
                                                      {{3, 40}, {}},
                                                      {{3, 40}, {1}},
                                                      {{3, 40}, {40}},
                                                      {{3, 40}, {3, 1}},
                                                      {{2, 8, 30, 9}, {8, 1, 1}},
                                                      {{2, 8, 9, 30}, {1, 8, 1, 30}},
                                                      {{4, 1, 6}, {1, 5, 1}},
                                                      {{1}, {7, 3}},
                                                      {{}, {}},
                                                      {{5, 300}, {5, 1}},
                                                      {{300}, {7, 1}},
                                                      {{0, 3}, {1, 3}},
                                                      {{4, 0}, {4, 1}},
                                                      {{64, 200}, {64, 200}},
                                                      {{3, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2}},
                                                      {{128, 3}, {3}},
                                                      {{2, 3, 5000}, {3, 1}}};
  const check_options positive{.range = {0.1, 5, 0.02}};
  for (const auto& [a, b] : cases)
    for (const check_options& options : {check_options{}, specials, positive})
      for (const bool swapped : {false, true}) {
        const std::vector<shape> operands = swapped ? std::vector<shape>{b, a} : std::vector<shape>{a, b};
        one(op::add, operands, {}, options);
        one(op::sub, operands, {}, options);
        one(op::mul, operands, {}, options);
        one(op::div, operands, {}, options);
        one(op::max, operands, {}, options);
        one(op::min, operands, {}, options);
        one(op::pow, operands, {}, options);
        one(op::prelu, operands, {}, options);
        one(op::clip, {a, b, b}, {}, options);
        one(op::clip, {b, {}, a}, {}, options);
      }
}

TEST_F(eigen_test, constants_are_part_of_the_code) {
  for (const check_options& options : {check_options{}, specials})
    for (const double number : {2.0, 0.5, -3.0}) {
      const auto with = [&](const auto& kind, bool first) {
        check(
            [&](graph_builder& g, data_source&) {
              const value x = g.input("x", f32({9, 33}));
              const value c = g.scalar("c", number);
              return first ? g(kind, c, x) : g(kind, x, c);
            },
            options);
      };
      for (const bool first : {false, true}) {
        with(op::add, first);
        with(op::div, first);
        with(op::pow, first);
        with(op::max, first);
      }
      check(
          [&](graph_builder& g, data_source&) { return g(op::pow, g.scalar("base", 3), g.scalar("exponent", number)); },
          options);
      check([&](graph_builder& g, data_source&) { return g(op::exp, g.scalar("exponent", number)); }, options);
    }
}

TEST_F(eigen_test, int64) {
  for (const auto& [a, b] :
       std::vector<std::pair<shape, shape>>{{{3, 40}, {3, 40}}, {{3, 40}, {40}}, {{5}, {4, 1}}, {{}, {700}}}) {
    const auto two = [&](const auto& kind) { one(kind, {a, b}, {}, {}, collage::dtype::i64); };
    two(op::add);
    two(op::sub);
    two(op::mul);
    two(op::div);
    two(op::max);
    two(op::min);
    one(op::neg, {a}, {}, {}, collage::dtype::i64);
    one(op::abs, {b}, {}, {}, collage::dtype::i64);
    one(op::relu, {a}, {}, {}, collage::dtype::i64);
    one(op::clip, {a, {}, b}, {}, {}, collage::dtype::i64);
  }
  check([](graph_builder& g, data_source&) {
    return g(op::div, g.input("x", i64({90})), g.scalar("zero", 0, collage::dtype::i64));
  });
}

}  // namespace backends_eigen_elements_test
#endif
