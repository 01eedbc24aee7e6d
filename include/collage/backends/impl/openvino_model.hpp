// Translates a region of a network into a model of OpenVINO, operator by operator.
#pragma once

#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/list_view.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/ops.hpp>
#include <collage/run/node_group.hpp>
#include <collage/shape.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <openvino/openvino.hpp>
#include <openvino/opsets/opset13.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::openvino {
namespace {

namespace op = ov::opset13;
using ov_value = ov::Output<ov::Node>;

inline ov::Shape shape_of(const shape& dims) { return {dims.begin(), dims.end()}; }
inline ov::Strides strides_of(const shape& list) { return {list.begin(), list.end()}; }
inline ov::CoordinateDiff pads_of(const shape& list) { return {list.begin(), list.end()}; }
inline ov::element::Type type_of(dtype type) {
  switch (type) {
    case dtype::f32: return ov::element::f32;
    case dtype::i32: return ov::element::i32;
    case dtype::i64: return ov::element::i64;
    default: throw error(error_kind::unsupported, "openvino runs only float32 and integer operators", "openvino");
  }
}

inline ov_value integers(const std::vector<std::int64_t>& list) {
  return op::Constant::create(ov::element::i64, {list.size()}, list);
}
inline ov_value integers(const shape& list) { return integers(std::vector<std::int64_t>(list.begin(), list.end())); }
inline ov_value integer(std::int64_t number) { return op::Constant::create(ov::element::i64, {}, {number}); }
inline ov_value number(double value) { return op::Constant::create(ov::element::f32, {}, {static_cast<float>(value)}); }

/// One node of a network, as the converters see it.
struct ov_node {
  const graph& network;
  std::uint32_t node;
  std::span<const ov_value> in;

