// MobileNet-V2.
#pragma once

#include <collage/zoo/parts.hpp>

namespace collage::inline v0::zoo {

/// MobileNet-V2 (Sandler and others, 2018), one image of 224 x 224, batch norms folded away.
template <class Builder>
constexpr void mobilenet_v2(Builder& g) {
  struct stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  constexpr stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  const value zero = g.scalar("relu6.low", 0);
  const value six = g.scalar("relu6.high", 6);

  value x = g.input("input", {dtype::f32, {1, 3, 224, 224}});
  x = g(ops::clip, parts::conv(g, "0", x, 3, 32, {.window = 3, .stride = 2}), zero, six);
  std::int64_t in = 32;
  int number = 3;
  for (const stage& s : stages) {
    for (std::int64_t block = 0; block < s.blocks; ++block) {
      // Widen, look around within each channel, narrow again.
      const label name = label() + number++ + ".seq.";
      const std::int64_t stride = block == 0 ? s.stride : 1;
      const std::int64_t wide = in * s.expansion;
      const bool residual = stride == 1 && in == s.channels;
      int layer = 0;
      value y = x;
      if (wide != in) {
        y = g(ops::clip, parts::conv(g, name + layer, y, in, wide), zero, six);
        layer += 3;  // numbers count the norm and the activation after a convolution
      }
      y = parts::conv(g, name + layer, y, wide, wide, {.window = 3, .stride = stride, .groups = wide});
      y = g(ops::clip, y, zero, six);
      const double gain = residual ? parts::before_residual : parts::keep;
      y = parts::conv(g, name + (layer + 3), y, wide, s.channels, {.gain = gain});
      x = residual ? g(ops::add, x, y) : y;
      in = s.channels;
    }
  }
  x = g(ops::clip, parts::conv(g, "20", x, in, 1280), zero, six);
  g.output("output", parts::classifier(g, "25", x, 1280));
}

}  // namespace collage::inline v0::zoo
