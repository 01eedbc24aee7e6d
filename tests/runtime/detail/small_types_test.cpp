// Numbers of the small element types, all codes of each, against a definition written apart: the list of a type's numbers, among
// which the nearest is looked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <collage/detail/small_types.hpp>
#include <collage/run/buffers.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace detail_small_types_test {

namespace c = collage;
using c::dtype;
using c::power_rounding;
using c::detail::decode_small;
using c::detail::encode_small;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

/// What the standards of a format say.
struct format {
  dtype type;
  int exponent_bits, mantissa_bits, bias;
  double largest;
  int infinity, nan;          // codes, -1: none
  bool nan_has_signs = true;  // either sign is NaN
  bool two_zeros = true;
};
const format formats[] = {
    {dtype::f8e4m3fn, 4, 3, 7, 448, -1, 0x7F},    {dtype::f8e4m3fnuz, 4, 3, 8, 240, -1, 0x80, false, false},
    {dtype::f8e5m2, 5, 2, 15, 57344, 0x7C, 0x7E}, {dtype::f8e5m2fnuz, 5, 2, 16, 57344, -1, 0x80, false, false},
    {dtype::f4e2m1, 2, 1, 1, 6, -1, -1},
};

/// The number of a code without sign, as a sum of its bits.
double number_of(const format& f, int code) {
  const int mantissa = code % (1 << f.mantissa_bits), exponent = code >> f.mantissa_bits;
  double number = exponent == 0 ? 0 : 1;
  for (int bit = 1; bit <= f.mantissa_bits; ++bit)
    if ((mantissa >> (f.mantissa_bits - bit) & 1) != 0) number += std::pow(2.0, -bit);
  return number * std::pow(2.0, (exponent == 0 ? 1 : exponent) - f.bias);
}

std::vector<double> numbers_of(const format& f) {
  std::vector<double> list;
  for (int code = 0; code < 1 << (f.exponent_bits + f.mantissa_bits); ++code)
    if (const double x = number_of(f, code); x <= f.largest) list.push_back(x);
  return list;
}

/// The code of the nearest number, with the even one at a tie. One number more than there are is the first beyond.
int nearest(const format& f, const std::vector<double>& list, double x) {
  const double step = list.back() - list[list.size() - 2];
  int best = 0;
  double distance = infinity;
  for (int code = 0; code <= static_cast<int>(list.size()); ++code) {
    const double at = code < static_cast<int>(list.size()) ? list[static_cast<std::size_t>(code)] : f.largest + step;
    const double now = std::abs(x - at);
    if (now < distance || (now == distance && code % 2 == 0)) {
      best = code;
      distance = now;
    }
  }
  return best;
}

TEST(small_types, every_code_is_its_number) {
  for (const format& f : formats) {
    const int half = 1 << (f.exponent_bits + f.mantissa_bits);
    for (int byte = 0; byte < 2 * half; ++byte) {
      const int code = byte % half;
      double expected = number_of(f, code);
      if (expected > f.largest) expected = code == f.infinity ? infinity : nan;
      if (byte >= half) expected = -expected;
      if (!f.two_zeros && byte == half) expected = nan;
      const double got = decode_small(f.type, static_cast<std::uint8_t>(byte));
      const std::string what = std::string(c::name_of(f.type)) + " " + std::to_string(byte);
      EXPECT_EQ(std::isnan(got), std::isnan(expected)) << what;
      if (!std::isnan(expected)) EXPECT_EQ(got, expected) << what;
      if (!std::isnan(expected)) EXPECT_EQ(std::signbit(got), byte >= half) << what;
      // The table of loops, and the way back.
      const float listed = c::detail::small_table_of(f.type).number[byte];
      EXPECT_TRUE(std::isnan(got) ? std::isnan(listed) : static_cast<double>(listed) == got) << what;
      const int back = encode_small(f.type, got, false, power_rounding::nearest);
      if (std::isnan(got)) EXPECT_EQ(f.nan_has_signs ? back % half : back, f.nan) << what;
      else EXPECT_EQ(back, byte) << what;
    }
  }
}

TEST(small_types, numbers_become_the_nearest_and_ties_the_even_one) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (const format& f : formats) {
    const std::vector<double> list = numbers_of(f);
    const int half = 1 << (f.exponent_bits + f.mantissa_bits), largest = static_cast<int>(list.size()) - 1;
    EXPECT_EQ(list.back(), f.largest);
    std::vector<double> tried = {1e6, 5e-324, 1e-40, 0.0};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double next = i + 1 < list.size() ? list[i + 1] : 2 * list[i] - list[i - 1];
      const double middle = (list[i] + next) / 2;
      for (const double x : {list[i], middle, std::nextafter(middle, 0.0), std::nextafter(middle, infinity),
                             list[i] + uniform(random) * (next - list[i])})
        tried.push_back(x);
    }
    for (const double x : tried) {
      const int code = nearest(f, list, x);
      for (const bool saturate : {true, false})
        for (const double sign : {1.0, -1.0}) {
          int expected = std::min(code, largest) + (sign < 0 ? half : 0);
          if (code > largest && !saturate && f.type != dtype::f4e2m1)
            expected = f.infinity >= 0 || f.nan_has_signs ? largest + 1 + (sign < 0 ? half : 0) : f.nan;
          if (!f.two_zeros && code == 0) expected = 0;
          EXPECT_EQ(encode_small(f.type, sign * x, saturate, power_rounding::up), expected)
              << c::name_of(f.type) << " " << sign * x;
        }
    }
    for (const double x : {1e300, infinity}) EXPECT_EQ(encode_small(f.type, x, true, power_rounding::up), largest);
    EXPECT_EQ(encode_small(f.type, -infinity, true, power_rounding::up), largest + half);
  }
  EXPECT_EQ(encode_small(dtype::f4e2m1, nan, true, power_rounding::up), 8);
}

