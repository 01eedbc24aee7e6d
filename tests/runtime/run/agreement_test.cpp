// Agreement with the reference, and the conversions between memory and the oracle's form.
#include <collage/run/agreement.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace run_agreement_test {

using collage::agreement;
using collage::dtype;
using collage::oracle_value;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

agreement compare_floats(std::vector<float> actual, std::vector<double> expected) {
  oracle_value r(collage::tensor_type{dtype::f32, {static_cast<std::int64_t>(expected.size())}});
  r.real = std::move(expected);
  return collage::compare(collage::const_tensor_view(actual.data(), r.type), r);
}

TEST(agreement, is_relative_to_the_largest_element) {
  // 1e-4 * 100 + 1e-6 is allowed everywhere, also at the small element.
  EXPECT_TRUE(compare_floats({100.0F, 0.0099F}, {100, 0}));
  const agreement bad = compare_floats({100.0F, 0.011F}, {100, 0});
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.worst_index, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(bad.actual), 0.011F);
  EXPECT_EQ(bad.expected, 0);
  EXPECT_STREQ(bad.why, "it is too far from the reference");
  EXPECT_NEAR(bad.worst_relative, 0.011 / 100.01, 1e-9);
}

TEST(agreement, has_an_absolute_part) {
  EXPECT_TRUE(compare_floats({0.9e-6F}, {0}));
  EXPECT_FALSE(compare_floats({1.2e-6F}, {0}));
  EXPECT_TRUE(compare_floats({1e-3F}, {1e-3 + 1.05e-6}));
  EXPECT_FALSE(compare_floats({1e-3F}, {1e-3 + 1.2e-6}));
}

TEST(agreement, worst_relative_decides) {
  for (const float a : {1.0F, 1.00005F, 1.0001F, 1.00011F, 1.0002F, 2.0F}) {
    const agreement result = compare_floats({a}, {1});
    EXPECT_EQ(result.agrees, result.worst_relative <= 1e-4) << a;
  }
}

TEST(agreement, equal_tensors_have_no_worst_element) {
  const agreement same =
      compare_floats({1, 0, static_cast<float>(nan), static_cast<float>(infinity)}, {1, 0, nan, infinity});
  EXPECT_TRUE(same);
  EXPECT_EQ(same.worst_index, -1);
  EXPECT_EQ(same.worst_relative, 0);
  EXPECT_EQ(same.why, nullptr);
  EXPECT_TRUE(compare_floats({}, {}));
}

TEST(agreement, finds_the_first_of_the_farthest_elements_of_a_large_tensor) {
  for (const std::size_t size : {std::size_t{1023}, std::size_t{1024}, std::size_t{5003}}) {
    std::vector<double> expected(size);
    for (std::size_t i = 0; i < size; ++i) expected[i] = static_cast<double>(i % 97) - 48;
    const std::vector<float> equal(expected.begin(), expected.end());
    EXPECT_EQ(compare_floats(equal, expected).worst_index, -1);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<float> actual = equal;
      actual[at] += 0.5F;
      actual[size - 1] += at == size - 1 ? 0.0F : 0.5F;  // as far, but later
      const agreement far = compare_floats(actual, expected);
      EXPECT_FALSE(far);
      EXPECT_EQ(far.worst_index, static_cast<std::int64_t>(at));
      EXPECT_NEAR(far.worst_relative, 0.5 / 48.01, 1e-9);
      actual[at] = static_cast<float>(nan);
      const agreement wrong = compare_floats(actual, expected);
      EXPECT_STREQ(wrong.why, "it has a NaN where the reference has none");
      EXPECT_EQ(wrong.worst_index, static_cast<std::int64_t>(at));
      std::vector<double> both = expected;
      both[at] = nan;
      EXPECT_EQ(compare_floats(actual, both).worst_index, at == size - 1 ? -1 : static_cast<std::int64_t>(size - 1));
    }
  }
}

