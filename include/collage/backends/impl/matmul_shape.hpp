// A batch of matrix products: extents, steps, and where each product's operands begin.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/elementwise_program.hpp>
#include <collage/op/matmul.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// c[i] = a[i] b[i], each c dense, [m, n], one after the other in memory.
struct matmul_shape {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false;       ///< a lies as [k, m]
  bool b_transposed = false;       ///< b lies as [n, k]
  std::vector<std::int64_t> a, b;  ///< by product: the offset of its operand, in elements

  std::int64_t products() const { return static_cast<std::int64_t>(a.size()); }
  bool one_b() const {
    for (const std::int64_t offset : b)
      if (offset != 0) return false;
    return true;
  }
};

inline matmul_shape matmul_shape_of(const any_match& match, std::uint32_t node) {
  const ops::matmul_attributes t = match.attributes(node, ops::matmul);
  const shape& a = match.type_of(match.inputs_of(node)[0]).dims;
  const shape& b = match.type_of(match.inputs_of(node)[1]).dims;
  const auto e = decltype(ops::matmul)::extents_of(t, a, b);
  matmul_shape s;
  s.m = e.m;
  s.n = e.n;
  s.k = e.k_a;
  s.a_transposed = t.transpose_a && a.rank > 1;  // an operand of rank 1 is never transposed
  s.b_transposed = t.transpose_b && b.rank > 1;

  // Products that share b and whose rows of a follow each other in memory are one product with more rows.
  if (!s.a_transposed && e.batch_b.elements() == 1) {
    s.m *= e.batch_a.elements();
    s.a = s.b = {0};
    return s;
  }
  bool fits = true;
  const shape batch = broadcast(e.batch_a, e.batch_b, fits);
  const shape a_steps = broadcast_steps(e.batch_a, batch);
  const shape b_steps = broadcast_steps(e.batch_b, batch);
  for (std::int64_t i = 0; i < batch.elements(); ++i) {
    std::int64_t rest = i;
    std::int64_t a_at = 0;
    std::int64_t b_at = 0;
    for (std::size_t d = batch.size(); d-- > 0; rest /= batch[d]) {
      a_at += rest % batch[d] * a_steps[d];
      b_at += rest % batch[d] * b_steps[d];
    }
    s.a.push_back(a_at * e.m * e.k_a);
    s.b.push_back(b_at * e.k_a * e.n);
  }
  return s;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
