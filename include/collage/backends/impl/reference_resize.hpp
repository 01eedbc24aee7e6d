// Resampling of the spatial dimensions, and weights for all operators that interpolate between elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/resize.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// One element of a weighted sum. A negative index means a read outside the input.
struct sample_tap {
  std::int64_t index = 0;
  double weight = 0;
};

/// A position between elements: `below` is the element at or before it, `part` in [0, 1) the distance from that
/// element.
struct sample_place {
  std::int64_t below = 0;
  double part = 0;
};

inline double linear_weight(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

/// Keys' cubic convolution kernel.
inline double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

/// An exact position in the input: num / den, den > 0.
struct resize_point {
  std::int64_t num = 0;
  std::int64_t den = 1;
  std::int64_t below() const { return num >= 0 ? num / den : -((den - 1 - num) / den); }
};

/// The position of output index `o` of `out` among `in` input elements, by the formulas of ONNX Resize with the scale
/// out / in.
inline resize_point resize_source(ops::resize_coordinates how, std::int64_t o, std::int64_t in, std::int64_t out) {
  using enum ops::resize_coordinates;
  if (how == asymmetric) return {o * in, out};
  if (how == align_corners) return out == 1 ? resize_point{} : resize_point{o * (in - 1), out - 1};
  if (how == pytorch_half_pixel && out == 1) return {};
  return {(2 * o + 1) * in - out, 2 * out};
}

/// The same for a given scale. The scale came as float32, perhaps as the nearest to a fraction. Rounding the quotient
/// to float32 makes it whole where the fraction's quotient is whole, as the arithmetic of other runtimes does.
inline double resize_source_scaled(ops::resize_coordinates how, std::int64_t o, std::int64_t in, std::int64_t out,
                                   double scale) {
  using enum ops::resize_coordinates;
  const auto quotient = [&](double x) { return static_cast<double>(static_cast<float>(x / scale)); };
  const auto index = static_cast<double>(o);
  if (how == asymmetric) return quotient(index);
  if (how == pytorch_half_pixel && out == 1) return 0;
  if (how != half_pixel_symmetric) return quotient(index + 0.5) - 0.5;
  // The centres of output and input coincide, whatever rounding took from the output's extent.
  const double extent = static_cast<double>(in);
  return extent / 2 * (1 - static_cast<double>(out) / (scale * extent)) + quotient(index + 0.5) - 0.5;
}

/// The position of output index `o` within a region of the input.
inline double resize_source_cropped(std::int64_t o, std::int64_t in, std::int64_t out, double begin, double end) {
  const auto last = static_cast<double>(in - 1);
  if (out == 1) return 0.5 * (begin + end) * last;
  return begin * last + static_cast<double>(o) * (end - begin) * last / static_cast<double>(out - 1);
}

/// The neighbour that `nearest` takes, computed exactly, so that halves are halves.
inline std::int64_t resize_nearest(ops::resize_rounding how, resize_point p) {
  using enum ops::resize_rounding;
  switch (how) {
    case prefer_floor: return -resize_point{-2 * p.num + p.den, 2 * p.den}.below();  // ceil(p - 1/2)
    case prefer_ceil: return resize_point{2 * p.num + p.den, 2 * p.den}.below();     // floor(p + 1/2)
    case up: return -resize_point{-p.num, p.den}.below();
    case down: break;
  }
  return p.below();
}
inline std::int64_t resize_nearest(ops::resize_rounding how, sample_place p) {
  using enum ops::resize_rounding;
  const bool next = how == prefer_floor  ? p.part > 0.5
                    : how == prefer_ceil ? p.part >= 0.5
                    : how == up          ? p.part > 0
                                         : false;
  return p.below + (next ? 1 : 0);
}

/// The elements of the weighted sum at a position. `shrink` is the factor by which the filter is widened.
inline std::vector<sample_tap> resize_mixture(const ops::resize_attributes& a, sample_place p, std::int64_t in,
                                              double shrink) {
  const bool cubic = a.mode == ops::resize_mode::cubic;
  if (!cubic && !a.antialias && !a.exclude_outside) {
    // Both neighbours take part, even with a weight of 0, so that NaN and infinity pass on. All linear interpolation
    // does this. At the borders there is one neighbour.
    const bool before = p.below < 0 || (p.below == 0 && p.part == 0);
    if (before || p.below >= in - 1) return {{before ? 0 : in - 1, 1.0}};
    return {{p.below, 1 - p.part}, {p.below + 1, p.part}};
  }
  const double reach = (cubic ? 2 : 1) * shrink;
  const auto first = static_cast<std::int64_t>(std::floor(p.part - reach)) + 1;
  const auto last = static_cast<std::int64_t>(std::ceil(p.part + reach)) - 1;
  std::vector<sample_tap> taps;
  double total = 0, kept = 0;
  for (std::int64_t i = first; i <= last; ++i) {
    const double distance = (static_cast<double>(i) - p.part) / shrink;
    const double weight = cubic ? cubic_weight(distance, a.cubic_coefficient) : linear_weight(distance);
    total += weight;
    const std::int64_t index = p.below + i;
    if (weight == 0 || (a.exclude_outside && (index < 0 || index >= in))) continue;
    kept += weight;
    const std::int64_t inside = std::clamp<std::int64_t>(index, 0, in - 1);
    if (!taps.empty() && taps.back().index == inside) taps.back().weight += weight;
    else taps.push_back({inside, weight});
  }
  if (taps.empty()) return {{std::clamp<std::int64_t>(p.below, 0, in - 1), 1.0}};
  const double divisor = a.exclude_outside ? kept : a.antialias ? total : 1.0;
  for (sample_tap& tap : taps) tap.weight = taps.size() == 1 ? 1.0 : tap.weight / divisor;
  return taps;
}

/// The weighted sum for output index `o` of dimension `d`.
inline std::vector<sample_tap> resize_taps(const ops::resize_attributes& a, std::int64_t o, std::int64_t in,
                                           std::int64_t out, std::size_t d) {
  using enum ops::resize_coordinates;
  const bool nearest = a.mode == ops::resize_mode::nearest;
  const double scale =
      a.scales.empty() ? static_cast<double>(out) / static_cast<double>(in) : static_cast<double>(a.scales[d]);
  sample_place place;
  if (a.coordinates == align_corners || (a.scales.empty() && a.coordinates != tf_crop_and_resize)) {
    const resize_point p = resize_source(a.coordinates, o, in, out);
    if (nearest) return {{std::clamp<std::int64_t>(resize_nearest(a.rounding, p), 0, in - 1), 1.0}};
    place.below = p.below();
    place.part = static_cast<double>(p.num - place.below * p.den) / static_cast<double>(p.den);
  } else {
    const bool crops = a.coordinates == tf_crop_and_resize;
    const double p = crops ? resize_source_cropped(o, in, out, a.region_begin[d], a.region_end[d])
                           : resize_source_scaled(a.coordinates, o, in, out, scale);
    if (crops && (p < 0 || p > static_cast<double>(in - 1))) return {{-1, 1.0}};
    place.below = static_cast<std::int64_t>(std::floor(p));
    place.part = p - std::floor(p);
    if (nearest) return {{std::clamp<std::int64_t>(resize_nearest(a.rounding, place), 0, in - 1), 1.0}};
  }
  return resize_mixture(a, place, in, a.antialias ? std::max(1.0, 1 / scale) : 1.0);
}

/// Resamples dimension `d` of `from` to the extent in `to`; the shapes differ only in this dimension.
template <class Element>
void resize_dimension(const ops::resize_attributes& a, const shape& from, const shape& to, std::size_t d,
                      const Element* in, Element* out) {
  std::vector<std::vector<sample_tap>> lines;
  for (std::int64_t o = 0; o < to[d]; ++o) lines.push_back(resize_taps(a, o, from[d], to[d], d));
  const std::int64_t inner = product(to, d + 1, to.size());
  parallel_for(product(to, 0, d + 1), std::max<std::int64_t>(elements_per_part / std::max<std::int64_t>(inner, 1), 1),
               [&](std::int64_t first, std::int64_t last) {
                 std::vector<double> sum(static_cast<std::size_t>(inner));
                 for (std::int64_t row = first; row < last; ++row) {
                   const std::vector<sample_tap>& taps = lines[static_cast<std::size_t>(row % to[d])];
                   const Element* const image = in + row / to[d] * from[d] * inner;
                   Element* const line = out + row * inner;
                   if (taps[0].index < 0) {
                     std::fill_n(line, inner, static_cast<Element>(a.extrapolation));
                   } else if (taps.size() == 1) {
                     std::copy_n(image + taps[0].index * inner, inner, line);
                   } else {
                     std::fill(sum.begin(), sum.end(), 0.0);
                     for (const sample_tap& tap : taps)
                       for (std::int64_t i = 0; i < inner; ++i)
                         sum[static_cast<std::size_t>(i)] +=
                             tap.weight * static_cast<double>(image[tap.index * inner + i]);
                     for (std::int64_t i = 0; i < inner; ++i)
                       line[i] = static_cast<Element>(sum[static_cast<std::size_t>(i)]);
                   }
                 }
               });
}

/// Whether a dimension is copied unchanged. Every mode does so where the extent stays, the region is whole and the
/// scale is 1.
inline bool resize_keeps(const ops::resize_attributes& a, const shape& from, const shape& to, std::size_t d) {
  const bool whole =
      a.coordinates != ops::resize_coordinates::tf_crop_and_resize || (a.region_begin[d] == 0 && a.region_end[d] == 1);
  return from[d] == to[d] && whole && (a.scales.empty() || a.scales[d] == 1);
}

template <class Element>
void resize_all(const ops::resize_attributes& a, const reference_call& call) {
  const shape& y = call.out[0].type.dims;
  shape dims = call.in[0].type.dims;
  if (y.elements() == 0) return;
  const auto x = elements_of<Element>(call.in[0]);
  std::vector<Element> current(x.begin(), x.end());
  // The filter is separable: resampling one dimension after the other equals resampling all at once.
  for (std::size_t d = 0; d < y.size(); ++d) {
    if (resize_keeps(a, dims, y, d)) continue;
    shape next = dims;
    next[d] = y[d];
    std::vector<Element> resized(static_cast<std::size_t>(next.elements()));
    resize_dimension(a, dims, next, d, current.data(), resized.data());
    current.swap(resized);
    dims = next;
  }
  std::copy(current.begin(), current.end(), elements_of<Element>(call.out[0]).begin());
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::resize::reference(const attributes& a, const reference_call& call) {
  if (a.mode != resize_mode::nearest) detail::require_floating(call.in[0], name);
  detail::with_elements(call.in[0], [&](auto zero) { detail::resize_all<decltype(zero)>(a, call); });
}

}  // namespace collage::inline v0
