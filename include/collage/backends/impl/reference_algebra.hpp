// Determinants and quantisation.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/detail/small_types.hpp>
#include <collage/op/algebra.hpp>
#include <collage/op/quantise.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// By elimination with the largest pivot of each column. Overwrites the matrix.
inline double determinant_of(std::vector<double>& matrix, std::size_t n) {
  double result = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(matrix[i * n + k]) > std::abs(matrix[pivot * n + k])) pivot = i;
    if (pivot != k) {
      std::swap_ranges(matrix.begin() + static_cast<std::ptrdiff_t>(k * n),
                       matrix.begin() + static_cast<std::ptrdiff_t>((k + 1) * n),
                       matrix.begin() + static_cast<std::ptrdiff_t>(pivot * n));
      result = -result;
    }
    const double head = matrix[k * n + k];
    result *= head;
    if (head == 0) return 0;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = matrix[i * n + k] / head;
      if (factor == 0) continue;
      for (std::size_t j = k; j < n; ++j) matrix[i * n + j] -= factor * matrix[k * n + j];
    }
  }
  return result;
}

/// Calls body(element, scale) for every element of x with the index of its scale.
template <class Body>
void for_each_scale(const ops::quantize_attributes& a, const shape& x, const shape& scale, const Body& body) {
  const std::int64_t count = x.elements();
  const auto axis = static_cast<std::size_t>(a.axis);
  const bool single = decltype(ops::quantize_linear)::is_single(scale);
  const std::int64_t inner = single ? 1 : product(x, axis + 1, x.size());
  const std::int64_t extent = single ? 1 : x[axis];
  const std::int64_t block = std::max<std::int64_t>(a.block, 1);
  const std::int64_t blocks = single || extent == 0 ? 1 : (extent - 1) / block + 1;
  parallel_for(count, elements_per_part, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t along = i / inner % extent / block;
      const std::int64_t at = single         ? 0
                              : a.block == 0 ? along
                                             : (i / inner / extent * blocks + along) * inner + i % inner;
      body(static_cast<std::size_t>(i), static_cast<std::size_t>(at));
    }
  });
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::determinant::reference(const attributes&, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const auto n = static_cast<std::size_t>(x[x.rank - 1]);
  const auto size = static_cast<std::ptrdiff_t>(n * n);
  detail::parallel_for(call.out[0].type.dims.elements(), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto begin = call.in[0].real.begin() + i * size;
      std::vector<double> matrix(begin, begin + size);
      call.out[0].real[static_cast<std::size_t>(i)] = detail::determinant_of(matrix, n);
    }
  });
}

void ops::quantize_linear::reference(const attributes& a, const reference_call& call) {
  const reference_tensor& x = call.in[0];
  const bool doubles = x.type.type == dtype::f64 || call.in[1].type.type == dtype::f64;
  const auto quotient_of = [&](std::size_t i, std::size_t s) {
    const double number = is_floating(x.type.type) ? x.real[i] : static_cast<double>(x.integer[i]);
    const double scale = call.in[1].real[s];
    return doubles ? number / scale : static_cast<double>(static_cast<float>(number) / static_cast<float>(scale));
  };
  const bool has_shift = call.in.size() == 3;
  if (is_floating(a.type))
    return detail::for_each_scale(a, x.type.dims, call.in[1].type.dims, [&](std::size_t i, std::size_t s) {
      const double sum = quotient_of(i, s) + (has_shift ? call.in[2].real[s] : 0.0);
      call.out[0].real[i] =
          detail::decode_small(a.type, detail::encode_small(a.type, sum, a.saturate, power_rounding::nearest));
    });
  detail::with_integer_type(a.type, [&](auto zero) {
    using arithmetic = detail::integer_arithmetic<decltype(zero)>;
    detail::for_each_scale(a, x.type.dims, call.in[1].type.dims, [&](std::size_t i, std::size_t s) {
      const double shift = has_shift ? static_cast<double>(call.in[2].integer[s]) : 0.0;
      const std::int64_t whole = arithmetic::from_real(std::nearbyint(quotient_of(i, s)) + shift);
      call.out[0].integer[i] = is_small(a.type) ? detail::clamp_small(a.type, whole) : whole;
    });
  });
}

void ops::dequantize_linear::reference(const attributes& a, const reference_call& call) {
  const reference_tensor& x = call.in[0];
  const bool has_shift = call.in.size() == 3;
  if (is_floating(x.type.type))
    return detail::for_each_scale(a, x.type.dims, call.in[1].type.dims, [&](std::size_t i, std::size_t s) {
      call.out[0].real[i] = (x.real[i] - (has_shift ? call.in[2].real[s] : 0.0)) * call.in[1].real[s];
    });
  detail::for_each_scale(a, x.type.dims, call.in[1].type.dims, [&](std::size_t i, std::size_t s) {
    const std::int64_t shift = has_shift ? call.in[2].integer[s] : 0;
    call.out[0].real[i] = static_cast<double>(x.integer[i] - shift) * call.in[1].real[s];
  });
}

}  // namespace collage::inline v0
