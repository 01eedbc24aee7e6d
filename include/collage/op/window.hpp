// The window that slides over the spatial dimensions in convolution and pooling.
#pragma once

#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace collage::inline v0::detail {

/// Fills in empty attributes of a window: strides and dilations of 1, pads of 0.
constexpr void default_window(std::size_t rank, shape& strides, shape& dilations, shape& pads_begin, shape& pads_end) {
  if (strides.rank == 0) strides = shape::filled(rank, 1);
  if (dilations.rank == 0) dilations = shape::filled(rank, 1);
  if (pads_begin.rank == 0) pads_begin = shape::filled(rank, 0);
  if (pads_end.rank == 0) pads_end = shape::filled(rank, 0);
}

/// More taps than any network's window has. Code that lists a window's taps may rely on this limit.
inline constexpr std::int64_t most_taps = std::int64_t{1} << 20;
/// Larger extents are refused, so that products of extents stay within 64 bits. No graph holds a larger extent.
inline constexpr std::int64_t largest_extent = std::int64_t{1} << 48;
inline constexpr std::int64_t largest_offset = 0x7FFFFFFF;  // of windows, strides, dilations and pads

/// Checks a spatial window against the rank, and its values against limits. The limits keep products within 64 bits.
constexpr verdict check_window(std::size_t rank, const shape& window, const shape& strides, const shape& dilations,
                               const shape& pads_begin, const shape& pads_end) {
  if (window.rank != rank || strides.rank != rank || dilations.rank != rank || pads_begin.rank != rank ||
      pads_end.rank != rank)
    return {false, "window, strides, dilations and pads must each have one entry per spatial dimension"};
  std::int64_t taps = 1;
  // Reads `extent` without a call: each call costs steps of the compiler's limit.
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = window.extent[i];
    if (size < 1) return {false, "its window must be at least 1 in every dimension"};
    if (strides.extent[i] < 1) return {false, "strides must be at least 1"};
    if (dilations.extent[i] < 1) return {false, "dilations must be at least 1"};
    if (pads_begin.extent[i] < 0 || pads_end.extent[i] < 0) return {false, "pads must not be negative"};
    if (size > largest_offset || strides.extent[i] > largest_offset || dilations.extent[i] > largest_offset ||
        pads_begin.extent[i] > largest_offset || pads_end.extent[i] > largest_offset)
      return {false, "window, strides, dilations and pads must be below 2^31"};
    if (size > most_taps / taps) return {false, "its window must have at most 2^20 elements"};
    taps *= size;
  }
  return {};
}

/// Whether a window that `check_window` accepted fits the padded extents of [N, C, spatial...] at least once. Unknown
/// extents may fit.
constexpr verdict check_fit(const shape& x, const shape& window, const shape& dilations, const shape& pads_begin,
                            const shape& pads_end) {
  for (std::size_t i = 0; i < window.rank; ++i) {
    const std::int64_t extent = x.extent[i + 2], size = window.extent[i];
    if (extent < 0 || size < 0) continue;
    if (extent > largest_extent) return {false, "its input's extents must be at most 2^48", 0};
    if (extent + pads_begin.extent[i] + pads_end.extent[i] < dilations.extent[i] * (size - 1) + 1)
      return {false, "its window must fit into its padded input", 0};
  }
  return {};
}

/// The number of places of a window along one dimension; `unknown` if either extent is. `round_up` (ONNX ceil_mode)
/// also counts a last, partial place that starts inside the input or its leading pad. The window must fit.
constexpr std::int64_t window_places(std::int64_t extent, std::int64_t window, std::int64_t stride,
                                     std::int64_t dilation, std::int64_t pad_begin, std::int64_t pad_end,
                                     bool round_up) {
  if (extent < 0 || window < 0) return unknown;
  const std::int64_t room = extent + pad_begin + pad_end - (dilation * (window - 1) + 1);
  std::int64_t places = room / stride + 1;
  if (round_up && room % stride != 0 && places * stride < extent + pad_begin) ++places;
  return places;
}

}  // namespace collage::inline v0::detail
