// Pooling and concatenation of images of bytes, plain or with channels last.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/portable_quantised.hpp>
#include <collage/backends/impl/quantised_loops.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/layout.hpp>
#include <collage/ops.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// A window over up to three dimensions. Those that are missing are in front.
struct byte_window {
  std::int64_t x[3] = {1, 1, 1}, y[3] = {1, 1, 1}, window[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {},
               dilation[3] = {1, 1, 1}, pad_end[3] = {};
  std::int64_t images = 1, channels = 1;

  std::int64_t places() const { return y[0] * y[1] * y[2]; }
  std::int64_t inputs() const { return x[0] * x[1] * x[2]; }
  /// The taps of one dimension that lie inside the image, for an output at `at`.
  std::pair<std::int64_t, std::int64_t> taps(std::size_t d, std::int64_t at) const {
    const std::int64_t begin = at * stride[d] - pad[d];
    const std::int64_t first = begin >= 0 ? 0 : (-begin + dilation[d] - 1) / dilation[d];
    const std::int64_t last = std::min(window[d], (x[d] - begin + dilation[d] - 1) / dilation[d]);
    return {first, last};
  }
  /// How many elements the mean of an output divides by if pads count: the window up to the end of the pads.
  std::int64_t reach(std::size_t d, std::int64_t at) const {
    const std::int64_t begin = at * stride[d] - pad[d], end = x[d] + pad_end[d];
    return std::min(window[d], (end - begin + dilation[d] - 1) / dilation[d]);
  }
  /// Calls visit(place of the input) for each tap of output place `place`.
  template <class Visit>
  void for_each_tap(std::int64_t place, const Visit& visit) const {
    const std::int64_t at[3] = {place / (y[1] * y[2]), place / y[2] % y[1], place % y[2]};
    std::pair<std::int64_t, std::int64_t> range[3];
    for (std::size_t d = 0; d < 3; ++d) range[d] = taps(d, at[d]);
    const auto in = [&](std::size_t d, std::int64_t tap) { return at[d] * stride[d] - pad[d] + tap * dilation[d]; };
    for (std::int64_t i = range[0].first; i < range[0].second; ++i)
      for (std::int64_t j = range[1].first; j < range[1].second; ++j)
        for (std::int64_t k = range[2].first; k < range[2].second; ++k)
          visit((in(0, i) * x[1] + in(1, j)) * x[2] + in(2, k));
  }
};

inline byte_window window_of(const any_match& m, std::uint32_t node) {
  const shape &x = m.type_of(m.inputs_of(node)[0]).dims, &y = m.type_of(m.output_of(node)).dims;
  byte_window w;
  w.images = x[0];
  w.channels = x[1];
  const std::size_t rank = x.rank - 2;
  for (std::size_t i = 0; i < rank; ++i) w.x[3 - rank + i] = w.window[3 - rank + i] = x[i + 2];
  if (m.is(node, ops::reduce_mean)) return w;
  const auto read = [&](const ops::pool_attributes& a) {
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t d = 3 - rank + i;
      w.y[d] = y[i + 2], w.window[d] = a.window[i], w.stride[d] = a.strides[i], w.dilation[d] = a.dilations[i];
      w.pad[d] = a.pads_begin[i], w.pad_end[d] = a.pads_end[i];
    }
  };
  if (m.is(node, ops::max_pool)) read(m.attributes(node, ops::max_pool));
  else read(m.attributes(node, ops::average_pool));
  return w;
}

/// How many channels a block of sums has, which stays in the first-level cache.
inline constexpr std::int64_t channels_at_once = 256;

