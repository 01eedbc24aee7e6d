// Numbers of the small element types: their bytes, and how other numbers are rounded to them.
#pragma once

#include <collage/dtype.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// How a number between two powers of two becomes float8e8m0: the larger power, the smaller one, or the nearer one. The number
/// in the middle goes up.
enum class power_rounding : std::uint8_t { up = 0, down = 1, nearest = 2 };

namespace detail {

constexpr bool is_small_real(dtype type) { return is_small(type) && is_floating(type); }
constexpr bool is_small_integer(dtype type) { return is_small(type) && !is_floating(type); }

/// The low bits of an integer, as a number of a small integer type.
constexpr std::int64_t wrap_small(dtype type, std::int64_t x) {
  const std::int64_t range = std::int64_t{1} << bits_of(type), low = x & (range - 1);
  const bool is_negative = (type == dtype::i4 || type == dtype::i2) && low >= range / 2;
  return is_negative ? low - range : low;
}

/// The number of a small integer type that is nearest to x.
constexpr std::int64_t clamp_small(dtype type, std::int64_t x) {
  const bool has_sign = type == dtype::i4 || type == dtype::i2;
  const std::int64_t range = std::int64_t{1} << bits_of(type), least = has_sign ? -range / 2 : 0;
  return x < least ? least : x >= least + range ? least + range - 1 : x;
}

/// A floating-point format of at most 8 bits that has a sign. Codes are its bits without the sign.
struct small_format {
  int mantissa = 0;           ///< bits
  int bias = 0;               ///< of the exponent
  std::uint32_t largest = 0;  ///< the code of the largest finite number
  std::uint32_t beyond = 0;   ///< the code of what is larger: infinity or NaN; the format with neither has the largest
  std::uint32_t nan = 0;      ///< the code of NaN, with the sign where only that is NaN
  std::uint32_t sign = 0x80;
  bool has_negative_zero = true;
};

constexpr small_format format_of(dtype type) {
  switch (type) {
    case dtype::f8e4m3fn: return {.mantissa = 3, .bias = 7, .largest = 0x7E, .beyond = 0x7F, .nan = 0x7F};
    case dtype::f8e5m2: return {.mantissa = 2, .bias = 15, .largest = 0x7B, .beyond = 0x7C, .nan = 0x7E};
    case dtype::f8e4m3fnuz:
      return {.mantissa = 3, .bias = 8, .largest = 0x7F, .beyond = 0x80, .nan = 0x80, .has_negative_zero = false};
    case dtype::f8e5m2fnuz:
      return {.mantissa = 2, .bias = 16, .largest = 0x7F, .beyond = 0x80, .nan = 0x80, .has_negative_zero = false};
    // As in ONNX, NaN becomes the zero with a sign.
    default: return {.mantissa = 1, .bias = 1, .largest = 0x7, .beyond = 0x7, .nan = 0x8, .sign = 0x8};
  }
}

inline constexpr int double_mantissa = 52;
inline constexpr int double_bias = 1023;
inline constexpr std::uint64_t double_infinity = std::uint64_t{0x7FF} << double_mantissa;

/// 2^exponent, for normal numbers.
constexpr double small_power(int exponent) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(exponent + double_bias) << double_mantissa);
}

/// The number that a byte holds.
constexpr double decode_small(dtype type, std::uint8_t byte) {
  const double nan = __builtin_nan("");
  if (type == dtype::f8e8m0) return byte == 0xFF ? nan : small_power(byte - 127);
  const small_format f = format_of(type);
  const std::uint32_t code = byte & (f.sign - 1U);
  const bool is_negative = (byte & f.sign) != 0;
  if (!f.has_negative_zero && is_negative && code == 0) return nan;
  if (code > f.largest) {
    if (type != dtype::f8e5m2 || code != f.beyond) return nan;
    return is_negative ? -__builtin_huge_val() : __builtin_huge_val();
  }
  const std::uint32_t field = code >> f.mantissa, fraction = code & ((1U << f.mantissa) - 1U);
  const std::uint32_t whole = field == 0 ? fraction : fraction | 1U << f.mantissa;
  const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - f.bias - f.mantissa;
  const double size = static_cast<double>(whole) * small_power(exponent);
  return is_negative ? -size : size;
}

