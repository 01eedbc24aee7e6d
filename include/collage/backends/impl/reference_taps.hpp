// Windows that slide over the spatial dimensions, tap by tap; pooling.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/pool.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// A window that slides over the spatial dimensions of one channel.
struct window_geometry {
  shape extent;  ///< of the input
  shape places;  ///< of the output
  shape window, strides, dilations, pads_begin;
  std::size_t rank() const { return extent.size(); }
  std::int64_t offset(std::size_t d, std::int64_t tap) const { return tap * dilations[d] - pads_begin[d]; }
};

template <class Attributes>
window_geometry geometry_of(const Attributes& a, const shape& x, const shape& y, const shape& window) {
  return {x.from(2), y.from(2), window, a.strides, a.dilations, a.pads_begin};
}

/// The places p of [0, places) for which 0 <= p * stride + offset < extent.
struct place_range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
inline place_range places_inside(std::int64_t places, std::int64_t stride, std::int64_t offset, std::int64_t extent) {
  const std::int64_t first = offset >= 0 ? 0 : (stride - 1 - offset) / stride;
  const std::int64_t last = offset >= extent ? 0 : (extent - 1 - offset) / stride + 1;
  return {std::min(first, places), std::max(std::min(first, places), std::min(last, places))};
}

/// The multi-index of element `linear` of a shape.
inline shape unravel(std::int64_t linear, const shape& dims) {
  shape index = shape::filled(dims.size(), 0);
  for (std::size_t i = dims.size(); i-- > 0;) {
    index[i] = linear % dims[i];
    linear /= dims[i];
  }
  return index;
}

/// One tap of a window: which places read which elements through it.
struct tap_walk {
  walk places;  ///< operand 0: offset of the place, operand 1: of the element
  std::int64_t place = 0;
  std::int64_t element = 0;

  /// Calls body(place, place_step, element, element_step, count) for each run of places whose tap is inside the input.
  template <class Body>
  void visit(const Body& body) {
    places.visit_all([&](std::int64_t, std::int64_t count, const std::int64_t* offsets) {
      body(place + offsets[0], places.step(0), element + offsets[1], places.step(1), count);
    });
  }
};

/// All taps of a window, in order.
inline std::vector<tap_walk> taps_of(const window_geometry& g) {
  std::vector<tap_walk> taps;
  const shape in_steps = dense_steps(g.extent);
  const shape out_steps = dense_steps(g.places);
  for (std::int64_t t = 0; t < g.window.elements(); ++t) {
    const shape tap = unravel(t, g.window);
    shape dims, in, out;
    std::int64_t place = 0;
    std::int64_t element = 0;
    for (std::size_t d = 0; d < g.rank(); ++d) {
      const place_range range = places_inside(g.places[d], g.strides[d], g.offset(d, tap[d]), g.extent[d]);
      const std::int64_t count = range.last - range.first;
      dims.push_back(count);
      out.push_back(out_steps[d]);
      // Where no neighbour is reached the stride may be anything, and its product too large.
      in.push_back(count > 1 ? in_steps[d] * g.strides[d] : 0);
      if (count == 0) continue;
      element += in_steps[d] * (range.first * g.strides[d] + g.offset(d, tap[d]));
      place += out_steps[d] * range.first;
    }
    taps.push_back({walk(dims, {out, in}), place, element});
  }
  return taps;
}

/// Folds the elements under each window with `combine`, from `start`; `finish(fold, place)` gives the place's element.
/// Elements in the padding do not take part.
template <class Element, class Combine, class Finish>
void pool(const ops::pool_attributes& a, const reference_call& call, Element start, const Combine& combine,
          const Finish& finish) {
  const shape& y = call.out[0].type.dims;
  const window_geometry g = geometry_of(a, call.in[0].type.dims, y, a.window);
  const std::int64_t places = g.places.elements();
  const std::int64_t extent = g.extent.elements();
  if (places == 0) return;
  const std::vector<tap_walk> taps = taps_of(g);
  parallel_for(y[0] * y[1], 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<tap_walk> own = taps;
    for (std::int64_t plane = first; plane < last; ++plane) {
      Element* const out = elements_of<Element>(call.out[0]).data() + plane * places;
      const Element* const in = elements_of<Element>(call.in[0]).data() + plane * extent;
      std::fill_n(out, places, start);
      for (tap_walk& tap : own)
        tap.visit([&](std::int64_t p, std::int64_t p_step, std::int64_t e, std::int64_t e_step, std::int64_t count) {
          if (p_step == 1 && e_step == 1)
            for (std::int64_t i = 0; i < count; ++i) out[p + i] = combine(out[p + i], in[e + i]);
          else
            for (std::int64_t i = 0; i < count; ++i)
              out[p + i * p_step] = combine(out[p + i * p_step], in[e + i * e_step]);
        });
      for (std::int64_t p = 0; p < places; ++p) out[p] = finish(out[p], p);
    }
  });
}

}  // namespace collage::inline v0::detail
