// Quantised operators of the domain com.microsoft, which ONNX Runtime's tools write into files of the format QOperator. Each means
// that its operands are dequantised, and its result quantised.
#include <collage/io/onnx/lowering.hpp>
#include <collage/op/activation.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/quantise.hpp>
#include <collage/op/reduce.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quantised_operands.hpp"
#include "rules.hpp"

namespace collage::inline v0::onnx {
namespace {

/// Operand i, whose scale and zero point follow it.
value dequantised_at(lowering& n, std::size_t i) {
  if (!is_one(n.dims_of(n.operand(i + 1)))) n.unsupported("an operand with several scales");
  return dequantised(n, i, n.cast(flat(n, n.operand(i + 1)), dtype::f32), i + 2);
}

void lower_qlinear_add(lowering& n) {
  n.result(0, quantised(n, n(ops::add, dequantised_at(n, 0), dequantised_at(n, 3)), 6, 7));
}
void lower_qlinear_mul(lowering& n) {
  n.result(0, quantised(n, n(ops::mul, dequantised_at(n, 0), dequantised_at(n, 3)), 6, 7));
}
void lower_qlinear_sigmoid(lowering& n) { n.result(0, quantised(n, n(ops::sigmoid, dequantised_at(n, 0)), 3, 4)); }
void lower_qlinear_leaky_relu(lowering& n) {
  const value y = n(ops::leaky_relu, dequantised_at(n, 0), {.alpha = n.real("alpha", 0.01)});
  n.result(0, quantised(n, y, 3, 4));
}

void lower_qlinear_global_average_pool(lowering& n) {
  if (n.integer("channels_last", 0) != 0) n.unsupported("channels last");
  const value x = dequantised_at(n, 0);
  ops::reduce_attributes a;
  for (std::size_t d = 2; d < n.rank_of(x); ++d) a.axes.push_back(static_cast<std::int64_t>(d));
  n.result(0, quantised(n, n(ops::reduce_mean, x, a), 3, 4));
}

/// The result's scale and zero point come first, then each operand with its own.
void lower_qlinear_concat(lowering& n) {
  std::vector<value> parts;
  for (std::size_t i = 2; i + 2 < n.operands(); i += 3) parts.push_back(dequantised_at(n, i));
  if (parts.empty()) n.invalid("it needs at least one operand with a scale and a zero point");
  const std::int64_t axis = n.axis(n.integer("axis", 0), n.rank_of(parts[0]));
  n.result(0, quantised(n, n(ops::concat, parts, {.axis = axis}), 0, 1));
}

/// A product of matrices with a bias of 32 bits. Without a scale for the result, it stays float32.
void lower_qgemm(lowering& n) {
  const value a = dequantised_at(n, 0);
  const bool turned = n.integer("transB", 0) != 0;
  const value b_scale = n.cast(flat(n, n.operand(4)), dtype::f32);
  const value b = dequantised(n, 3, b_scale, 5, turned ? 0 : 1);
  value y = n(ops::matmul, a, b, {.transpose_a = n.integer("transA", 0) != 0, .transpose_b = turned});
  const double alpha = n.real("alpha", 1);
  if (alpha != 1) y = n(ops::mul, y, n.scalar(alpha, dtype::f32));
  if (n.has(6)) {
    value scale = n(ops::mul, n.cast(flat(n, n.operand(1)), dtype::f32), b_scale);
    if (alpha != 1) scale = n(ops::mul, scale, n.scalar(alpha, dtype::f32));
    const value bias = n.operand(6);
    const auto last = static_cast<std::int64_t>(n.rank_of(bias)) - 1;
    y = n(ops::add, y, n(ops::dequantize_linear, bias, scale, {.axis = last < 0 ? 0 : last}));
  }
  n.result(0, n.has(7) ? quantised(n, y, 7, 8) : y);
}

}  // namespace

std::span<const lowering_rule> microsoft_quantise_rules() {
  static constexpr const char* domain = "com.microsoft";
  static constexpr lowering_rule lowerings[] = {{domain, "QGemm", lower_qgemm},
                                                {domain, "QLinearAdd", lower_qlinear_add},
                                                {domain, "QLinearConcat", lower_qlinear_concat},
                                                {domain, "QLinearGlobalAveragePool", lower_qlinear_global_average_pool},
                                                {domain, "QLinearLeakyRelu", lower_qlinear_leaky_relu},
                                                {domain, "QLinearMul", lower_qlinear_mul},
                                                {domain, "QLinearSigmoid", lower_qlinear_sigmoid}};
  return lowerings;
}

}  // namespace collage::inline v0::onnx
