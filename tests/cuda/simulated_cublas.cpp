// cuBLASLt and cuBLAS for machines without a device: as much as collage::cublas calls, over the memory and the streams of the
// simulated driver. It knows three algorithms for each product, of which the later want a workspace.
#include "simulated_memory.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define COLLAGE_SIMULATED extern "C" __attribute__((visibility("default"))) cublasStatus_t

namespace {

template <class F>
F of_driver(const char* name) {
  void* const driver = dlopen(std::getenv("COLLAGE_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F>(dlsym(driver, name));
}
void ask(cudaStream_t stream, const std::function<void()>& work) {
  static const auto function = of_driver<simulated_ask>("collage_simulated_ask");
  function(reinterpret_cast<CUstream>(stream), work);
}
bool is_given(const void* memory, std::size_t bytes) {
  static const auto function = of_driver<simulated_is_given>("collage_simulated_is_given");
  return function(memory, bytes);
}

struct operation {
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct matrix {
  std::int64_t rows = 0, columns = 0, step = 0, products_step = 0;
  std::int32_t products = 1;

  std::size_t bytes() const {
    return static_cast<std::size_t>((products - 1) * products_step + (columns - 1) * step + rows) * sizeof(float);
  }
};
struct preference {
  std::uint64_t workspace = 0;
  std::uint32_t alignments = 0;
};

template <class T>
T get(const void* from, std::size_t bytes) {
  T value{};
  if (bytes == sizeof value) std::memcpy(&value, from, bytes);
  return value;
}

/// d = epilogue(op(a) op(b) + bias), all by columns.
void multiply(const operation& o, const matrix& a, const float* at_a, const matrix& b, const float* at_b,
              const matrix& d, float* at_d) {
  const std::int64_t depth = o.transpose_a == CUBLAS_OP_N ? a.columns : a.rows;
  const auto* const bias = o.bias != nullptr ? simulated::real<const float>(o.bias) : nullptr;
  for (std::int32_t p = 0; p < d.products; ++p)
    for (std::int64_t column = 0; column < d.columns; ++column)
      for (std::int64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const float x =
              at_a[p * a.products_step + (o.transpose_a == CUBLAS_OP_N ? row + k * a.step : k + row * a.step)];
          const float y =
              at_b[p * b.products_step + (o.transpose_b == CUBLAS_OP_N ? k + column * b.step : column + k * b.step)];
          sum += static_cast<double>(x) * static_cast<double>(y);
        }
        if ((o.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) sum += static_cast<double>(bias[row]);
        if ((o.epilogue & CUBLASLT_EPILOGUE_RELU) != 0) sum = std::max(sum, 0.0);
        if ((o.epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
          sum *= 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (sum + 0.044715 * sum * sum * sum)));
        at_d[p * d.products_step + column * d.step + row] = static_cast<float>(sum);
      }
}

cudaStream_t& stream_of(cublasHandle_t handle) { return *reinterpret_cast<cudaStream_t*>(handle); }

}  // namespace

COLLAGE_SIMULATED cublasLtCreate(cublasLtHandle_t* handle) {
  static int one = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" __attribute__((visibility("default"))) std::size_t cublasLtGetVersion() { return 130002; }
extern "C" __attribute__((visibility("default"))) const char* cublasLtGetStatusName(cublasStatus_t code) {
  return code == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS";
}

COLLAGE_SIMULATED cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                           cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new operation);
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  delete reinterpret_cast<operation*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t what,
                                                 const void* from, std::size_t bytes) {
  auto& o = *reinterpret_cast<operation*>(to);
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: o.transpose_a = get<std::int32_t>(from, bytes); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: o.transpose_b = get<std::int32_t>(from, bytes); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: o.epilogue = get<std::uint32_t>(from, bytes); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: o.bias = get<const void*>(from, bytes); break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

COLLAGE_SIMULATED cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                             std::uint64_t columns, std::int64_t step) {
  if (type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(
      new matrix{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), step});
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  delete reinterpret_cast<matrix*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t what,
                                                   const void* from, std::size_t bytes) {
  auto& m = *reinterpret_cast<matrix*>(to);
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) m.products = get<std::int32_t>(from, bytes);
  else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) m.products_step = get<std::int64_t>(from, bytes);
  else return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

COLLAGE_SIMULATED cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new preference);
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  delete reinterpret_cast<preference*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                       cublasLtMatmulPreferenceAttributes_t what, const void* from,
                                                       std::size_t bytes) {
  auto& p = *reinterpret_cast<preference*>(to);
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) p.workspace = get<std::uint64_t>(from, bytes);
  else if (get<std::uint32_t>(from, bytes) != 0) ++p.alignments;
  else return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                 cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                 cublasLtMatmulPreference_t preferred, int most,
                                                 cublasLtMatmulHeuristicResult_t* results, int* count) {
  const auto& p = *reinterpret_cast<preference*>(preferred);
  if (p.alignments != 4) return CUBLAS_STATUS_INVALID_VALUE;  // pointers are not aligned to 256 bytes
  *count = std::min(most, 3);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
    results[i].workspaceSize = std::min<std::size_t>(1024 * static_cast<std::size_t>(i), p.workspace);
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

COLLAGE_SIMULATED cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void*, const void* a,
                                 cublasLtMatrixLayout_t a_matrix, const void* b, cublasLtMatrixLayout_t b_matrix,
                                 const void*, const void*, cublasLtMatrixLayout_t, void* d,
                                 cublasLtMatrixLayout_t d_matrix, const cublasLtMatmulAlgo_t* algorithm,
                                 void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const operation o = *reinterpret_cast<const operation*>(how);
  const matrix ma = *reinterpret_cast<const matrix*>(a_matrix), mb = *reinterpret_cast<const matrix*>(b_matrix),
               md = *reinterpret_cast<const matrix*>(d_matrix);
  if (algorithm == nullptr || workspace_bytes < 1024 * algorithm->data[0]) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_given(a, ma.bytes()) || !is_given(b, mb.bytes()) || !is_given(d, md.bytes()))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes != 0 && !is_given(workspace, workspace_bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  if (o.bias != nullptr && !is_given(o.bias, static_cast<std::size_t>(md.rows) * sizeof(float)))
    return CUBLAS_STATUS_INVALID_VALUE;
  ask(stream, [=] {
    if (workspace_bytes != 0) std::memset(simulated::real<void>(workspace), 0xAB, workspace_bytes);
    multiply(o, ma, simulated::real<const float>(a), mb, simulated::real<const float>(b), md,
             simulated::real<float>(d));
  });
  return CUBLAS_STATUS_SUCCESS;
}

