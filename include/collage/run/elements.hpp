// Elements of tensors in the reference's form: floating-point types as double, all others as int64. Conversions between that
// form and memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/detail/small_types.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/layout.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/space.hpp>
#include <collage/run/tensor.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace collage::inline v0 {

/// A dense tensor in the reference's form. Exactly one of the lists is used: `real` for floating-point types, `integer` for all
/// others. A uint64 is the int64 with the same bits; booleans are 0 and 1.
struct oracle_value {
  tensor_type type;
  std::vector<double> real;
  std::vector<std::int64_t> integer;

  oracle_value() = default;
  /// Zeros. Errors: an extent of the type is unknown.
  explicit oracle_value(const tensor_type& t) : type(t) {
    if (!t.dims.is_concrete())
      throw error(error_kind::unsupported, "its shape is not known", "reference", "bind every symbolic extent");
    const auto count = static_cast<std::size_t>(t.dims.elements());
    if (is_floating(t.type)) real.resize(count);
    else integer.resize(count);
  }
  std::size_t size() const { return is_floating(type.type) ? real.size() : integer.size(); }
  /// The form that operator kinds take. This object keeps the elements.
  reference_tensor view() { return {type, real, integer}; }
};

namespace detail {

/// A 16-bit floating-point format: a sign, `Exponent` bits of exponent, the rest mantissa, with the conventions of IEEE
/// 754.
template <int Exponent>
struct short_float {
  static constexpr int mantissa = 15 - Exponent;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr std::uint32_t infinity = ((1U << Exponent) - 1U) << mantissa;

  static double widen(std::uint16_t bits) {
    const std::uint32_t magnitude = bits & 0x7FFFU;
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (magnitude == infinity) return sign * std::numeric_limits<double>::infinity();
    if (magnitude > infinity) return std::numeric_limits<double>::quiet_NaN();
    const int field = static_cast<int>(magnitude >> mantissa);
    const std::uint32_t fraction = magnitude & ((1U << mantissa) - 1U);
    const std::uint32_t whole = field == 0 ? fraction : fraction | 1U << mantissa;
    return sign * std::ldexp(static_cast<double>(whole), (field == 0 ? 1 : field) - bias - mantissa);
  }

  /// Rounds to nearest, ties to even, directly from double: by way of float it would round twice.
  static std::uint16_t narrow(double x) {
    const std::uint32_t sign = std::signbit(x) ? 0x8000U : 0U;
    if (std::isnan(x)) return static_cast<std::uint16_t>(sign | infinity | 1U << (mantissa - 1));
    if (x == 0) return static_cast<std::uint16_t>(sign);
    std::uint32_t code = infinity;
    if (!std::isinf(x)) {
      int exponent = 0;
      (void)std::frexp(x, &exponent);
      const int field = std::max(exponent - 1 + bias, 1);  // subnormal numbers share the smallest exponent
      if (field < (1 << Exponent)) {
        const double whole = std::nearbyint(std::ldexp(std::abs(x), mantissa + bias - field));
        // The hidden bit carries into the exponent field, and so does rounding up to the next power of two.
        code =
            std::min(infinity, (static_cast<std::uint32_t>(field - 1) << mantissa) + static_cast<std::uint32_t>(whole));
      }
    }
    return static_cast<std::uint16_t>(sign | code);
  }
};
using half = short_float<5>;
using brain_float = short_float<8>;

/// The byte of a number whose type is a small floating-point one. A number beyond the range becomes infinite where the type has
/// infinities, and the nearest end of the range otherwise.
constexpr std::uint8_t small_byte(dtype type, double x) {
  return encode_small(type, x, type != dtype::f8e5m2, power_rounding::nearest);
}

/// Calls `body` with a zero of the C++ type that stores an integer or boolean element type.
template <class Body>
decltype(auto) with_integer_type(dtype type, Body&& body) {
  switch (type) {
    case dtype::i8:
    case dtype::i4:
    case dtype::i2: return body(std::int8_t{});
    case dtype::i16: return body(std::int16_t{});
    case dtype::i32: return body(std::int32_t{});
    case dtype::u8:
    case dtype::u4:
    case dtype::u2: return body(std::uint8_t{});
    case dtype::u16: return body(std::uint16_t{});
    case dtype::u32: return body(std::uint32_t{});
    case dtype::u64: return body(std::uint64_t{});
    case dtype::boolean: return body(bool{});
    default: return body(std::int64_t{});
  }
}

template <class T, class To>
void read_elements(const void* from, std::span<To> to) {
  const char* at = static_cast<const char*>(from);
  for (To& element : to) {
    T stored;
    std::memcpy(&stored, at, sizeof(T));
    element = static_cast<To>(stored);
    at += sizeof(T);
  }
}

template <class T, class From>
void write_elements(std::span<const From> from, void* to) {
  char* at = static_cast<char*>(to);
  for (const From element : from) {
    const T stored = static_cast<T>(element);
    std::memcpy(at, &stored, sizeof(T));
    at += sizeof(T);
  }
}

}  // namespace detail

