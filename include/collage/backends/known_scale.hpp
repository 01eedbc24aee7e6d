// Scales and zero points of quantised values, as backends read them from matches.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// The zero point of a quantize_linear or dequantize_linear that has a known one, or none: then it is 0.
constexpr double zero_point_of(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  return in.size() < 3 ? 0 : m.at(in[2]).scalar;
}

/// Whether a quantize_linear or dequantize_linear has one known positive scale, and one known zero point or none. Its integers have 8
/// bits. Its numbers and its scale are of the type `real`. The scale must be far from where it or its inverse overflows or vanishes
/// in float32, because kernels multiply by either of them.
constexpr bool has_one_known_scale(const any_match& m, std::uint32_t node, dtype real = dtype::f32) {
  constexpr double least = 1e-30, most = 1e30;
  const auto in = m.inputs_of(node);
  const value_record& scale = m.at(in[1]);
  const bool to_integers = m.is(node, ops::quantize_linear);
  const dtype numbers = m.type_of(to_integers ? in[0] : m.output_of(node)).type;
  const dtype integers = m.type_of(to_integers ? m.output_of(node) : in[0]).type;
  return is_8_bit_integer(integers) && numbers == real && scale.type.type == real && scale.has_scalar &&
         scale.scalar >= least && scale.scalar <= most && (in.size() < 3 || m.at(in[2]).has_scalar);
}

/// The operators after a float32 result, if they quantise it and kernels for quantised convolutions can do the same.
enum class tail : std::uint8_t {
  none,
  quantises,             ///< quantize_linear, to integers of 8 bits by one known scale
  bounds_and_quantises,  ///< relu, or clip to known bounds, and then the same
};

/// The tail of a value. Nothing else reads it, or what lies between.
constexpr tail tail_of(const any_match& m, std::uint32_t value) {
  const auto readers = m.graph().uses_of(value);
  if (readers.size() != 1 || readers[0].operand != 0 || m.at(value).is_output) return tail::none;
  const std::uint32_t reader = readers[0].node;
  if (m.is(reader, ops::quantize_linear)) return has_one_known_scale(m, reader) ? tail::quantises : tail::none;
  bool is_bounded = m.is(reader, ops::relu);
  if (m.is(reader, ops::clip)) {
    const auto in = m.inputs_of(reader);
    const value_record &low = m.at(in[1]), &high = m.at(in[2]);
    is_bounded = low.has_scalar && high.has_scalar && low.scalar <= high.scalar;
  }
  const bool is_quantised = is_bounded && tail_of(m, m.output_of(reader)) == tail::quantises;
  return is_quantised ? tail::bounds_and_quantises : tail::none;
}

/// Why a match of a quantised convolution is refused if it ends before a tail that a longer match takes in: no plan needs it. Proof:
/// let a plan contain its kernel S. Let L be the match that ends with the tail. It reads the same and has the same variants, and no
/// one else reads what lies between S and the end of the tail. In this plan each node of the tail is a group by itself. For no
/// pattern of the backends here takes in a quantize_linear without the dequantize_linear or the convolution before it. And no
/// group of elementwise operators goes on to a quantize_linear. L does what S does, and then works on registers where the others
/// pass over the result once more. Its result has a quarter of the bytes, so conversions after it are no slower, either. So with
/// L in place of S and the tail, the plan is at least as good.
inline constexpr char longer_match_is_better[] =
    "a longer match takes in the quantisation after it, which costs no more";

}  // namespace collage::inline v0::detail
