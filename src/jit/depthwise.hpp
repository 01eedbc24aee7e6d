// Depthwise convolutions of images with channels last: each channel has a window of its own. Rows of outputs are computed for
// some channels at a time.
#pragma once

#include "extent_check.hpp"

#include <collage/detail/sentence.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace collage::inline v0::detail::jit {

/// A square window, one stride for both dimensions, and dilation 1. Pads may be larger than the window.
struct depthwise_shape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;  ///< of the input
  std::int64_t window = 3, stride = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  constexpr std::int64_t output_height() const { return (height + pad_top + pad_bottom - window) / stride + 1; }
  constexpr std::int64_t output_width() const { return (width + pad_left + pad_right - window) / stride + 1; }
  /// Channels of a row of packed weights: whole vectors.
  constexpr std::int64_t weight_step() const { return (channels + 15) / 16 * 16; }
  /// Floats of the packed window: a row of each tap, and a row of zeros, which pads are read from.
  constexpr std::int64_t weight_floats() const { return (window * window + 1) * weight_step(); }
  friend constexpr bool operator==(const depthwise_shape&, const depthwise_shape&) = default;
};

/// Why there is no kernel for a shape, in one sentence; empty if there is.
constexpr sentence fault_of(const depthwise_shape& s) {
  sentence why;
  if (is_outside(why, "the batch", s.batch, 1) || is_outside(why, "the number of channels", s.channels, 1) ||
      is_outside(why, "the height", s.height, 1) || is_outside(why, "the width", s.width, 1) ||
      is_outside(why, "the pad above", s.pad_top, 0) || is_outside(why, "the pad at the left", s.pad_left, 0) ||
      is_outside(why, "the pad below", s.pad_bottom, 0) || is_outside(why, "the pad at the right", s.pad_right, 0))
    return why;
  if (s.window != 3 && s.window != 5 && s.window != 7)
    why << "the window has " << s.window << " rows, and windows of 3, 5 and 7 are known";
  else if (s.stride != 1 && s.stride != 2) why << "the stride is " << s.stride << ", and must be 1 or 2";
  else if (s.height + s.pad_top + s.pad_bottom < s.window || s.width + s.pad_left + s.pad_right < s.window)
    why << "the window is larger than the image with its pads";
  return why;
}

/// Rearranges weights [channels][window][window]. `to` has `weight_floats`.
void pack_depthwise(const depthwise_shape& s, const float* weights, float* to);

/// Some rows of outputs of one image, and some of its channels. Parts that run at the same time have other rows, or other channels
/// as `depthwise_parts` divides them.
struct depthwise_part {
  std::int64_t first_row = 0, last_row = 0;
  std::int64_t first_channel = 0, last_channel = 0;
};

/// The channels of an image in parts of about 64. Each has whole vectors, or is the last one.
struct depthwise_parts {
  std::int64_t channels = 1;
  constexpr std::int64_t count() const { return channels < 128 ? 1 : channels / 64; }
  constexpr std::int64_t first(std::int64_t i) const { return i * 64; }
  constexpr std::int64_t last(std::int64_t i) const { return i + 1 == count() ? channels : (i + 1) * 64; }
};

struct depthwise_call {
  depthwise_shape shape;
  const float* from = nullptr;     ///< the image
  const float* weights = nullptr;  ///< packed
  const float* bias = nullptr;     ///< of each channel; null: there is none
  /// Results outside of these bounds become the bound, and NaN stays.
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
  float* to =
      nullptr;  ///< the first pixel of the part's first row, at channel 0; the pixels of all rows follow each other
  std::int64_t to_step = 0;  ///< between pixels, in floats
};

using depthwise_function = void (*)(const depthwise_call& call, const depthwise_part& part);

/// For the best of SSE4, AVX2 and AVX-512 that this processor has, if any. The shape must have no fault. A sum is
/// computed in the same order for every part.
depthwise_function depthwise_rows(std::int64_t window, std::int64_t stride);

}  // namespace collage::inline v0::detail::jit