COLLAGE_SIMULATED cublasCreate(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new cudaStream_t(nullptr));
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasDestroy(cublasHandle_t handle) {
  delete &stream_of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  stream_of(handle) = stream;
  return CUBLAS_STATUS_SUCCESS;
}
COLLAGE_SIMULATED cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form,
                                            int m, int n, int k, const float*, const float* a, int a_step,
                                            long long a_products, const float* b, int b_step, long long b_products,
                                            const float*, float* c, int c_step, long long c_products, int products) {
  const operation o{a_form, b_form, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  const matrix ma{a_form == CUBLAS_OP_N ? m : k, a_form == CUBLAS_OP_N ? k : m, a_step, a_products, products};
  const matrix mb{b_form == CUBLAS_OP_N ? k : n, b_form == CUBLAS_OP_N ? n : k, b_step, b_products, products};
  const matrix mc{m, n, c_step, c_products, products};
  if (!is_given(a, ma.bytes()) || !is_given(b, mb.bytes()) || !is_given(c, mc.bytes()))
    return CUBLAS_STATUS_INVALID_VALUE;
  ask(stream_of(handle), [=] {
    multiply(o, ma, simulated::real<const float>(a), mb, simulated::real<const float>(b), mc,
             simulated::real<float>(c));
  });
  return CUBLAS_STATUS_SUCCESS;
}
