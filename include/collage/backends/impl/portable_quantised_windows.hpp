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
#include <type_traits>
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
  /// Whether the only output reads the whole image.
  bool is_whole() const {
    bool whole = places() == 1;
    for (std::size_t d = 0; d < 3; ++d) whole = whole && pad[d] == 0 && dilation[d] == 1 && window[d] >= x[d];
    return whole;
  }
  std::int64_t inputs() const { return x[0] * x[1] * x[2]; }
  /// The taps before a distance from the first one. A division takes longer than a vector of channels.
  std::int64_t taps_before(std::size_t d, std::int64_t distance) const {
    return dilation[d] == 1 ? distance : (distance + dilation[d] - 1) / dilation[d];
  }
  /// The taps of one dimension that lie inside the image, for an output at `at`.
  std::pair<std::int64_t, std::int64_t> taps(std::size_t d, std::int64_t at) const {
    const std::int64_t begin = at * stride[d] - pad[d];
    return {begin >= 0 ? 0 : taps_before(d, -begin), std::min(window[d], taps_before(d, x[d] - begin))};
  }
  /// How many elements the mean of an output divides by if pads count: the window up to the end of the pads.
  std::int64_t reach(std::size_t d, std::int64_t at) const {
    return std::min(window[d], taps_before(d, x[d] + pad_end[d] - (at * stride[d] - pad[d])));
  }
  std::array<std::int64_t, 3> coordinates(std::int64_t place) const {
    const std::int64_t row = place / y[2], slice = y[0] == 1 ? 0 : row / y[1];
    return {slice, row - slice * y[1], place - row * y[2]};
  }
  /// Calls visit(place of the input) for each tap of output place `place`.
  template <class Visit>
  void for_each_tap(std::int64_t place, const Visit& visit) const {
    const std::array<std::int64_t, 3> at = coordinates(place);
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

template <class T>
kernel make_max_pool(const any_match& m, const build_context& context, std::uint32_t node, bool last) {
  return kernel(
      std::string("max of bytes") + (last ? ", channels last" : ""),
      run_max_pool_of_bytes<T>{window_of(m, node), m.index_of(m.inputs_of(node)[0]), last, context.threads()});
}
inline kernel build_max_pool_of_bytes(const any_match& m, build_context& context, std::uint32_t node, bool last) {
  return with_byte(m.type_of(m.output()).type, [&]<class T>(T) { return make_max_pool<T>(m, context, node, last); });
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

  /// The sum of so few bytes fits 16 bits.
  static constexpr std::int64_t most_taps = 255;
  using short_sum = std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>;
  /// Channels of a vector.
  static constexpr std::int64_t lanes = 32;
  typedef T bytes __attribute__((vector_size(lanes)));
  typedef short_sum wide __attribute__((vector_size(lanes * sizeof(short_sum))));
  /// The longest row of places whose sums are kept.
  static constexpr std::int64_t most_columns = 256;

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const T*>(call.in[argument]);
    auto* const out = static_cast<Y*>(call.out[0]);
    const std::int64_t side = last ? w.channels : 1, planes = last ? w.images : w.images * w.channels;
    const std::int64_t window = w.window[0] * w.window[1] * w.window[2], places = w.places();
    const bool by_vectors = last && side >= lanes && window <= most_taps;
    const double cost = 0.25 * static_cast<double>(side * window);
    const auto plane = [&](std::int64_t which) { return in + which * w.inputs() * side; };
    if (by_vectors && w.y[2] > 1 && std::max(w.y[2], w.x[2]) <= most_columns) {
      const std::int64_t rows = w.y[0] * w.y[1];
      parallel_parts(threads, planes * rows, 1, cost * static_cast<double>(w.y[2]),
                     [&](std::int64_t first, std::int64_t end) {
                       for (std::int64_t row = first; row < end; ++row)
                         means_of_row(plane(row / rows), row % rows, out + row * w.y[2] * side);
                     });
      return;
    }
    parallel_parts(threads, planes * places, 1, cost, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t o = first; o < end; ++o) {
        const std::int64_t which = o / places, place = o - which * places;
        if (by_vectors) mean_by_vectors(plane(which), place, out + o * side);
        else if (!last && w.is_whole()) mean_of_all(plane(which), out + o);
        else
          for (std::int64_t c = 0; c < side; c += channels_at_once)
            mean(plane(which) + c, place, out + o * side + c, side, std::min(channels_at_once, side - c));
      }
    });
  }

  /// A mean is sum * factor + shift, in units of the result.
  struct line {
    float factor = 0, shift = 0;
  };
  line line_of(std::int64_t place, std::int64_t taps) const {
    std::int64_t divisor = taps;
    if (counts_padding) {
      const std::array<std::int64_t, 3> at = w.coordinates(place);
      divisor = w.reach(0, at[0]) * w.reach(1, at[1]) * w.reach(2, at[2]);
    }
    // A window that lies in the padding alone has no elements.
    const float factor = divisor == 0 ? 0 : static_cast<float>(scale / static_cast<double>(divisor));
    return {factor, zero_point * static_cast<float>(taps)};
  }
  /// Means from the sums of some channels.
  template <class Sum>
  void store(const Sum* sums, std::int64_t count, const line& its, Y* to) const {
    const float factor = its.factor, shift = its.shift;
    const auto zero = static_cast<std::int32_t>(result_zero);
    const float low = (std::is_same_v<Y, std::int8_t> ? -128.0F : 0.0F) - result_zero, high = low + 255;
#pragma omp simd
    for (std::int64_t c = 0; c < count; ++c) {
      float mean = (static_cast<float>(sums[c]) - shift) * factor;
      if constexpr (std::is_same_v<Y, float>) {
        to[c] = mean;
      } else {
        mean = mean < low ? low : mean;
        mean = mean > high ? high : mean;
        to[c] = nearest_byte<Y>(mean, zero);
      }
    }
  }
  void store(const wide& sum, const line& its, Y* to) const {
    std::array<short_sum, lanes> sums;
    std::memcpy(sums.data(), &sum, sizeof sum);
    store(sums.data(), lanes, its, to);
  }
  static void add(const T* from, wide& sum) {
    bytes x;
    std::memcpy(&x, from, sizeof x);
    sum += __builtin_convertvector(x, wide);
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
    store(sums.data(), count, line_of(place, taps), to);
  }
  /// The mean of all places of one channel, which lie side by side.
  void mean_of_all(const T* plane, Y* to) const {
    std::int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < w.inputs(); ++i) sum += plane[i];
    store(&sum, 1, line_of(0, w.inputs()), to);
  }
  /// The means of all channels, which lie side by side. The last vector may overlap the one before it.
  void mean_by_vectors(const T* plane, std::int64_t place, Y* to) const {
    std::array<const T*, most_taps> from;
    std::size_t taps = 0;
    w.for_each_tap(place, [&](std::int64_t tap) { from[taps++] = plane + tap * w.channels; });
    const line its = line_of(place, static_cast<std::int64_t>(taps));
    for (std::int64_t c = 0; c < w.channels; c += lanes) {
      const std::int64_t first = std::min(c, w.channels - lanes);
      wide sum{};
      for (std::size_t tap = 0; tap < taps; ++tap) add(from[tap] + first, sum);
      store(sum, its, to + first);
    }
  }
  /// The same for a row of places. Windows overlap, so each column of the image is added up once.
  void means_of_row(const T* plane, std::int64_t row, Y* to) const {
    std::array<line, most_columns> lines;
    std::array<const T*, most_taps> from;  // the lines of the image that the windows reach
    const std::array<std::int64_t, 3> at = w.coordinates(row * w.y[2]);
    const auto in = [&](std::size_t d, std::int64_t tap) {
      return at[d] * w.stride[d] - w.pad[d] + tap * w.dilation[d];
    };
    const auto [first_i, last_i] = w.taps(0, at[0]);
    const auto [first_j, last_j] = w.taps(1, at[1]);
    std::size_t count = 0;
    for (std::int64_t i = first_i; i < last_i; ++i)
      for (std::int64_t j = first_j; j < last_j; ++j)
        from[count++] = plane + (in(0, i) * w.x[1] + in(1, j)) * w.x[2] * w.channels;
    for (std::int64_t o = 0; o < w.y[2]; ++o) {
      const auto [first, last_tap] = w.taps(2, o);
      lines[static_cast<std::size_t>(o)] =
          line_of(row * w.y[2] + o, static_cast<std::int64_t>(count) * std::max<std::int64_t>(last_tap - first, 0));
    }
    wide sums[most_columns];
    for (std::int64_t c = 0; c < w.channels; c += lanes) {
      const std::int64_t begin = std::min(c, w.channels - lanes);
      for (std::int64_t column = 0; column < w.x[2]; ++column) {
        wide sum{};
        for (std::size_t tap = 0; tap < count; ++tap) add(from[tap] + column * w.channels + begin, sum);
        sums[column] = sum;
      }
      for (std::int64_t o = 0; o < w.y[2]; ++o) {
        const auto [first, last_tap] = w.taps(2, o);
        wide sum{};
        for (std::int64_t k = first; k < last_tap; ++k) sum += sums[o * w.stride[2] - w.pad[2] + k * w.dilation[2]];
        store(sum, lines[static_cast<std::size_t>(o)], to + o * w.channels + begin);
      }
    }
  }
};

