// What cuBLASLt takes for the products of known networks, in three precisions, by each algorithm that its heuristics name.
#pragma once

#include "device.hpp"

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

namespace gpu {

struct product {
  const char* where;
  std::int64_t m, n, k, batch;
};

/// Of BERT (the paper's and the base model, 128 tokens), of ResNet-50's 1x1 convolutions, of MobileNet-V2's and of VGG's end.
constexpr std::array<product, 17> products{{
    {"bert projection", 128, 768, 768, 1},
    {"bert up", 128, 3072, 768, 1},
    {"bert down", 128, 768, 3072, 1},
    {"bert scores", 128, 128, 64, 12},
    {"bert values", 128, 64, 128, 12},
    {"bert paper scores", 64, 64, 64, 8},
    {"bert paper projection", 64, 512, 512, 1},
    {"bert large up", 128, 4096, 1024, 1},
    {"resnet 56", 3136, 256, 64, 1},
    {"resnet 28", 784, 512, 128, 1},
    {"resnet 14", 196, 1024, 256, 1},
    {"resnet 7", 49, 512, 2048, 1},
    {"resnet end", 1, 1000, 2048, 1},
    {"mobilenet 56", 3136, 144, 24, 1},
    {"mobilenet 14", 196, 96, 576, 1},
    {"vgg end", 1, 4096, 25088, 1},
    {"square", 4096, 4096, 4096, 1},
}};

struct precision {
  const char* name;
  cublasComputeType_t compute;
  cudaDataType_t type;
};
constexpr std::array<precision, 3> precisions{{{"fp32", CUBLAS_COMPUTE_32F, CUDA_R_32F},
                                               {"tf32", CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F},
                                               {"bf16", CUBLAS_COMPUTE_32F, CUDA_R_16BF}}};

struct blas {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_matrix = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_matrix = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) config = nullptr;
  cublasLtHandle_t handle = nullptr;