/// The byte of a number in a format with a sign: the nearest, ties to even. `saturate` makes what is beyond the range, infinity
/// included, the largest finite number.
constexpr std::uint8_t encode_small(const small_format& f, double x, bool saturate) {
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63U);
  const std::uint32_t sign = magnitude != bits ? f.sign : 0U;
  if (magnitude > double_infinity) return static_cast<std::uint8_t>(sign | f.nan);
  const int biased = static_cast<int>(magnitude >> double_mantissa) - double_bias + f.bias;
  const int field = biased > 1 ? biased : 1;  // subnormal numbers share the smallest exponent
  const int dropped = double_mantissa - f.mantissa + field - biased;
  std::uint64_t rounded = 0;
  if (dropped <= double_mantissa + 1) {  // beyond, even the largest significand is less than a half
    const std::uint64_t hidden = std::uint64_t{1} << double_mantissa, significand = hidden | (magnitude & (hidden - 1));
    const std::uint64_t odd = significand >> dropped & 1U;
    rounded = (significand + (std::uint64_t{1} << (dropped - 1)) - 1 + odd) >> dropped;
  }
  // The hidden bit carries into the exponent field, and so does rounding up to the next power of two.
  std::uint64_t code = (static_cast<std::uint64_t>(field - 1) << f.mantissa) + rounded;
  if (code > f.largest) code = saturate ? f.largest : f.beyond;
  if (code == 0 && !f.has_negative_zero) return 0;
  return static_cast<std::uint8_t>(sign | code);
}

/// The byte of a number as float8e8m0, which has neither sign nor zero: negative numbers are NaN. `saturate` makes what is beyond
/// the range, zero and infinity included, the nearest end; otherwise it is NaN.
constexpr std::uint8_t encode_power(double x, bool saturate, power_rounding rounding) {
  constexpr std::uint8_t largest = 0xFE, nan = 0xFF;
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  if (x == 0) return saturate ? std::uint8_t{0} : nan;
  if (bits > double_infinity) return nan;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << double_mantissa) - 1);
  const bool rises = rounding == power_rounding::up        ? fraction != 0
                     : rounding == power_rounding::nearest ? fraction >> (double_mantissa - 1) != 0
                                                           : false;
  const int code = static_cast<int>(bits >> double_mantissa) - double_bias + 127 + (rises ? 1 : 0);
  if (code > largest) return saturate ? largest : nan;
  if (code >= 0) return static_cast<std::uint8_t>(code);
  return saturate || rounding == power_rounding::up ? std::uint8_t{0} : nan;
}

/// The byte of a number as any small floating-point type. float4e2m1 always saturates.
constexpr std::uint8_t encode_small(dtype type, double x, bool saturate, power_rounding rounding) {
  return type == dtype::f8e8m0 ? encode_power(x, saturate, rounding) : encode_small(format_of(type), x, saturate);
}

/// The numbers of all bytes.
struct small_table {
  float number[256] = {};
};
template <dtype Type>
constexpr small_table make_small_table() {
  small_table table;
  for (std::size_t i = 0; i < 256; ++i)
    table.number[i] = static_cast<float>(decode_small(Type, static_cast<std::uint8_t>(i)));
  return table;
}
template <dtype Type>
inline constexpr small_table small_numbers = make_small_table<Type>();

/// The numbers of all bytes of a small floating-point type, for loops: every one is a float.
constexpr const small_table& small_table_of(dtype type) {
  switch (type) {
    case dtype::f8e4m3fn: return small_numbers<dtype::f8e4m3fn>;
    case dtype::f8e4m3fnuz: return small_numbers<dtype::f8e4m3fnuz>;
    case dtype::f8e5m2: return small_numbers<dtype::f8e5m2>;
    case dtype::f8e5m2fnuz: return small_numbers<dtype::f8e5m2fnuz>;
    case dtype::f8e8m0: return small_numbers<dtype::f8e8m0>;
    default: return small_numbers<dtype::f4e2m1>;
  }
}

}  // namespace detail
}  // namespace collage::inline v0
