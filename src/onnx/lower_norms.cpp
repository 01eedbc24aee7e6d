// Norms and softmax.
#include "rules.hpp"

#include <collage/op/elementwise.hpp>
#include <collage/op/local_norm.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// The 16-bit types have too little range and precision for sums of squares.
dtype wide(dtype type) { return type == dtype::f16 || type == dtype::bf16 ? dtype::f32 : type; }

/// Reshapes a list of one number per channel [C], so that it broadcasts to x [N, C, ...].
value per_channel(lowering& n, value list, value x) {
  const shape& dims = n.dims_of(x);
  if (dims.rank < 2) n.invalid("its input has rank " + std::to_string(dims.rank) + ", and must be [N, C, ...]");
  if (!(n.dims_of(list) == shape{dims[1]}))
    n.invalid("an operand of one number per channel has another shape than [" + std::to_string(dims[1]) + "]");
  shape broadcast = shape::filled(dims.rank - 1, 1);
  broadcast[0] = dims[1];
  return n.reshape(list, broadcast);
}

/// Mean and variance over some axes. The variance is computed from the distances to the mean, so it loses no precision
/// if the mean is large.
struct moments {
  value distance, mean, variance;
};
moments moments_of(lowering& n, value x, const shape& axes) {
  moments m;
  m.mean = n(ops::reduce_mean, x, {.axes = axes});
  m.distance = n(ops::sub, x, m.mean);
  m.variance = n(ops::reduce_mean, n(ops::mul, m.distance, m.distance), {.axes = axes});
  return m;
}

value square_root(lowering& n, value variance, double epsilon) {
  return n(ops::sqrt, n(ops::add, variance, n.scalar(epsilon, n.element_type_of(variance))));
}

/// The axes [first, rank).
shape axes_from(std::size_t first, std::size_t rank) {
  shape axes;
  for (; first < rank; ++first) axes.push_back(static_cast<std::int64_t>(first));
  return axes;
}

// Over batches, channels and groups
// ---------------------------------------------------------------------------------------------------------------------

void lower_batch_normalization(lowering& n) {
  const value input = n.operand(0);
  const dtype type = wide(n.element_type_of(input));
  const value x = n.cast(input, type);
  const auto list = [&](std::size_t i) { return n.cast(n.operand(i), type); };
  if (n.opset() < 9 && n.integer("spatial", 1) == 0)
    n.unsupported("batch normalisation of single elements (spatial=0)");
  const double epsilon = n.real("epsilon", 1e-5);
  const bool training = n.integer("training_mode", 0) != 0;
  if (n.opset() < 14 && n.wants(1)) n.unsupported("batch normalisation in training mode before version 14");
  value mean = list(3);
  value variance = list(4);
  if (training) {
    shape axes = axes_from(1, n.rank_of(x));
    if (!axes.empty()) axes[0] = 0;  // all but the channels
    const moments m = moments_of(n, x, axes);
    const shape channels = n.dims_of(mean);
    const double momentum = n.real("momentum", 0.9);
    const auto running = [&](std::size_t i, value before, value now) {
      if (!n.wants(i)) return;
      const value mixed =
          n(ops::add, n(ops::mul, before, n.scalar(momentum, type)), n(ops::mul, now, n.scalar(1 - momentum, type)));
      n.result(i, n.cast(mixed, n.element_type_of(n.operand(i + 2))));
    };
    const value batch_mean = n.reshape(m.mean, channels);
    const value batch_variance = n.reshape(m.variance, channels);
    running(1, mean, batch_mean);
    running(2, variance, batch_variance);
    mean = batch_mean;
    variance = batch_variance;
  } else if (n.wants(1)) {
    n.invalid("it has more than one output, which needs training_mode=1");
  }
  const value scale = n(ops::div, list(1), square_root(n, variance, epsilon));
  const value shift = n(ops::sub, list(2), n(ops::mul, mean, scale));
  const value y = n(ops::add, n(ops::mul, x, per_channel(n, scale, x)), per_channel(n, shift, x));
  n.result(0, n.cast(y, n.element_type_of(input)));
}

void lower_instance_normalization(lowering& n) {
  const value x = n.operand(0);
  const value scale = per_channel(n, n.operand(1), x);
  const value bias = per_channel(n, n.operand(2), x);
  if (n.rank_of(x) < 3) n.invalid("its input must have shape [N, C, spatial...]");
  n.result(0, n(ops::layer_norm, x, scale, bias, {.axis = 2, .epsilon = n.real("epsilon", 1e-5)}));
}

void lower_group_normalization(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const std::int64_t groups = n.integer("num_groups", 0);
  if (dims.rank < 2) n.invalid("its input must have shape [N, C, ...]");
  if (groups < 1 || dims[1] % groups != 0)
    n.invalid("its " + std::to_string(dims[1]) + " channels do not divide into " + std::to_string(groups) + " groups");
  const std::int64_t members = dims[1] / groups;
  std::int64_t rest = 1;
  for (std::size_t d = 2; d < dims.rank; ++d) rest *= dims[d];
  // One scale per group before version 21, one per channel since.
  const shape lists = n.opset() < 21 ? shape{groups, 1, 1} : shape{groups, members, 1};
  const auto list = [&](std::size_t i) {
    if (!(n.dims_of(n.operand(i)) == shape{lists.elements()}))
      n.invalid("its scale and bias must have " + std::to_string(lists.elements()) + " elements");
    return n.reshape(n.operand(i), lists);
  };
  const value y = n(ops::layer_norm, n.reshape(x, {dims[0], groups, members, rest}), list(1), list(2),
                    {.axis = 2, .epsilon = n.real("epsilon", 1e-5)});
  n.result(0, n.reshape(y, dims));
}