template <class T>
struct run_max_pool_of_bytes {
  byte_window w;
  std::size_t argument;
  bool last;
  int threads;

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const T*>(call.in[argument]);
    auto* const out = static_cast<T*>(call.out[0]);
    const double taps = static_cast<double>(w.window[0] * w.window[1] * w.window[2]);
    if (last) {
      parallel_parts(threads, w.images * w.places(), 1, 0.125 * taps * static_cast<double>(w.channels),
                     [&](std::int64_t first, std::int64_t end) {
                       for (std::int64_t o = first; o < end; ++o) pool_channels(in, out, o);
                     });
    } else {
      const std::int64_t rows = w.y[0] * w.y[1];
      parallel_parts(threads, w.images * w.channels * rows, 1, 0.5 * taps * static_cast<double>(w.y[2]),
                     [&](std::int64_t first, std::int64_t end) {
                       for (std::int64_t row = first; row < end; ++row)
                         pool_row(in + row / rows * w.inputs(), out + row * w.y[2], row % rows);
                     });
    }
  }

  /// All channels of one place, which lie side by side.
  void pool_channels(const T* in, T* out, std::int64_t o) const {
    const std::int64_t side = w.channels;
    T* const to = out + o * side;
    std::fill_n(to, side, std::numeric_limits<T>::min());
    w.for_each_tap(o % w.places(), [&](std::int64_t tap) {
      const T* const from = in + (o / w.places() * w.inputs() + tap) * side;
#pragma omp simd
      for (std::int64_t c = 0; c < side; ++c) to[c] = to[c] < from[c] ? from[c] : to[c];
    });
  }
  /// A row of places of one channel.
  void pool_row(const T* plane, T* to, std::int64_t row) const {
    std::fill_n(to, w.y[2], std::numeric_limits<T>::min());
    const std::int64_t at[2] = {row / w.y[1], row % w.y[1]};
    const auto [first_i, last_i] = w.taps(0, at[0]);
    const auto [first_j, last_j] = w.taps(1, at[1]);
    for (std::int64_t i = first_i; i < last_i; ++i)
      for (std::int64_t j = first_j; j < last_j; ++j)
        for (std::int64_t k = 0; k < w.window[2]; ++k) {
          const std::int64_t a = at[0] * w.stride[0] - w.pad[0] + i * w.dilation[0];
          const std::int64_t b = at[1] * w.stride[1] - w.pad[1] + j * w.dilation[1];
          const std::int64_t stride = w.stride[2], shift = k * w.dilation[2] - w.pad[2], extent = w.x[2] - shift;
          const T* const from = plane + (a * w.x[1] + b) * w.x[2];
          const std::int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
          const std::int64_t end = extent <= 0 ? 0 : std::min(w.y[2], (extent + stride - 1) / stride);
#pragma omp simd
          for (std::int64_t c = first; c < end; ++c) {
            const T x = from[c * stride + shift];
            to[c] = to[c] < x ? x : to[c];
          }
        }
  }
};

inline kernel build_max_pool_of_bytes(const any_match& m, build_context& context, std::uint32_t node, bool last) {
  const byte_window w = window_of(m, node);
  return with_byte(m.type_of(m.output()).type, [&]<class T>(T) {
    return kernel(std::string("max of bytes") + (last ? ", channels last" : ""),
                  run_max_pool_of_bytes<T>{w, m.index_of(m.inputs_of(node)[0]), last, context.threads()});
  });
}