TEST(small_types, powers_of_two) {
  const auto encode = [](double x, bool saturate, power_rounding how) {
    return static_cast<int>(encode_small(dtype::f8e8m0, x, saturate, how));
  };
  for (int code = 0; code < 255; ++code) {
    const double x = std::ldexp(1.0, code - 127);
    EXPECT_EQ(decode_small(dtype::f8e8m0, static_cast<std::uint8_t>(code)), x);
    for (const auto how : {power_rounding::up, power_rounding::down, power_rounding::nearest})
      for (const bool saturate : {true, false}) {
        EXPECT_EQ(encode(x, saturate, how), code);
        if (code == 254) continue;
        const bool up = how == power_rounding::up, down = how == power_rounding::down;
        EXPECT_EQ(encode(std::nextafter(x, infinity), saturate, how), code + (up ? 1 : 0));
        EXPECT_EQ(encode(std::nextafter(1.5 * x, 0.0), saturate, how), code + (up ? 1 : 0));
        EXPECT_EQ(encode(1.5 * x, saturate, how), code + (down ? 0 : 1));
        EXPECT_EQ(encode(std::nextafter(2 * x, 0.0), saturate, how), code + (down ? 0 : 1));
      }
  }
  EXPECT_TRUE(std::isnan(decode_small(dtype::f8e8m0, 0xFF)));
  for (const double large : {0x1.8p127, 1e300, infinity}) {
    EXPECT_EQ(encode(large, true, power_rounding::up), 254);
    EXPECT_EQ(encode(large, false, power_rounding::up), 255);
  }
  EXPECT_EQ(encode(0x1.8p127, false, power_rounding::down), 254);
  EXPECT_EQ(encode(0x1.4p-128, true, power_rounding::down), 0);
  EXPECT_EQ(encode(0x1.4p-128, false, power_rounding::nearest), 255);
  EXPECT_EQ(encode(0x1.8p-128, false, power_rounding::nearest), 0);
  EXPECT_EQ(encode(5e-324, false, power_rounding::up), 0);
  for (const double zero : {0.0, -0.0}) {
    EXPECT_EQ(encode(zero, true, power_rounding::up), 0);
    EXPECT_EQ(encode(zero, false, power_rounding::nearest), 255);
  }
  for (const double none : {-1.0, -infinity, nan}) EXPECT_EQ(encode(none, true, power_rounding::up), 255);
}

TEST(small_types, integers_wrap_or_stop_at_the_ends) {
  struct range {
    dtype type;
    std::int64_t least, most;
  };
  for (const range& r :
       {range{dtype::i4, -8, 7}, range{dtype::u4, 0, 15}, range{dtype::i2, -2, 1}, range{dtype::u2, 0, 3}}) {
    std::int64_t wrapped = r.least;
    for (std::int64_t x = r.least - 4 * (r.most - r.least + 1); x < 100; ++x) {
      EXPECT_EQ(c::detail::wrap_small(r.type, x), wrapped) << c::name_of(r.type) << " " << x;
      EXPECT_EQ(c::detail::clamp_small(r.type, x), std::clamp(x, r.least, r.most)) << c::name_of(r.type) << " " << x;
      wrapped = wrapped == r.most ? r.least : wrapped + 1;
    }
    EXPECT_EQ(c::detail::clamp_small(r.type, INT64_MAX), r.most);
    EXPECT_EQ(c::detail::clamp_small(r.type, INT64_MIN), r.least);
  }
}

TEST(small_types, random_contents_are_numbers) {
  std::mt19937_64 random(3);
  for (int i = static_cast<int>(dtype::i4); i <= static_cast<int>(dtype::f4e2m1); ++i) {
    const c::tensor t({static_cast<dtype>(i), {500}});
    c::fill_random(t, random);
    c::oracle_value v = c::to_oracle(t);
    for (const double x : v.real) EXPECT_TRUE(std::abs(x) <= 1) << c::name_of(t.type().type);
    std::sort(v.real.begin(), v.real.end());
    std::sort(v.integer.begin(), v.integer.end());
    EXPECT_TRUE(v.real.empty() ? v.integer.front() < v.integer.back() : v.real.front() < v.real.back());
    const bool has_nan = c::spoil(t, c::non_finite::nan, random);
    v = c::to_oracle(t);
    EXPECT_EQ(std::any_of(v.real.begin(), v.real.end(), [](double x) { return std::isnan(x); }), has_nan);
    EXPECT_EQ(has_nan, c::is_floating(t.type().type) && t.type().type != dtype::f4e2m1);
    EXPECT_EQ(c::spoil(t, c::non_finite::infinity, random), t.type().type == dtype::f8e5m2);
  }
}

}  // namespace detail_small_types_test
