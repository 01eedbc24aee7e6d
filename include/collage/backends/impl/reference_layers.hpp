// Transposed convolution, further poolings, local response normalisation, further reductions and log_softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_fold.hpp>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_taps.hpp>
#include <collage/backends/reference.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/local_norm.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/reduce.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace collage::inline v0::detail {

/// A transposed convolution as the convolution from its output to its input with the same window. Its places are the
/// elements of the input here, and its elements are the elements of the output here.
struct transposed_conv {
  transposed_conv(const ops::conv_transpose_attributes& a, const reference_call& call)
      : images(call.in[0].type.dims[0]),
        groups(a.groups),
        depth(call.in[1].type.dims[0] / a.groups),
        channels(call.in[1].type.dims[1]),
        geometry(geometry_of(a, call.out[0].type.dims, call.in[0].type.dims, call.in[1].type.dims.from(2))),
        taps(taps_of(geometry)),
        places(geometry.places.elements()),
        extent(geometry.extent.elements()) {}

  std::int64_t images, groups;
  std::int64_t depth, channels;  ///< input and output channels of one group
  window_geometry geometry;
  std::vector<tap_walk> taps;
  std::int64_t places, extent;  ///< elements of a channel of the input and of the output
  std::int64_t window() const { return static_cast<std::int64_t>(taps.size()); }
};

template <class Element>
void fill_with_bias(const transposed_conv& c, const reference_call& call) {
  Element* const out = elements_of<Element>(call.out[0]).data();
  const std::int64_t planes = c.groups * c.channels;
  for (std::int64_t plane = 0; plane < c.images * planes; ++plane)
    std::fill_n(
        out + plane * c.extent, c.extent,
        call.in.size() == 3 ? elements_of<Element>(call.in[2])[static_cast<std::size_t>(plane % planes)] : Element{});
}

/// Computes the contributions of a few channels as one matrix product, with a row for each (channel, tap) and a column
/// for each input element. Then adds each row to the elements that its tap reaches.
inline void convolve_transposed(const ops::conv_transpose_attributes& a, const reference_call& call) {
  const transposed_conv c(a, call);
  fill_with_bias<double>(c, call);
  const std::int64_t row = c.window() * c.places;
  const std::int64_t together = std::clamp<std::int64_t>((std::int64_t{1} << 22) / std::max<std::int64_t>(row, 1), 1,
                                                         std::max<std::int64_t>(c.channels, 1));
  std::vector<double> products(static_cast<std::size_t>(together * row));
  for (std::int64_t task = 0; task < c.images * c.groups; ++task)
    for (std::int64_t first = 0; first < c.channels; first += together) {
      const std::int64_t count = std::min(together, c.channels - first);
      std::fill(products.begin(), products.end(), 0.0);
      const double* const w = call.in[1].real.data() + (task % c.groups * c.depth * c.channels + first) * c.window();
      const double* const x = call.in[0].real.data() + task * c.depth * c.places;
      gemm(count * c.window(), c.places, c.depth, {w, 1, c.channels * c.window()}, {x, c.places, 1}, products.data(),
           c.places);
      parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
        std::vector<tap_walk> own = c.taps;
        for (std::int64_t channel = begin; channel < end; ++channel) {
          double* const out = call.out[0].real.data() + (task * c.channels + first + channel) * c.extent;
          const double* from = products.data() + channel * row;
          for (tap_walk& tap : own) {
            tap.visit([&](std::int64_t p, std::int64_t p_step, std::int64_t e, std::int64_t e_step, std::int64_t n) {
              for (std::int64_t i = 0; i < n; ++i) out[e + i * e_step] += from[p + i * p_step];
            });
            from += c.places;
          }
        }
      });
    }
}

/// The same for an integer type, directly from the definition.
template <class Arithmetic>
void convolve_transposed_integers(const ops::conv_transpose_attributes& a, const reference_call& call) {
  const transposed_conv c(a, call);
  fill_with_bias<std::int64_t>(c, call);
  parallel_for(c.images * c.groups * c.channels, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<tap_walk> own = c.taps;
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const std::int64_t task = plane / c.channels;
      std::int64_t* const out = call.out[0].integer.data() + plane * c.extent;
      for (std::int64_t d = 0; d < c.depth; ++d) {
        const std::int64_t* const in = call.in[0].integer.data() + (task * c.depth + d) * c.places;
        const std::int64_t filter = (task % c.groups * c.depth + d) * c.channels + plane % c.channels;
        const std::int64_t* weight = call.in[1].integer.data() + filter * c.window();
        for (tap_walk& tap : own) {
          tap.visit([&](std::int64_t p, std::int64_t p_step, std::int64_t e, std::int64_t e_step, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
              out[e + i * e_step] =
                  Arithmetic::add(out[e + i * e_step], Arithmetic::multiply(*weight, in[p + i * p_step]));
          });
          ++weight;
        }
      }
    }
  });
}

