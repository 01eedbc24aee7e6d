// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// Element type of a tensor. The numbers are stable: they appear in cost keys and plan files.
///
/// The last ten are the small types (`is_small`). In memory an element of theirs takes one byte. Its low bits hold the number:
/// two's complement for i4 and i2, the format of the name for others. Bits above are copies of the sign (i4, i2) or 0. They
/// are not read. `fn` is for finite numbers and NaN, `uz` for a zero without a sign.
enum class dtype : std::uint8_t {
  f32 = 1,
  f64 = 2,
  f16 = 3,
  bf16 = 4,
  i8 = 5,
  i16 = 6,
  i32 = 7,
  i64 = 8,
  u8 = 9,
  u16 = 10,
  u32 = 11,
  u64 = 12,
  boolean = 13,
  i4 = 14,
  u4 = 15,
  i2 = 16,
  u2 = 17,
  f8e4m3fn = 18,
  f8e4m3fnuz = 19,
  f8e5m2 = 20,
  f8e5m2fnuz = 21,
  f8e8m0 = 22,  ///< a power of two from 2^-127 to 2^127, or NaN
  f4e2m1 = 23,  ///< 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
};

/// Bytes of one element in memory.
constexpr std::size_t size_of(dtype type) {
  switch (type) {
    case dtype::f64:
    case dtype::i64:
    case dtype::u64: return 8;
    case dtype::f32:
    case dtype::i32:
    case dtype::u32: return 4;
    case dtype::f16:
    case dtype::bf16:
    case dtype::i16:
    case dtype::u16: return 2;
    case dtype::i8:
    case dtype::u8:
    case dtype::boolean:
    case dtype::i4:
    case dtype::u4:
    case dtype::i2:
    case dtype::u2:
    case dtype::f8e4m3fn:
    case dtype::f8e4m3fnuz:
    case dtype::f8e5m2:
    case dtype::f8e5m2fnuz:
    case dtype::f8e8m0:
    case dtype::f4e2m1: return 1;
  }
  return 0;
}

/// True for integers of fewer than 8 bits and floating-point types of at most 8. Operators move and convert such elements, and
/// do not compute with them.
constexpr bool is_small(dtype type) { return type >= dtype::i4; }

/// True for the floating-point types.
constexpr bool is_floating(dtype type) {
  return type >= dtype::f8e4m3fn || (type >= dtype::f32 && type <= dtype::bf16);
}

/// True for int8 and uint8, with which quantised networks compute.
constexpr bool is_8_bit_integer(dtype type) { return type == dtype::i8 || type == dtype::u8; }

/// Bits of an element that hold its number.
constexpr std::size_t bits_of(dtype type) {
  if (type == dtype::i2 || type == dtype::u2) return 2;
  return type == dtype::i4 || type == dtype::u4 || type == dtype::f4e2m1 ? 4 : 8 * size_of(type);
}

/// The name used in printed graphs and in JSON, as in "float32".
constexpr const char* name_of(dtype type) {
  switch (type) {
    case dtype::f32: return "float32";
    case dtype::f64: return "float64";
    case dtype::f16: return "float16";
    case dtype::bf16: return "bfloat16";
    case dtype::i8: return "int8";
    case dtype::i16: return "int16";
    case dtype::i32: return "int32";
    case dtype::i64: return "int64";
    case dtype::u8: return "uint8";
    case dtype::u16: return "uint16";
    case dtype::u32: return "uint32";
    case dtype::u64: return "uint64";
    case dtype::boolean: return "bool";
    case dtype::i4: return "int4";
    case dtype::u4: return "uint4";
    case dtype::i2: return "int2";
    case dtype::u2: return "uint2";
    case dtype::f8e4m3fn: return "float8e4m3fn";
    case dtype::f8e4m3fnuz: return "float8e4m3fnuz";
    case dtype::f8e5m2: return "float8e5m2";
    case dtype::f8e5m2fnuz: return "float8e5m2fnuz";
    case dtype::f8e8m0: return "float8e8m0";
    case dtype::f4e2m1: return "float4e2m1";
  }
  return "?";
}

/// The element type that stores a C++ arithmetic type: dtype_of<float> is dtype::f32.
template <class T>
inline constexpr dtype dtype_of = T::unknown_element_type;
template <>
inline constexpr dtype dtype_of<float> = dtype::f32;
template <>
inline constexpr dtype dtype_of<double> = dtype::f64;
template <>
inline constexpr dtype dtype_of<std::int8_t> = dtype::i8;
template <>
inline constexpr dtype dtype_of<std::int16_t> = dtype::i16;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::i32;
template <>
inline constexpr dtype dtype_of<std::int64_t> = dtype::i64;
template <>
inline constexpr dtype dtype_of<std::uint8_t> = dtype::u8;
template <>
inline constexpr dtype dtype_of<std::uint16_t> = dtype::u16;
template <>
inline constexpr dtype dtype_of<std::uint32_t> = dtype::u32;
template <>
inline constexpr dtype dtype_of<std::uint64_t> = dtype::u64;
template <>
inline constexpr dtype dtype_of<bool> = dtype::boolean;

}  // namespace collage::inline v0
