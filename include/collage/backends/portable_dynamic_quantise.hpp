// Dynamic quantisation as one kernel of `portable`: the pattern, and the matches that are ONNX's.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstdint>
#include <string_view>

namespace collage::inline v0::portable_patterns {

/// The uint8 numbers, scale and zero point of ONNX's DynamicQuantizeLinear, as its lowering spells them.
struct dynamic_quantize : pattern<"dynamic_quantize"> {
  static constexpr auto low = ops::min(ops::reduce_min(same<"x">()), scalar(0)).as<"low">();
  static constexpr auto high = ops::max(ops::reduce_max(same<"x">()), scalar(0));
  static constexpr auto range = ops::sub(high, low).as<"range">();
  static constexpr auto scale =
      ops::where(ops::equal(range, scalar(0)), scalar(1), ops::div(same<"range">(), scalar(255))).as<"scale">();
  static constexpr auto zero_point = ops::quantize_linear(ops::neg(same<"low">()), same<"scale">());
  static constexpr auto expr = ops::quantize_linear(any.as<"x">(), scale.escaping(), zero_point.escaping());
};

}  // namespace collage::inline v0::portable_patterns

namespace collage::inline v0::detail {

constexpr bool is_dynamic_quantize(const any_match& m) {
  return std::string_view(m.pattern()) == portable_patterns::dynamic_quantize::name;
}

/// Only a range over the whole input, quantised to uint8, is ONNX's.
constexpr verdict accepts_dynamic_quantize(const any_match& m, std::uint32_t root) {
  const auto in = m.inputs_of(root);
  const tensor_type& x = m.type_of(in[0]);
  if (!x.dims.is_concrete() || x.dims.elements() == 0) return {false, "its shape must be known and not empty"};
  const bool fits = x.type == dtype::f32 && m.type_of(m.output_of(root)).type == dtype::u8 &&
                    m.type_of(in[2]).type == dtype::u8 && m.type_of(in[1]).dims.elements() == 1;
  return {fits, "dynamic quantisation is from float32 to uint8, with one scale for all"};
}

}  // namespace collage::inline v0::detail
