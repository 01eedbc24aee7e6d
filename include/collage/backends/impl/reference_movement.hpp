// Operators that move elements: reshape, transpose, concat.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/movement.hpp>
#include <cstddef>
#include <cstdint>

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

}  // namespace collage::inline v0
