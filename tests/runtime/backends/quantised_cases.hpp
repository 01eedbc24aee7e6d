// Graphs of quantised files: what a convolution or an operator between convolutions becomes. For backend_checker.
#pragma once

#include "cases.hpp"

#include <collage/op/cast.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace collage_test {

/// One scale and zero point, as two constants.
struct scale_constants {
  value scale, zero;
  collage::dtype type;
};
inline value byte_constant(graph_builder& g, const std::string& name, collage::dtype type, std::int64_t number,
                           const shape& dims = {}) {
  const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(static_cast<std::size_t>(dims.elements()));
  for (std::int64_t i = 0; i < dims.elements(); ++i) bytes.get()[i] = static_cast<std::byte>(number);
  return g.constant(name, {type, dims}, bytes);
}
inline scale_constants add_scale(graph_builder& g, data_source& data, const std::string& name, double scale,
                                 bool is_symmetric = false) {
  const bool is_signed = data.chance(0.5);
  const std::int64_t zero = is_symmetric || data.chance(0.3) ? 0
                            : is_signed                      ? data.number(-40, 40)
                                                             : data.number(90, 160);
  const collage::dtype type = is_signed ? collage::dtype::i8 : collage::dtype::u8;
  return {g.scalar(name + " scale", scale), byte_constant(g, name + " zero", type, zero), type};
}
inline value add_quantised(graph_builder& g, value x, const scale_constants& q) {
  return g(op::quantize_linear, x, q.scale, q.zero, {.type = q.type});
}
inline value add_dequantised(graph_builder& g, value x, const scale_constants& q) {
  return g(op::dequantize_linear, x, q.scale, q.zero);
}
/// An input of integers of 8 bits, dequantised.
inline value add_quantised_input(graph_builder& g, data_source& data, const std::string& name, const shape& dims,
                                 double scale) {
  const scale_constants q = add_scale(g, data, name, scale);
  return add_dequantised(g, g.input(name.c_str(), {q.type, dims}), q);
}

/// Which parts a quantised convolution has.
struct quantised_conv_case {
  shape x, w;
  op::conv_attributes attributes{};
  bool bias = false, per_channel = false, is_quantised = true, rounds = false, adds = false;
  int activation = 0;  ///< 1: relu, 2: clip
  bool unsigned_weights = false;
};

inline value add_quantised_weights(graph_builder& g, data_source& data, const quantised_conv_case& c, double scale) {
  const collage::dtype type = c.unsigned_weights ? collage::dtype::u8 : collage::dtype::i8;
  const value w = data.constant(g, "w", {type, c.w}, {.all_bytes = true});
  const shape list = c.per_channel ? shape{c.w[0]} : shape{};
  const value scales = data.constant(g, "w scales", {collage::dtype::f32, list}, {scale, 2 * scale});
  if (!c.unsigned_weights && data.chance(0.5)) return g(op::dequantize_linear, w, scales, {.axis = 0});
  // Less 200, weights need 9 bits: then the kernel computes in float32.
  const value zero = byte_constant(g, "w zero", type, !c.unsigned_weights ? 0 : data.chance(0.7) ? 128 : 200, list);
  return g(op::dequantize_linear, w, scales, zero, {.axis = 0});
}

/// The convolution of a file: each result is about 40 steps wide, whatever the number of products.
inline value add_quantised_conv(graph_builder& g, data_source& data, const quantised_conv_case& c) {
  const double terms = static_cast<double>(c.w.elements() / c.w[0]);
  const double scale = 0.01 / std::sqrt(terms), wide = 0.02 * 74 * 74 * 0.01 * 1.5;
  const value x = add_quantised_input(g, data, "x", c.x, 0.02), w = add_quantised_weights(g, data, c, scale);
  value y = c.bias ? g(op::conv, x, w, data.constant(g, "bias", f32({c.w[0]}), {-wide, wide}), c.attributes)
                   : g(op::conv, x, w, c.attributes);
  const shape dims = g.type_of(y).dims;
  if (c.rounds) {
    const scale_constants inner = add_scale(g, data, "inner", wide / 37);
    y = add_dequantised(g, add_quantised(g, y, inner), inner);
  }
  if (c.adds) y = g(op::add, y, add_quantised_input(g, data, "added", dims, wide / 51));
  if (c.activation == 1) y = g(op::relu, y);
  if (c.activation == 2) y = g(op::clip, y, g.scalar("low", 0), g.scalar("high", wide));
  return c.is_quantised ? add_quantised(g, y, add_scale(g, data, "y", wide / 40)) : y;
}

/// A random convolution whose window fits.
inline quantised_conv_case random_quantised_conv(data_source& data) {
  quantised_conv_case c;
  const std::size_t rank = data.chance(0.7) ? 2 : static_cast<std::size_t>(data.number(1, 3));
  const std::int64_t widths[] = {1, 3, 4, 8, 16, 24, 33};
  std::int64_t groups = data.chance(0.5) ? 1 : data.number(2, 6);
  std::int64_t in = widths[data.number(0, 6)], out = widths[data.number(0, 6)];
  if (data.chance(0.3)) groups = data.number(8, 40), in = out = 1;  // depthwise
  c.x = {data.number(1, 2), in * groups};
  c.w = {out * groups, in};
  c.attributes.groups = groups;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t window = data.number(1, 3), dilation = data.chance(0.8) ? 1 : 2;
    c.w.push_back(window);
    c.x.push_back(dilation * (window - 1) + 1 + data.number(0, rank == 3 ? 4 : 9));
    c.attributes.strides.push_back(data.number(1, 2));
    c.attributes.dilations.push_back(dilation);
    c.attributes.pads_begin.push_back(data.number(0, window - 1));
    c.attributes.pads_end.push_back(data.number(0, window - 1));
  }
  c.bias = data.chance(0.5), c.per_channel = data.chance(0.6), c.is_quantised = data.chance(0.8);
  c.adds = data.chance(0.5), c.rounds = c.adds && data.chance(0.6);
  c.activation = static_cast<int>(data.number(0, 2));
  c.unsigned_weights = data.chance(0.2);
  return c;
}

}  // namespace collage_test
