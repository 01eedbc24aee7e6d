// Operators that move elements: reshape, transpose, concat, resize.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/resize.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// A point of the input, exactly: num / den, den > 0.
struct resize_point {
  std::int64_t num = 0;
  std::int64_t den = 1;
  std::int64_t below() const { return num >= 0 ? num / den : -((den - 1 - num) / den); }
};

/// Where output index `o` of `out` lies among `in` input elements, by the formulas of ONNX Resize.
inline resize_point resize_source(ops::resize_coordinates how, std::int64_t o, std::int64_t in, std::int64_t out) {
  using enum ops::resize_coordinates;
  switch (how) {
    case asymmetric: return {o * in, out};
    case align_corners: return out == 1 ? resize_point{} : resize_point{o * (in - 1), out - 1};
    case pytorch_half_pixel:
      if (out == 1) return {};
      [[fallthrough]];
    case half_pixel: break;
  }
  return {(2 * o + 1) * in - out, 2 * out};
}

/// The neighbour that `nearest` takes, exactly, so that halves are halves.
inline std::int64_t resize_nearest(ops::resize_rounding how, resize_point p, std::int64_t in) {
  using enum ops::resize_rounding;
  std::int64_t nearest = 0;
  switch (how) {
    case prefer_floor: nearest = -resize_point{-2 * p.num + p.den, 2 * p.den}.below(); break;  // ceil(p - 1/2)
    case prefer_ceil: nearest = resize_point{2 * p.num + p.den, 2 * p.den}.below(); break;     // floor(p + 1/2)
    case down: nearest = p.below(); break;
    case up: nearest = -resize_point{-p.num, p.den}.below(); break;
  }
  return std::clamp<std::int64_t>(nearest, 0, in - 1);
}

/// Resamples dimension `d` from `in` to `out`, whose shapes differ there alone. line(o) gives output index o's two
/// neighbours and how much of the second is in it.
struct resize_mix {
  std::int64_t low = 0, high = 0;
  double part = 0;
};
template <class Element>
void resize_dimension(const ops::resize_attributes& a, const shape& from, const shape& to, std::size_t d,
                      const Element* in, Element* out) {
  std::vector<resize_mix> mixes;
  for (std::int64_t o = 0; o < to[d]; ++o) {
    const resize_point p = resize_source(a.coordinates, o, from[d], to[d]);
    if (a.mode == ops::resize_mode::nearest) {
      const std::int64_t nearest = resize_nearest(a.rounding, p, from[d]);
      mixes.push_back({nearest, nearest, 0.0});
    } else if (p.num <= 0 || p.below() >= from[d] - 1) {
      const std::int64_t end = p.num <= 0 ? 0 : from[d] - 1;
      mixes.push_back({end, end, 0.0});
    } else {
      const double part = static_cast<double>(p.num - p.below() * p.den) / static_cast<double>(p.den);
      mixes.push_back({p.below(), p.below() + 1, part});
    }
  }
  const std::int64_t inner = product(to, d + 1, to.size());
  parallel_for(product(to, 0, d + 1), std::max<std::int64_t>(elements_per_part / std::max<std::int64_t>(inner, 1), 1),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) {
                   const resize_mix& mix = mixes[static_cast<std::size_t>(row % to[d])];
                   const Element* const low = in + (row / to[d] * from[d] + mix.low) * inner;
                   const Element* const high = in + (row / to[d] * from[d] + mix.high) * inner;
                   Element* const line = out + row * inner;
                   if (mix.low == mix.high) std::copy_n(low, inner, line);
                   else
                     for (std::int64_t i = 0; i < inner; ++i)
                       line[i] = static_cast<Element>((1.0 - mix.part) * static_cast<double>(low[i]) +
                                                      mix.part * static_cast<double>(high[i]));
                 }
               });
}

template <class Element>
void resize_all(const ops::resize_attributes& a, const reference_call& call) {
  const shape& y = call.out[0].type.dims;
  shape dims = call.in[0].type.dims;
  if (y.elements() == 0) return;
  const auto x = elements_of<Element>(call.in[0]);
  std::vector<Element> current(x.begin(), x.end());
  // Linear in each dimension after the other is linear in all at once. A dimension that keeps its extent is the
  // identity in every mode.
  for (std::size_t d = 0; d < y.size(); ++d) {
    if (dims[d] == y[d]) continue;
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

void ops::reshape::reference(const attributes&, const reference_call& call) {
  std::copy(call.in[0].real.begin(), call.in[0].real.end(), call.out[0].real.begin());
  std::copy(call.in[0].integer.begin(), call.in[0].integer.end(), call.out[0].integer.begin());
}

void ops::transpose::reference(const attributes& a, const reference_call& call) {
  const shape in_steps = detail::dense_steps(call.in[0].type.dims);
  shape steps;
  for (const std::int64_t from : a.permutation) steps.push_back(in_steps[static_cast<std::size_t>(from)]);
  const detail::walk source(call.out[0].type.dims, {steps});
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    detail::parallel_for(source.size(), detail::elements_per_part, [&](std::int64_t first, std::int64_t last) {
      detail::walk own = source;
      own.visit(first, last, [&](std::int64_t at, std::int64_t count, const std::int64_t* offsets) {
        for (std::int64_t i = 0; i < count; ++i) out[at + i] = in[offsets[0] + i * own.step(0)];
      });
    });
  });
}

void ops::concat::reference(const attributes& a, const reference_call& call) {
  const auto axis = static_cast<std::size_t>(a.axis);
  const shape& y = call.out[0].type.dims;
  const std::int64_t inner = detail::product(y, axis + 1, y.size());
  const std::int64_t outer = detail::product(y, 0, axis);
  detail::with_elements(call.out[0], [&](auto zero) {
    using element = decltype(zero);
    std::int64_t done = 0;
    for (const reference_tensor& x : call.in) {
      const std::int64_t length = x.type.dims[axis] * inner;
      for (std::int64_t o = 0; o < outer; ++o)
        std::copy_n(detail::elements_of<element>(x).data() + o * length, length,
                    detail::elements_of<element>(call.out[0]).data() + o * y[axis] * inner + done);
      done += length;
    }
  });
}

void ops::resize::reference(const attributes& a, const reference_call& call) {
  if (a.mode == resize_mode::linear) detail::require_floating(call.in[0], name);
  detail::with_elements(call.in[0], [&](auto zero) { detail::resize_all<decltype(zero)>(a, call); });
}

}  // namespace collage::inline v0
