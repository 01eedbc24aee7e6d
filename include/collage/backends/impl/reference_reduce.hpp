// Reductions, softmax and layer norm.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_fold.hpp>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace collage::inline v0::detail {

/// Sum or mean. Integers are summed in 64 bits, wrapping around; only the result is converted to the type.
inline void fold_sum(const ops::reduce_attributes& a, const reference_call& call, bool mean) {
  if (is_floating(call.in[0].type.type))
    return fold_axes(
        a, call, 0.0, [](double sum, double x) { return sum + x; },
        [&](double sum, std::int64_t count) { return mean ? sum / static_cast<double>(count) : sum; });
  with_integer_type(call.in[0].type.type, [&](auto zero) {
    using arithmetic = integer_arithmetic<decltype(zero)>;
    using wide = integer_arithmetic<std::conditional_t<std::is_signed_v<decltype(zero)>, std::int64_t, std::uint64_t>>;
    fold_axes(a, call, std::int64_t{0}, wide::add, [&](std::int64_t sum, std::int64_t count) {
      return arithmetic::wrap(arithmetic::bits(mean ? wide::divide(sum, count) : sum));
    });
  });
}

/// The largest or smallest element; NaN where there is one. Without elements it is -infinity or infinity, or for
/// integers the end of the range.
inline void fold_extreme(const ops::reduce_attributes& a, const reference_call& call, bool largest) {
  const auto as_it_is = [](auto x, std::int64_t) { return x; };
  if (is_floating(call.in[0].type.type)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (largest)
      return fold_axes(a, call, -infinity, [](double m, double x) { return x > m || x != x ? x : m; }, as_it_is);
    return fold_axes(a, call, infinity, [](double m, double x) { return x < m || x != x ? x : m; }, as_it_is);
  }
  with_integer_type(call.in[0].type.type, [&](auto zero) {
    using arithmetic = integer_arithmetic<decltype(zero)>;
    if (largest) fold_axes(a, call, arithmetic::lowest(), arithmetic::maximum, as_it_is);
    else fold_axes(a, call, arithmetic::highest(), arithmetic::minimum, as_it_is);
  });
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::reduce_mean::reference(const attributes& a, const reference_call& call) { detail::fold_sum(a, call, true); }
void ops::reduce_sum::reference(const attributes& a, const reference_call& call) { detail::fold_sum(a, call, false); }
void ops::reduce_max::reference(const attributes& a, const reference_call& call) {
  detail::fold_extreme(a, call, true);
}
void ops::reduce_min::reference(const attributes& a, const reference_call& call) {
  detail::fold_extreme(a, call, false);
}

void ops::softmax::reference(const attributes& a, const reference_call& call) {
  detail::require_floating(call.in[0], name);
  detail::for_lines(call, a.axis, [](const double* in, double* out, std::int64_t length, std::int64_t step) {
    // NaN needs no special case: any NaN makes the sum NaN. An infinite maximum gives NaN too, as in other libraries.
    double largest = in[0];
    for (std::int64_t j = 1; j < length; ++j) largest = std::max(largest, in[j * step]);
    double sum = 0;
    for (std::int64_t j = 0; j < length; ++j) sum += out[j * step] = std::exp(in[j * step] - largest);
    for (std::int64_t j = 0; j < length; ++j) out[j * step] /= sum;
  });
}

void ops::layer_norm::reference(const attributes& a, const reference_call& call) {
  detail::require_floating(call.in[0], name);
  const shape& x = call.in[0].type.dims;
  const auto axis = static_cast<std::size_t>(a.axis);
  const std::int64_t length = detail::product(x, axis, x.size());
  const std::int64_t rows = length == 0 ? 0 : detail::product(x, 0, axis);
  const bool has_bias = call.in.size() == 3;
  const reference_tensor& bias = has_bias ? call.in[2] : call.in[1];
  const detail::walk operands(
      x, {detail::broadcast_steps(call.in[1].type.dims, x), detail::broadcast_steps(bias.type.dims, x)});
  detail::parallel_for(
      rows, detail::elements_per_part / std::max<std::int64_t>(length, 1), [&](std::int64_t first, std::int64_t last) {
        detail::walk own = operands;
        for (std::int64_t row = first; row < last; ++row) {
          const double* const in = call.in[0].real.data() + row * length;
          double sum = 0;
          for (std::int64_t i = 0; i < length; ++i) sum += in[i];
          const double mean = sum / static_cast<double>(length);
          double squares = 0;
          for (std::int64_t i = 0; i < length; ++i) squares += (in[i] - mean) * (in[i] - mean);
          const double deviation = std::sqrt(squares / static_cast<double>(length) + a.epsilon);
          own.visit(row * length, (row + 1) * length,
                    [&](std::int64_t at, std::int64_t count, const std::int64_t* offsets) {
                      for (std::int64_t i = 0; i < count; ++i) {
                        const double scale = call.in[1].real[static_cast<std::size_t>(offsets[0] + i * own.step(0))];
                        const double shift =
                            has_bias ? bias.real[static_cast<std::size_t>(offsets[1] + i * own.step(1))] : 0.0;
                        call.out[0].real[static_cast<std::size_t>(at + i)] =
                            (in[at - row * length + i] - mean) / deviation * scale + shift;
                      }
                    });
        }
      });
}

}  // namespace collage::inline v0
