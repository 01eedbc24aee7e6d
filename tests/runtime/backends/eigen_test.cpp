// Eigen's kernels against the reference. Where this build is without Eigen there is nothing to test.
#ifdef COLLAGE_HAS_EIGEN
#include "eigen_fixture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace backends_eigen_test {

using namespace collage_test;

TEST_F(eigen_test, says_what_it_is) {
  const collage::probe_result found = collage::eigen::probe();
  EXPECT_EQ(std::string(found.version).substr(0, 2), "3.");
  EXPECT_NE(std::string(found.details).find("compiled for"), std::string::npos);
}

// Products and windows --------------------------------------------------------------------------------------------------

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
  if (collage::detail::is_watched) return;  // rare kernels may be missing in few products
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

TEST_F(eigen_test, poolings_of_random_shapes) {
  data_source random;
  for (int i = 0; i < 60; ++i) {
    const std::size_t rank = static_cast<std::size_t>(random.number(1, 3));
    shape dims = {random.number(1, 2), random.number(1, 3)};
    op::pool_attributes a{.round_up = random.chance(0.3), .count_padding = random.chance(0.5)};
    const bool is_one_to_one =
        random.chance(0.3);  // each window has one element: Eigen computes all places as one line
    for (std::size_t d = 0; d < rank; ++d) {
      a.window.push_back(is_one_to_one ? 1 : random.number(1, 4));
      a.strides.push_back(is_one_to_one ? 1 : random.number(1, 3));
      a.dilations.push_back(is_one_to_one ? 1 : random.number(1, 2));
      const std::int64_t most = is_one_to_one ? 0 : a.window[d] / 2;
      a.pads_begin.push_back(random.number(0, most));
      a.pads_end.push_back(random.number(0, most));
      dims.push_back(a.dilations[d] * (a.window[d] - 1) + random.number(1, 40));
    }
    one(op::max_pool, {dims}, a);
    one(op::average_pool, {dims}, a);
  }
}

// Chains ----------------------------------------------------------------------------------------------------------------

value gelu(graph_builder& g, value x) {
  const value error = g(op::erf, g(op::div, x, g.scalar("root", 1.4142135381698608)));
  return g(op::mul, x, g(op::mul, g.scalar("half", 0.5), g(op::add, error, g.scalar("one", 1))));
}

TEST_F(eigen_test, chains_after_convolutions) {
  check_convs(check, apply(op::relu), chain);
  check_convs(check, apply(op::sigmoid), chain);
  check_convs(check, apply(op::tanh), chain);
  check_convs(check, clipped, chain);
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
        op::reduce_mean, op::reduce_sum, op::reduce_max, op::reduce_min, op::transpose, op::concat, op::round, op::sign,
        op::celu, op::selu, op::thresholded_relu, op::shrink, op::hard_swish, op::gelu_tanh, op::mish, op::softsign);
  const auto binary = [&](const auto&... kinds) { (one(kinds, {{4, 9}, {9}}), ...); };
  binary(op::add, op::sub, op::mul, op::div, op::max, op::min, op::pow, op::prelu, op::layer_norm);
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
  EXPECT_GT(check.in_place(), 0U);
}

}  // namespace backends_eigen_test
#endif
