// Loops between float32 and integers of 8 bits, for adapters that are compiled for this processor.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/ops.hpp>
#include <cstdint>
#include <cstring>
#include <limits>

#ifdef __AVX512BW__
#include <immintrin.h>
#endif

namespace collage::inline v0::detail::host {
namespace {

/// One scale and zero point.
struct byte_scale {
  float scale = 1;
  float zero_point = 0;
};
inline byte_scale scale_at(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  return {static_cast<float>(m.at(in[1]).scalar), in.size() == 3 ? static_cast<float>(m.at(in[2]).scalar) : 0.0F};
}

/// A rounded number as a T: the nearest end of the range if it is out of it, and 0 for NaN.
template <class T>
T to_byte(float x) {
  constexpr auto low = static_cast<float>(std::numeric_limits<T>::min()), high = low + 255;
  x = x < low ? low : x;
  x = x > high ? high : x;
  x = x != x ? 0.0F : x;
  return static_cast<T>(static_cast<std::int32_t>(x));
}

/// The integer nearest to a number, ties to even, plus the zero point: a T. The number must lie within the range of T less the zero
/// point. Beyond 2^23 floats are whole, so adding 1.5 * 2^23 rounds, and the low bits of the sum are the integer.
template <class T>
T nearest_byte(float x, std::int32_t zero_point) {
  return static_cast<T>(std::bit_cast<std::int32_t>(x + 0x1.8p23F) + zero_point);
}

/// quantize_linear of elements first to last, by the definition: a quotient, rounded, and the zero point added.
template <class T>
void quantise(const float* from, T* to, std::int64_t first, std::int64_t last, byte_scale q) {
  constexpr auto lowest = static_cast<float>(std::numeric_limits<T>::min());
  const float low = lowest - q.zero_point, high = low + 255;
  const auto zero = static_cast<std::int32_t>(q.zero_point);
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    float x = from[i] / q.scale;
    x = x == x ? x : -q.zero_point;  // NaN becomes the integer 0
    x = x > low ? x : low;
    x = x < high ? x : high;
    to[i] = nearest_byte<T>(x, zero);
  }
}
/// dequantize_linear of elements first to last, to float32 or float64.
template <class T, class Y>
void dequantise(const T* from, Y* to, std::int64_t first, std::int64_t last, Y scale, Y zero_point) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) to[i] = (static_cast<Y>(from[i]) - zero_point) * scale;
}

/// An entry for each of the 256 bytes.
using byte_table = std::array<std::uint8_t, 256>;

/// Replaces bytes by the entries of a table.
inline void look_up(const std::uint8_t* table, const std::uint8_t* from, std::uint8_t* to, std::int64_t first,
                    std::int64_t last) {
  std::int64_t i = first;
#ifdef __AVX512VBMI__
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64), c = _mm512_loadu_si512(table + 128),
                d = _mm512_loadu_si512(table + 192);
  for (; i + 64 <= last; i += 64) {
    const __m512i x = _mm512_loadu_si512(from + i);
    const __m512i low = _mm512_permutex2var_epi8(a, x, b), high = _mm512_permutex2var_epi8(c, x, d);
    _mm512_storeu_si512(to + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
  if (i < last) {  // rows of channels may be short
    const __mmask64 rest = ~std::uint64_t{0} >> (64 - (last - i));
    const __m512i x = _mm512_maskz_loadu_epi8(rest, from + i);
    const __m512i low = _mm512_permutex2var_epi8(a, x, b), high = _mm512_permutex2var_epi8(c, x, d);
    _mm512_mask_storeu_epi8(to + i, rest, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
    i = last;
  }
#endif
  for (; i < last; ++i) to[i] = table[from[i]];
}

/// Copies some bytes: without a call, which would cost more than a short row.
inline void copy_short(const std::uint8_t* from, std::uint8_t* to, std::int64_t count) {
#ifdef __AVX512BW__
  if (count <= 512) {
    for (std::int64_t i = 0; i < count; i += 64) {
      const __mmask64 some = count - i >= 64 ? ~__mmask64{0} : ~__mmask64{0} >> (64 - (count - i));
      _mm512_mask_storeu_epi8(to + i, some, _mm512_maskz_loadu_epi8(some, from + i));
    }
    return;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace collage::inline v0::detail::host
