// Roundings: against the elements that tensors store, and their names.
#include <gtest/gtest.h>

#include <collage/calibrate/rounding.hpp>
#include <collage/run/elements.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "support/messages.hpp"

namespace calibrate_rounding_test {

namespace c = collage;

std::vector<float> all_kinds_of_numbers() {
  std::vector<float> list = {0.0F,
                             -0.0F,
                             65504.0F,
                             65519.99F,
                             65520.0F,
                             -65520.0F,
                             0x1p-14F,
                             0x1p-24F,
                             0x1p-25F,
                             0x1.8p-25F,
                             0x1p-126F,
                             0x1p-149F,
                             3.4e38F,
                             -3.4e38F,
                             0x1.fep127F,
                             0x1.ffp127F,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity()};
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(x)) list.push_back(x);
    list.push_back(std::ldexp(static_cast<float>(random() % 8192), static_cast<int>(random() % 40) - 30));
  }
  return list;
}

void expect_as_stored(c::dtype type) {
  std::vector<float> rounded = all_kinds_of_numbers();
  const std::vector<double> numbers(rounded.begin(), rounded.end());
  std::vector<std::uint16_t> stored(numbers.size());
  std::vector<double> expected(numbers.size());
  c::store_elements(type, std::span<const double>(numbers), stored.data());
  c::load_elements(type, stored.data(), std::span<double>(expected));
  c::rounding_to(type).apply(rounded, {static_cast<std::int64_t>(rounded.size())});
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    ASSERT_EQ(static_cast<double>(rounded[i]), expected[i]) << numbers[i];
    ASSERT_EQ(std::signbit(rounded[i]), std::signbit(expected[i])) << numbers[i];
  }
}

TEST(calibrate_rounding, is_what_tensors_of_16_bits_store) {
  expect_as_stored(c::dtype::bf16);
  expect_as_stored(c::dtype::f16);
}

TEST(calibrate_rounding, keeps_nan) {
  const c::quantisation how{c::dtype::u8, -1, {0.5F}, {3}};
  for (const c::rounding& r : {c::rounding_to(c::dtype::bf16), c::rounding_to(c::dtype::f16), c::rounding_to(how)}) {
    std::vector<float> x = {1, std::numeric_limits<float>::quiet_NaN(), 0};
    r.apply(x, {3});
    EXPECT_EQ(x[0], 1) << r.name;
    EXPECT_TRUE(std::isnan(x[1])) << r.name;
    EXPECT_EQ(x[2], 0) << r.name;
  }
}

TEST(calibrate_rounding, has_a_name_that_says_everything) {
  EXPECT_EQ(c::rounding_to(c::dtype::bf16).name, "bfloat16");
  EXPECT_EQ(c::rounding_to(c::dtype::f16).name, "float16");
  EXPECT_EQ(c::rounding_to({c::dtype::u8, -1, {0.25F}, {12}}).name, "uint8 0.25 * (n - 12)");
  const std::string first = c::rounding_to({c::dtype::i8, 0, {0.25F, 1}, {0, 0}}).name;
  EXPECT_TRUE(first.starts_with("int8 with 2 scales by dimension 0 (")) << first;
  EXPECT_EQ(first, c::rounding_to({c::dtype::i8, 0, {0.25F, 1}, {0, 0}}).name);
  EXPECT_NE(first, c::rounding_to({c::dtype::i8, 0, {0.25F, 2}, {0, 0}}).name);
  EXPECT_NE(first, c::rounding_to({c::dtype::i8, 0, {0.25F, 1}, {0, 1}}).name);
  EXPECT_EQ(collage_test::message_of([] { (void)c::rounding_to(c::dtype::f32); }),
            "rounding to float32: is no 16-bit floating-point type; give scales for 8-bit numbers");
}

}  // namespace calibrate_rounding_test
