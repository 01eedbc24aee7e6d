// Eigen's kernels against the reference. Where this build is without Eigen there is nothing to test.
#ifdef COLLAGE_HAS_EIGEN
#include "backend_cases.hpp"

#include <collage/backends/eigen.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace collage_test;
using checker = backend_checker<collage::eigen>;

const auto as_it_is = [](graph_builder&, data_source&, value x) { return x; };

class eigen_test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!check.available()) GTEST_SKIP() << check.why_not();
    specials.range.specials = 0.02;
    chain.must_cover = true;
    chain.range.specials = 0.01;
  }
  /// One operator over inputs of some shapes.
  template <class Kind>
  void one(const Kind& kind, const std::vector<shape>& inputs, const typename Kind::attributes& attributes = {},
           const check_options& options = {}, collage::dtype type = collage::dtype::f32) {
    check(
        [&](graph_builder& g, data_source&) {
          std::vector<value> operands;
          for (const shape& dims : inputs) {
            const std::string name = "x" + std::to_string(operands.size());
            operands.push_back(g.input(name.c_str(), {type, dims}));
          }
          return g(kind, std::span<const value>(operands), attributes);
        },
        options);
  }
  checker check;
  check_options specials, chain;
};

TEST_F(eigen_test, says_what_it_is) {
  const collage::probe_result found = collage::eigen::probe();
  EXPECT_EQ(std::string(found.version).substr(0, 2), "3.");
  EXPECT_NE(std::string(found.details).find("compiled for"), std::string::npos);
}

// Products and windows
// ---------------------------------------------------------------------------------------------------

TEST_F(eigen_test, convolutions) {
  check_convs(check, as_it_is, {}, 80);
  for (const char* kernel : {"pointwise tiles", "depthwise tiles", "direct tiles"})
    EXPECT_GT(check.kernels().count(kernel), 0U) << kernel;
}

TEST_F(eigen_test, convolutions_of_more_dimensions) {
  one(op::conv, {{1, 3, 3, 4, 3, 5}, {4, 3, 2, 2, 2, 3}},
      {.strides = {1, 2, 1, 2}, .pads_begin = {1, 0, 1, 1}, .pads_end = {0, 1, 1, 1}});
  one(op::conv, {{2, 4, 2, 3, 2, 3, 2}, {6, 2, 2, 1, 2, 2, 1}}, {.groups = 2});
  EXPECT_GT(check.kernels().count("im2col tiles"), 0U);
}

TEST_F(eigen_test, convolutions_pass_nan_and_infinity_on) { check_convs(check, as_it_is, specials); }

TEST_F(eigen_test, products) {
  check_matmuls(check, as_it_is, {}, 80);
  for (const char* kernel : {"tiles, packed panels", "tiles, copied panels", "tiles in place", "dot product"})
    EXPECT_GT(check.kernels().count(kernel), 0U) << kernel;
}

TEST_F(eigen_test, products_of_many_blocks) {
  one(op::matmul, {{13, 2500}, {2500, 200}});
  one(op::matmul, {{13, 2500}, {200, 2500}}, {.transpose_b = true});
  check([](graph_builder& g, data_source& data) {
    return g(op::matmul, g.input("a", f32({6, 2500})), data.constant(g, "b", f32({2500, 210})));
  });
}

TEST_F(eigen_test, products_pass_nan_and_infinity_on) { check_matmuls(check, as_it_is, specials); }