  template <class Kind>
  typename Kind::attributes attributes(const Kind&) const {
    return from_words<typename Kind::attributes>(network.view().words_of(node));
  }
  std::uint32_t operand(std::size_t i) const { return network.view().inputs_of(node)[i]; }
  const shape& dims(std::size_t i) const { return network.type_of(operand(i)).dims; }
  const shape& result() const { return network.type_of(network.view().output_of(node)).dims; }
};

template <class Op, class... Arguments>
ov_value make(Arguments&&... arguments) {
  return std::make_shared<Op>(std::forward<Arguments>(arguments)...);
}

template <class Op>
ov_value unary(const ov_node& n) {
  return make<Op>(n.in[0]);
}
template <class Op>
ov_value binary(const ov_node& n) {
  return make<Op>(n.in[0], n.in[1]);
}

/// One number for each channel, as a tensor that broadcasts over [N, C, spatial...].
inline ov_value per_channel(const ov_value& list, std::size_t rank) {
  std::vector<std::int64_t> dims(rank, 1);
  dims[1] = -1;
  return make<op::Reshape>(list, integers(dims), false);
}

/// Weights [M, C / groups, window...] as [groups, M / groups, C / groups, window...].
inline ov_value grouped(const ov_value& weights, const shape& dims, std::int64_t groups) {
  std::vector<std::int64_t> to = {groups, dims[0] / groups};
  to.insert(to.end(), dims.begin() + 1, dims.end());
  return make<op::Reshape>(weights, integers(to), false);
}

inline ov_value convert_conv(const ov_node& n) {
  const auto a = n.attributes(ops::conv);
  const auto begin = pads_of(a.pads_begin), end = pads_of(a.pads_end);
  ov_value y = a.groups == 1
                   ? make<op::Convolution>(n.in[0], n.in[1], strides_of(a.strides), begin, end, strides_of(a.dilations))
                   : make<op::GroupConvolution>(n.in[0], grouped(n.in[1], n.dims(1), a.groups), strides_of(a.strides),
                                                begin, end, strides_of(a.dilations));
  return n.in.size() == 3 ? make<op::Add>(y, per_channel(n.in[2], n.dims(0).size())) : y;
}

inline ov_value convert_conv_transpose(const ov_node& n) {
  const auto a = n.attributes(ops::conv_transpose);
  const auto begin = pads_of(a.pads_begin), end = pads_of(a.pads_end), more = pads_of(a.output_padding);
  ov_value y = a.groups == 1
                   ? make<op::ConvolutionBackpropData>(n.in[0], n.in[1], strides_of(a.strides), begin, end,
                                                       strides_of(a.dilations), ov::op::PadType::EXPLICIT, more)
                   : make<op::GroupConvolutionBackpropData>(n.in[0], grouped(n.in[1], n.dims(1), a.groups),
                                                            strides_of(a.strides), begin, end, strides_of(a.dilations),
                                                            ov::op::PadType::EXPLICIT, more);
  return n.in.size() == 3 ? make<op::Add>(y, per_channel(n.in[2], n.dims(0).size())) : y;
}

inline ov_value convert_max_pool(const ov_node& n) {
  const auto a = n.attributes(ops::max_pool);
  const auto made = std::make_shared<ov::op::v14::MaxPool>(
      n.in[0], strides_of(a.strides), strides_of(a.dilations), shape_of(a.pads_begin), shape_of(a.pads_end),
      shape_of(a.window), a.round_up ? ov::op::RoundingType::CEIL_TORCH : ov::op::RoundingType::FLOOR);
  return made->output(0);
}

inline ov_value convert_average_pool(const ov_node& n) {
  const auto a = n.attributes(ops::average_pool);
  return make<ov::op::v14::AvgPool>(n.in[0], strides_of(a.strides), shape_of(a.pads_begin), shape_of(a.pads_end),
                                    shape_of(a.window), !a.count_padding,
                                    a.round_up ? ov::op::RoundingType::CEIL_TORCH : ov::op::RoundingType::FLOOR);
}

inline ov_value convert_matmul(const ov_node& n) {
  const auto a = n.attributes(ops::matmul);
  return make<op::MatMul>(n.in[0], n.in[1], a.transpose_a, a.transpose_b);
}

inline ov_value convert_layer_norm(const ov_node& n) {
  const auto a = n.attributes(ops::layer_norm);
  std::vector<std::int64_t> axes;
  for (std::int64_t i = a.axis; i < static_cast<std::int64_t>(n.dims(0).size()); ++i) axes.push_back(i);
  ov_value y =
      make<op::MVN>(n.in[0], integers(axes), true, static_cast<float>(a.epsilon), ov::op::MVNEpsMode::INSIDE_SQRT);
  y = make<op::Multiply>(y, n.in[1]);
  return n.in.size() == 3 ? make<op::Add>(y, n.in[2]) : y;
}

inline ov_value convert_clip(const ov_node& n) {
  const value_record &low = n.network.at(n.operand(1)), &high = n.network.at(n.operand(2));
  // The library's Clamp takes only finite bounds.
  const auto is_bound = [](const value_record& v) {
    constexpr double most = std::numeric_limits<float>::max();
    return v.has_scalar && v.scalar >= -most && v.scalar <= most;
  };
  if (is_bound(low) && is_bound(high) && low.scalar <= high.scalar)
    return make<op::Clamp>(n.in[0], low.scalar, high.scalar);
  return make<op::Minimum>(make<op::Maximum>(n.in[0], n.in[1]), n.in[2]);
}

template <class Op>
ov_value reduction(const ov_node& n) {
  const auto a = n.attributes(ops::reduce_sum);
  return make<Op>(n.in[0], integers(a.axes), a.keep_dims);
}

/// An index out of range picks the nearest element inside, as in all kernels; the library would return 0.
inline ov_value convert_gather(const ov_node& n) {
  const std::int64_t axis = n.attributes(ops::gather).axis;
  const std::int64_t extent = n.dims(0)[static_cast<std::size_t>(axis)];
  const ov::element::Type type = type_of(n.network.type_of(n.operand(1)).type);
  const auto bound = [&type](std::int64_t number) -> ov_value { return op::Constant::create(type, {}, {number}); };
  const ov_value within = make<op::Minimum>(make<op::Maximum>(n.in[1], bound(-extent)), bound(extent - 1));
  return make<op::Gather>(n.in[0], within, integer(axis));
}

inline ov_value convert_concat(const ov_node& n) {
  return make<op::Concat>(ov::OutputVector(n.in.begin(), n.in.end()), n.attributes(ops::concat).axis);
}

inline ov_value convert_slice(const ov_node& n) {
  const auto a = n.attributes(ops::slice);
  std::vector<std::int64_t> stops;
  // A slice stops after the last element that is taken. Going backwards, it may have to stop before the first element. Only a
  // number below all others says so, since other negative numbers count from the end.
  for (std::size_t i = 0; i < a.starts.size(); ++i) {
    const std::int64_t stop = a.starts[i] + a.steps[i] * a.extents[i];
    stops.push_back(stop < 0 ? std::numeric_limits<std::int64_t>::min() : stop);
  }
  return make<op::Slice>(n.in[0], integers(a.starts), integers(stops), integers(a.steps));
}

inline ov_value convert_pad(const ov_node& n) {
  const auto a = n.attributes(ops::pad);
  const auto mode = a.mode == ops::pad_mode::reflect ? ov::op::PadMode::REFLECT
                    : a.mode == ops::pad_mode::edge  ? ov::op::PadMode::EDGE
                                                     : ov::op::PadMode::CONSTANT;
  if (n.in.size() < 2) return make<op::Pad>(n.in[0], integers(a.pads_begin), integers(a.pads_end), mode);
  const ov_value filler = make<op::Reshape>(n.in[1], integers(std::vector<std::int64_t>{}), false);
  return make<op::Pad>(n.in[0], integers(a.pads_begin), integers(a.pads_end), filler, mode);
}

inline ov_value convert_resize(const ov_node& n) {
  using attrs = op::Interpolate::InterpolateAttrs;
  const auto a = n.attributes(ops::resize);
  attrs to;
  to.mode = a.mode == ops::resize_mode::nearest ? op::Interpolate::InterpolateMode::NEAREST
                                                : op::Interpolate::InterpolateMode::LINEAR_ONNX;
  to.shape_calculation_mode = op::Interpolate::ShapeCalcMode::SIZES;
  switch (a.coordinates) {
    case ops::resize_coordinates::asymmetric:
      to.coordinate_transformation_mode = op::Interpolate::CoordinateTransformMode::ASYMMETRIC;
      break;
    case ops::resize_coordinates::align_corners:
      to.coordinate_transformation_mode = op::Interpolate::CoordinateTransformMode::ALIGN_CORNERS;
      break;
    case ops::resize_coordinates::pytorch_half_pixel:
      to.coordinate_transformation_mode = op::Interpolate::CoordinateTransformMode::PYTORCH_HALF_PIXEL;
      break;
    default: to.coordinate_transformation_mode = op::Interpolate::CoordinateTransformMode::HALF_PIXEL;
  }
  switch (a.rounding) {
    case ops::resize_rounding::prefer_ceil: to.nearest_mode = op::Interpolate::NearestMode::ROUND_PREFER_CEIL; break;
    case ops::resize_rounding::down: to.nearest_mode = op::Interpolate::NearestMode::FLOOR; break;
    case ops::resize_rounding::up: to.nearest_mode = op::Interpolate::NearestMode::CEIL; break;
    default: to.nearest_mode = op::Interpolate::NearestMode::ROUND_PREFER_FLOOR;
  }
  std::vector<std::int64_t> sizes, axes;
  for (std::size_t i = 2; i < a.sizes.size(); ++i) {
    sizes.push_back(a.sizes[i]);
    axes.push_back(static_cast<std::int64_t>(i));
  }
  return make<op::Interpolate>(n.in[0], integers(sizes), integers(axes), to);
}

/// An operator that the library computes, and the function that translates it. `accepts` checks a node beyond its types; null if
/// there is nothing to check.
struct converter {
  std::uint64_t kind = 0;
  ov_value (*convert)(const ov_node& n) = nullptr;
  verdict (*accepts)(const graph& network, std::uint32_t node) = nullptr;
};

template <class Kind>
typename Kind::attributes attributes_of(const graph& network, std::uint32_t node, const Kind&) {
  return from_words<typename Kind::attributes>(network.view().words_of(node));
}
inline const shape& first_dims(const graph& network, std::uint32_t node) {
  return network.type_of(network.view().inputs_of(node)[0]).dims;
}
/// Whether a node has at most three spatial dimensions, the most that the library's plugin convolves and pools over.
inline verdict has_three_dimensions(const graph& network, std::uint32_t node) {
  return {first_dims(network, node).size() <= 5, "openvino takes at most three spatial dimensions"};
}
inline verdict accepts_resize(const graph& network, std::uint32_t node) {
  const auto a = attributes_of(network, node, ops::resize);
  const shape& x = first_dims(network, node);
  return {
      ops::resize.is_common(a) && x.size() >= 3 && x.size() <= 5 && x[0] == a.sizes[0] && x[1] == a.sizes[1],
      "openvino resizes one to three spatial dimensions to the nearest element or linearly, by the ratio of the extents"};
}
inline verdict accepts_pad(const graph& network, std::uint32_t node) {
  const auto a = attributes_of(network, node, ops::pad);
  const shape& x = first_dims(network, node);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (a.pads_begin[i] < 0 || a.pads_end[i] < 0 ||
        (a.mode == ops::pad_mode::reflect && (a.pads_begin[i] >= x[i] || a.pads_end[i] >= x[i])))
      return {false, "openvino takes no pads that remove elements or reflect beyond the tensor"};
  return {a.mode != ops::pad_mode::wrap, "openvino does not pad by wrapping around"};
}
/// The library has no dilated means. If rounding up leaves a window partly beyond the pads, it counts the elements there.
inline verdict accepts_pool(const graph& network, std::uint32_t node) {
  const auto a = attributes_of(network, node, ops::max_pool);
  const shape& x = first_dims(network, node);
  const shape& y = network.type_of(network.view().output_of(node)).dims;
  const bool is_mean = network.node(node).kind->id == kind_id<struct ops::average_pool>;
  for (std::size_t i = 0; is_mean && i < a.window.size(); ++i) {
    const std::int64_t beyond =
        (y[i + 2] - 1) * a.strides[i] + a.window[i] - x[i + 2] - a.pads_begin[i] - a.pads_end[i];
    if (a.dilations[i] != 1) return {false, "openvino has no dilated means"};
    if (a.count_padding && beyond > 0) return {false, "openvino counts elements beyond the pads in a mean"};
  }
  return has_three_dimensions(network, node);
}

template <class Kind>
constexpr std::uint64_t id_of(const Kind&) {
  return kind_id<Kind>;
}

inline const std::vector<converter>& converters() {
  static const std::vector<converter> list = {
      {id_of(ops::conv), convert_conv, has_three_dimensions},
      {id_of(ops::conv_transpose), convert_conv_transpose, has_three_dimensions},
      {id_of(ops::max_pool), convert_max_pool, accepts_pool},
      {id_of(ops::average_pool), convert_average_pool, accepts_pool},
      {id_of(ops::matmul), convert_matmul},
      {id_of(ops::layer_norm), convert_layer_norm},
      {id_of(ops::softmax),
       [](const ov_node& n) { return make<op::Softmax>(n.in[0], n.attributes(ops::softmax).axis); }},
      {id_of(ops::log_softmax),
       [](const ov_node& n) { return make<op::LogSoftmax>(n.in[0], n.attributes(ops::log_softmax).axis); }},
      {id_of(ops::reduce_mean), reduction<op::ReduceMean>},
      {id_of(ops::reduce_sum), reduction<op::ReduceSum>},
      {id_of(ops::reduce_max), reduction<op::ReduceMax>},
      {id_of(ops::reduce_min), reduction<op::ReduceMin>},
      {id_of(ops::reduce_prod), reduction<op::ReduceProd>},
      {id_of(ops::reshape), [](const ov_node& n) { return make<op::Reshape>(n.in[0], integers(n.result()), false); }},
      {id_of(ops::transpose),
       [](const ov_node& n) {
         return make<op::Transpose>(n.in[0], integers(n.attributes(ops::transpose).permutation));
       }},
      {id_of(ops::concat), convert_concat},
      {id_of(ops::slice), convert_slice},
      {id_of(ops::expand), [](const ov_node& n) { return make<op::Broadcast>(n.in[0], integers(n.result())); }},
      {id_of(ops::tile),
       [](const ov_node& n) { return make<op::Tile>(n.in[0], integers(n.attributes(ops::tile).repeats)); }},
      {id_of(ops::pad), convert_pad, accepts_pad},
      {id_of(ops::resize), convert_resize, accepts_resize},
      {id_of(ops::gather), convert_gather},
      {id_of(ops::clip), convert_clip},
      {id_of(ops::add), binary<op::Add>},
      {id_of(ops::sub), binary<op::Subtract>},
      {id_of(ops::mul), binary<op::Multiply>},
      {id_of(ops::div), binary<op::Divide>},
      {id_of(ops::max), binary<op::Maximum>},
      {id_of(ops::min), binary<op::Minimum>},
      {id_of(ops::pow), binary<op::Power>},
      {id_of(ops::relu), unary<op::Relu>},
      {id_of(ops::sigmoid), unary<op::Sigmoid>},
      {id_of(ops::tanh), unary<op::Tanh>},
      {id_of(ops::exp), unary<op::Exp>},
      {id_of(ops::log), unary<op::Log>},
      {id_of(ops::sqrt), unary<op::Sqrt>},
      {id_of(ops::abs), unary<op::Abs>},
      {id_of(ops::neg), unary<op::Negative>},
      {id_of(ops::erf), unary<op::Erf>},
      {id_of(ops::floor), unary<op::Floor>},
      {id_of(ops::ceil), unary<op::Ceiling>},
      {id_of(ops::softplus), unary<op::SoftPlus>},
      {id_of(ops::softsign), unary<op::SoftSign>},
      {id_of(ops::mish), unary<op::Mish>},
      {id_of(ops::hard_swish), unary<op::HSwish>},
      {id_of(ops::reciprocal), [](const ov_node& n) { return make<op::Divide>(number(1), n.in[0]); }},
      {id_of(ops::gelu_tanh),
       [](const ov_node& n) { return make<op::Gelu>(n.in[0], ov::op::GeluApproximationMode::TANH); }},
      {id_of(ops::hard_sigmoid),
       [](const ov_node& n) {
         const auto a = n.attributes(ops::hard_sigmoid);
         return make<op::HardSigmoid>(n.in[0], number(a.alpha), number(a.beta));
       }},
      {id_of(ops::leaky_relu),
       [](const ov_node& n) { return make<op::PRelu>(n.in[0], number(n.attributes(ops::leaky_relu).alpha)); }},
      {id_of(ops::elu), [](const ov_node& n) { return make<op::Elu>(n.in[0], n.attributes(ops::elu).alpha); }},
  };
  return list;
}
inline const converter* converter_of(std::uint64_t kind) {
  static const std::map<std::uint64_t, const converter*> by_kind = [] {
    std::map<std::uint64_t, const converter*> made;
    for (const converter& c : converters()) made.emplace(c.kind, &c);
    return made;
  }();
  const auto found = by_kind.find(kind);
  return found == by_kind.end() ? nullptr : found->second;
}

/// Whether the library accepts a node's operands and result: float32 tensors that are not empty. The second operand of a gather
/// has integers.
inline verdict accepts_types(const graph& network, std::uint32_t node) {
  static constexpr const char* types = "openvino takes float32 tensors of known shapes that are not empty";
  const auto operands = network.view().inputs_of(node);
  const bool picks = network.node(node).kind->id == kind_id<struct ops::gather>;
  // The second operand of a reshape is a shape that is known without it.
  const bool shapes = network.node(node).kind->id == kind_id<struct ops::reshape>;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const tensor_type& type = network.type_of(operands[i]);
    if (shapes && i == 1) continue;
    const bool fits = picks && i == 1 ? type.type == dtype::i32 || type.type == dtype::i64 : type.type == dtype::f32;
    if (!fits || type.dims.elements() <= 0) return {false, types};
  }
  const tensor_type& result = network.type_of(network.view().output_of(node));
  return {network.node(node).outputs == 1 && result.type == dtype::f32 && result.dims.elements() > 0, types};
}

}  // namespace
}  // namespace collage::inline v0::detail::openvino