/// The largest elements and their indices; `wins(x, y)` says whether x replaces y.
template <class Element, class Wins>
void pool_with_indices(const ops::max_pool_with_indices_attributes& a, const reference_call& call, Element lowest,
                       const Wins& wins) {
  const shape& y = call.out[0].type.dims;
  const window_geometry g = geometry_of(a, call.in[0].type.dims, y, a.window);
  const std::int64_t places = g.places.elements();
  const std::int64_t extent = g.extent.elements();
  const std::vector<tap_walk> taps = taps_of(g);
  const auto column_major = [&](std::int64_t element) {
    const shape at = unravel(element, g.extent);
    std::int64_t result = 0;
    for (std::size_t d = at.size(); d-- > 0;) result = result * g.extent[d] + at[d];
    return result;
  };
  parallel_for(y[0] * y[1], 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<tap_walk> own = taps;
    for (std::int64_t plane = first; plane < last; ++plane) {
      Element* const out = elements_of<Element>(call.out[0]).data() + plane * places;
      std::int64_t* const index = call.out[1].integer.data() + plane * places;
      const Element* const in = elements_of<Element>(call.in[0]).data() + plane * extent;
      std::fill_n(out, places, lowest);
      std::fill_n(index, places, -1);
      for (tap_walk& tap : own)
        tap.visit([&](std::int64_t p, std::int64_t p_step, std::int64_t e, std::int64_t e_step, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t place = p + i * p_step;
            const std::int64_t element = e + i * e_step;
            if (index[place] >= 0 && !wins(in[element], out[place])) continue;
            out[place] = in[element];
            index[place] = element;
          }
        });
      for (std::int64_t p = 0; p < places; ++p)
        if (index[p] >= 0) index[p] = plane * extent + (a.column_major ? column_major(index[p]) : index[p]);
    }
  });
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::conv_transpose::reference(const attributes& a, const reference_call& call) {
  if (is_floating(call.in[0].type.type)) return detail::convolve_transposed(a, call);
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    detail::convolve_transposed_integers<detail::integer_arithmetic<decltype(zero)>>(a, call);
  });
}

void ops::max_pool_with_indices::reference(const attributes& a, const reference_call& call) {
  if (is_floating(call.in[0].type.type))
    return detail::pool_with_indices(a, call, -std::numeric_limits<double>::infinity(), [](double x, double largest) {
      return x > largest || (x != x && largest == largest);
    });
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    using arithmetic = detail::integer_arithmetic<decltype(zero)>;
    detail::pool_with_indices(a, call, arithmetic::lowest(),
                              [](std::int64_t x, std::int64_t largest) { return arithmetic::less(largest, x); });
  });
}

void ops::lp_pool::reference(const attributes& a, const reference_call& call) {
  detail::pool(
      a, call, 0.0, [&](double sum, double x) { return sum + std::pow(std::abs(x), a.p); },
      [&](double sum, std::int64_t) { return std::pow(sum, 1 / a.p); });
}

void ops::lrn::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const std::int64_t channels = x[1];
  const std::int64_t step = detail::product(x, 2, x.size());
  const double* const in = call.in[0].real.data();
  double* const out = call.out[0].real.data();
  detail::parallel_for(x[0] * channels, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> sums(static_cast<std::size_t>(step));
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t channel = plane % channels;
      const std::int64_t begin = std::max<std::int64_t>(channel - (a.size - 1) / 2, 0);
      const std::int64_t end = std::min(channel + a.size / 2, channels - 1);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t c = begin; c <= end; ++c) {
        const double* const from = in + (plane - channel + c) * step;
        for (std::int64_t i = 0; i < step; ++i) sums[static_cast<std::size_t>(i)] += from[i] * from[i];
      }
      for (std::int64_t i = 0; i < step; ++i) {
        const double sum = sums[static_cast<std::size_t>(i)];
        out[plane * step + i] =
            in[plane * step + i] / std::pow(a.bias + a.alpha / static_cast<double>(a.size) * sum, a.beta);
      }
    }
  });
}

void ops::log_softmax::reference(const attributes& a, const reference_call& call) {
  detail::for_lines(call, a.axis, [](const double* in, double* out, std::int64_t length, std::int64_t step) {
    double largest = in[0];
    for (std::int64_t j = 1; j < length; ++j) largest = std::max(largest, in[j * step]);
    double sum = 0;
    for (std::int64_t j = 0; j < length; ++j) sum += std::exp(in[j * step] - largest);
    const double rest = std::log(sum);
    for (std::int64_t j = 0; j < length; ++j) out[j * step] = in[j * step] - largest - rest;
  });
}

void ops::reduce_prod::reference(const attributes& a, const reference_call& call) {
  if (is_floating(call.in[0].type.type))
    return detail::fold_axes(
        a, call, 1.0, [](double all, double x) { return all * x; }, [](double all, std::int64_t) { return all; });
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    detail::fold_axes(a, call, std::int64_t{1}, detail::integer_arithmetic<decltype(zero)>::multiply,
                      [](std::int64_t all, std::int64_t) { return all; });
  });
}

void ops::reduce_log_sum_exp::reference(const attributes& a, const reference_call& call) {
  /// The sum of exp(x - largest) so far.
  struct state {
    double largest = -std::numeric_limits<double>::infinity();
    double sum = 0;
  };
  const auto combine = [](const state& s, double x) {
    if (x == s.largest) return state{x, s.sum + 1};  // also where both are infinite
    if (x < s.largest) return state{s.largest, s.sum + std::exp(x - s.largest)};
    return state{x, s.sum * std::exp(s.largest - x) + 1};  // NaN takes this path, and stays
  };
  detail::fold_axes(a, call, state{}, combine,
                    [](const state& s, std::int64_t) { return s.largest + std::log(s.sum); });
}

}  // namespace collage::inline v0
