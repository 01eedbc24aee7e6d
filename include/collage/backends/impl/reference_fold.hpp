// Folding the elements along some axes: what every reduction is made of.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/reduce.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// Folds the elements along the reduced axes with `combine`, from `start`; `finish(fold, count)` gives the result.
template <class State, class Combine, class Finish>
void fold_axes(const ops::reduce_attributes& a, const reference_call& call, State start, const Combine& combine,
               const Finish& finish) {
  using Element = decltype(finish(start, std::int64_t{}));
  const shape& x = call.in[0].type.dims;
  const shape steps = dense_steps(x);
  shape kept, kept_steps, folded, folded_steps;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool fold = std::find(a.axes.begin(), a.axes.end(), static_cast<std::int64_t>(i)) != a.axes.end();
    (fold ? folded : kept).push_back(x[i]);
    (fold ? folded_steps : kept_steps).push_back(steps[i]);
  }
  const walk outer(kept, {kept_steps});
  const walk inner(folded, {folded_steps});
  const std::int64_t count = inner.size();
  const Element* const in = elements_of<Element>(call.in[0]).data();
  Element* const out = elements_of<Element>(call.out[0]).data();
  parallel_for(outer.size(), elements_per_part / std::max<std::int64_t>(count, 1),
               [&](std::int64_t first, std::int64_t last) {
                 walk own_outer = outer;
                 walk own_inner = inner;
                 own_outer.visit(first, last, [&](std::int64_t at, std::int64_t run, const std::int64_t* start_of) {
                   for (std::int64_t i = 0; i < run; ++i) {
                     const Element* const from = in + start_of[0] + i * own_outer.step(0);
                     State result = start;
                     own_inner.visit_all([&](std::int64_t, std::int64_t length, const std::int64_t* offset) {
                       const Element* const line = from + offset[0];
                       const std::int64_t step = own_inner.step(0);
                       for (std::int64_t j = 0; j < length; ++j) result = combine(result, line[j * step]);
                     });
                     out[at + i] = finish(result, count);
                   }
                 });
               });
}

/// Calls body(in, out, length, step) for each line of elements along an axis. Lines have at least one element, and the elements
/// of a line are `step` elements apart in memory.
template <class Body>
void for_lines(const reference_call& call, std::int64_t along, const Body& body) {
  const shape& x = call.in[0].type.dims;
  const auto axis = static_cast<std::size_t>(along);
  const std::int64_t length = x[axis];
  const std::int64_t step = product(x, axis + 1, x.size());
  const std::int64_t lines = length == 0 ? 0 : product(x, 0, axis) * step;
  parallel_for(lines, elements_per_part / std::max<std::int64_t>(length, 1),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   const std::int64_t start = i / step * length * step + i % step;
                   body(call.in[0].real.data() + start, call.out[0].real.data() + start, length, step);
                 }
               });
}

}  // namespace collage::inline v0::detail
