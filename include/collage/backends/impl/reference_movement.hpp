// Operators that move elements: reshape, transpose, concat.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/impl/reference_strides.hpp>
#include <collage/op/movement.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

void ops::reshape::reference(const attributes&, const reference_call& call) {
  std::copy(call.in[0].real.begin(), call.in[0].real.end(), call.out[0].real.begin());
  std::copy(call.in[0].integer.begin(), call.in[0].integer.end(), call.out[0].integer.begin());
}

void ops::transpose::reference(const attributes& a, const reference_call& call) {
  detail::copy_strided(call, detail::source_of(a, call));
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
