// Operators that interpolate between elements, grid_sample and roi_align, and col2im.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_resize.hpp>
#include <collage/error.hpp>
#include <collage/op/sampling.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

// grid_sample

/// The position that a coordinate from -1 to 1 denotes. It is computed in `Real`, so that a position that is half-way
/// in the grid's own precision stays half-way.
template <class Real>
double grid_place(double coordinate, std::int64_t extent, bool align_corners) {
  const auto n = static_cast<Real>(coordinate);
  const auto length = static_cast<Real>(extent);
  const Real from_border = n + Real{1};
  if (align_corners) return static_cast<double>(from_border / Real{2} * (length - Real{1}));
  const Real scaled = from_border * length;
  return static_cast<double>((scaled - Real{1}) / Real{2});
}

/// Mirrors a position at both borders until it lies between them.
inline double reflect(double p, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double beyond = p < low ? low - p : p > high ? p - high : -1;
  if (beyond < 0) return p;
  const double turns = std::floor(beyond / range);
  const double rest = beyond - turns * range;
  const bool from_low = (p < low) == (std::fmod(turns, 2.0) == 0);
  return from_low ? low + rest : high - rest;
}

/// The elements of one dimension, at most four, that are read for one coordinate. A negative index reads zero.
struct grid_line {
  sample_tap taps[4];
  std::size_t count = 0;
};

inline grid_line grid_taps(const ops::grid_sample_attributes& a, double coordinate, bool doubles, std::int64_t extent) {
  using enum ops::sample_padding;
  const auto last = static_cast<double>(extent - 1);
  const double low = a.align_corners ? 0.0 : -0.5;
  const double high = a.align_corners ? last : last + 0.5;
  // NaN and coordinates beyond any image count as far outside.
  const double far = 0x1p40;
  const bool nearest = a.mode == ops::resize_mode::nearest, cubic = a.mode == ops::resize_mode::cubic;
  double p = nearest && !doubles ? grid_place<float>(coordinate, extent, a.align_corners)
                                 : grid_place<double>(coordinate, extent, a.align_corners);
  p = p > -far ? std::min(p, far) : -far;
  if (nearest) p = std::nearbyint(p);
  // Beyond the border, a cubic filter still has four different positions. Each is brought inside below.
  if (!cubic && a.padding == border) p = std::clamp(p, 0.0, last);
  if (!cubic && a.padding == reflection) p = reflect(p, low, high);
  grid_line line;
  const auto below = static_cast<std::int64_t>(std::floor(p));
  const double part = p - std::floor(p);
  const std::int64_t first = cubic ? -1 : 0;
  const std::int64_t end = nearest ? 1 : cubic ? 3 : 2;
  for (std::int64_t i = first; i < end; ++i) {
    const double distance = static_cast<double>(i) - part;
    const double weight = nearest ? 1.0 : !cubic ? linear_weight(distance) : cubic_weight(distance, -0.75);
    if (weight == 0) continue;
    std::int64_t index = below + i;
    if (a.padding != zeros && (index < 0 || index >= extent))
      index = std::clamp<std::int64_t>(
          a.padding == border ? index : static_cast<std::int64_t>(reflect(static_cast<double>(index), low, high)), 0,
          extent - 1);
    line.taps[line.count++] = {index < 0 || index >= extent ? -1 : index, weight};
  }
  return line;
}

