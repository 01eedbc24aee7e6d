// Matrix multiplication over batches.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_gemm.hpp>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/op/matmul.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// Where the operands of each product of a batch begin, in elements.
struct matmul_batch {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;  ///< steps
  std::vector<std::int64_t> a, b;
};

inline matmul_batch batch_of(const ops::matmul_attributes& t, const shape& a, const shape& b) {
  const auto e = decltype(ops::matmul)::extents_of(t, a, b);
  matmul_batch batch;
  batch.m = e.m;
  batch.n = e.n;
  batch.k = e.k_a;
  // An operand of rank 1 is never transposed.
  const bool swap_a = t.transpose_a && a.rank > 1;
  const bool swap_b = t.transpose_b && b.rank > 1;
  batch.a_row = swap_a ? 1 : e.k_a;
  batch.a_column = swap_a ? e.m : 1;
  batch.b_row = swap_b ? 1 : e.n;
  batch.b_column = swap_b ? e.k_a : 1;
  bool fits = true;
  const shape dims = broadcast(e.batch_a, e.batch_b, fits);
  walk offsets(dims, {broadcast_steps(e.batch_a, dims), broadcast_steps(e.batch_b, dims)});
  offsets.visit_all([&](std::int64_t, std::int64_t count, const std::int64_t* at) {
    for (std::int64_t i = 0; i < count; ++i) {
      batch.a.push_back((at[0] + i * offsets.step(0)) * e.m * e.k_a);
      batch.b.push_back((at[1] + i * offsets.step(1)) * e.k_a * e.n);
    }
  });
  return batch;
}

template <class Arithmetic>
void multiply_integers(const matmul_batch& batch, const reference_call& call) {
  const std::int64_t size = batch.m * batch.n;
  parallel_for(static_cast<std::int64_t>(batch.a.size()) * size, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto which = static_cast<std::size_t>(i / size);
      const std::int64_t* a = call.in[0].integer.data() + batch.a[which] + i % size / batch.n * batch.a_row;
      const std::int64_t* b = call.in[1].integer.data() + batch.b[which] + i % batch.n * batch.b_column;
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < batch.k; ++k)
        sum = Arithmetic::add(sum, Arithmetic::multiply(a[k * batch.a_column], b[k * batch.b_row]));
      call.out[0].integer[static_cast<std::size_t>(i)] = sum;
    }
  });
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::matmul::reference(const attributes& t, const reference_call& call) {
  const detail::matmul_batch batch = detail::batch_of(t, call.in[0].type.dims, call.in[1].type.dims);
  if (!is_floating(call.in[0].type.type))
    return detail::with_integer_type(call.in[0].type.type, [&](auto zero) {
      detail::multiply_integers<detail::integer_arithmetic<decltype(zero)>>(batch, call);
    });
  std::fill(call.out[0].real.begin(), call.out[0].real.end(), 0.0);
  detail::multiply_all(static_cast<std::int64_t>(batch.a.size()), batch.m, batch.n, batch.k, batch.n,
                       [&](std::int64_t i) {
                         const auto which = static_cast<std::size_t>(i);
                         return detail::gemm_problem<detail::matrix_columns>{
                             {call.in[0].real.data() + batch.a[which], batch.a_row, batch.a_column},
                             {{call.in[1].real.data() + batch.b[which], batch.b_row, batch.b_column}},
                             call.out[0].real.data() + i * batch.m * batch.n};
                       });
}

}  // namespace collage::inline v0
