// Parts that the built-in networks share: weights whose ranges keep signals alive, convolutions, fully connected layers.
//
// Weights come from a generator, so nothing is trained. Their ranges follow from the number of products in each sum
// (fan-in). Values neither vanish nor explode over a hundred layers, and an output depends on its input.
#pragma once

#include <collage/graph/build.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::zoo::parts {

/// Square root by Newton's method, since std::sqrt is not constexpr. Requires x > 0.
constexpr double square_root(double x) {
  double root = x > 1 ? x : 1;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2) root = next;
  return root;
}

/// The gain of a layer: the root mean square of its sums over that of its input. A relu after it halves the mean square.
inline constexpr double keep = 1.0;
inline constexpr double before_relu = 1.4142135623730951;
/// For the last layer of a residual branch: its sum with the shortcut grows by a few per cent only.
inline constexpr double before_residual = 0.35;

/// Mean 0 and standard deviation gain / sqrt(fan_in).
constexpr uniform by_fan_in(std::int64_t fan_in, double gain) {
  const auto bound = static_cast<float>(gain * square_root(3.0 / static_cast<double>(fan_in)));
  return {-bound, bound};
}
/// Small, but large enough that a missing constant shows.
inline constexpr uniform small = {-0.1F, 0.1F};
inline constexpr uniform around_one = {0.9F, 1.1F};

template <class Builder>
constexpr value constant(Builder& g, const label& name, const shape& dims, uniform range) {
  return g.constant(name, tensor_type{dtype::f32, dims}, range);
}

struct conv_options {
  std::int64_t window = 1;  ///< in every spatial dimension
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  std::size_t spatial = 2;  ///< number of spatial dimensions
  bool bias = false;
  double gain = before_relu;
};

/// Convolution from `in` to `out` channels, padded so that a stride of 1 keeps the extents. Its constants are called
/// `name`.weight and `name`.bias.
template <class Builder>
constexpr value conv(Builder& g, const label& name, value x, std::int64_t in, std::int64_t out,
                     const conv_options& o = {}) {
  shape dims = {out, in / o.groups};
  for (std::size_t i = 0; i < o.spatial; ++i) dims.push_back(o.window);
  const shape pads = shape::filled(o.spatial, o.window / 2);
  const ops::conv_attributes attributes = {
      .groups = o.groups, .strides = shape::filled(o.spatial, o.stride), .pads_begin = pads, .pads_end = pads};

  const value w = constant(g, name + ".weight", dims, by_fan_in(dims.elements() / out, o.gain));
  if (!o.bias) return g(ops::conv, x, w, attributes);
  return g(ops::conv, x, w, constant(g, name + ".bias", {out}, small), attributes);
}

/// Fully connected layer. Its weights lie as [out, in], as in trained networks. x: [rows, in].
template <class Builder>
constexpr value linear(Builder& g, const label& name, value x, std::int64_t in, std::int64_t out, double gain = keep) {
  const value w = constant(g, name + ".weight", {out, in}, by_fan_in(in, gain));
  const value product = g(ops::matmul, x, w, {.transpose_b = true});
  return g(ops::add, product, constant(g, name + ".bias", {out}, small));
}

/// The end of an image classifier: the mean of each channel, then a score for each of 1000 classes.
template <class Builder>
constexpr value classifier(Builder& g, const label& name, value x, std::int64_t channels) {
  x = g(ops::reduce_mean, x, {.axes = {2, 3}});
  x = g(ops::reshape, x, {.dims = {1, channels}});
  return linear(g, name, x, channels, 1000);
}

}  // namespace collage::inline v0::zoo::parts
