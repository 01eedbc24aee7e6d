// Reductions.
#include "rules.hpp"

#include <collage/op/elementwise.hpp>
#include <collage/op/reduce.hpp>

#include <cstdint>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// The axes of a reduction: an attribute in older versions of the operators, and operand 1 in newer versions.
struct reduced_axes {
  bool nothing = false;  ///< there is no axis: elements are only transformed
  ops::reduce_attributes attributes;
};

reduced_axes reduced_by(const lowering& n) {
  const value x = n.operand(0);
  const std::vector<std::int64_t> axes = n.has(1) ? n.integers_of(1, "its axes") : n.integers("axes");
  reduced_axes r;
  r.nothing = axes.empty() && n.integer("noop_with_empty_axes", 0) != 0;
  r.attributes.keep_dims = n.integer("keepdims", 1) != 0;
  std::vector<std::int64_t> wrapped;
  for (const std::int64_t axis : axes) wrapped.push_back(n.axis(axis, n.rank_of(x)));
  r.attributes.axes = n.to_shape(wrapped, "its axes");
  return r;
}

template <class Kind>
value fold(lowering& n, const Kind& kind, value x) {
  const reduced_axes r = reduced_by(n);
  return r.nothing ? x : n(kind, x, r.attributes);
}

/// The 16-bit types have too little range for sums of squares, so these are computed in float32 and cast back.
value widened(lowering& n, value x) {
  const dtype type = n.element_type_of(x);
  return type == dtype::f16 || type == dtype::bf16 ? n.cast(x, dtype::f32) : x;
}
void cast_result(lowering& n, value y) { n.result(0, n.cast(y, n.element_type_of(n.operand(0)))); }

void lower_sum(lowering& n) { n.result(0, fold(n, ops::reduce_sum, n.operand(0))); }
void lower_reduce_mean(lowering& n) { n.result(0, fold(n, ops::reduce_mean, n.operand(0))); }
void lower_max(lowering& n) { n.result(0, fold(n, ops::reduce_max, n.operand(0))); }
void lower_min(lowering& n) { n.result(0, fold(n, ops::reduce_min, n.operand(0))); }
void lower_prod(lowering& n) { n.result(0, fold(n, ops::reduce_prod, n.operand(0))); }

void lower_l1(lowering& n) { n.result(0, fold(n, ops::reduce_sum, n(ops::abs, n.operand(0)))); }
void lower_sum_square(lowering& n) {
  const value x = widened(n, n.operand(0));
  cast_result(n, fold(n, ops::reduce_sum, n(ops::mul, x, x)));
}
void lower_l2(lowering& n) {
  const value x = widened(n, n.operand(0));
  cast_result(n, n(ops::sqrt, fold(n, ops::reduce_sum, n(ops::mul, x, x))));
}
void lower_log_sum(lowering& n) {
  const value x = widened(n, n.operand(0));
  cast_result(n, n(ops::log, fold(n, ops::reduce_sum, x)));
}
void lower_log_sum_exp(lowering& n) {
  const value x = n.operand(0);
  cast_result(n, fold(n, ops::reduce_log_sum_exp, is_floating(n.element_type_of(x)) ? x : n.cast(x, dtype::f64)));
}

constexpr lowering_rule reduce_lowerings[] = {
    {"", "ReduceL1", lower_l1},          {"", "ReduceL2", lower_l2},
    {"", "ReduceLogSum", lower_log_sum}, {"", "ReduceLogSumExp", lower_log_sum_exp},
    {"", "ReduceMax", lower_max},        {"", "ReduceMean", lower_reduce_mean},
    {"", "ReduceMin", lower_min},        {"", "ReduceProd", lower_prod},
    {"", "ReduceSum", lower_sum},        {"", "ReduceSumSquare", lower_sum_square},
};

}  // namespace

std::span<const lowering_rule> reduction_rules() { return reduce_lowerings; }

}  // namespace collage::inline v0::onnx