TEST(agreement, nan_and_infinity_must_be_in_the_same_places) {
  const float n = static_cast<float>(nan);
  const float i = static_cast<float>(infinity);
  const std::pair<std::vector<float>, std::vector<double>> different[] = {
      {{0, n}, {0, 1}},         {{0, 1}, {0, nan}},      {{0, i}, {0, 1}},   {{0, 1}, {0, infinity}},
      {{0, i}, {0, -infinity}}, {{0, n}, {0, infinity}}, {{0, i}, {0, nan}}, {{0, -i}, {0, infinity}},
  };
  for (const auto& [actual, expected] : different) {
    const agreement result = compare_floats(actual, expected);
    EXPECT_FALSE(result) << actual[1] << " against " << expected[1];
    EXPECT_EQ(result.worst_index, 1);
    EXPECT_NE(result.why, nullptr);
  }
  EXPECT_TRUE(compare_floats({0, n}, {0, nan}));
  EXPECT_TRUE(compare_floats({0, -i}, {0, -infinity}));
  // Infinite references do not widen what is allowed elsewhere.
  EXPECT_FALSE(compare_floats({i, 1.1F}, {infinity, 1}));
}

TEST(agreement, a_reference_beyond_the_range_counts_as_infinite) {
  EXPECT_TRUE(compare_floats({static_cast<float>(infinity)}, {1e39}));
  EXPECT_TRUE(compare_floats({static_cast<float>(-infinity)}, {-1e39}));
  EXPECT_FALSE(compare_floats({static_cast<float>(infinity)}, {3.4e38}));
  EXPECT_TRUE(compare_floats({3.4e38F}, {3.4e38}));
}

TEST(agreement, integers_and_booleans_must_be_equal) {
  oracle_value r(collage::tensor_type{dtype::i64, {3}});
  r.integer = {1, -2, std::int64_t{1} << 60};
  std::vector<std::int64_t> a = r.integer;
  EXPECT_TRUE(collage::compare(collage::const_tensor_view(a.data(), r.type), r));
  a[2] += 1;
  const agreement bad = collage::compare(collage::const_tensor_view(a.data(), r.type), r);
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.worst_index, 2);

  oracle_value b(collage::tensor_type{dtype::boolean, {2}});
  b.integer = {1, 0};
  const std::uint8_t same[] = {255, 0};
  const std::uint8_t other[] = {1, 1};
  EXPECT_TRUE(collage::compare(collage::const_tensor_view(same, b.type), b));
  EXPECT_FALSE(collage::compare(collage::const_tensor_view(other, b.type), b));
}

TEST(agreement, refuses_another_type_or_shape) {
  const oracle_value r(collage::tensor_type{dtype::f32, {2}});
  const float a[4] = {};
  EXPECT_THROW((void)collage::compare(collage::const_tensor_view(a, {dtype::f32, {1, 2}}), r), collage::error);
  EXPECT_THROW((void)collage::compare(collage::const_tensor_view(a, {dtype::i32, {2}}), r), collage::error);
}

// Conversions
// ------------------------------------------------------------------------------------------------------------

