// Residual networks of bottleneck blocks: ResNet-50, its three-dimensional form, and ResNeXt-50.
#pragma once

#include <collage/zoo/parts.hpp>

namespace collage::inline v0::zoo {

namespace parts {

/// A residual network of four stages. The fields are the differences between such networks.
template <class Builder>
struct residual_network {
  Builder& g;
  std::int64_t width = 64;  ///< channels inside the blocks of the first stage
  std::int64_t groups = 1;
  std::size_t spatial = 2;

  /// relu(branch(x) + shortcut(x)). The branch narrows to `inner` channels, convolves with a window of 3, and widens again.
  constexpr value bottleneck(const label& name, value x, std::int64_t in, std::int64_t inner, std::int64_t out,
                             std::int64_t stride) {
    value y = g(ops::relu, conv(g, name + ".a.0", x, in, inner, {.spatial = spatial}));
    y = conv(g, name + ".b.0", y, inner, inner, {.window = 3, .stride = stride, .groups = groups, .spatial = spatial});
    y = g(ops::relu, y);
    y = conv(g, name + ".c.0", y, inner, out, {.spatial = spatial, .gain = before_residual});
    if (in != out) x = conv(g, name + ".down.0", x, in, out, {.stride = stride, .spatial = spatial, .gain = keep});
    return g(ops::relu, g(ops::add, y, x));
  }

  /// All four stages: 3, 4, 6 and 3 blocks, numbered from `first`. They go from 64 channels to 2048.
  constexpr value stages(value x, int first) {
    constexpr int blocks[] = {3, 4, 6, 3};
    std::int64_t in = 64;
    int number = first;
    for (int stage = 0; stage < 4; ++stage) {
      const std::int64_t inner = width << stage;
      const std::int64_t out = std::int64_t{256} << stage;
      for (int block = 0; block < blocks[stage]; ++block) {
        const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        x = bottleneck(label() + number++, x, in, inner, out, stride);
        in = out;
      }
    }
    return x;
  }
};

}  // namespace parts

/// ResNet-50 (He and others, 2015; stride in the 3x3 convolution), one image of 224 x 224, batch norms folded away.
template <class Builder>
constexpr void resnet50(Builder& g) {
  value x = g.input("input", {dtype::f32, {1, 3, 224, 224}});
  x = g(ops::relu, parts::conv(g, "0", x, 3, 64, {.window = 7, .stride = 2}));
  x = g(ops::max_pool, x, {.window = {3, 3}, .strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}});
  x = parts::residual_network<Builder>{g}.stages(x, 4);
  g.output("output", parts::classifier(g, "22", x, 2048));
}

/// ResNeXt-50 32x4d (Xie and others, 2016) in the reduced form of the Collage paper: no stem, no norms, no classifier.
template <class Builder>
constexpr void resnext50_paper(Builder& g) {
  const value x = g.input("input", {dtype::f32, {1, 64, 56, 56}});
  g.output("output", parts::residual_network<Builder>{.g = g, .width = 128, .groups = 32}.stages(x, 0));
}

/// ResNet-50 with three-dimensional convolutions over three frames, in the reduced form of the Collage paper.
template <class Builder>
constexpr void resnet50_3d_paper(Builder& g) {
  const value x = g.input("input", {dtype::f32, {1, 64, 3, 56, 56}});
  g.output("output", parts::residual_network<Builder>{.g = g, .spatial = 3}.stages(x, 0));
}

}  // namespace collage::inline v0::zoo
