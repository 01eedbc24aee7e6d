// Operators that copy parts of a tensor: slice, expand, tile, pad.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_strides.hpp>
#include <collage/op/slice.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// Copies the output's elements by index: source(d, o) is the input index for output index o of dimension d. Where it
/// is negative, the element is the second operand's, or 0.
template <class Source>
void copy_by_index(const reference_call& call, const Source& source) {
  const shape& x = call.in[0].type.dims;
  const shape& y = call.out[0].type.dims;
  if (y.elements() == 0) return;
  const shape steps = dense_steps(x);
  std::vector<std::vector<std::int64_t>> offsets(y.size());
  for (std::size_t d = 0; d < y.size(); ++d)
    for (std::int64_t o = 0; o < y[d]; ++o) {
      const std::int64_t i = source(d, o);
      offsets[d].push_back(i < 0 ? -1 : i * steps[d]);
    }
  if (y.empty()) offsets.push_back({0});
  const std::int64_t columns = static_cast<std::int64_t>(offsets.back().size());
  with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = elements_of<element>(call.in[0]).data();
    element* const out = elements_of<element>(call.out[0]).data();
    const element other = call.in.size() == 2 ? elements_of<element>(call.in[1])[0] : element{};
    parallel_for(y.elements() / columns, elements_per_part / columns, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        std::int64_t base = 0;
        std::int64_t rest = row;
        for (std::size_t d = y.size(); d-- > 1;) {
          const std::int64_t offset = offsets[d - 1][static_cast<std::size_t>(rest % y[d - 1])];
          base = base < 0 || offset < 0 ? -1 : base + offset;
          rest /= y[d - 1];
        }
        element* const line = out + row * columns;
        for (std::int64_t i = 0; i < columns; ++i) {
          const std::int64_t offset = offsets.back()[static_cast<std::size_t>(i)];
          line[i] = base < 0 || offset < 0 ? other : in[base + offset];
        }
      }
    });
  });
}

/// The input index at `place` of a dimension of `extent` elements; negative if there is none. `place` may lie outside.
inline std::int64_t padded_index(ops::pad_mode mode, std::int64_t place, std::int64_t extent) {
  if (place >= 0 && place < extent) return place;
  switch (mode) {
    case ops::pad_mode::constant: return -1;
    case ops::pad_mode::edge: return place < 0 ? 0 : extent - 1;
    case ops::pad_mode::wrap: return (place % extent + extent) % extent;
    case ops::pad_mode::reflect: break;
  }
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t within = (place % period + period) % period;
  return within < extent ? within : period - within;
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::slice::reference(const attributes& a, const reference_call& call) {
  detail::copy_strided(call, detail::source_of(a, call));
}

void ops::expand::reference(const attributes& a, const reference_call& call) {
  detail::copy_strided(call, detail::source_of(a, call));
}

void ops::tile::reference(const attributes&, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  detail::copy_by_index(call, [&](std::size_t d, std::int64_t o) { return o % x[d]; });
}

void ops::pad::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  detail::copy_by_index(call, [&](std::size_t d, std::int64_t o) {
    const std::int64_t cut = std::max<std::int64_t>(-a.pads_begin[d], 0);
    const std::int64_t left = x[d] - cut + std::min<std::int64_t>(a.pads_end[d], 0);
    const std::int64_t i = detail::padded_index(a.mode, o - std::max<std::int64_t>(a.pads_begin[d], 0), left);
    return i < 0 ? i : i + cut;
  });
}

}  // namespace collage::inline v0