template <class Element>
void grid_sample_all(const ops::grid_sample_attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const shape& y = call.out[0].type.dims;
  const std::size_t rank = x.size() - 2;
  const shape steps = dense_steps(x);
  const std::int64_t places = product(y, 2, y.size());
  const std::int64_t plane = product(x, 2, x.size());
  const bool doubles = call.in[1].type.type == dtype::f64;
  const Element* const in = elements_of<Element>(call.in[0]).data();
  Element* const out = elements_of<Element>(call.out[0]).data();
  parallel_for(
      y[0] * places, std::max<std::int64_t>(256 / std::max<std::int64_t>(y[1], 1), 1),
      [&](std::int64_t first, std::int64_t end) {
        std::vector<sample_tap> taps, next;  // of the whole image: offsets and products of weights
        for (std::int64_t at = first; at < end; ++at) {
          const double* const coordinates = call.in[1].real.data() + at * static_cast<std::int64_t>(rank);
          taps.assign(1, {0, 1.0});
          for (std::size_t d = 0; d < rank; ++d) {
            const grid_line line = grid_taps(a, coordinates[rank - 1 - d], doubles, x[d + 2]);
            next.clear();
            for (const sample_tap& tap : taps)
              for (std::size_t i = 0; i < line.count; ++i)
                if (line.taps[i].index >= 0)
                  next.push_back({tap.index + line.taps[i].index * steps[d + 2], tap.weight * line.taps[i].weight});
            taps.swap(next);
          }
          const std::int64_t image = at / places;
          for (std::int64_t c = 0; c < y[1]; ++c) {
            const Element* const channel = in + (image * x[1] + c) * plane;
            Element& to = out[(image * y[1] + c) * places + at % places];
            if (a.mode == ops::resize_mode::nearest) {
              to = taps.empty() ? Element{} : channel[taps[0].index];
              continue;
            }
            double sum = 0;
            for (const sample_tap& tap : taps) sum += tap.weight * static_cast<double>(channel[tap.index]);
            to = static_cast<Element>(sum);
          }
        }
      });
}

// roi_align

/// One side of a region: where its output elements begin and how densely they are sampled.
struct roi_side {
  double begin = 0;
  double step = 0;  ///< the extent of an output element
  std::int64_t samples = 0;
};

inline roi_side roi_side_of(const ops::roi_align_attributes& a, double from, double to, std::int64_t elements) {
  const double offset = a.half_pixel ? 0.5 : 0.0;
  roi_side side;
  side.begin = from * a.scale - offset;
  double extent = to * a.scale - offset - side.begin;
  if (!a.half_pixel) extent = std::max(extent, 1.0);
  side.step = extent / static_cast<double>(elements);
  const double most = 0x1p16;
  if (a.samples == 0 && !(side.step <= most))
    throw error(error_kind::invalid_argument, "a region covers more than 2^16 elements for each of the output's",
                "roi_align", "give regions that lie within their images");
  side.samples = a.samples > 0 ? a.samples : std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(side.step)), 0);
  return side;
}

/// The two elements to interpolate at sample `s` of output element `o`; none (count 0) outside the image.
inline grid_line roi_taps(const roi_side& side, std::int64_t o, std::int64_t s, std::int64_t extent) {
  double p = side.begin + static_cast<double>(o) * side.step +
             (static_cast<double>(s) + 0.5) * side.step / static_cast<double>(side.samples);
  if (!(p >= -1 && p <= static_cast<double>(extent))) return {};
  p = std::min(std::max(p, 0.0), static_cast<double>(extent - 1));
  const auto below = static_cast<std::int64_t>(p);
  const double part = p - static_cast<double>(below);
  return {{{below, 1 - part}, {std::min(below + 1, extent - 1), part}}, 2};
}

