// oneDNN's convolutions of integers of 8 bits against the reference. Where this build is without oneDNN there is nothing to test.
#ifdef COLLAGE_HAS_ONEDNN
#include "onednn_fixture.hpp"
#include "quantised_cases.hpp"

#include <gtest/gtest.h>

#include <string>

namespace backends_onednn_quantised_test {

using namespace collage_test;

class onednn_quantised_test : public onednn_test {
 protected:
  void SetUp() override {
    onednn_test::SetUp();
    lenient.range.all_bytes = true;
    lenient.ties = true;
  }
  /// Without VNNI, the library has no kernels of integers.
  static bool lacks_vnni() {
    const std::string details = collage::onednn::probe().details;
    for (const char* set : {"sse41", "avx", "avx2", "avx512_core"})
      if (details.starts_with("kernels for " + std::string(set) + ";")) return true;
    return false;
  }
  void check_conv(const quantised_conv_case& c) {
    check([&](graph_builder& g, data_source& data) { return add_quantised_conv(g, data, c); }, lenient);
  }
};

TEST_F(onednn_quantised_test, ordinary_convolutions) {
  check_conv({.x = {1, 32, 10, 10},
              .w = {48, 32, 3, 3},
              .attributes = {.pads_begin = {1, 1}, .pads_end = {1, 1}},
              .bias = true});
  check_conv({.x = {1, 64, 7, 7},
              .w = {64, 64, 1, 1},
              .bias = true,
              .per_channel = true,
              .rounds = true,
              .adds = true,
              .activation = 1});
  check_conv({.x = {1, 3, 24, 24},
              .w = {16, 3, 7, 7},
              .attributes = {.strides = {2, 2}, .pads_begin = {3, 3}, .pads_end = {3, 3}},
              .per_channel = true,
              .activation = 1});
  check_conv({.x = {1, 32, 9, 9},
              .w = {32, 1, 3, 3},
              .attributes = {.groups = 32, .pads_begin = {1, 1}, .pads_end = {1, 1}},
              .bias = true,
              .per_channel = true,
              .activation = 2});
  check_conv({.x = {1, 16, 6, 6}, .w = {20, 16, 1, 1}, .is_quantised = false});
  EXPECT_GT(check.checked("quantised_conv"), 0U);
  EXPECT_GT(check.checked("quantised_conv_sum"), 0U);
  EXPECT_TRUE(built(" of u8") || built(" of i8") || lacks_vnni());
  EXPECT_TRUE(built("as float32"));
}

class onednn_quantised_long : public onednn_quantised_test {};
TEST_F(onednn_quantised_long, random_convolutions) {
  for (int i = 0; i < 100; ++i) check_conv(random_quantised_conv(check.data()));
  EXPECT_TRUE(built("as float32"));
}

TEST_F(onednn_quantised_test, random_convolutions) {
  for (int i = 0; i < 8; ++i) check_conv(random_quantised_conv(check.data()));
}

TEST_F(onednn_quantised_test, sums_of_products_are_exact) {
  for (const collage::dtype real : {collage::dtype::f32, collage::dtype::f64})
    for (const std::int64_t channels : {3, 70})
      check(
          [&](graph_builder& g, data_source& data) {
            const value scale = g.constant("scale", {real, {}}, data.contents({real, {}}, {1, 1}));
            const value x = g.input("x", {collage::dtype::u8, {1, channels, 6, 6}});
            const value w = data.constant(g, "w", {collage::dtype::i8, {8, channels, 3, 3}}, {.all_bytes = true});
            const value y =
                g(op::conv, g(op::dequantize_linear, x, scale, byte_constant(g, "z", collage::dtype::u8, 7)),
                  g(op::dequantize_linear, w, scale), {.pads_begin = {1, 1}});
            return g(op::cast, g(op::cast, y, {.to = collage::dtype::i64}), {.to = collage::dtype::i32});
          },
          lenient);
  EXPECT_TRUE(check.checked("conv_to_integers") > 0 || lacks_vnni());
}

/// Why the first match of a pattern in this graph is refused.
template <class Build>
std::string refusal(const std::string& pattern, const Build& build) {
  graph_builder g;
  data_source data;
  g.output("y", build(g, data));
  collage::graph network = g.finish();
  return refusal_of_match<collage::onednn>(network, pattern);
}

TEST_F(onednn_quantised_test, what_has_no_such_kernel_is_refused) {
  EXPECT_EQ(refusal("quantised_conv",
                    [](graph_builder& g, data_source& data) {
                      const value x = g.input("x", {collage::dtype::u8, {1, 4, 5, 5}});
                      const value zero = g.scalar("zero scale", 0);
                      const value w = data.constant(g, "w", {collage::dtype::i8, {4, 4, 1, 1}});
                      return g(op::conv, g(op::dequantize_linear, x, zero), g(op::dequantize_linear, w, zero));
                    }),
            "onednn needs an input of 8 bits with one known positive scale, and one known zero point");
  EXPECT_EQ(refusal("quantised_conv",
                    [](graph_builder& g, data_source& data) {
                      const value x = g.input("x", {collage::dtype::u8, {1, 4, 5, 5}});
                      const value w = data.constant(g, "w", {collage::dtype::i8, {6, 4, 1, 1}});
                      const value scales = data.constant(g, "scales", f32({4}));
                      return g(op::conv, g(op::dequantize_linear, x, g.scalar("s", 0.5)),
                               g(op::dequantize_linear, w, scales, {.axis = 1}));
                    }),
            "onednn needs weights of 8 bits with one scale, or with one for each filter");
}

}  // namespace backends_onednn_quantised_test
#endif
