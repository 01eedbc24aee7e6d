// Operands of quantised operators: numbers, a scale and a zero point.
#pragma once

#include <collage/io/onnx/lowering.hpp>
#include <collage/op/quantise.hpp>
#include <collage/op/slice.hpp>
#include <cstddef>

namespace collage::inline v0::onnx {

inline bool is_one(const shape& dims) { return dims.elements() == 1; }

/// A scale or zero point. It becomes a scalar if it has one element, whatever its rank.
inline value flat(lowering& n, value v) { return is_one(n.dims_of(v)) ? n.reshape(v, {}) : v; }

/// Operand `numbers` less its zero points, times its scales: one of each for all, or one for each index of dimension `axis`.
inline value dequantised(lowering& n, std::size_t numbers, value scale, std::size_t zero_point, std::int64_t axis = 0) {
  const dtype type = n.element_type_of(n.operand(numbers));
  if (!is_8_bit_integer(type)) n.invalid("its operands must be int8 or uint8");
  const ops::quantize_attributes a{.axis = axis};
  if (!n.has(zero_point)) return n(ops::dequantize_linear, n.operand(numbers), scale, a);
  value zero = flat(n, n.operand(zero_point));
  if (n.element_type_of(zero) != type) n.invalid("its zero points must have the element types of its operands");
  const shape list = n.rank_of(scale) != 0 ? n.dims_of(scale) : n.dims_of(zero);
  if (n.dims_of(scale) != list) scale = n(ops::expand, scale, {.dims = list});
  if (n.dims_of(zero) != list) zero = n(ops::expand, zero, {.dims = list});
  return n(ops::dequantize_linear, n.operand(numbers), scale, zero, a);
}

/// A result quantised by one scale and one zero point, which are operands. The zero point may be missing: then it is a uint8 of 0.
inline value quantised(lowering& n, value y, std::size_t scale, std::size_t zero_point) {
  if (!is_one(n.dims_of(n.operand(scale))) || (n.has(zero_point) && !is_one(n.dims_of(n.operand(zero_point)))))
    n.unsupported("an output with several scales or zero points");
  const value step = n.cast(flat(n, n.operand(scale)), dtype::f32);
  if (!n.has(zero_point)) return n(ops::quantize_linear, y, step);
  const value zero = flat(n, n.operand(zero_point));
  return n(ops::quantize_linear, y, step, zero, {.type = n.element_type_of(zero)});
}

}  // namespace collage::inline v0::onnx
