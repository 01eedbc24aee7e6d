// For cudnn_facts: tensors, and the graphs of operations that cuDNN gets.
#pragma once

#include "cudnn_facts_api.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace facts {

using extents = std::vector<std::int64_t>;

struct tensor {
  std::int64_t id = 0;
  extents dims;
  extents strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;
  bool by_value = false;
  float value = 0;  ///< of one by value, which the variant pack points to on the host
  descriptor made{CUDNN_BACKEND_TENSOR_DESCRIPTOR};

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * (type == CUDNN_DATA_BFLOAT16 ? 2 : 4); }
};

/// Packed strides; `nhwc` puts the channels (dimension 1) innermost.
inline extents strides_of(const extents& dims, bool nhwc) {
  extents strides(dims.size(), 1);
  std::int64_t step = nhwc ? dims[1] : 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (nhwc && i == 1) continue;
    strides[i] = step;
    step *= dims[i];
  }
  return strides;
}

/// Parameters of one pointwise operation; those a mode does not know stay unset.
struct pointwise_mode {
  cudnnPointwiseMode_t mode;
  double upper_clip = 0;  ///< of RELU_FWD, where above 0
};

/// One operation graph and its tensors, in the order of their ids.
struct operation_graph {
  bool nhwc = false;
  std::deque<tensor> tensors;
  std::vector<descriptor> operations;
  descriptor whole{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};

  explicit operation_graph(bool channels_last) : nhwc(channels_last) {}

  tensor& add(extents dims, cudnnDataType_t type, bool is_virtual = false, extents strides = {},
              const float* by_value = nullptr) {
    tensor& made = tensors.emplace_back();
    made.id = static_cast<std::int64_t>(tensors.size());
    made.strides = strides.empty() ? strides_of(dims, nhwc && dims.size() > 3) : std::move(strides);
    made.dims = std::move(dims);
    made.type = type;
    made.is_virtual = is_virtual;
    made.by_value = by_value != nullptr;
    if (made.by_value) made.value = *by_value;
    made.made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, made.id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, made.type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, made.dims)
        .set(CUDNN_ATTR_TENSOR_STRIDES, made.strides)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
    if (is_virtual) made.made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (made.by_value) made.made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    made.made.finalize("finalize a tensor");
    return made;
  }

  void pointwise(pointwise_mode how, const tensor& x, const tensor* b, const tensor& y) {
    descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, how.mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    if (how.upper_clip > 0) what.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0);
    if (how.upper_clip > 0) what.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, how.upper_clip);
    if (how.mode == CUDNN_POINTWISE_SWISH_FWD) what.set(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0);
    what.finalize("finalize a pointwise descriptor");
    descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.made);
    if (b != nullptr) op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->made);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.made).finalize("finalize a pointwise operation");
    operations.push_back(std::move(op));
  }

  void matmul(const tensor& a, const tensor& b, const tensor& c) {
    descriptor what(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    what.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize("finalize a matmul descriptor");
    descriptor op(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.made).set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.made);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.made).set(CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
    operations.push_back(std::move(op.finalize("finalize a matmul operation")));
  }

  void reduce(cudnnReduceTensorOp_t how, const tensor& x, const tensor& y) {
    descriptor what(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    what.set(CUDNN_ATTR_REDUCTION_OPERATOR, how).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    what.finalize("finalize a reduction descriptor");
    descriptor op(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, what).set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.made);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.made);
    operations.push_back(std::move(op.finalize("finalize a reduction operation")));
  }

  void finish(cudnnHandle_t handle) {
    whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
    if (handle != nullptr) whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    whole.finalize("finalize an operation graph");
  }
};

}  // namespace facts
