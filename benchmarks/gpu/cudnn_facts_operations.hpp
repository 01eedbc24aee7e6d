// For cudnn_facts: operations other than convolutions. Each function makes one graph.
#pragma once

#include "cudnn_facts_convolutions.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace facts {

inline void softmax(operation_graph& g, cudnnDataType_t type) {
  const extents whole{1, 128, 1024}, column{1, 128, 1};
  const tensor& x = g.add(whole, type);
  const tensor& largest = g.add(column, CUDNN_DATA_FLOAT, true);
  const tensor& shifted = g.add(whole, CUDNN_DATA_FLOAT, true);
  const tensor& powers = g.add(whole, CUDNN_DATA_FLOAT, true);
  const tensor& sum = g.add(column, CUDNN_DATA_FLOAT, true);
  const tensor& y = g.add(whole, type);
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, x, largest);
  g.pointwise({CUDNN_POINTWISE_SUB}, x, &largest, shifted);
  g.pointwise({CUDNN_POINTWISE_EXP}, shifted, nullptr, powers);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  g.pointwise({CUDNN_POINTWISE_DIV}, powers, &sum, y);
}

inline void layer_norm(operation_graph& g, cudnnDataType_t type) {
  const float epsilon = 1e-5F;
  const tensor& x = g.add({128, 768, 1, 1}, type);
  const tensor& scale = g.add({1, 768, 1, 1}, CUDNN_DATA_FLOAT);
  const tensor& bias = g.add({1, 768, 1, 1}, CUDNN_DATA_FLOAT);
  const tensor& small = g.add({1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, {}, &epsilon);
  const tensor& y = g.add({128, 768, 1, 1}, type);
  descriptor op(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_LAYER_NORM)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x.made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale.made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias.made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, small.made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y.made);
  g.operations.push_back(std::move(op.finalize("finalize a norm operation")));
}

inline void max_pool(operation_graph& g, cudnnDataType_t type) {
  const tensor& x = g.add({1, 64, 112, 112}, type);
  const tensor& y = g.add({1, 64, 56, 56}, type);
  const std::vector<cudnnFraction_t> window(2, {3, 1}), strides(2, {2, 1}), pads(2, {1, 1});
  descriptor what(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  what.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_RESAMPLE_MAXPOOL)
      .set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN)
      .set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_NEG_INF_PAD)
      .set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, window)
      .set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, pads)
      .set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, pads)
      .set(CUDNN_ATTR_RESAMPLE_STRIDES, strides)
      .finalize("finalize a resample descriptor");
  descriptor op(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x.made)
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y.made)
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, 1.0)
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, 0.0)
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, what);
  g.operations.push_back(std::move(op.finalize("finalize a resample operation")));
}

inline void matmul_gelu(operation_graph& g, cudnnDataType_t type) {
  const tensor& a = g.add({1, 128, 768}, type);
  const tensor& b = g.add({1, 768, 3072}, type);
  const tensor& c = g.add({1, 128, 3072}, CUDNN_DATA_FLOAT, true);
  const tensor& bias = g.add({1, 1, 3072}, type);
  const tensor& sum = g.add({1, 128, 3072}, CUDNN_DATA_FLOAT, true);
  const tensor& y = g.add({1, 128, 3072}, type);
  g.matmul(a, b, c);
  g.pointwise({CUDNN_POINTWISE_ADD}, c, &bias, sum);
  g.pointwise({CUDNN_POINTWISE_GELU_FWD}, sum, nullptr, y);
}

inline void matmul_alone(operation_graph& g, cudnnDataType_t type) {
  const tensor& a = g.add({1, 128, 768}, type);
  const tensor& b = g.add({1, 768, 3072}, type);
  g.matmul(a, b, g.add({1, 128, 3072}, type));
}

/// 12 heads of 128 places and 64 numbers.
inline void attention(operation_graph& g, cudnnDataType_t type) {
  const float eighth = 0.125F;
  const tensor& q = g.add({1, 12, 128, 64}, type, false, strides_of({1, 12, 128, 64}, false));
  const tensor& k = g.add({1, 12, 128, 64}, type, false, strides_of({1, 12, 128, 64}, false));
  const tensor& v = g.add({1, 12, 128, 64}, type, false, strides_of({1, 12, 128, 64}, false));
  const tensor& scale = g.add({1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, {}, &eighth);
  const tensor& o = g.add({1, 12, 128, 64}, type, false, strides_of({1, 12, 128, 64}, false));
  descriptor op(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q.made)
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k.made)
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v.made)
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale.made)
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o.made);
  g.operations.push_back(std::move(op.finalize("finalize an attention operation")));
}

inline void others(session& s) {
  const std::vector<std::pair<const char*, void (*)(operation_graph&, cudnnDataType_t)>> all{
      {"matmul_128x768x3072", matmul_alone}, {"matmul_128x768x3072+bias+gelu", matmul_gelu},
      {"maxpool_3x3s2_64@112", max_pool},    {"layernorm_128x768", layer_norm},
      {"softmax_128x1024", softmax},         {"attention_12x128x64", attention}};
  for (const auto& [name, make] : all)
    for (const auto type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}) {
      row r{"op", name, "nhwc", type_name(type), "op"};
      guarded(s, r, [&, make = make, type = type] {
        std::size_t working = 0;
        for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
          if (working > 0) continue;
          r.kind = mode == CUDNN_HEUR_MODE_A ? "op" : "fallback_op";
          operation_graph graph(true);
          make(graph, type);
          working = try_engines(s, r, graph, mode, 3);
        }
      });
    }
}

}  // namespace facts
