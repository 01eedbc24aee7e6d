// Operators of quantised files in our own loops against the reference.
#include "quantised_cases.hpp"

#include <collage/backends/portable.hpp>

#include <gtest/gtest.h>

namespace backends_portable_quantised_test {

using namespace collage_test;

class portable_quantised_test : public ::testing::Test {
 protected:
  portable_quantised_test() {
    exact.range = {.low = -3, .high = 3, .all_bytes = true};
    near_ties = exact;
    near_ties.ties = true;
  }
  shape image(std::int64_t channels) { return {check.data().number(1, 2), channels, 7, 5}; }
  backend_checker<collage::portable> check;
  check_options exact, near_ties;
};

TEST_F(portable_quantised_test, quantise_and_dequantise_are_exact) {
  exact.range.specials = 0.05;
  for (const std::int64_t channels : {1, 3, 40})
    for (int i = 0; i < 4; ++i) {
      check(
          [&](graph_builder& g, data_source& data) {
            return add_quantised(g, g.input("x", f32(image(channels))), add_scale(g, data, "q", 0.02));
          },
          exact);
      check(
          [&](graph_builder& g, data_source& data) { return add_quantised_input(g, data, "x", image(channels), 0.02); },
          exact);
    }
  EXPECT_GT(check.kernels().count("quantise"), 0U);
  EXPECT_GT(check.kernels().count("dequantise"), 0U);
}

TEST_F(portable_quantised_test, functions_are_tables) {
  for (const std::int64_t channels : {3, 16})
    for (int which = 0; which < 5; ++which)
      check(
          [&](graph_builder& g, data_source& data) {
            value y = add_quantised_input(g, data, "x", image(channels), 0.03);
            if (which == 0) y = g(op::relu, y);
            if (which == 1) y = g(op::mul, y, g(op::sigmoid, y));
            if (which == 2) y = g(op::tanh, g(op::add, y, g.scalar("one", 1)));
            if (which == 3) y = g(op::clip, y, g.scalar("low", -1), g.scalar("high", 2));
            return add_quantised(g, y, add_scale(g, data, "y", 0.02));
          },
          exact);
  EXPECT_GT(check.checked("quantised_function"), 9U);
  EXPECT_GT(check.in_place(), 0U);
}

TEST_F(portable_quantised_test, sums_and_products) {
  for (const std::int64_t channels : {3, 16})
    for (int which = 0; which < 6; ++which)
      check(
          [&](graph_builder& g, data_source& data) {
            const shape dims = image(channels);
            const value a = add_quantised_input(g, data, "a", dims, 0.03);
            const value b = add_quantised_input(g, data, "b", dims, 0.05);
            value y = which % 3 == 0 ? g(op::add, a, b) : which % 3 == 1 ? g(op::sub, a, b) : g(op::mul, a, b);
            if (which > 2) y = g(op::relu, y);
            return add_quantised(g, y, add_scale(g, data, "y", 0.06));
          },
          near_ties);
  EXPECT_GT(check.checked("quantised_pair"), 11U);
}

TEST_F(portable_quantised_test, pools_of_bytes) {
  const op::pool_attributes attributes[] = {
      {.window = {2, 2}, .strides = {2, 2}},
      {.window = {3, 3}, .strides = {2, 1}, .pads_begin = {1, 1}, .pads_end = {1, 2}, .count_padding = true},
      {.window = {3, 2}, .strides = {2, 2}, .dilations = {2, 1}, .pads_begin = {1, 0}, .pads_end = {1, 1}},
      {.window = {2, 2}, .strides = {2, 2}, .round_up = true, .count_padding = true},
      {.window = {7, 5}}};
  for (const std::int64_t channels : {3, 260})
    for (const op::pool_attributes& a : attributes)
      for (const bool quantises : {false, true}) {
        check(
            [&](graph_builder& g, data_source& data) {
              const value y = g(op::average_pool, add_quantised_input(g, data, "x", image(channels), 0.03), a);
              return quantises ? add_quantised(g, y, add_scale(g, data, "y", 0.02)) : y;
            },
            near_ties);
        check(
            [&](graph_builder& g, data_source&) {
              return g(op::max_pool,
                       g.input("x", {quantises ? collage::dtype::i8 : collage::dtype::u8, image(channels)}), a);
            },
            exact);
      }
  for (const bool keeps : {false, true})
    check(
        [&](graph_builder& g, data_source& data) {
          const value x = add_quantised_input(g, data, "x", image(20), 0.03);
          return add_quantised(g, g(op::reduce_mean, x, {.axes = {2, 3}, .keep_dims = keeps}),
                               add_scale(g, data, "y", 0.02));
        },
        near_ties);
  EXPECT_GT(check.checked("quantised_mean"), 20U);
  EXPECT_GT(check.kernels().count("max of bytes, channels last"), 0U);
}

TEST_F(portable_quantised_test, channels_are_concatenated) {
  check(
      [&](graph_builder& g, data_source&) {
        return g(op::concat, g.input("a", {collage::dtype::u8, {2, 16, 3, 5}}),
                 g.input("b", {collage::dtype::u8, {2, 19, 3, 5}}), {.axis = 1});
      },
      exact);
  EXPECT_GT(check.kernels().count("concat of bytes, channels last"), 0U);
}

}  // namespace backends_portable_quantised_test
