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

/// Whether a quantize_linear or dequantize_linear changes between integers of 8 bits and numbers of the type `real`, by one known
/// positive scale and one known zero point or none. The scale has the same type. It must be far from where it or its inverse
/// overflows or vanishes in float32, because kernels multiply by either of them.
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

}  // namespace collage::inline v0::detail
