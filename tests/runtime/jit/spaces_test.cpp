// The search spaces of generated kernels: their points are configurations that the generators take, and so are their texts.
#include "jit/attention_space.hpp"
#include "jit/convolution_space.hpp"
#include "jit/depthwise_spaces.hpp"
#include "jit/direct_space.hpp"
#include "jit/product_space.hpp"

#include <collage/error.hpp>
#include <collage/tune/any_space.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>

namespace jit_spaces_test {
namespace {

namespace c = collage;
namespace tune = collage::tune;
using namespace collage::detail::jit;

static_assert(tune::described_space<product_space>);
static_assert(tune::described_space<convolution_space>);
static_assert(tune::described_space<depthwise_space>);
static_assert(tune::described_space<direct_space>);
static_assert(tune::described_space<attention_space>);
static_assert(tune::described_space<byte_depthwise_space>);

/// Whether `holds` says of all combinations of listed values what `conflict` says. Returns how many points there are.
template <class Space>
std::size_t check_holds(const Space& s) {
  std::size_t count = 0, others = 0;
  tune::point_of<Space> p;
  const auto each = [&](const auto& self, std::size_t i) -> void {
    if (i == p.size()) {
      const bool is_point = s.conflict(p).empty();
      others += tune::are_together(s, p) == is_point ? 0 : 1;
      count += is_point ? 1 : 0;
      return;
    }
    for (const int value : s.values(i)) {
      p[i] = value;
      self(self, i + 1);
    }
  };
  each(each, 0);
  EXPECT_EQ(others, 0U);
  EXPECT_EQ(tune::any_space(s).size(), count);
  return count;
}

/// Numbers that models can read, whatever the point.
template <class Space>
void check_numbers(const Space& s) {
  tune::random_source random(11);
  for (int i = 0; i < 100; ++i) {
    const auto p = *tune::sample(s, random);
    for (const float f : s.features(p)) EXPECT_TRUE(std::isfinite(f)) << tune::text_of(s, p);
    EXPECT_GT(s.estimate(p), 0) << tune::text_of(s, p);
    EXPECT_EQ(tune::parse_point(s, tune::text_of(s, p)), p);
  }
}

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
  EXPECT_FLOAT_EQ(f[5], 28);                                    // accumulators
  EXPECT_FLOAT_EQ(f[6], 30.0F / 32);                            // registers
  EXPECT_FLOAT_EQ(f[7], 28.0F / 16);                            // multiply-adds per load
  EXPECT_FLOAT_EQ(f[8], 49.0F / 56);                            // rows
  EXPECT_FLOAT_EQ(f[9], 60.0F / 64);                            // columns
  EXPECT_FLOAT_EQ(f[10], std::log2(70 * 32 * 4 / 32768.0F));    // panel
  EXPECT_FLOAT_EQ(f[12], std::log2(70 * 60 * 4 / 1048576.0F));  // B
  EXPECT_FLOAT_EQ(f[19], 2);                                    // steps left
  // The estimate: two panels of three bands of 14 rows and one of 7. All lies in the first level.
  EXPECT_FLOAT_EQ(f[20], std::log2(0.3F * 2 * (3 * (70 * 15.05F + 8 + 2.5F * 28) + 70 * 8.05F + 8 + 2.5F * 14)));
}

TEST(jit_spaces, of_products_leave_registers_to_what_follows) {
  const tune::machine narrow = {.lanes = 8, .registers = 16};
  const product_space s({.m = 49, .n = 60, .k = 70, .spare = 6, .has_one_broadcast = true}, narrow);
  EXPECT_EQ(check_holds(s), tune::count_of(s));
  std::size_t largest = 0;
  for (const auto& p : tune::all_points(s)) {
    EXPECT_EQ(p[product_space::broadcast], static_cast<int>(broadcast_from::vector_register));
    largest = std::max(largest, static_cast<std::size_t>(p[product_space::rows] * p[product_space::vectors]));
  }
  EXPECT_EQ(largest, 10U) << "of 16 registers";
  EXPECT_EQ(tune::fault_of(s, {4, 3, 4, 0, 1}),
            "a tile of 4x3 vectors leaves fewer than 6 registers to what follows the product");
  check_numbers(s);
  check_holds(product_space({.m = 3, .n = 60, .k = 70, .spare = 2}));
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
  check_holds(s);
  check_numbers(s);
  shape.depth = 2;
  shape.window_depth = 1;
  EXPECT_EQ(tune::count_of(convolution_space(shape)), 0U);
  shape.depth = 1;
  shape.window_height = 7;
  EXPECT_EQ(tune::count_of(convolution_space(shape)), 0U) << "no algorithm has this window";
}

std::size_t feature(const char* name) {
  const auto& names = convolution_space::feature_names;
  return static_cast<std::size_t>(std::ranges::find_if(names, [&](const char* n) { return std::string(n) == name; }) -
                                  names.begin());
}

TEST(jit_spaces, features_of_convolutions_are_those_computed_by_hand) {
  convolution_shape shape{.channels = 30, .outputs = 60, .height = 14, .width = 14, .to = image_layout::blocked_16};
  shape.pad_top = shape.pad_left = shape.pad_bottom = shape.pad_right = 1;
  const tune::machine here = {.threads = 2};
  const convolution_space s(shape, here);
  // F(4,3): 16 tiles of 4x4 outputs, of which 14x14 are useful, in two blocks of 14 and 2 tiles. 36 products of 6x6 inputs.
  const auto f = s.features({1, 7, 2, 4, 8, 14, 0});
  const auto is = [&](const char* name, float expected) {
    ASSERT_LT(feature(name), f.size()) << name;
    EXPECT_FLOAT_EQ(f[feature(name)], expected) << name;
  };
  const float l1 = 32768, l2 = 1048576, l3 = 33554432;
  const float weights = 36 * 30 * 64 * 4;                   // columns in whole vectors
  const float input = 14 * 32 + 16, output = 14 * 64 + 16;  // of one product, in floats
  is("family", 1);
  is("outputs of a tile", 16);
  is("log block", std::log2(14.0F));
  is("accumulators", 14);
  is("share of registers", 16.0F / 32);
  is("multiply-adds per load", 14.0F / 9);
  is("useful share of blocks", 16.0F / 28);
  is("useful rows", 16.0F / 21);  // bands of 7, 7 and 2
  is("useful columns", 60.0F / 64);
  is("useful share of tiles", 196.0F / 256);
  is("log inputs of a block of L2", std::log2(36 * input * 4 / l2));
  is("log outputs of a block of L2", std::log2(36 * output * 4 / l2));
  is("log block of L3", std::log2(36 * (input + output) * 4 / l3));
  is("log left operand of L1", std::log2(14 * 32 * 4 / l1));
  is("log panel of L1", std::log2(30 * 32 * 4 / l1));
  is("log weights of L2", std::log2(weights / l2));
  is("log arithmetic per byte", std::log2(2.0F * 36 * 14 * 30 * 60 / (36 * (input + output) * 4 + weights)));
  is("multiplications of the definition", 4 * 196.0F / 256);
  is("blocks", 2);
  is("balance of threads", 1);
  is("steps left by unrolling", 2);
  is("layout of the input", 0);
  is("layout of the output", 2);
  is("log estimate", static_cast<float>(std::log2(s.estimate({1, 7, 2, 4, 8, 14, 0}))));
  const auto parts = s.costs({1, 7, 2, 4, 8, 14, 0});
  is("share of products", static_cast<float>(parts.products / parts.all()));
  // One block of all tiles keeps one of two threads busy.
  EXPECT_FLOAT_EQ(s.features({1, 7, 2, 4, 8, 16, 0})[feature("balance of threads")], 0.5F);
}

TEST(jit_spaces, of_convolutions_hold_what_is_proposed) {
  convolution_shape shape{.channels = 48, .outputs = 80, .height = 37, .width = 29};
  const convolution_machine machine = {.set = instruction_set::avx2, .threads = 2};
  const convolution_space s(shape, {.lanes = 8, .registers = 16, .threads = 2});
  std::size_t found = 0;
  for (const convolution_configuration& c : propose_configurations(shape, machine)) {
    if (c.block > blocks_of(c, shape).tiles) continue;  // one block is written in another way, too
    EXPECT_NO_THROW(tune::parse_point(s, to_text(c)));
    ++found;
  }
  EXPECT_GT(found, 4U);
}

TEST(jit_spaces, points_of_depthwise_convolutions_are_configurations) {
  const depthwise_shape shape = {.channels = 40, .height = 15, .width = 9, .pad_top = 1, .pad_bottom = 1};
  const depthwise_space s({shape, 24, 6}, {.lanes = 8, .registers = 16, .threads = 2});
  EXPECT_GT(check_holds(s), 1000U);
  check_numbers(s);
  // Blocks of nearly one size: of 15 rows there are 1, 2, 3, 4, 5, 8 and 15.
  EXPECT_TRUE(std::ranges::equal(s.values(depthwise_space::block), std::array{1, 2, 3, 4, 5, 8, 15}));
  for (const depthwise_configuration& c : promising_configurations(shape, 24, true, 2, feature_avx2 | feature_fma))
    EXPECT_NO_THROW(tune::parse_point(s, to_text(c))) << to_text(c);
  EXPECT_EQ(tune::count_of(depthwise_space({{.height = 1, .width = 1}, 24, 2})), 0U) << "the window is larger";
}

TEST(jit_spaces, points_of_direct_convolutions_are_configurations) {
  const direct_shape shape = {1, 20, 40, {}, {30, 3, 2, 1, 1, 1}, {19, 3, 2, 1, 1, 1}};
  const direct_space s({shape, 6}, {.lanes = 8, .registers = 16, .threads = 2});
  EXPECT_GT(check_holds(s), 1000U);
  check_numbers(s);
  EXPECT_TRUE(std::ranges::equal(s.values(direct_space::block), std::array{1, 2, 3, 4, 5, 8, 15}));
  for (const bool is_long : {false, true})
    for (const direct_configuration& c : propose_direct(shape, instruction_set::avx2, 1 << 20, is_long))
      EXPECT_NO_THROW(
          tune::parse_point(direct_space({shape, is_long ? 6 : 2}, {.lanes = 8, .registers = 16}), to_text(c)))
          << to_text(c);
  EXPECT_EQ(tune::count_of(direct_space({{1, 1, 1, {}, {}, {2, 3}}, 2})), 0U) << "the window is larger";
}

TEST(jit_spaces, points_of_attention_are_configurations) {
  const attention_shape shape = {.heads = 3, .queries = 15, .keys = 40, .size = 20, .width = 24};
  const tune::machine on = {.lanes = 8, .registers = 16, .threads = 2};
  const attention_space s({shape, 2}, on);
  EXPECT_GT(check_holds(s), 1000U);
  check_numbers(s);
  EXPECT_TRUE(std::ranges::equal(s.values(attention_space::block), std::array{1, 2, 3, 4, 5, 8, 15}));
  for (const std::int64_t queries : {1, 15, 77, 4096})
    for (const std::int64_t keys : {1, 40, 5000}) {
      attention_shape other = shape;
      other.queries = queries, other.keys = keys;
      for (const attention_configuration& c : propose_attention(other, instruction_set::avx2, 1 << 20, 2))
        EXPECT_NO_THROW(tune::parse_point(attention_space({other, 2}, on), to_text(c))) << to_text(c);
    }
  EXPECT_EQ(tune::count_of(attention_space({{.keys = 0}, 2})), 0U);
}

TEST(jit_spaces, points_of_depthwise_convolutions_of_bytes_are_configurations) {
  const byte_depthwise_shape shape = {.channels = 96, .height = 14, .width = 14, .pad_top = 1, .pad_left = 1};
  const byte_depthwise_space s(shape);
  EXPECT_GT(check_holds(s), 10U);
  check_numbers(s);
  for (const byte_depthwise_configuration& c : promising_configurations(shape, true))
    EXPECT_NO_THROW(tune::parse_point(s, to_text(c))) << to_text(c);
  EXPECT_THROW(tune::parse_point(s, "bytes1 replica"), c::error);
}

}  // namespace
}  // namespace jit_spaces_test
