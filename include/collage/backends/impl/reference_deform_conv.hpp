// Deformable convolution: each tap of a window has an offset of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/reference.hpp>
#include <collage/op/deform_conv.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// Bilinear interpolation in one channel; zeros outside.
inline double linear_sample(const double* channel, std::int64_t height, std::int64_t width, double h, double w) {
  if (!(h > -1 && h < static_cast<double>(height) && w > -1 && w < static_cast<double>(width))) return 0;
  const auto top = static_cast<std::int64_t>(std::floor(h)), left = static_cast<std::int64_t>(std::floor(w));
  const double down = h - std::floor(h), right = w - std::floor(w);
  double sum = 0;
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 2; ++j) {
      const double weight = (i == 0 ? 1 - down : down) * (j == 0 ? 1 - right : right);
      const std::int64_t row = top + i, column = left + j;
      if (weight == 0 || row < 0 || row >= height || column < 0 || column >= width) continue;
      sum += weight * channel[row * width + column];
    }
  return sum;
}

/// Reads one channel of one image with all taps at all places: a matrix [taps, places].
inline void read_taps(const ops::deform_conv_attributes& a, const reference_call& call, std::int64_t image,
                      std::int64_t channel, double* to) {
  const shape& x = call.in[0].type.dims;
  const shape& w = call.in[1].type.dims;
  const shape& y = call.out[0].type.dims;
  const std::int64_t taps = w[2] * w[3], places = y[2] * y[3];
  const std::int64_t part = image * a.offset_groups + channel / (x[1] / a.offset_groups);
  const double* const from = call.in[0].real.data() + (image * x[1] + channel) * x[2] * x[3];
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t place = 0; place < places; ++place) {
      const double* const move = call.in[2].real.data() + (part * taps + tap) * 2 * places + place;
      const std::int64_t row = place / y[3] * a.strides[0] - a.pads_begin[0] + tap / w[3] * a.dilations[0];
      const std::int64_t column = place % y[3] * a.strides[1] - a.pads_begin[1] + tap % w[3] * a.dilations[1];
      double read = linear_sample(from, x[2], x[3], static_cast<double>(row) + move[0],
                                  static_cast<double>(column) + move[places]);
      if (call.in.size() == 4) read *= call.in[3].real[static_cast<std::size_t>((part * taps + tap) * places + place)];
      to[tap * places + place] = read;
    }
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::deform_conv::reference(const attributes& a, const reference_call& call) {
  const shape& w = call.in[1].type.dims;
  const shape& y = call.out[0].type.dims;
  const std::int64_t taps = w[2] * w[3], places = y[2] * y[3], rows = y[1] / a.groups;
  std::fill(call.out[0].real.begin(), call.out[0].real.end(), 0.0);
  if (call.out[0].real.empty()) return;
  std::vector<double> columns(static_cast<std::size_t>(w[1] * taps * places));
  for (std::int64_t task = 0; task < y[0] * a.groups; ++task) {
    const std::int64_t image = task / a.groups, group = task % a.groups;
    detail::parallel_for(w[1], 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t c = first; c < last; ++c)
        detail::read_taps(a, call, image, group * w[1] + c, columns.data() + c * taps * places);
    });
    detail::gemm(rows, places, w[1] * taps, {call.in[1].real.data() + group * rows * w[1] * taps, w[1] * taps, 1},
                 {columns.data(), places, 1}, call.out[0].real.data() + task * rows * places, places);
  }
}

}  // namespace collage::inline v0