  explicit blas(const std::string& folder)
      : file_({folder + "libcublasLt.so.13", folder + "libcublasLt.so.12", "libcublasLt.so.13", "libcublasLt.so.12"}) {
    file_.find("cublasLtCreate", create);
    file_.find("cublasLtGetVersion", version);
    file_.find("cublasLtMatmul", matmul);
    file_.find("cublasLtMatmulAlgoGetHeuristic", heuristic);
    file_.find("cublasLtMatmulDescCreate", create_operation);
    file_.find("cublasLtMatmulDescSetAttribute", set_operation);
    file_.find("cublasLtMatrixLayoutCreate", create_matrix);
    file_.find("cublasLtMatrixLayoutSetAttribute", set_matrix);
    file_.find("cublasLtMatmulPreferenceCreate", create_preference);
    file_.find("cublasLtMatmulPreferenceSetAttribute", set_preference);
    file_.find("cublasLtMatmulAlgoConfigGetAttribute", config);
    check(create(&handle), "starting cuBLASLt");
  }
  static void check(cublasStatus_t code, const char* what) {
    if (code != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error(std::string(what) + " failed (status " + std::to_string(static_cast<int>(code)) + ")");
  }
  /// A matrix in rows is the library's in columns, turned: `rows` is what is contiguous.
  cublasLtMatrixLayout_t matrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                std::int64_t batch) const {
    cublasLtMatrixLayout_t made = nullptr;
    check(create_matrix(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
          "describing a matrix");
    const std::int32_t count = static_cast<std::int32_t>(batch);
    const std::int64_t step = rows * columns;
    check(set_matrix(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "describing a matrix");
    check(set_matrix(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step), "describing a matrix");
    return made;
  }
  template <class T>
  T value_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) const {
    T value{};
    std::size_t written = 0;
    (void)config(&algorithm, which, &value, sizeof value, &written);
    return value;
  }

 private:
  library file_;
};

/// One product with one epilogue in one precision: each algorithm that the heuristics name.
inline void measure_product(const session& s, const blas& library, const product& p, const precision& how,
                            cublasLtEpilogue_t epilogue, const char* epilogue_name) {
  const std::size_t size = how.type == CUDA_R_32F ? 4 : 2;
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements * p.batch) * size; };
  const memory a(s, bytes(p.m * p.k)), b(s, bytes(p.k * p.n)), c(s, bytes(p.m * p.n)), bias(s, bytes(p.n));
  const std::uint64_t most_workspace = 32U << 20;
  const memory workspace(s, most_workspace);
  cublasLtMatmulDesc_t operation = nullptr;
  blas::check(library.create_operation(&operation, how.compute, CUDA_R_32F), "describing a product");
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    blas::check(library.set_operation(operation, which, &value, sizeof value), "describing a product");
  };
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  const void* const bias_at = bias.pointer();
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_at);
  // Row-major c = a b is the library's column-major c' = b' a'.
  const auto left = library.matrix(how.type, p.n, p.k, p.batch), right = library.matrix(how.type, p.k, p.m, p.batch),
             result = library.matrix(how.type, p.n, p.m, p.batch);
  cublasLtMatmulPreference_t preference = nullptr;
  blas::check(library.create_preference(&preference), "setting the search's preferences");
  blas::check(library.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_workspace,
                                     sizeof most_workspace),
              "setting the search's preferences");
  std::array<cublasLtMatmulHeuristicResult_t, 8> found{};
  int count = 0;
  const double from = now_us();
  blas::check(library.heuristic(library.handle, operation, left, right, result, result, preference,
                                static_cast<int>(found.size()), found.data(), &count),
              "querying algorithms");
  const double asked = now_us() - from;
  const float one = 1, nothing = 0;
  for (int i = 0; i < count; ++i) {
    const auto& algorithm = found[static_cast<std::size_t>(i)];
    std::string line = std::string("products\t") + p.where + "\t" + how.name + "\t" + epilogue_name + "\t" +
                       std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + "x" +
                       std::to_string(p.batch) + "\talgorithm " + std::to_string(i) + " of " + std::to_string(count);
    try {
      const auto t = s.time_in_graph([&] {
        blas::check(library.matmul(library.handle, operation, &one, b.pointer(), left, a.pointer(), right, &nothing,
                                   c.pointer(), result, c.pointer(), result, &algorithm.algo, workspace.pointer(),
                                   algorithm.workspaceSize, reinterpret_cast<cudaStream_t>(s.stream)),
                    "a product");
      });
      const double flops = 2.0 * static_cast<double>(p.m * p.n * p.k * p.batch);
      std::array<char, 160> text{};
      std::snprintf(text.data(), text.size(), "\t%.3f us\t%.3f least\t%.2f TFLOP/s\tid %d tile %u stages %u split %d\t",
                    t.median_us, t.least_us, flops / t.median_us / 1e6,
                    library.value_of<int>(algorithm.algo, CUBLASLT_ALGO_CONFIG_ID),
                    library.value_of<std::uint32_t>(algorithm.algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
                    library.value_of<std::uint32_t>(algorithm.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                    library.value_of<std::int32_t>(algorithm.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
      line += text.data();
      line +=
          "workspace " + std::to_string(algorithm.workspaceSize) + "\twaves " + std::to_string(algorithm.wavesCount);
    } catch (const std::exception& e) { line += std::string("\tfailed: ") + e.what(); }
    std::cout << line << std::endl;
  }
  std::cout << "products\theuristics took\t" << asked << std::endl;
}

inline void measure_products(const session& s, const std::string& folder) {
  const blas library(folder);
  std::cout << "products\tcublasLt\t" << library.version() << std::endl;
  for (const precision& how : precisions)
    for (const product& p : products) {
      measure_product(s, library, p, how, CUBLASLT_EPILOGUE_DEFAULT, "alone");
      const std::string where = p.where;
      if (where != "bert up" && where != "bert down" && where != "resnet 14" && where != "resnet end") continue;
      measure_product(s, library, p, how, CUBLASLT_EPILOGUE_BIAS, "bias");
      measure_product(s, library, p, how, CUBLASLT_EPILOGUE_RELU_BIAS, "bias, relu");
      measure_product(s, library, p, how, CUBLASLT_EPILOGUE_GELU_BIAS, "bias, gelu_tanh");
    }
}

}  // namespace gpu
