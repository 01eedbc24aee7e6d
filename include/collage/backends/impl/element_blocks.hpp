// Converts elements of every type to blocks of the type that they are computed in, and back.
#pragma once

#include <bit>
#include <cmath>
#include <collage/detail/small_types.hpp>
#include <collage/dtype.hpp>
#include <collage/op/cast.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace collage::inline v0::detail::host {
namespace {

/// Calls f with a zero of the C++ type in which elements of a type are computed. Floating-point types of at most 16
/// bits are computed as float, integers of fewer than 8 bits as 8, and all others as themselves.
template <class F>
decltype(auto) with_computed_type(dtype type, const F& f) {
  switch (type) {
    case dtype::f64: return f(double{});
    case dtype::i4:
    case dtype::i2:
    case dtype::i8: return f(std::int8_t{});
    case dtype::i16: return f(std::int16_t{});
    case dtype::i32: return f(std::int32_t{});
    case dtype::i64: return f(std::int64_t{});
    case dtype::u4:
    case dtype::u2:
    case dtype::u8: return f(std::uint8_t{});
    case dtype::u16: return f(std::uint16_t{});
    case dtype::u32: return f(std::uint32_t{});
    case dtype::u64: return f(std::uint64_t{});
    case dtype::boolean: return f(bool{});
    default: return f(float{});
  }
}

/// Whether an element in memory is a T. Booleans never are: any byte but 0 is true in memory, but a bool is 0 or 1.
template <class T>
constexpr bool is_stored_as(dtype type) {
  return type == dtype_of<T> && type != dtype::boolean;
}

// The 16-bit formats, without branches, so that loops vectorize. Both conversions need denormals that are not flushed to zero.

inline float from_half(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7FFFU;
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  // Read as float32, the number is 2^112 times too small, because the exponent has another bias.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13U) * 0x1p112F);
  return std::bit_cast<float>(sign | (magnitude < 0x7C00U ? scaled : magnitude << 13U | 0x7F800000U));
}
/// Rounds to nearest, ties to even.
inline std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  // Floats from 1/2 to 1 are as far apart as half precision's denormals, so the addition rounds to a denormal.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t normal = (magnitude - (112U << 23U) + 0xFFFU + (magnitude >> 13U & 1U)) >> 13U;
  const std::uint32_t finite = magnitude < 0x38800000U ? denormal : normal;
  const std::uint32_t beyond = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | (magnitude < 0x477FF000U ? finite : beyond));
}
inline float from_brain_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
inline std::uint16_t to_brain_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7FFFU + (bits >> 16U & 1U);
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? bits >> 16U | 0x40U : rounded >> 16U);
}

/// Rounds to odd: the last bit of an inexact result is 1. Rounding it to 16 bits then equals rounding the double itself. See
/// Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
inline float to_float_before_rounding(double x) {
  const auto nearest = static_cast<float>(x);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double error = std::abs(x) - std::abs(static_cast<double>(nearest));
  if (!(error < 0) && !(error > 0)) return nearest;  // exact, infinite or NaN
  return std::bit_cast<float>((error < 0 ? bits - 1 : bits) | 1U);
}
inline float to_float_before_rounding(float x) { return x; }

/// A double as a T. Integers drop the fraction. Out of range they are the nearest T, and 0 for NaN.
template <class T>
T from_real(double x) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x);
  else {
    using limits = std::numeric_limits<T>;
    // The largest T may not be a double; the power of two after it is.
    constexpr double end = 2.0 * static_cast<double>(T{1} << (limits::digits - 1));
    return x != x                                    ? T{}
           : x >= end                                ? limits::max()
           : x <= static_cast<double>(limits::min()) ? limits::min()
                                                     : static_cast<T>(x);
  }
}

/// Converts one element as `cast` does.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<To, bool>) return x != From{};
  else if constexpr (std::is_floating_point_v<From>) return from_real<To>(static_cast<double>(x));
  else return static_cast<To>(x);
}

/// Reads elements in memory as T, in which their type is computed, or booleans as any T.
template <class T>
void load_block(dtype type, const void* memory, std::int64_t count, T* to) {
  const auto read = [&]<class From>(const From* from, const auto& f) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
  };
  if (type == dtype::boolean)
    return read(static_cast<const std::uint8_t*>(memory), [](std::uint8_t x) { return static_cast<T>(x != 0); });
  if constexpr (std::is_same_v<T, float>) {
    const auto* const bits = static_cast<const std::uint16_t*>(memory);
    if (type == dtype::f16) return read(bits, [](std::uint16_t x) { return from_half(x); });
    if (type == dtype::bf16) return read(bits, [](std::uint16_t x) { return from_brain_float(x); });
    if (is_small(type)) {
      const small_table& table = small_table_of(type);
      return read(static_cast<const std::uint8_t*>(memory), [&](std::uint8_t x) { return table.number[x]; });
    }
  }
  if constexpr (sizeof(T) == 1)
    if (is_small(type))
      return read(static_cast<const T*>(memory), [&](T x) { return static_cast<T>(wrap_small(type, x)); });
  std::memcpy(to, memory, static_cast<std::size_t>(count) * sizeof(T));
}

/// Writes elements as the type `how.to`, converted as `cast` does.
template <class T>
void store_block(const ops::cast_attributes& how, const T* from, std::int64_t count, void* memory) {
  const dtype type = how.to;
  const auto write = [&]<class To>(To* to, const auto& f) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
  };
  using wide = std::conditional_t<std::is_same_v<T, float>, float, double>;
  const auto narrowed = [](T x) { return to_float_before_rounding(static_cast<wide>(x)); };
  auto* const bits = static_cast<std::uint16_t*>(memory);
  if (type == dtype::f16) return write(bits, [&](T x) { return to_half(narrowed(x)); });
  if (type == dtype::bf16) return write(bits, [&](T x) { return to_brain_float(narrowed(x)); });
  auto* const bytes = static_cast<std::uint8_t*>(memory);
  if (type == dtype::f8e8m0)
    return write(bytes, [&](T x) { return encode_power(static_cast<double>(x), how.saturate, how.rounding); });
  if (is_small_real(type)) {
    const small_format format = format_of(type);
    return write(bytes, [&](T x) { return encode_small(format, static_cast<double>(x), how.saturate); });
  }
  if (is_small(type))
    return write(bytes, [&](T x) { return static_cast<std::uint8_t>(wrap_small(type, convert<std::int64_t>(x))); });
  with_computed_type(type, [&]<class To>(To) { write(static_cast<To*>(memory), [](T x) { return convert<To>(x); }); });
}

}  // namespace
}  // namespace collage::inline v0::detail::host