/// Sums of integers, from which means follow: (sum - taps * zero point) * scale / divisor.
template <class T, class Y>
struct run_mean_of_bytes {
  byte_window w;
  std::size_t argument;
  bool last, counts_padding;
  int threads;
  float zero_point;
  double scale;       ///< of the input, in units of the result
  float result_zero;  ///< of integers

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const T*>(call.in[argument]);
    auto* const out = static_cast<Y*>(call.out[0]);
    const std::int64_t side = last ? w.channels : 1, planes = last ? w.images : w.images * w.channels;
    const double cost = 0.25 * static_cast<double>(side * w.window[0] * w.window[1] * w.window[2]);
    parallel_parts(threads, planes * w.places(), 1, cost, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t o = first; o < end; ++o)
        for (std::int64_t c = 0; c < side; c += channels_at_once)
          mean(in + o / w.places() * w.inputs() * side + c, o % w.places(), out + o * side + c, side,
               std::min(channels_at_once, side - c));
    });
  }

  void mean(const T* plane, std::int64_t place, Y* to, std::int64_t side, std::int64_t count) const {
    std::array<std::int32_t, channels_at_once> sums{};
    std::int64_t taps = 0;
    w.for_each_tap(place, [&](std::int64_t tap) {
      ++taps;
      const T* const from = plane + tap * side;
#pragma omp simd
      for (std::int64_t c = 0; c < count; ++c) sums[static_cast<std::size_t>(c)] += from[c];
    });
    std::int64_t divisor = taps;
    if (counts_padding)
      divisor =
          w.reach(0, place / (w.y[1] * w.y[2])) * w.reach(1, place / w.y[2] % w.y[1]) * w.reach(2, place % w.y[2]);
    const auto factor = static_cast<float>(scale / static_cast<double>(divisor));
    const float shift = zero_point * static_cast<float>(taps), zero = result_zero;
#pragma omp simd
    for (std::int64_t c = 0; c < count; ++c) {
      const float mean = (static_cast<float>(sums[static_cast<std::size_t>(c)]) - shift) * factor;
      if constexpr (std::is_same_v<Y, float>) to[c] = mean;
      else to[c] = to_byte<Y>(std::nearbyintf(mean) + zero);
    }
  }
};

inline kernel build_mean(const any_match& m, build_context& context, bool last) {
  std::uint32_t node = 0, source = 0;
  byte_scale result;
  for (const std::uint32_t n : m.nodes()) {
    if (m.is(n, ops::average_pool) || m.is(n, ops::reduce_mean)) node = n;
    if (m.is(n, ops::dequantize_linear)) source = n;
    if (m.is(n, ops::quantize_linear)) result = scale_at(m, n);
  }
  const std::uint32_t x = m.inputs_of(source)[0];
  const byte_scale from = scale_at(m, source);
  const byte_window w = window_of(m, node);
  const bool counts = m.is(node, ops::average_pool) && m.attributes(node, ops::average_pool).count_padding;
  const double scale = static_cast<double>(from.scale) / static_cast<double>(result.scale);
  const auto make = [&]<class T, class Y>(T, Y) {
    return kernel(std::string("mean of bytes") + (last ? ", channels last" : ""),
                  run_mean_of_bytes<T, Y>{w, m.index_of(x), last, counts, context.threads(), from.zero_point, scale,
                                          result.zero_point});
  };
  const dtype type = m.type_of(m.output()).type;
  kernel made = with_byte(m.type_of(x).type, [&](auto t) {
    return type == dtype::f32 ? make(t, float{}) : type == dtype::i8 ? make(t, std::int8_t{}) : make(t, std::uint8_t{});
  });
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != m.index_of(x)) made.does_not_read(i);
  return made;
}

/// Concatenates the channels of images of bytes that lie with channels last.
inline kernel build_concat_of_channels(const any_match& m, build_context& context, std::uint32_t node) {
  struct part {
    std::size_t argument;
    std::int64_t channels, offset;
  };
  std::vector<part> parts;
  std::int64_t offset = 0;
  for (const std::uint32_t v : m.inputs_of(node)) {
    parts.push_back({m.index_of(v), m.type_of(v).dims[1], offset});
    offset += parts.back().channels;
  }
  const std::int64_t places = m.type_of(m.output()).dims.elements() / std::max<std::int64_t>(offset, 1);
  const int threads = context.threads();
  return kernel("concat of bytes, channels last", [=](const kernel_call& call) {
    parallel_parts(threads, places, 1, 0.125 * static_cast<double>(offset), [&](std::int64_t first, std::int64_t last) {
      for (const part& p : parts)
        for (std::int64_t i = first; i < last; ++i)
          std::memcpy(static_cast<std::byte*>(call.out[0]) + i * offset + p.offset,
                      static_cast<const std::byte*>(call.in[p.argument]) + i * p.channels,
                      static_cast<std::size_t>(p.channels));
    });
  });
}

}  // namespace
}  // namespace collage::inline v0::detail::host