void lower_mean_variance_normalization(lowering& n) {
  const value input = n.operand(0);
  const value x = n.cast(input, wide(n.element_type_of(input)));
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : n.integers("axes", {0, 2, 3})) axes.push_back(n.axis(axis, n.rank_of(x)));
  const moments m = moments_of(n, x, n.to_shape(axes, "its axes"));
  const value deviation = n(ops::add, n(ops::sqrt, m.variance), n.scalar(1e-9, n.element_type_of(x)));
  n.result(0, n.cast(n(ops::div, m.distance, deviation), n.element_type_of(input)));
}

// Over the last dimensions
// ---------------------------------------------------------------------------------------------------------------------

void lower_layer_normalization(lowering& n) {
  const value x = n.operand(0);
  const std::int64_t axis = n.axis(n.integer("axis", -1), n.rank_of(x));
  const double epsilon = n.real("epsilon", 1e-5);
  std::vector<value> operands{x, n.operand(1)};
  if (n.has(2)) operands.push_back(n.operand(2));
  n.result(0, n(ops::layer_norm, operands, {.axis = axis, .epsilon = epsilon}));
  if (!n.wants(1) && !n.wants(2)) return;
  const moments m =
      moments_of(n, n.cast(x, wide(n.element_type_of(x))), axes_from(static_cast<std::size_t>(axis), n.rank_of(x)));
  if (n.wants(1)) n.result(1, m.mean);
  if (n.wants(2)) n.result(2, n(ops::reciprocal, square_root(n, m.variance, epsilon)));
}

void lower_rms_normalization(lowering& n) {
  const value input = n.operand(0);
  constexpr std::int64_t stash_of_f64 = 11;
  const dtype type = n.integer("stash_type", 1) == stash_of_f64 ? dtype::f64 : wide(n.element_type_of(input));
  const value x = n.cast(input, type);
  const std::size_t rank = n.rank_of(x);
  const std::int64_t axis = n.axis(n.integer("axis", -1), rank);
  const value squares =
      n(ops::reduce_mean, n(ops::mul, x, x), {.axes = axes_from(static_cast<std::size_t>(axis), rank)});
  const value root = square_root(n, squares, n.real("epsilon", 1e-5));
  const value normal = n.cast(n(ops::div, x, root), n.element_type_of(n.operand(1)));
  const value y = n(ops::mul, normal, n.operand(1));
  if (!(n.dims_of(y) == n.dims_of(x))) n.invalid("its scale must broadcast to the shape of its input");
  n.result(0, y);
  if (n.wants(1)) n.result(1, n(ops::reciprocal, root));
}

void lower_lp_normalization(lowering& n) {
  const value input = n.operand(0);
  const dtype type = wide(n.element_type_of(input));
  const value x = n.cast(input, type);
  const ops::reduce_attributes along{.axes = {n.axis(n.integer("axis", -1), n.rank_of(x))}};
  const std::int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2) n.invalid("its p is " + std::to_string(p) + ", and must be 1 or 2");
  const value norm =
      p == 1 ? n(ops::reduce_sum, n(ops::abs, x), along) : n(ops::sqrt, n(ops::reduce_sum, n(ops::mul, x, x), along));
  // As a lower bound, the smallest positive number avoids 0 / 0 and changes no other norm.
  const value divisor = n(ops::max, norm, n.scalar(type == dtype::f64 ? 0x1p-1074 : 0x1p-149, type));
  n.result(0, n.cast(n(ops::div, x, divisor), n.element_type_of(input)));
}

void lower_lrn(lowering& n) {
  n.result(0, n(ops::lrn, n.operand(0),
                {.size = n.integer("size", 0),
                 .alpha = n.real("alpha", 1e-4),
                 .beta = n.real("beta", 0.75),
                 .bias = n.real("bias", 1)}));
}

// Softmax
// ---------------------------------------------------------------------------------------------------------------------

/// Before version 13 all dimensions from the axis on count as one.
template <class Kind>
void lower_softmax_of(lowering& n, const Kind& kind) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const std::int64_t axis = n.axis(n.integer("axis", n.opset() < 13 ? 1 : -1), dims.rank);
  shape flat{1, 1};
  for (std::size_t d = 0; d < dims.rank; ++d) flat[static_cast<std::int64_t>(d) < axis ? 0 : 1] *= dims[d];
  if (n.opset() >= 13 || flat[1] == dims[static_cast<std::size_t>(axis)])
    return n.result(0, n(kind, x, {.axis = axis}));
  n.result(0, n.reshape(n(kind, n.reshape(x, flat), {.axis = 1}), dims));
}
void lower_softmax(lowering& n) { lower_softmax_of(n, ops::softmax); }
void lower_log_softmax(lowering& n) { lower_softmax_of(n, ops::log_softmax); }

constexpr lowering_rule norms_lowerings[] = {
    {"", "BatchNormalization", lower_batch_normalization},
    {"", "GroupNormalization", lower_group_normalization},
    {"", "InstanceNormalization", lower_instance_normalization},
    {"", "LRN", lower_lrn},
    {"", "LayerNormalization", lower_layer_normalization},
    {"", "LogSoftmax", lower_log_softmax},
    {"", "LpNormalization", lower_lp_normalization},
    {"", "MeanVarianceNormalization", lower_mean_variance_normalization},
    {"", "RMSNormalization", lower_rms_normalization},
    {"", "SimplifiedLayerNormalization", lower_rms_normalization},
    {"", "Softmax", lower_softmax},
};

}  // namespace

std::span<const lowering_rule> norm_rules() { return norms_lowerings; }

}  // namespace collage::inline v0::onnx
