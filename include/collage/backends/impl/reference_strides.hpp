// Operators that copy elements which lie in steps: transpose, slice, expand.
#pragma once

#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/kind.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// Where an operator copies from: the element of its first operand for an index of the result is `base` plus the index times `steps`.
struct strided_source {
  std::int64_t base = 0;
  shape steps;
};

inline strided_source source_of(const ops::transpose_attributes& a, const reference_call& call) {
  const shape steps = dense_steps(call.in[0].type.dims);
  strided_source from;
  for (const std::int64_t axis : a.permutation) from.steps.push_back(steps[static_cast<std::size_t>(axis)]);
  return from;
}

inline strided_source source_of(const ops::slice_attributes& a, const reference_call& call) {
  strided_source from{0, dense_steps(call.in[0].type.dims)};
  for (std::size_t i = 0; i < from.steps.size(); ++i) {
    from.base += a.starts[i] * from.steps[i];
    // Where a single element is taken, the step may be anything.
    from.steps[i] = a.extents[i] > 1 ? from.steps[i] * a.steps[i] : 0;
  }
  return from;
}

inline strided_source source_of(const ops::expand_attributes&, const reference_call& call) {
  return {0, broadcast_steps(call.in[0].type.dims, call.out[0].type.dims)};
}

/// Copies the output's elements in order from the first operand.
inline void copy_strided(const reference_call& call, const strided_source& from) {
  const walk source(call.out[0].type.dims, {from.steps});
  with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = elements_of<element>(call.in[0]).data();
    element* const out = elements_of<element>(call.out[0]).data();
    parallel_for(source.size(), elements_per_part, [&](std::int64_t first, std::int64_t last) {
      walk own = source;
      own.visit(first, last, [&](std::int64_t at, std::int64_t count, const std::int64_t* offsets) {
        for (std::int64_t i = 0; i < count; ++i) out[at + i] = in[from.base + offsets[0] + i * own.step(0)];
      });
    });
  });
}

}  // namespace collage::inline v0::detail
