// For cudnn_facts: the convolutions measured, and what follows them.
#pragma once

#include "cudnn_facts_graph.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace facts {

/// One convolution of batch 1. Square: `size`, `kernel`, `stride` and `pad` hold for height and width.
struct conv_case {
  const char* name;
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t size;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  std::int64_t groups = 1;
  bool transposed = false;
  std::int64_t depth = 0;  ///< of 3-D ones, whose kernel and padding hold for the depth too

  std::int64_t out_of(std::int64_t in) const {
    return transposed ? (in - 1) * stride - 2 * pad + kernel : (in + 2 * pad - kernel) / stride + 1;
  }
  std::size_t spatial() const { return depth > 0 ? 3 : 2; }
  extents with_channels(std::int64_t first, std::int64_t second, std::int64_t d, std::int64_t hw) const {
    return depth > 0 ? extents{first, second, d, hw, hw} : extents{first, second, hw, hw};
  }
  extents in_dims() const { return with_channels(1, in_channels, depth, size); }
  extents out_dims() const { return with_channels(1, out_channels, depth > 0 ? out_of(depth) : 0, out_of(size)); }
  extents weight_dims() const {
    return transposed ? with_channels(in_channels, out_channels / groups, kernel, kernel)
                      : with_channels(out_channels, in_channels / groups, kernel, kernel);
  }
};

inline const std::vector<conv_case> resnet_cases{
    {"7x7s2_3-64@224", 3, 64, 224, 7, 2, 3},
    {"1x1_64-64@56", 64, 64, 56},
    {"1x1_64-256@56", 64, 256, 56},
    {"1x1_256-64@56", 256, 64, 56},
    {"3x3_64@56", 64, 64, 56, 3, 1, 1},
    {"1x1_256-128@56", 256, 128, 56},
    {"3x3s2_128@56", 128, 128, 56, 3, 2, 1},
    {"3x3_128@28", 128, 128, 28, 3, 1, 1},
    {"1x1_128-512@28", 128, 512, 28},
    {"1x1_512-128@28", 512, 128, 28},
    {"1x1s2_256-512@56", 256, 512, 56, 1, 2},
    {"3x3_256@14", 256, 256, 14, 3, 1, 1},
    {"1x1_256-1024@14", 256, 1024, 14},
    {"1x1_1024-256@14", 1024, 256, 14},
    {"3x3_512@7", 512, 512, 7, 3, 1, 1},
    {"1x1_512-2048@7", 512, 2048, 7},
    {"1x1s2_1024-2048@14", 1024, 2048, 14, 1, 2},
    {"1x1_2048-512@7", 2048, 512, 7},
};
inline const std::vector<conv_case> other_cases{
    {"grouped32_3x3_128@56", 128, 128, 56, 3, 1, 1, 32},
    {"grouped32_3x3_256@28", 256, 256, 28, 3, 1, 1, 32},
    {"depthwise_3x3s2_96@112", 96, 96, 112, 3, 2, 1, 96},
    {"depthwise_3x3_144@56", 144, 144, 56, 3, 1, 1, 144},
    {"depthwise_3x3_384@14", 384, 384, 14, 3, 1, 1, 384},
    {"depthwise_3x3_960@7", 960, 960, 7, 3, 1, 1, 960},
    {"vgg_3x3_64@224", 64, 64, 224, 3, 1, 1},
    {"vgg_3x3_256@56", 256, 256, 56, 3, 1, 1},
    {"transposed_4x4s2_512-256@4", 512, 256, 4, 4, 2, 1, 1, true},
    {"transposed_4x4s2_128-64@16", 128, 64, 16, 4, 2, 1, 1, true},
    {"3d_3x3x3_64@8x56", 64, 64, 56, 3, 1, 1, 1, false, 8},
    {"3d_1x1x1_64-256@8x56", 64, 256, 56, 1, 1, 0, 1, false, 8},
};
inline const std::vector<conv_case> fusion_cases{
    {"1x1_64-256@56", 64, 256, 56},
    {"3x3_64@56", 64, 64, 56, 3, 1, 1},
    {"depthwise_3x3_144@56", 144, 144, 56, 3, 1, 1, 144},
    {"3x3_256@14", 256, 256, 14, 3, 1, 1},
    {"1x1_256-1024@14", 256, 1024, 14},
};
/// Small ones, checked against the host.
inline const std::vector<conv_case> check_cases{
    {"check_3x3_16-32@8", 16, 32, 8, 3, 1, 1},
    {"check_3x3s2_32@9", 32, 32, 9, 3, 2, 1},
    {"check_grouped4_3x3_32@8", 32, 32, 8, 3, 1, 1, 4},
    {"check_depthwise_3x3_32@8", 32, 32, 8, 3, 1, 1, 32},
    {"check_transposed_4x4s2_16-8@4", 16, 8, 4, 4, 2, 1, 1, true},
};

/// What follows the convolution, in order: b bias, z the residual, r relu, c clip(0, 6), m min with 6, s swish.
inline void add_conv(operation_graph& graph, const conv_case& c, cudnnDataType_t type, const std::string& fused) {
  descriptor what(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const extents pads(c.spatial(), c.pad);
  what.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(c.spatial()))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, extents(c.spatial(), 1))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, extents(c.spatial(), c.stride))
      .finalize("finalize a convolution descriptor");
  const auto result = [&](bool last) -> tensor& {
    return graph.add(c.out_dims(), last ? type : CUDNN_DATA_FLOAT, !last);
  };
  const tensor& x = graph.add(c.in_dims(), type);
  const tensor& w = graph.add(c.weight_dims(), type);
  const tensor* y = &result(fused.empty());
  if (c.transposed) {
    descriptor op(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, what)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, x.made)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w.made)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, y->made)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1.0F)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0.0F);
    graph.operations.push_back(std::move(op.finalize("finalize a backward data operation")));
  } else {
    descriptor op(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, what)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x.made)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w.made)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y->made)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0F)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0F);
    graph.operations.push_back(std::move(op.finalize("finalize a forward convolution operation")));
  }
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const tensor* other = nullptr;
    if (fused[i] == 'b') other = &graph.add(c.with_channels(1, c.out_channels, 1, 1), type);
    if (fused[i] == 'z') other = &graph.add(c.out_dims(), type);
    const float six = 6;
    if (fused[i] == 'm') other = &graph.add(c.with_channels(1, 1, 1, 1), CUDNN_DATA_FLOAT, false, {}, &six);
    const tensor& next = result(i + 1 == fused.size());
    pointwise_mode how{other != nullptr ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD};
    if (fused[i] == 'm') how.mode = CUDNN_POINTWISE_MIN;
    if (fused[i] == 's') how.mode = CUDNN_POINTWISE_SWISH_FWD;
    if (fused[i] == 'c') how.upper_clip = 6;
    graph.pointwise(how, *y, other, next);
    y = &next;
  }
}

}  // namespace facts
