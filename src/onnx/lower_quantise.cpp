// Quantised operators. Products of integers are computed in a floating-point type that holds them exactly. Their operands are
// dequantised with a scale of 1, so that they have the form of all quantised products: backends find them by one pattern.
#include <algorithm>
#include <cmath>
#include <collage/io/onnx/lowering.hpp>
#include <collage/op/comparison.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/quantise.hpp>
#include <collage/op/reduce.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quantised_operands.hpp"
#include "rules.hpp"
#include "windows.hpp"

namespace collage::inline v0::onnx {
namespace {

dtype type_numbered(lowering& n, std::int64_t number) {
  const bool fits = number > 0 && number <= std::numeric_limits<int>::max();
  const std::optional<dtype> type = fits ? element_type_of(static_cast<int>(number)) : std::nullopt;
  if (!type)
    n.unsupported("the element type " + (fits ? element_type_name(static_cast<int>(number)) : std::to_string(number)));
  return *type;
}

/// Axis and block, which have no meaning if there is one scale.
ops::quantize_attributes granularity(lowering& n, value x, value scale) {
  ops::quantize_attributes a;
  if (is_one(n.dims_of(scale))) return a;
  a.axis = n.axis(n.integer("axis", 1), n.rank_of(x));
  a.block = n.integer("block_size", 0);
  return a;
}

void lower_quantize_linear(lowering& n) {
  const value x = n.operand(0);
  value scale = flat(n, n.operand(1));
  if (is_small(n.element_type_of(scale))) scale = n.cast(scale, dtype::f32);
  ops::quantize_attributes a = granularity(n, x, scale);
  if (const std::int64_t stated = n.integer("output_dtype", 0); stated != 0) a.type = type_numbered(n, stated);
  else if (n.has(2)) a.type = n.element_type_of(n.operand(2));
  a.saturate = n.integer("saturate", 1) != 0;
  // Quotients are computed in float32 or float64, whatever the scale's type: a precision of 16 bits would only lose digits.
  if (const std::int64_t stated = n.integer("precision", 0); stated != 0 && !is_floating(type_numbered(n, stated)))
    n.invalid("its precision must be a floating-point type");
  if (n.has(2)) n.result(0, n(ops::quantize_linear, x, scale, flat(n, n.operand(2)), a));
  else n.result(0, n(ops::quantize_linear, x, scale, a));
}

void lower_dequantize_linear(lowering& n) {
  const value x = n.operand(0);
  value scale = flat(n, n.operand(1));
  dtype type = n.element_type_of(scale);
  if (const std::int64_t stated = n.integer("output_dtype", 0); stated != 0) {
    type = type_numbered(n, stated);
    if (!is_floating(type) || is_small(type))
      n.invalid("its output_dtype must be a floating-point type of 16 bits or more");
    if (size_of(type) > size_of(n.element_type_of(scale))) scale = n.cast(scale, type);
  }
  const ops::quantize_attributes a = granularity(n, x, scale);
  const value y =
      n.has(2) ? n(ops::dequantize_linear, x, scale, flat(n, n.operand(2)), a) : n(ops::dequantize_linear, x, scale, a);
  n.result(0, n.cast(y, type));
}

/// Maps the range of the input, widened to include 0, to the range of uint8.
void lower_dynamic_quantize_linear(lowering& n) {
  const value x = n.operand(0);
  const dtype type = n.element_type_of(x);
  const value zero = n.scalar(0, type);
  const value low = n(ops::min, n(ops::reduce_min, x, {.keep_dims = false}), zero);
  const value high = n(ops::max, n(ops::reduce_max, x, {.keep_dims = false}), zero);
  const value range = n(ops::sub, high, low);
  // An input of zeros has no range, so any scale will do.
  const value scale =
      n(ops::where, n(ops::equal, range, zero), n.scalar(1, type), n(ops::div, range, n.scalar(255, type)));
  const value zero_point = n(ops::quantize_linear, n(ops::neg, low), scale);
  n.result(0, n(ops::quantize_linear, x, scale, zero_point));
  n.result(1, scale);
  n.result(2, zero_point);
}

/// Integers, and the zero point to subtract from them before they are multiplied.
struct centred {
  value numbers;                    ///< of the operand's type
  std::optional<value> zero_point;  ///< of the operand's type, shaped to broadcast
  double largest = 0;               ///< the largest possible absolute value of a difference
};

centred centre(lowering& n, std::size_t operand, std::size_t zero_point, const shape& zero_point_dims) {
  centred c{.numbers = n.operand(operand), .zero_point = std::nullopt, .largest = 0};
  const dtype type = n.element_type_of(c.numbers);
  if (!is_8_bit_integer(type)) n.invalid("its operands must be int8 or uint8");
  const double low = type == dtype::i8 ? -128 : 0;
  const double high = low + 255;
  c.largest = std::max(-low, high);
  if (!n.has(zero_point)) return c;
  const value z = n.operand(zero_point);
  if (n.element_type_of(z) != type) n.invalid("its zero points must have the element types of its operands");
  if (n.is_known(z)) {
    const std::vector<std::int64_t> list = n.integers_of(zero_point, "its zero point");
    double largest = 0;
    bool all_zero = true;
    for (const std::int64_t number : list) {
      const auto at = static_cast<double>(number);
      largest = std::max({largest, high - at, at - low});
      all_zero = all_zero && number == 0;
    }
    if (all_zero) return c;
    c.largest = largest;
  } else {
    c.largest = 255;
  }
  c.zero_point = is_one(n.dims_of(z)) ? n.reshape(z, {}) : n.reshape(z, zero_point_dims);
  return c;
}

/// The differences, in a floating-point type.
value converted(lowering& n, const centred& c, dtype type) {
  const value x = n.cast(c.numbers, type);
  return c.zero_point ? n(ops::sub, x, n.cast(*c.zero_point, type)) : x;
}

/// The type in which the sum of `terms` products and the number `more` is exact. float32 holds integers up to 2^24.
dtype exact_type(const centred& a, const centred& b, std::int64_t terms, double more = 0) {
  const double most = a.largest * b.largest * static_cast<double>(terms) + more;
  return most <= 0x1p24 ? dtype::f32 : dtype::f64;
}

/// Exact integers as int32. Numbers that do not fit wrap around.
value to_i32(lowering& n, value exact) { return n.cast(n.cast(exact, dtype::i64), dtype::i32); }

/// The shape for zero points or scales of a matrix's rows: a list of M becomes [M, 1]. Other shapes stay.
shape row_dims(lowering& n, value v) {
  shape dims = n.dims_of(v);
  if (dims.size() == 1) dims.push_back(1);
  return dims;
}

/// The differences, as dequantize_linear makes them. `axis` is the dimension with a zero point for each index, if there are
/// several.
value differences(lowering& n, const centred& c, dtype type, std::int64_t axis) {
  const value one = n.scalar(1, type);
  if (!c.zero_point) return n(ops::dequantize_linear, c.numbers, one);
  const value zero = *c.zero_point;
  if (n.rank_of(zero) == 0) return n(ops::dequantize_linear, c.numbers, one, zero);
  const std::int64_t count = n.dims_of(zero).elements();
  const shape& dims = n.dims_of(c.numbers);
  const auto at = static_cast<std::size_t>(axis);
  // Zero points that differ between the matrices of a batch have no place in dequantize_linear.
  if (axis < 0 || at >= dims.size() || count < 0 || count != dims[at]) return converted(n, c, type);
  return n(ops::dequantize_linear, c.numbers, n.filled({type, {count}}, 1), n.reshape(zero, {count}), {.axis = axis});
}

/// Returns the exact product of operands a and b, whose zero points are operands a_zero and b_zero.
value integer_product(lowering& n, std::size_t a, std::size_t b, std::size_t a_zero, std::size_t b_zero) {
  const shape a_dims = n.dims_of(n.operand(a));
  if (a_dims.empty()) n.invalid("its operands must have at least rank 1");
  const centred x = centre(n, a, a_zero, n.has(a_zero) ? row_dims(n, n.operand(a_zero)) : shape{});
  const centred y = centre(n, b, b_zero, n.has(b_zero) ? n.dims_of(n.operand(b_zero)) : shape{});
  const dtype type = exact_type(x, y, a_dims[a_dims.size() - 1]);
  const auto rows = static_cast<std::int64_t>(a_dims.size()) - 2;
  const auto columns = static_cast<std::int64_t>(n.rank_of(y.numbers)) - 1;
  return n(ops::matmul, differences(n, x, type, rows), differences(n, y, type, columns));
}

void lower_matmul_integer(lowering& n) { n.result(0, to_i32(n, integer_product(n, 0, 1, 2, 3))); }

/// An exact sum of products times the ratio of scales, rounded and shifted to the output's zero point.
value requantized(lowering& n, value exact, value ratio, std::size_t zero_point) {
  const value y = n(ops::mul, n.cast(exact, dtype::f32), ratio);
  const value shift = n.operand(zero_point);
  if (!is_one(n.dims_of(shift))) n.unsupported("an output with several zero points");
  return n(ops::quantize_linear, y, n.scalar(1, dtype::f32), n.reshape(shift, {}), {.type = n.element_type_of(shift)});
}

/// One scale, or one for each row or channel, as float32 and shaped to broadcast.
value scale_of(lowering& n, std::size_t operand, const shape& dims) {
  const value v = n.operand(operand);
  return n.cast(is_one(n.dims_of(v)) ? n.reshape(v, {}) : n.reshape(v, dims), dtype::f32);
}

/// x_scale * w_scale / y_scale, in this order, because the order decides how ties are rounded.
value ratio_of(lowering& n, value x_scale, value w_scale, std::size_t y_scale) {
  if (!is_one(n.dims_of(n.operand(y_scale)))) n.unsupported("an output with several scales");
  return n(ops::div, n(ops::mul, x_scale, w_scale), scale_of(n, y_scale, {}));
}

void lower_qlinear_matmul(lowering& n) {
  const value product = integer_product(n, 0, 3, 2, 5);
  const value a_scale = scale_of(n, 1, row_dims(n, n.operand(1)));
  const value b_scale = scale_of(n, 4, n.dims_of(n.operand(4)));
  n.result(0, requantized(n, product, ratio_of(n, a_scale, b_scale, 6), 7));
}

/// The shape [M, 1...] of `rank` dimensions, for a list with one entry for each filter.
shape filter_dims(std::int64_t filters, std::size_t rank) {
  shape dims = shape::filled(rank, 1);
  dims[0] = filters;
  return dims;
}

/// The window of a convolution of images x by weights w, which are operands.
ops::conv_attributes convolution_of(lowering& n, std::size_t x, std::size_t w) {
  const shape w_dims = n.dims_of(n.operand(w));
  const shape extents = spatial_extents(n, n.dims_of(n.operand(x)));
  const sliding_window window = padded_window(n, extents, weights_window(n, w_dims, extents.size()));
  return {.groups = n.integer("group", 1),
          .strides = window.strides,
          .dilations = window.dilations,
          .pads_begin = window.pads_begin,
          .pads_end = window.pads_end};
}

/// The exact convolution as int32. Padding stands for the zero point, which is therefore subtracted first.
void lower_conv_integer(lowering& n) {
  const ops::conv_attributes a = convolution_of(n, 0, 1);
  if (n.has(2) && !is_one(n.dims_of(n.operand(2)))) n.unsupported("an input with several zero points");
  const shape w_dims = n.dims_of(n.operand(1));
  std::int64_t terms = 1;
  for (std::size_t d = 1; d < w_dims.size(); ++d) terms *= w_dims[d];
  const dtype type = exact_type(centre(n, 0, 2, {}), centre(n, 1, 3, filter_dims(w_dims[0], w_dims.size())), terms);
  const value one = n.scalar(1, type);
  n.result(0, to_i32(n, n(ops::conv, dequantised(n, 0, one, 2), dequantised(n, 1, one, 3), a)));
}

void lower_qlinear_conv(lowering& n) {
  const ops::conv_attributes a = convolution_of(n, 0, 3);
  if (!is_one(n.dims_of(n.operand(1))) || !is_one(n.dims_of(n.operand(2))))
    n.unsupported("an input with several scales or zero points");
  const value x_scale = n.cast(flat(n, n.operand(1)), dtype::f32), w_scale = n.cast(flat(n, n.operand(4)), dtype::f32);
  const value x = dequantised(n, 0, x_scale, 2), w = dequantised(n, 3, w_scale, 5);
  value y;
  if (n.has(8)) {
    const value bias = n(ops::dequantize_linear, n.operand(8), n(ops::mul, x_scale, w_scale), {.axis = 0});
    y = n(ops::conv, x, w, bias, a);
  } else {
    y = n(ops::conv, x, w, a);
  }
  n.result(0, quantised(n, y, 6, 7));
}

}  // namespace

std::span<const lowering_rule> quantise_rules() {
  static constexpr lowering_rule quantise_lowerings[] = {
      {"", "QuantizeLinear", lower_quantize_linear},
      {"", "DequantizeLinear", lower_dequantize_linear},
      {"", "DynamicQuantizeLinear", lower_dynamic_quantize_linear},
      {"", "MatMulInteger", lower_matmul_integer},
      {"", "QLinearMatMul", lower_qlinear_matmul},
      {"", "ConvInteger", lower_conv_integer},
      {"", "QLinearConv", lower_qlinear_conv},
      {"com.microsoft", "QuantizeLinear", lower_quantize_linear},
      {"com.microsoft", "DequantizeLinear", lower_dequantize_linear}};
  return quantise_lowerings;
}

}  // namespace collage::inline v0::onnx