TEST_F(eigen_test, pooling) {
  const std::vector<std::pair<shape, op::pool_attributes>> cases = {
      {{1, 4, 12, 12}, {.window = {3, 3}, .strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}}},
      {{2, 3, 9, 30}, {.window = {3, 3}, .pads_begin = {1, 1}, .pads_end = {1, 1}}},
      {{1, 2, 7, 7}, {.window = {7, 7}}},
      {{1, 5, 8, 9}, {.window = {2, 3}, .strides = {3, 4}}},
      {{1, 5, 10, 11}, {.window = {2, 3}, .dilations = {3, 2}, .pads_begin = {1, 2}, .pads_end = {2, 0}}},
      {{1, 3, 8, 8}, {.window = {3, 3}, .strides = {2, 2}, .round_up = true}},
      {{1, 3, 8, 8},
       {.window = {3, 3},
        .strides = {2, 2},
        .pads_begin = {1, 1},
        .pads_end = {1, 1},
        .round_up = true,
        .count_padding = true}},
      {{1, 3, 40}, {.window = {4}, .strides = {3}, .pads_begin = {2}, .pads_end = {1}, .count_padding = true}},
      {{1, 3, 4, 6, 7}, {.window = {2, 3, 3}, .strides = {2, 1, 2}, .pads_begin = {1, 1, 1}, .pads_end = {0, 1, 1}}},
      {{1, 1, 1, 1}, {.window = {1, 1}}},
      {{0, 3, 8, 8}, {.window = {3, 3}}},
      {{1, 0, 8, 8}, {.window = {3, 3}}},
      {{1, 2, 2, 8}, {.window = {3, 3}}},
      {{1, 1, 300, 420},
       {.window = {3, 3}, .strides = {2, 1}, .pads_begin = {1, 1}, .pads_end = {1, 1}}},  // several bands
  };
  for (const auto& [x, attributes] : cases)
    for (const check_options& options : {check_options{}, specials}) {
      one(op::max_pool, {x}, attributes, options);
      one(op::average_pool, {x}, attributes, options);
      for (const bool largest : {false, true})
        check(
            [&](graph_builder& g, data_source&) {
              const value y = largest ? g(op::max_pool, g.input("x", f32(x)), attributes)
                                      : g(op::average_pool, g.input("x", f32(x)), attributes);
              return g(op::add, g.input("sum", g.type_of(y)), y);
            },
            options);
    }
  EXPECT_GT(check.checked("pool_add"), 0U);
}

// Rows
// -------------------------------------------------------------------------------------------------------------------

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

// Movement
// ---------------------------------------------------------------------------------------------------------------

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

// Elementwise
// ------------------------------------------------------------------------------------------------------------

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

// Chains
// -----------------------------------------------------------------------------------------------------------------

value gelu(graph_builder& g, value x) {
  const value error = g(op::erf, g(op::div, x, g.scalar("root", 1.4142135381698608)));
  return g(op::mul, x, g(op::mul, g.scalar("half", 0.5), g(op::add, error, g.scalar("one", 1))));
}

TEST_F(eigen_test, chains_after_convolutions) {
  check_convs(check, [](graph_builder& g, data_source&, value x) { return g(op::relu, x); }, chain);
  check_convs(check, [](graph_builder& g, data_source&, value x) { return g(op::sigmoid, x); }, chain);
  check_convs(check, [](graph_builder& g, data_source&, value x) { return g(op::tanh, x); }, chain);
  check_convs(
      check,
      [](graph_builder& g, data_source&, value x) {
        return g(op::clip, x, g.scalar("low", -0.25), g.scalar("high", 0.5));
      },
      chain);
  check_convs(
      check,
      [](graph_builder& g, data_source&, value x) { return g(op::relu, g(op::add, g.input("sum", g.type_of(x)), x)); },
      chain, 20);
  check_convs(
      check,
      [](graph_builder& g, data_source& data, value x) {
        shape dims = g.type_of(x).dims;
        for (std::size_t i = 0; i < dims.size(); ++i)
          if (i != 1) dims[i] = 1;
        return g(op::add, x, data.constant(g, "channel", f32(dims)));
      },
      chain);
  for (const char* pattern : {"conv_activation", "conv_clip", "conv_add", "conv_add_relu"})
    EXPECT_GT(check.checked(pattern), 0U) << pattern;
}

TEST_F(eigen_test, chains_after_products) {
  const auto bias = [](graph_builder& g, data_source& data, value x) {
    const shape dims = g.type_of(x).dims;
    return g(op::add, x, data.constant(g, "bias", f32(dims.empty() ? shape{} : shape{dims[dims.size() - 1]})));
  };
  check_matmuls(
      check, [&](graph_builder& g, data_source& data, value x) { return g(op::relu, bias(g, data, x)); }, chain, 20);
  check_matmuls(
      check, [&](graph_builder& g, data_source& data, value x) { return g(op::sigmoid, bias(g, data, x)); }, chain);
  check_matmuls(
      check, [&](graph_builder& g, data_source& data, value x) { return g(op::tanh, bias(g, data, x)); }, chain);
  check_matmuls(check, [&](graph_builder& g, data_source& data, value x) { return gelu(g, bias(g, data, x)); }, chain);
  check_matmuls(
      check,
      [&](graph_builder& g, data_source& data, value x) {
        const value sum = bias(g, data, x);
        return g(op::add, g.input("sum", g.type_of(x)), sum);
      },
      chain);
  for (const char* pattern : {"matmul_add", "matmul_add_activation", "matmul_add_add", "matmul_add_gelu", "gelu"})
    EXPECT_GT(check.checked(pattern), 0U) << pattern;
}

