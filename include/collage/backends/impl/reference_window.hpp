// Convolution and pooling.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_gemm.hpp>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_taps.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/pool.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace collage::inline v0::detail {

/// The matrix of windows of one group of one image, made block by block as the product needs it. Each channel and tap
/// has a row, each place a column. Taps in the padding read zero.
class window_columns {
 public:
  window_columns(const window_geometry& g, const double* x) : g_(&g), x_(x) {}

  void pack(std::int64_t depth_first, std::int64_t depth, std::int64_t column_first, std::int64_t columns,
            std::int64_t width, double* to) const {
    const window_geometry& g = *g_;
    const std::size_t inner = g.rank() - 1;
    const shape steps = dense_steps(g.extent);
    const std::int64_t channel_size = g.extent.elements();
    const std::int64_t taps = g.window.elements();
    const std::int64_t panels = (columns + width - 1) / width;
    double line[gemm_columns];
    std::fill(line + columns, line + panels * width, 0.0);
    for (std::int64_t k = 0; k < depth; ++k) {
      const shape tap = unravel((depth_first + k) % taps, g.window);
      const double* const channel = x_ + (depth_first + k) / taps * channel_size;
      // Places that differ only in the last dimension read elements at a fixed distance from each other.
      shape place = unravel(column_first, g.places);
      for (std::int64_t j = 0; j < columns;) {
        const std::int64_t count = std::min(columns - j, g.places[inner] - place[inner]);
        const double* row = channel;
        bool inside = true;
        for (std::size_t d = 0; d < inner; ++d) {
          const std::int64_t at = place[d] * g.strides[d] + g.offset(d, tap[d]);
          inside = inside && at >= 0 && at < g.extent[d];
          if (inside) row += at * steps[d];
        }
        const std::int64_t stride = g.strides[inner];
        const std::int64_t offset = place[inner] * stride + g.offset(inner, tap[inner]);
        const place_range range =
            inside ? places_inside(count, stride, offset, g.extent[inner]) : place_range{count, count};
        std::fill(line + j, line + j + range.first, 0.0);
        for (std::int64_t i = range.first; i < range.last; ++i) line[j + i] = row[offset + i * stride];
        std::fill(line + j + range.last, line + j + count, 0.0);
        j += count;
        place[inner] = 0;
        for (std::size_t d = inner; d-- > 0 && ++place[d] == g.places[d];) place[d] = 0;
      }
      for (std::int64_t p = 0; p < panels; ++p)
        std::memcpy(to + (p * depth + k) * width, line + p * width, static_cast<std::size_t>(width) * sizeof(double));
    }
  }

 private:
  const window_geometry* g_;
  const double* x_;
};

inline void convolve(const ops::conv_attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const shape& w = call.in[1].type.dims;
  const shape& y = call.out[0].type.dims;
  const window_geometry g = geometry_of(a, x, y, w.from(2));
  const std::int64_t places = g.places.elements();
  const std::int64_t extent = g.extent.elements();
  const std::int64_t rows = w[0] / a.groups;
  const std::int64_t depth = product(w, 1, w.size());
  double* const out = call.out[0].real.data();
  for (std::int64_t plane = 0; plane < y[0] * y[1]; ++plane)
    std::fill_n(out + plane * places, places,
                call.in.size() == 3 ? call.in[2].real[static_cast<std::size_t>(plane % y[1])] : 0.0);
  const auto a_of = [&](std::int64_t group) {
    return matrix_view{call.in[1].real.data() + group * rows * depth, depth, 1};
  };
  const auto x_of = [&](std::int64_t task) { return call.in[0].real.data() + task * w[1] * extent; };
  const auto c_of = [&](std::int64_t task) { return out + task * rows * places; };
  // A window of one element at each place is a plain product.
  bool pointwise = g.window.elements() == 1 && g.places == g.extent;
  for (std::size_t d = 0; d < g.rank(); ++d) pointwise = pointwise && g.strides[d] == 1 && g.pads_begin[d] == 0;
  if (pointwise)
    multiply_all(x[0] * a.groups, rows, places, depth, places, [&](std::int64_t task) {
      return gemm_problem<matrix_columns>{a_of(task % a.groups), {{x_of(task), places, 1}}, c_of(task)};
    });
  else
    multiply_all(x[0] * a.groups, rows, places, depth, places, [&](std::int64_t task) {
      return gemm_problem<window_columns>{a_of(task % a.groups), {g, x_of(task)}, c_of(task)};
    });
}