/// One region in all channels of its image.
inline void roi_align_one(const ops::roi_align_attributes& a, const reference_call& call, std::int64_t region) {
  const shape& x = call.in[0].type.dims;
  const double* const corner = call.in[1].real.data() + region * 4;
  const std::int64_t image = call.in[2].integer[static_cast<std::size_t>(region)];
  if (image < 0 || image >= x[0])
    throw error(error_kind::invalid_argument,
                "region " + std::to_string(region) + " is of image " + std::to_string(image) + ", which does not exist",
                "roi_align", "number the images from 0");
  const roi_side rows = roi_side_of(a, corner[1], corner[3], a.height);
  const roi_side columns = roi_side_of(a, corner[0], corner[2], a.width);
  const bool largest = a.mode == ops::roi_mode::largest;
  const auto count = static_cast<double>(std::max<std::int64_t>(rows.samples * columns.samples, 1));
  for (std::int64_t c = 0; c < x[1]; ++c) {
    const double* const channel = call.in[0].real.data() + (image * x[1] + c) * x[2] * x[3];
    double* const out = call.out[0].real.data() + (region * x[1] + c) * a.height * a.width;
    for (std::int64_t o = 0; o < a.height * a.width; ++o) {
      double result = 0;
      bool some = false;
      for (std::int64_t s = 0; s < rows.samples * columns.samples; ++s) {
        const grid_line row = roi_taps(rows, o / a.width, s / columns.samples, x[2]);
        const grid_line column = roi_taps(columns, o % a.width, s % columns.samples, x[3]);
        double sample = 0;  // also for a sample outside the image
        for (std::size_t i = 0; i < row.count; ++i)
          for (std::size_t j = 0; j < column.count; ++j) {
            const double share =
                row.taps[i].weight * column.taps[j].weight * channel[row.taps[i].index * x[3] + column.taps[j].index];
            sample = !largest ? sample + share : i + j == 0 ? share : std::max(sample, share);
          }
        result = !largest ? result + sample : some ? std::max(result, sample) : sample;
        some = true;
      }
      out[o] = largest ? result : result / count;
    }
  }
}

// col2im

/// Adds each element of the columns to the element of the image from which it came.
template <class Element, class Add>
void col2im_all(const ops::col2im_attributes& a, const reference_call& call, const Add& add) {
  const shape& x = call.in[0].type.dims;
  const std::size_t rank = a.image.size();
  const std::int64_t taps = a.window.elements();
  const std::int64_t size = a.image.elements();
  shape places;
  for (std::size_t d = 0; d < rank; ++d)
    places.push_back(
        window_places(a.image[d], a.window[d], a.strides[d], a.dilations[d], a.pads_begin[d], a.pads_end[d], false));
  const shape tap_steps = dense_steps(a.window), place_steps = dense_steps(places), steps = dense_steps(a.image);
  const Element* const in = elements_of<Element>(call.in[0]).data();
  Element* const out = elements_of<Element>(call.out[0]).data();
  parallel_for(x[0] * x[1] / taps, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t channel = first; channel < last; ++channel) {
      Element* const image = out + channel * size;
      std::fill_n(image, size, Element{});
      for (std::int64_t i = 0; i < taps * x[2]; ++i) {
        std::int64_t offset = 0;
        bool inside = true;
        for (std::size_t d = 0; d < rank && inside; ++d) {
          const std::int64_t tap = i / x[2] / tap_steps[d] % a.window[d];
          const std::int64_t place = i % x[2] / place_steps[d] % places[d];
          const std::int64_t at = place * a.strides[d] + tap * a.dilations[d] - a.pads_begin[d];
          inside = at >= 0 && at < a.image[d];
          offset += at * steps[d];
        }
        if (inside) image[offset] = add(image[offset], in[channel * taps * x[2] + i]);
      }
    }
  });
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::grid_sample::reference(const attributes& a, const reference_call& call) {
  detail::with_elements(call.in[0], [&](auto zero) { detail::grid_sample_all<decltype(zero)>(a, call); });
}

void ops::roi_align::reference(const attributes& a, const reference_call& call) {
  detail::parallel_for(call.out[0].type.dims[0], 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t region = first; region < last && !call.out[0].real.empty(); ++region)
      detail::roi_align_one(a, call, region);
  });
}

void ops::col2im::reference(const attributes& a, const reference_call& call) {
  if (is_floating(call.in[0].type.type))
    return detail::col2im_all<double>(a, call, [](double x, double y) { return x + y; });
  detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
    detail::col2im_all<std::int64_t>(a, call, detail::integer_arithmetic<decltype(zero)>::add);
  });
}

}  // namespace collage::inline v0
