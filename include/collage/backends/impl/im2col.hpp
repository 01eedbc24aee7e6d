// The matrix of windows of a convolution (im2col), one tile at a time.
#pragma once

#include <algorithm>
#include <collage/backends/impl/conv_shape.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace collage::inline v0::detail::host {
namespace {

/// Copies a short run of floats: calling memcpy costs more than most of these copies. The last move overlaps the move before it,
/// so that nothing is left over.
inline void copy_run(const float* from, std::int64_t count, float* to) {
  const auto copy = [&](std::int64_t at, auto size) { std::memcpy(to + at, from + at, size.value * sizeof(float)); };
  const auto ends = [&](auto size) {
    copy(0, size);
    copy(count - size.value, size);
  };
  if (count >= 16) {
    for (std::int64_t i = 0; i + 16 <= count; i += 16) copy(i, std::integral_constant<int, 16>{});
    copy(count - 16, std::integral_constant<int, 16>{});
  } else if (count >= 8) {
    ends(std::integral_constant<int, 8>{});
  } else if (count >= 4) {
    ends(std::integral_constant<int, 4>{});
  } else if (count >= 2) {
    ends(std::integral_constant<int, 2>{});
  } else if (count == 1) {
    *to = *from;
  }
}

/// The same for source elements that are `step` apart.
inline void copy_run(const float* from, std::int64_t step, std::int64_t count, float* to) {
  if (step == 1) return copy_run(from, count, to);
  if (step == 2) {  // a constant lets the compiler shuffle vectors
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

/// The places p of [0, places) with 0 <= p * stride + offset < extent, as a range [first, last).
struct place_range {
  std::int64_t first = 0, last = 0;
};
inline place_range places_inside(std::int64_t places, std::int64_t stride, std::int64_t offset, std::int64_t extent) {
  const std::int64_t first = offset >= 0 ? 0 : std::min(places, (stride - 1 - offset) / stride);
  const std::int64_t last = offset >= extent ? 0 : std::min(places, (extent - 1 - offset) / stride + 1);
  return {first, std::max(first, last)};
}

/// The multi-index of element `linear` of a shape.
inline shape unravel(std::int64_t linear, const shape& dims) {
  shape index = shape::filled(dims.size(), 0);
  for (std::size_t i = dims.size(); i-- > 0;) {
    index[i] = linear % dims[i];
    linear /= dims[i];
  }
  return index;
}

/// Writes a part of the matrix of windows of one group of one image, whose first channel is `x`. Its rows are all pairs of channel
/// and tap, its columns the places [first, last). In `to` rows are `row_step` apart. Taps in the padding read zero.
inline void im2col(const conv_shape& s, const float* x, std::int64_t first, std::int64_t last, float* to,
                   std::int64_t row_step) {
  const std::size_t inner = s.rank() - 1;
  const std::int64_t channel_size = s.extent_size();
  const std::int64_t taps = s.taps();
  const std::int64_t stride = s.strides[inner];
  for (std::int64_t t = 0; t < taps; ++t) {
    const shape tap = unravel(t, s.window);
    const auto offset = [&](std::size_t d) { return tap[d] * s.dilations[d] - s.pads[d]; };
    shape place = unravel(first, s.places);
    // Places that differ only in the last dimension read elements at a constant stride.
    for (std::int64_t at = first; at < last;) {
      const std::int64_t count = std::min(last - at, s.places[inner] - place[inner]);
      std::int64_t row = 0;
      bool inside = true;
      for (std::size_t d = 0; d < inner; ++d) {
        const std::int64_t i = place[d] * s.strides[d] + offset(d);
        inside = inside && i >= 0 && i < s.extent[d];
        row = row * s.extent[d] + i;
      }
      const std::int64_t start = place[inner] * stride + offset(inner);
      const place_range range =
          inside ? places_inside(count, stride, start, s.extent[inner]) : place_range{count, count};
      const std::int64_t source = row * s.extent[inner] + start + range.first * stride;
      float* line = to + t * row_step + (at - first);
      for (std::int64_t c = 0; c < s.in_channels; ++c, line += taps * row_step) {
        std::fill_n(line, range.first, 0.0F);
        // If nothing is inside, `source` may lie outside of the tensor, and is not used.
        if (range.last > range.first)
          copy_run(x + c * channel_size + source, stride, range.last - range.first, line + range.first);
        std::fill(line + range.last, line + count, 0.0F);
      }
      at += count;
      place[inner] = 0;
      for (std::size_t d = inner; d-- > 0 && ++place[d] == s.places[d];) place[d] = 0;
    }
  }
}

}  // namespace
}  // namespace collage::inline v0::detail::host