/// Reads elements of a floating-point type from memory. `from` holds to.size() elements, at any alignment.
inline void load_elements(dtype type, const void* from, std::span<double> to) {
  if (type == dtype::f32) return detail::read_elements<float>(from, to);
  if (type == dtype::f64) return detail::read_elements<double>(from, to);
  if (is_small(type)) {
    const auto* const bytes = static_cast<const std::uint8_t*>(from);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = detail::decode_small(type, bytes[i]);
    return;
  }
  const char* at = static_cast<const char*>(from);
  for (double& element : to) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, 2);
    element = type == dtype::f16 ? detail::half::widen(bits) : detail::brain_float::widen(bits);
    at += 2;
  }
}

/// Reads elements of an integer type, or booleans, from memory. Any byte except 0 is true.
inline void load_elements(dtype type, const void* from, std::span<std::int64_t> to) {
  if (type == dtype::boolean) {
    detail::read_elements<std::uint8_t>(from, to);
    for (std::int64_t& element : to) element = element != 0 ? 1 : 0;
    return;
  }
  detail::with_integer_type(type, [&](auto zero) { detail::read_elements<decltype(zero)>(from, to); });
  if (is_small(type))
    for (std::int64_t& element : to) element = detail::wrap_small(type, element);
}

/// Writes elements of a floating-point type to memory, rounded to nearest. Values beyond the type's range become infinite, or the
/// nearest end of the range if the type has no infinities.
inline void store_elements(dtype type, std::span<const double> from, void* to) {
  if (type == dtype::f32) return detail::write_elements<float>(from, to);
  if (type == dtype::f64) return detail::write_elements<double>(from, to);
  if (is_small(type)) {
    char* at = static_cast<char*>(to);
    for (const double element : from) {
      const std::uint8_t stored = detail::small_byte(type, element);
      std::memcpy(at++, &stored, 1);
    }
    return;
  }
  char* at = static_cast<char*>(to);
  for (const double element : from) {
    const std::uint16_t bits =
        type == dtype::f16 ? detail::half::narrow(element) : detail::brain_float::narrow(element);
    std::memcpy(at, &bits, 2);
    at += 2;
  }
}

/// Writes elements of an integer type, or booleans, to memory. Values that do not fit wrap around.
inline void store_elements(dtype type, std::span<const std::int64_t> from, void* to) {
  if (detail::is_small_integer(type)) {
    char* at = static_cast<char*>(to);
    for (const std::int64_t element : from) {
      const auto stored = static_cast<std::int8_t>(detail::wrap_small(type, element));
      std::memcpy(at++, &stored, 1);
    }
    return;
  }
  detail::with_integer_type(type, [&](auto zero) { detail::write_elements<decltype(zero)>(from, to); });
}

/// Converts a tensor to the reference's form. It must be dense and on the host.
inline oracle_value to_oracle(const const_tensor_view& from) {
  if (from.stored != form())
    throw error(error_kind::failure, "the reference reads only dense tensors in host memory", "reference",
                "copy the tensor first");
  oracle_value value(from.type);
  if (is_floating(from.type.type)) load_elements(from.type.type, from.data, std::span<double>(value.real));
  else load_elements(from.type.type, from.data, std::span<std::int64_t>(value.integer));
  return value;
}

/// Writes a tensor back to memory. `to` has room for its elements in its own type.
inline void from_oracle(const oracle_value& value, void* to) {
  if (is_floating(value.type.type)) store_elements(value.type.type, std::span<const double>(value.real), to);
  else store_elements(value.type.type, std::span<const std::int64_t>(value.integer), to);
}

}  // namespace collage::inline v0