TEST_F(eigen_test, chains_of_elementwise_operators) {
  for (const shape& x : {shape{}, shape{7}, shape{40, 500}, shape{0, 4}})
    for (const check_options& options : {check_options{}, specials}) {
      check([&](graph_builder& g, data_source&) { return gelu(g, g.input("x", f32(x))); }, options);
      check([&](graph_builder& g,
                data_source&) { return g(op::relu, g(op::add, g.input("x", f32(x)), g.input("y", f32({3, 1, 1})))); },
            options);
      check(
          [&](graph_builder& g, data_source&) {
            const value y = g.input("y", f32(x));
            return g(op::relu, g(op::add, y, y));
          },
          options);
    }
  EXPECT_GT(check.checked("gelu"), 0U);
  EXPECT_GT(check.checked("add_relu"), 0U);
}

TEST_F(eigen_test, refuses_what_it_cannot_do) {
  check_options options;
  options.must_cover = false;
  graph_builder g;
  const value y = g(op::conv, g.input("x", f32({1, 4, 8, 8})), g.input("w", f32({6, 4, 3, 3})));
  g.output("wide", g(op::add, y, g.input("sum", f32({2, 6, 6, 6}))));
  g.output("half", g(op::relu, g.input("h", {collage::dtype::f16, {3}})));
  g.output("integers", g(op::leaky_relu, g.input("i", i64({3}))));
  check.check(g.finish(), options);
  EXPECT_EQ(check.checked("conv"), 1U);
  EXPECT_EQ(check.refused("conv_add"), 1U);
  EXPECT_EQ(check.refused("relu"), 1U);
  EXPECT_EQ(check.refused("leaky_relu"), 1U);
}

/// All patterns in one checker: none can be left out of the tests above unnoticed.
TEST_F(eigen_test, every_pattern_is_exercised) {
  const auto f = [](std::initializer_list<std::int64_t> list) {
    return f32(shape(std::span<const std::int64_t>(list.begin(), list.size())));
  };
  const auto unary = [&](const auto&... kinds) { (one(kinds, {{4, 9}}), ...); };
  unary(op::relu, op::leaky_relu, op::elu, op::hard_sigmoid, op::sigmoid, op::tanh, op::erf, op::exp, op::log, op::sqrt,
        op::reciprocal, op::neg, op::abs, op::floor, op::ceil, op::sin, op::cos, op::softplus, op::softmax,
        op::reduce_mean, op::reduce_sum, op::reduce_max, op::reduce_min, op::transpose, op::concat);
  const auto binary = [&](const auto&... kinds) { (one(kinds, {{4, 9}, {9}}), ...); };
  binary(op::add, op::sub, op::mul, op::div, op::max, op::min, op::pow, op::layer_norm);
  one(op::clip, {{4, 9}, {}, {}});
  one(op::resize, {{4, 9}}, {.sizes = {8, 9}});
  const auto after = [&](const auto& then) {
    check([&](graph_builder& g, data_source&) {
      return then(g, g(op::conv, g.input("x", f({1, 3, 8, 8})), g.input("w", f({4, 3, 3, 3}))));
    });
    check([&](graph_builder& g, data_source&) {
      return then(g, g(op::max_pool, g.input("x", f({1, 3, 8, 8})), {.window = {2, 2}}));
    });
    check([&](graph_builder& g, data_source&) {
      return then(g, g(op::average_pool, g.input("x", f({1, 3, 8, 8})), {.window = {2, 2}}));
    });
    check([&](graph_builder& g, data_source&) {
      const value product = g(op::matmul, g.input("x", f({3, 8})), g.input("w", f({8, 5})));
      return then(g, g(op::add, product, g.input("bias", f({5}))));
    });
    check([&](graph_builder& g, data_source&) {
      return then(g, g(op::add, g.input("x", f({3, 8})), g.input("y", f({8}))));
    });
  };
  after([](graph_builder& g, value x) { return g(op::relu, x); });
  after([](graph_builder& g, value x) { return gelu(g, x); });
  after([](graph_builder& g, value x) { return g(op::clip, x, g.scalar("low", 0), g.scalar("high", 6)); });
  after([](graph_builder& g, value x) { return g(op::relu, g(op::add, x, g.input("sum", g.type_of(x)))); });
  after([](graph_builder& g, value x) { return g(op::add, x, g.input("sum", g.type_of(x))); });
  after([](graph_builder& g, value x) { return g(op::softmax, g(op::div, x, g.scalar("scale", 8))); });
  after([](graph_builder& g, value x) { return g(op::layer_norm, x, g.input("scale", f32({}))); });
  check.expect_every_pattern_checked();
}

}  // namespace
#endif