/// The kernel of an average_pool or reduce_mean over integers of one scale.
template <class T, class Y>
kernel make_mean(const any_match& m, const build_context& context, std::uint32_t node, byte_scale from, byte_scale to,
                 bool last) {
  std::uint32_t x = m.inputs_of(node)[0];
  if (m.index_of(x) == match_record::nothing) x = m.inputs_of(static_cast<std::uint32_t>(m.at(x).producer))[0];
  const bool counts = m.is(node, ops::average_pool) && m.attributes(node, ops::average_pool).count_padding;
  const double scale = static_cast<double>(from.scale) / static_cast<double>(to.scale);
  return kernel(std::string("mean of bytes") + (last ? ", channels last" : ""),
                run_mean_of_bytes<T, Y>{window_of(m, node), m.index_of(x), last, counts, context.threads(),
                                        from.zero_point, scale, to.zero_point});
}

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
  const dtype type = m.type_of(m.output()).type;
  kernel made = with_byte(m.type_of(x).type, [&]<class T>(T) {
    return type == dtype::f32  ? make_mean<T, float>(m, context, node, from, result, last)
           : type == dtype::i8 ? make_mean<T, std::int8_t>(m, context, node, from, result, last)
                               : make_mean<T, std::uint8_t>(m, context, node, from, result, last);
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