TEST(elements, every_short_float_survives_and_neighbours_round_to_it) {
  const auto check = [](dtype type, std::uint32_t infinite) {
    const auto widen = [&](std::uint32_t bits) {
      const auto stored = static_cast<std::uint16_t>(bits);
      double wide = 0;
      collage::load_elements(type, &stored, std::span(&wide, 1));
      return wide;
    };
    const auto narrow = [&](double x) {
      std::uint16_t bits = 0;
      collage::store_elements(type, std::span<const double>(&x, 1), &bits);
      return std::uint32_t{bits};
    };
    for (std::uint32_t bits = 0; bits < 0x8000U; ++bits) {
      ASSERT_EQ(std::isnan(widen(bits)), bits > infinite);
      if (bits > infinite) continue;
      ASSERT_EQ(narrow(widen(bits)), bits);
      ASSERT_EQ(narrow(widen(bits | 0x8000U)), bits | 0x8000U);
      if (bits == 0) continue;
      // Halfway between two neighbours goes to the even one, a little less or more to the nearer one. Infinity stands
      // where the next number would be.
      const double low = widen(bits - 1);
      const double high = bits == infinite ? 2 * low - widen(bits - 2) : widen(bits);
      const double middle = (low + high) / 2;
      ASSERT_EQ(narrow(middle), bits - bits % 2);
      ASSERT_EQ(narrow(-middle), 0x8000U | (bits - bits % 2));
      ASSERT_EQ(narrow(std::nextafter(middle, 0.0)), bits - 1);
      ASSERT_EQ(narrow(std::nextafter(middle, infinity)), bits);
    }
    EXPECT_EQ(widen(infinite), infinity);
    EXPECT_EQ(narrow(1e300), infinite);
    EXPECT_EQ(narrow(-1e-300), 0x8000U);
    EXPECT_TRUE(std::isnan(widen(narrow(nan))));
  };
  check(dtype::f16, 0x7C00);
  check(dtype::bf16, 0x7F80);
}

TEST(elements, every_type_goes_there_and_back) {
  for (const dtype type :
       {dtype::f32,        dtype::f64,    dtype::f16,        dtype::bf16,   dtype::i8,    dtype::i16,
        dtype::i32,        dtype::i64,    dtype::u8,         dtype::u16,    dtype::u32,   dtype::u64,
        dtype::boolean,    dtype::i4,     dtype::u4,         dtype::i2,     dtype::u2,    dtype::f8e4m3fn,
        dtype::f8e4m3fnuz, dtype::f8e5m2, dtype::f8e5m2fnuz, dtype::f8e8m0, dtype::f4e2m1}) {
    oracle_value v(collage::tensor_type{type, {2, 2}});
    if (type == dtype::f8e8m0) v.real = {0.5, 2, 0x1p-127, 0x1p127};
    else if (collage::is_small(type) && type != dtype::f8e5m2 && collage::is_floating(type)) v.real = {0.5, -2, 6, 0};
    else if (collage::is_floating(type)) v.real = {0.5, -2, infinity, 0};
    else v.integer = {1, 0, 1, 1};
    // From and to odd addresses: tensors in files need not be aligned.
    std::array<unsigned char, 40> memory{};
    collage::from_oracle(v, memory.data() + 1);
    const oracle_value back = collage::to_oracle(collage::const_tensor_view(memory.data() + 1, v.type));
    EXPECT_EQ(back.real, v.real) << collage::name_of(type);
    EXPECT_EQ(back.integer, v.integer) << collage::name_of(type);
    EXPECT_EQ(memory[1 + 4 * collage::size_of(type)], 0) << collage::name_of(type);
  }
}

TEST(elements, integers_keep_their_value_and_wrap_when_narrowed) {
  const std::int8_t small = -1;
  const std::uint32_t large = 0xFFFFFFFFU;
  const std::uint64_t largest = ~std::uint64_t{0};
  std::int64_t out = 0;
  collage::load_elements(dtype::i8, &small, std::span(&out, 1));
  EXPECT_EQ(out, -1);
  collage::load_elements(dtype::u32, &large, std::span(&out, 1));
  EXPECT_EQ(out, 4294967295);
  collage::load_elements(dtype::u64, &largest, std::span(&out, 1));
  EXPECT_EQ(out, -1);  // the same bits
  const std::int64_t wide = 300;
  std::uint8_t narrow = 0;
  collage::store_elements(dtype::u8, std::span(&wide, 1), &narrow);
  EXPECT_EQ(narrow, 44);
}

TEST(elements, an_unknown_extent_is_refused) {
  EXPECT_THROW(oracle_value(collage::tensor_type{dtype::f32, {2, collage::unknown}}), collage::error);
}

}  // namespace run_agreement_test