/// The same for an integer type, computed straight from the definition.
template <class Arithmetic>
void convolve_integers(const ops::conv_attributes& a, const reference_call& call) {
  const shape& w = call.in[1].type.dims;
  const shape& y = call.out[0].type.dims;
  const window_geometry g = geometry_of(a, call.in[0].type.dims, y, w.from(2));
  const std::int64_t places = g.places.elements();
  const std::int64_t extent = g.extent.elements();
  const std::int64_t rows = w[0] / a.groups;
  const std::vector<tap_walk> taps = taps_of(g);
  parallel_for(y[0] * y[1], 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<tap_walk> own = taps;
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t filter = plane % y[1];
      std::int64_t* const out = call.out[0].integer.data() + plane * places;
      std::fill_n(out, places, call.in.size() == 3 ? call.in[2].integer[static_cast<std::size_t>(filter)] : 0);
      for (std::int64_t c = 0; c < w[1]; ++c) {
        const std::int64_t channel = (plane / y[1] * a.groups + filter / rows) * w[1] + c;
        const std::int64_t* const in = call.in[0].integer.data() + channel * extent;
        const std::int64_t* weight =
            call.in[1].integer.data() + (filter * w[1] + c) * static_cast<std::int64_t>(taps.size());
        for (tap_walk& tap : own) {
          tap.visit([&](std::int64_t p, std::int64_t p_step, std::int64_t e, std::int64_t e_step, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i)
              out[p + i * p_step] =
                  Arithmetic::add(out[p + i * p_step], Arithmetic::multiply(*weight, in[e + i * e_step]));
          });
          ++weight;
        }
      }
    }
  });
}

/// How many elements each place's mean divides by. With `count_padding` the pads count, but not what a last, partial
/// window covers beyond them (ONNX AveragePool since version 19; so does PyTorch).
inline std::vector<std::int64_t> pool_counts(const ops::pool_attributes& a, const shape& x, const shape& y) {
  const window_geometry g = geometry_of(a, x, y, a.window);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(g.places.elements()), 1);
  const shape steps = dense_steps(g.places);
  for (std::size_t d = 0; d < g.rank(); ++d) {
    std::vector<std::int64_t> along(static_cast<std::size_t>(g.places[d]), 0);
    const std::int64_t low = a.count_padding ? -a.pads_begin[d] : 0;
    const std::int64_t high = g.extent[d] + (a.count_padding ? a.pads_end[d] : 0);
    for (std::int64_t p = 0; p < g.places[d]; ++p)
      for (std::int64_t tap = 0; tap < g.window[d]; ++tap) {
        const std::int64_t at = p * g.strides[d] + g.offset(d, tap);
        if (at >= low && at < high) ++along[static_cast<std::size_t>(p)];
      }
    for (std::size_t p = 0; p < counts.size(); ++p)
      counts[p] *= along[static_cast<std::size_t>(static_cast<std::int64_t>(p) / steps[d] % g.places[d])];
  }
  return counts;
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::conv::reference(const attributes& a, const reference_call& call) {
  if (is_floating(call.in[0].type.type)) return detail::convolve(a, call);
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    detail::convolve_integers<detail::integer_arithmetic<decltype(zero)>>(a, call);
  });
}

void ops::max_pool::reference(const attributes& a, const reference_call& call) {
  const auto as_it_is = [](auto x, std::int64_t) { return x; };
  if (is_floating(call.in[0].type.type))
    return detail::pool(
        a, call, -std::numeric_limits<double>::infinity(),
        [](double largest, double x) { return x > largest || x != x ? x : largest; }, as_it_is);
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    using arithmetic = detail::integer_arithmetic<decltype(zero)>;
    detail::pool(a, call, arithmetic::lowest(), arithmetic::maximum, as_it_is);
  });
}

void ops::average_pool::reference(const attributes& a, const reference_call& call) {
  const std::vector<std::int64_t> counts = detail::pool_counts(a, call.in[0].type.dims, call.out[0].type.dims);
  if (is_floating(call.in[0].type.type))
    return detail::pool(
        a, call, 0.0, [](double sum, double x) { return sum + x; },
        [&](double sum, std::int64_t place) {
          return sum / static_cast<double>(counts[static_cast<std::size_t>(place)]);
        });
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    // Sums are kept in 64 bits and only the mean is brought back to the type.
    using arithmetic = detail::integer_arithmetic<decltype(zero)>;
    using wide =
        detail::integer_arithmetic<std::conditional_t<std::is_signed_v<decltype(zero)>, std::int64_t, std::uint64_t>>;
    detail::pool(a, call, std::int64_t{0}, wide::add, [&](std::int64_t sum, std::int64_t place) {
      return arithmetic::wrap(arithmetic::bits(wide::divide(sum, counts[static_cast<std::size_t>(place)])));
    });
  });
}

}  // namespace collage::inline v0
