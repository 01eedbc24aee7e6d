// Matrix multiplication over batches.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

struct matmul_attributes {
  bool transpose_a = false;  ///< the last two dimensions of a are swapped before multiplying
  bool transpose_b = false;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("transpose_a", self.transpose_a);
    visitor("transpose_b", self.transpose_b);
  }
};

/// matmul(a, b): [batch..., M, K] x [batch..., K, N] -> [batch..., M, N]; batch dimensions broadcast (numpy's rule). An
/// operand of rank 1 is a row (a) or a column (b) whose added dimension is dropped from the result.
inline constexpr struct matmul : kind<matmul> {
  static constexpr char name[] = "matmul";
  static constexpr fusion_kind fusion = fusion_kind::anchor;
  static constexpr arity inputs{2, 2};
  using attributes = matmul_attributes;

  /// The extents that a GEMM needs: rows, columns and depth of one product.
  struct extents {
    std::int64_t m, n, k_a, k_b;
    shape batch_a, batch_b;
  };
  static constexpr extents extents_of(const attributes& t, const shape& a, const shape& b) {
    extents e{};
    if (a.rank == 1) {
      e.m = 1;
      e.k_a = a[0];
    } else {
      e.m = a[a.rank - (t.transpose_a ? 1 : 2)];
      e.k_a = a[a.rank - (t.transpose_a ? 2 : 1)];
      e.batch_a = a.first(a.rank - 2);
    }
    if (b.rank == 1) {
      e.n = 1;
      e.k_b = b[0];
    } else {
      e.n = b[b.rank - (t.transpose_b ? 2 : 1)];
      e.k_b = b[b.rank - (t.transpose_b ? 1 : 2)];
      e.batch_b = b.first(b.rank - 2);
    }
    return e;
  }
  static constexpr verdict infer(const attributes& t, auto& io) {
    const auto& a = io.in[0].dims;
    const auto& b = io.in[1].dims;
    if (a.rank < 1) return {false, "its operands must have at least rank 1", 0};
    if (b.rank < 1) return {false, "its operands must have at least rank 1", 1};
    if (io.in[0].type != io.in[1].type) return {false, "its operands must have the same element type", 1};
    const extents e = extents_of(t, a, b);
    if (e.k_a >= 0 && e.k_b >= 0 && e.k_a != e.k_b)
      return {false, "the columns of a must be as many as the rows of b", 1};
    bool fits = true;
    io.out[0] = {io.in[0].type, detail::broadcast(e.batch_a, e.batch_b, fits)};
    if (!fits) return {false, "its batch dimensions must broadcast", 1};
    if (a.rank > 1) io.out[0].dims.push_back(e.m);
    if (b.rank > 1) io.out[0].dims.push_back(e.n);
    return {};
  }
  static constexpr work count(const attributes& t, const auto& io) {
    const extents e = extents_of(t, io.in[0].dims, io.in[1].dims);
    return {2.0 * static_cast<double>(io.out[0].dims.elements()) * static_cast<double>(e.k_a)};
  }
  static void reference(const attributes& a, const reference_call& call);
} matmul{};

}  // namespace collage::inline v0::ops
