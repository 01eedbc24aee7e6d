// Depthwise convolutions of bytes for the current target of hwy/foreach_target.h, which includes this file once for each target.
#if defined(COLLAGE_JIT_BYTE_REPLICA_TILES) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_BYTE_REPLICA_TILES
#undef COLLAGE_JIT_BYTE_REPLICA_TILES
#else
#define COLLAGE_JIT_BYTE_REPLICA_TILES
#endif

#include "byte_replica.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a vector of bytes is one of 16.
using byte_floats = hn::CappedTag<float, 16>;
using byte_integers = hn::Rebind<std::int32_t, byte_floats>;
inline constexpr std::int64_t byte_lanes = static_cast<std::int64_t>(hn::MaxLanes(byte_floats()));
using byte_vector = hn::Vec<byte_floats>;

/// The sum a b + c with one rounding, on every processor.
HWY_INLINE byte_vector fused(byte_vector a, byte_vector b, byte_vector c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  constexpr byte_floats d;
  HWY_ALIGN float x[byte_lanes], y[byte_lanes], z[byte_lanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (std::int64_t i = 0; i < byte_lanes; ++i) x[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, x);
#endif
}

/// Numbers of T as float32.
template <class T>
HWY_INLINE byte_vector widened(const std::uint8_t* from) {
  constexpr hn::Rebind<T, byte_floats> narrow;
  return hn::ConvertTo(byte_floats(),
                       hn::PromoteTo(byte_integers(), hn::LoadU(narrow, reinterpret_cast<const T*>(from))));
}

/// Limits, rounds and adds the zero point.
HWY_INLINE hn::Vec<byte_integers> rounded(const byte_depthwise_terms& terms, byte_vector y) {
  constexpr byte_integers d;
  const int least = terms.result == dtype::i8 ? -128 : 0;
  y = hn::Min(y, hn::Set(byte_floats(), 0x1p30F));
  y = hn::Max(y, hn::Set(byte_floats(), -0x1p30F));
  const auto sum = hn::Add(hn::NearestInt(y), hn::Set(d, terms.zero));
  return hn::Max(hn::Min(sum, hn::Set(d, least + 255)), hn::Set(d, least));
}

/// Some channels of one output: those of a vector, or fewer, which are copied first and last.
template <class T>
HWY_INLINE void byte_pixel(const byte_replica_row& row, std::int64_t x, std::int64_t channel, std::int64_t count) {
  constexpr byte_floats d;
  const byte_depthwise_shape& s = row.shape;
  const auto load = [&](const float* from) HWY_ATTR {
    if (count == byte_lanes) return hn::LoadU(d, from);
    HWY_ALIGN float room[byte_lanes] = {};
    std::copy_n(from, count, room);
    return hn::Load(d, room);
  };
  const byte_vector zero = hn::Set(d, static_cast<float>(row.terms.source_zero));
  byte_vector sum = hn::Zero(d);
  for (std::int64_t i = 0; i < s.window_rows; ++i)
    for (std::int64_t j = 0; j < s.window_columns; ++j) {
      const std::int64_t y = row.y * s.stride_rows - s.pad_top + i * s.dilation_rows;
      const std::int64_t column = x * s.stride_columns - s.pad_left + j * s.dilation_columns;
      if (y < 0 || y >= s.height || column < 0 || column >= s.width) continue;
      const std::uint8_t* from = row.from + (y * s.width + column) * s.channels + channel;
      std::uint8_t room[byte_lanes] = {};
      if (count < byte_lanes) {
        std::copy_n(from, count, room);
        from = room;
      }
      // Whole numbers below 2^24, so that nothing is rounded.
      const byte_vector weight = load(row.weights + (i * s.window_columns + j) * s.channels + channel);
      sum = hn::MulAdd(hn::Sub(widened<T>(from), zero), weight, sum);
    }
  byte_vector y = fused(sum, load(row.terms.factor.data() + channel), load(row.terms.offset.data() + channel));
  y = hn::Min(hn::Max(y, hn::Set(d, row.terms.least)), hn::Set(d, row.terms.most));
  const std::int64_t at = x * s.channels + channel;
  if (row.terms.result == dtype::f32) {
    HWY_ALIGN float room[byte_lanes];
    hn::Store(y, d, room);
    std::copy_n(room, count, static_cast<float*>(row.to) + at);
    return;
  }
  HWY_ALIGN std::int32_t room[byte_lanes];
  hn::Store(rounded(row.terms, y), byte_integers(), room);
  auto* const to = static_cast<std::uint8_t*>(row.to) + at;
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(room[i]);
}

template <class T>
void byte_row(const byte_replica_row& row) {
  const std::int64_t channels = row.shape.channels;
  for (std::int64_t x = 0; x < row.shape.output_width(); ++x)
    for (std::int64_t c = 0; c < channels; c += byte_lanes)
      byte_pixel<T>(row, x, c, std::min(byte_lanes, channels - c));
}

inline byte_replica_function byte_row_of_target(dtype source) {
  return source == dtype::i8 ? byte_row<std::int8_t> : byte_row<std::uint8_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
