// Linear algebra beyond products.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

/// determinant(x): of the matrices in the last two dimensions, which the output drops.
inline constexpr struct determinant : kind<determinant> {
  static constexpr char name[] = "determinant";
  static constexpr fusion_kind fusion = fusion_kind::opaque;

  static constexpr verdict infer(const attributes&, auto& io) {
    const auto& x = io.in[0].dims;
    if (!is_floating(io.in[0].type)) return {false, "its input must be of a floating-point type"};
    if (x.rank < 2) return {false, "its input must have at least rank 2"};
    const std::int64_t rows = x[x.rank - 2], columns = x[x.rank - 1];
    if (rows >= 0 && columns >= 0 && rows != columns) return {false, "its matrices must be square"};
    io.out[0] = {io.in[0].type, x.first(x.rank - 2)};
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    const auto& x = io.in[0].dims;
    return {2.0 / 3.0 * static_cast<double>(x.elements()) * static_cast<double>(x[x.rank - 1])};
  }
  static void reference(const attributes& a, const reference_call& call);
} determinant{};

}  // namespace collage::inline v0::ops
