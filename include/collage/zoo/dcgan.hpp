// DCGAN: a generator and the discriminator that judges its picture.
#pragma once

#include <collage/zoo/parts.hpp>

namespace collage::inline v0::zoo {

namespace parts {

/// Enlarges a picture by 2: every pixel becomes four. x: [1, channels, extent / 2, extent / 2].
template <class Builder>
constexpr value enlarge(Builder& g, value x, std::int64_t channels, std::int64_t extent) {
  ops::resize_attributes attributes = {.sizes = {1, channels, extent, extent}};
  attributes.coordinates = ops::resize_coordinates::asymmetric;
  attributes.rounding = ops::resize_rounding::down;
  return g(ops::resize, x, attributes);
}

}  // namespace parts

/// DCGAN (Radford and others, 2015) in the form of the Collage paper. 100 random numbers become a picture of 256 x 256.
/// The picture becomes the probability that it is a photograph.
template <class Builder>
constexpr void dcgan_paper(Builder& g) {
  // The generator.
  value x = g.input("input", {dtype::f32, {1, 100}});
  x = parts::linear(g, "fc", x, 100, 128 * 64 * 64);
  x = g(ops::reshape, x, {.dims = {-1, 128, 64, 64}});
  x = parts::enlarge(g, x, 128, 128);
  x = g(ops::relu, parts::conv(g, "gen.1", x, 128, 128, {.window = 3, .bias = true}));
  x = parts::enlarge(g, x, 128, 256);
  x = g(ops::relu, parts::conv(g, "gen.4", x, 128, 64, {.window = 3, .bias = true}));
  x = g(ops::tanh, parts::conv(g, "gen.6", x, 64, 3, {.window = 3, .bias = true, .gain = parts::keep}));

  // The discriminator.
  std::int64_t in = 3;
  for (int layer = 0; layer < 4; ++layer) {
    const std::int64_t out = std::int64_t{16} << layer;
    x = g(ops::relu, parts::conv(g, label("dis.") + 2 * layer, x, in, out, {.window = 3, .stride = 2, .bias = true}));
    in = out;
  }
  x = g(ops::reshape, x, {.dims = {1, 128 * 16 * 16}});
  // The output is a single number. A large gain spreads it, because two pictures must not get the same number.
  x = parts::linear(g, "adv", x, 128 * 16 * 16, 1, 5 * parts::keep);
  g.output("output", g(ops::sigmoid, x));
}

}  // namespace collage::inline v0::zoo
