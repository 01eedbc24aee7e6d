// Numbers of few bits that stand for real numbers: (number - zero point) * scale.
#pragma once

#include <collage/detail/small_types.hpp>
#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

struct quantize_attributes {
  std::int64_t axis = 1;   ///< the dimension with a scale for each index or block; stored non-negative
  std::int64_t block = 0;  ///< how many neighbours along the axis share a scale; 0: the scales are a list, or one
  dtype type = dtype::u8;  ///< of the output
  bool saturate = true;    ///< only stored with a small floating-point type: as in `cast`
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
    visitor("block", self.block);
    visitor("type", self.type);
    if (collage::detail::is_small_real(self.type)) visitor("saturate", self.saturate);
  }
};

template <class Derived>
struct quantize_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{2, 3};
  static constexpr bool takes_small_types = true;
  using attributes = quantize_attributes;

  /// A single scale needs no axis.
  static constexpr bool is_single(const shape& scale) { return scale.rank == 0 || (scale.rank == 1 && scale[0] == 1); }
  static constexpr char quantized_rule[] =
      "its numbers must be int8, uint8, int16, uint16 or int32, or of a small type except float8e8m0";
  static constexpr bool is_quantized(dtype type) {
    return type == dtype::i8 || type == dtype::u8 || type == dtype::i16 || type == dtype::u16 || type == dtype::i32 ||
           (is_small(type) && type != dtype::f8e8m0);
  }
  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
    if (is_single(in[1].dims)) a.axis = a.block = 0;
  }

 protected:
  /// Checks the rules for scales and zero points that both directions share.
  static constexpr verdict check(const attributes& a, const auto& io, dtype quantized) {
    const auto& x = io.in[0].dims;
    const auto& scale = io.in[1].dims;
    if (!is_floating(io.in[1].type) || is_small(io.in[1].type))
      return {false, "its scales must be of a floating-point type of 16 bits or more", 1};
    if (io.in.size() == 3 && (io.in[2].type != quantized || io.in[2].dims != scale))
      return {false, "its zero points must have the shape of its scales and the quantized element type", 2};
    if (is_single(scale)) return {};
    if (a.axis < 0 || a.axis >= static_cast<std::int64_t>(x.rank))
      return {false, "its axis must be within the rank of its input"};
    const auto axis = static_cast<std::size_t>(a.axis);
    if (a.block < 0) return {false, "its block must not be negative"};
    if (a.block == 0)
      return {scale.rank == 1 && (scale[0] < 0 || x[axis] < 0 || scale[0] == x[axis]),
              "its scales must be one, or a list with one for each index of its axis", 1};
    bool fits = scale.rank == x.rank;
    for (std::size_t i = 0; fits && i < x.rank; ++i) {
      // The quotient rounded up.
      const std::int64_t wanted = i != axis || x[i] <= 0 ? x[i] : (x[i] - 1) / a.block + 1;
      fits = wanted < 0 || scale[i] < 0 || scale[i] == wanted;
    }
    return {fits, "its scales must have its input's shape, with one for each block of its axis", 1};
  }
};

/// quantize_linear(x, scale[, zero_point]): x / scale rounded to nearest, ties to even, plus the zero point. Results
/// out of the type's range become its nearest end. The quotient is computed in float32, or in float64 for a float64 x.
/// Ties are those of this quotient. For a small floating-point type the sum is rounded, as by `cast`.
inline constexpr struct quantize_linear : quantize_kind<quantize_linear> {
  static constexpr char name[] = "quantize_linear";

  static constexpr verdict infer(const attributes& a, auto& io) {
    if (is_small(io.in[0].type) || (!is_floating(io.in[0].type) && io.in[0].type != dtype::i32))
      return {false, "its input must be int32, or of a floating-point type of 16 bits or more", 0};
    if (!is_quantized(a.type)) return {false, quantized_rule};
    if (verdict v = check(a, io, a.type); !v) return v;
    io.out[0] = {a.type, io.in[0].dims};
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {3.0 * static_cast<double>(io.in[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);
} quantize_linear{};

/// dequantize_linear(x, scale[, zero_point]): (x - zero_point) * scale, of the scale's element type.
inline constexpr struct dequantize_linear : quantize_kind<dequantize_linear> {
  static constexpr char name[] = "dequantize_linear";

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    quantize_kind::normalise(a, in);
    a.type = in[1].type;
    a.saturate = true;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!is_quantized(io.in[0].type)) return {false, quantized_rule, 0};
    if (verdict v = check(a, io, io.in[0].type); !v) return v;
    io.out[0] = {io.in[1].type, io.in[0].dims};
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {2.0 * static_cast<double>(io.in[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);
} dequantize_linear{};

}  // namespace collage::inline v0::ops
