// The search spaces of generated kernels: their points are configurations that the generators take, and so are their texts.
#include "jit/spaces.hpp"

#include <collage/error.hpp>
#include <collage/tune/rank.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace jit_spaces_test {
namespace {

namespace c = collage;
namespace tune = collage::tune;
using namespace collage::detail::jit;

static_assert(tune::described_space<product_space>);
static_assert(tune::search_space<convolution_space>);

TEST(jit_spaces, points_of_products_are_configurations) {
  const product_space s({.m = 49, .n = 64, .k = 64});
  std::set<std::string> texts;
  std::size_t count = 0;
  for (const auto& p : tune::all_points(s)) {
    ++count;
    const std::string text = tune::text_of(s, p);
    if (count % 101 == 0) { EXPECT_EQ(tune::parse_point(s, text), p); }
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), count);
  // 14x2 leaves two of 32 registers. 28 rows of two vectors, or 7 of four vectors and a broadcast register, do not fit.
  EXPECT_TRUE(texts.contains("jit1 avx512 tile 14x2 unroll 4 prefetch 8 broadcast memory"));
  EXPECT_FALSE(texts.contains("jit1 avx512 tile 28x2 unroll 4 prefetch 8 broadcast memory"));
  EXPECT_TRUE(texts.contains("jit1 avx512 tile 7x4 unroll 4 prefetch 0 broadcast memory"));
  EXPECT_FALSE(texts.contains("jit1 avx512 tile 7x4 unroll 4 prefetch 0 broadcast register"));
  EXPECT_THROW(tune::parse_point(s, "jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register"), c::error);
  EXPECT_THROW(tune::parse_point(s, "jit1 avx512 tile 4x5 unroll 4 prefetch 0 broadcast memory"), c::error)
      << "64 columns";
  EXPECT_EQ(tune::count_of(product_space({.m = 0, .n = 1, .k = 1})), 0U);
}

TEST(jit_spaces, features_of_products_are_those_computed_by_hand) {
  const product_space s({.m = 49, .n = 60, .k = 70});
  const product_space::point p = {14, 2, 4, 0, 0};
  const auto f = s.features(p);
  EXPECT_FLOAT_EQ(f[5], 28);                                             // accumulators
  EXPECT_FLOAT_EQ(f[6], 30.0F / 32);                                     // registers
  EXPECT_FLOAT_EQ(f[7], 28.0F / 16);                                     // multiply-adds per load
  EXPECT_FLOAT_EQ(f[8], 49.0F / 56);                                     // rows
  EXPECT_FLOAT_EQ(f[9], 60.0F / 64);                                     // columns
  EXPECT_FLOAT_EQ(f[10], std::log2(70 * 32 * 4 / 32768.0F));             // panel
  EXPECT_FLOAT_EQ(f[12], std::log2(70 * 60 * 4 / 1048576.0F));           // B
  EXPECT_FLOAT_EQ(f[19], 2);                                             // steps left
  EXPECT_FLOAT_EQ(f[20], std::log2(70 * 4 * (0.03F * 49 + 0.12F * 4)));  // estimate
}

TEST(jit_spaces, points_of_convolutions_are_configurations) {
  convolution_shape shape{.channels = 64, .outputs = 64, .height = 28, .width = 28};
  shape.pad_top = shape.pad_left = shape.pad_bottom = shape.pad_right = 1;
  const convolution_space s(shape, {.threads = 2});
  tune::random_source random(1);
  std::set<int> families;
  for (int i = 0; i < 300; ++i) {
    const auto p = *tune::sample(s, random);
    families.insert(p[convolution_space::family]);
    EXPECT_EQ(tune::parse_point(s, tune::text_of(s, p)), p);
    EXPECT_TRUE(fault_of(s.configuration_of(p), shape).empty());
    EXPECT_TRUE(tune::mutate(s, p, random));
  }
  EXPECT_EQ(families.size(), 4U) << "F(2,3), F(4,3), its accurate form and F(6,3)";
  // What is proposed today is read here: one register tile of two threads.
  EXPECT_EQ(tune::parse_point(
                s, "winograd1 F(4,3) avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory block 28 threads phases"),
            (convolution_space::point{1, 14, 2, 4, 0, 28, 1}));
  EXPECT_THROW(
      tune::parse_point(
          s, "winograd1 F(4,3) avx512 tile 14x2 unroll 4 prefetch 0 broadcast register block 28 threads tiles"),
      c::error);
  EXPECT_THROW(tune::parse_point(
                   s, "winograd1 F(4,3) avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory block 56 threads tiles"),
               c::error)
      << "49 tiles";
  shape.depth = 2;
  shape.window_depth = 1;
  EXPECT_EQ(tune::count_of(convolution_space(shape)), 0U);
  shape.depth = 1;
  shape.window_height = 7;
  EXPECT_EQ(tune::count_of(convolution_space(shape)), 0U) << "no algorithm has this window";
}

}  // namespace
}  // namespace jit_spaces_test
