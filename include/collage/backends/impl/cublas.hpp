// The definitions of collage/backends/cublas.hpp. Exactly one file of a program includes them: src/cublas.cpp, which is the
// target collage::cublas, or a file of the user. Needs the headers of CUDA, and links only the dynamic loader.
#pragma once

#include <array>
#include <collage/backends/cublas.hpp>
#include <collage/backends/impl/cublas_library.hpp>
#include <collage/backends/impl/matmul_shape.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

/// Releases an object that the library created.
template <class T, cublasStatus_t (*cublas_library::*Destroy)(T)>
struct cublas_deleter {
  using pointer = T;
  void operator()(T made) const { (void)(the_cublas().*Destroy)(made); }
};
using lt_operation = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>,
                                     cublas_deleter<cublasLtMatmulDesc_t, &cublas_library::destroy_operation>>;
using lt_matrix = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                  cublas_deleter<cublasLtMatrixLayout_t, &cublas_library::destroy_matrix>>;
using lt_preference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                      cublas_deleter<cublasLtMatmulPreference_t, &cublas_library::destroy_preference>>;

/// Describes a matrix. The library stores matrices by columns and therefore sees ours transposed: it computes c' = b' a', where
/// b' has n rows. `step` is the distance in elements from one product's operand to the next.
inline lt_matrix make_matrix(std::int64_t rows, std::int64_t columns, std::int64_t products, std::int64_t step) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(the_cublas().create_matrix(&made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows),
               "describing a matrix");
  lt_matrix matrix(made);
  const auto count = static_cast<std::int32_t>(products);
  check_cublas(the_cublas().set_matrix(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
               "describing a batch of matrices");
  check_cublas(the_cublas().set_matrix(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
               "describing a batch of matrices");
  return matrix;
}

inline std::int64_t step_of(const std::vector<std::int64_t>& offsets) { return offsets.size() > 1 ? offsets[1] : 0; }

template <class T>
void set(const lt_operation& operation, cublasLtMatmulDescAttributes_t what, const T& value) {
  check_cublas(the_cublas().set_operation(operation.get(), what, &value, sizeof value), "describing a matrix product");
}

struct lt_matmul {
  std::shared_ptr<const lt_operation> operation;
  std::shared_ptr<const std::array<lt_matrix, 3>> matrices;  // b', a', c'
  std::shared_ptr<const std::byte> bias;                     // on the device; may be null
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
  std::size_t a = 0, b = 1;  // positions among the kernel's arguments

  void operator()(const kernel_call& call) const {
    const float one = 1, nothing = 0;
    check_cublas(the_cublas().matmul(lt_handle(), operation->get(), &one, call.in[b], (*matrices)[0].get(), call.in[a],
                                     (*matrices)[1].get(), &nothing, call.out[0], (*matrices)[2].get(), call.out[0],
                                     (*matrices)[2].get(), &algorithm, call.workspace, workspace,
                                     reinterpret_cast<cudaStream_t>(stream_of_this_thread())),
                 "a matrix product");
  }
};

struct classic_matmul {
  matmul_shape s;
  std::size_t a = 0, b = 1;

  void operator()(const kernel_call& call) const {
    const float one = 1, nothing = 0;
    const auto narrow = [](std::int64_t x) { return static_cast<int>(x); };
    check_cublas(
        the_cublas().sgemm(classic_handle(), s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                           s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, narrow(s.n), narrow(s.m), narrow(s.k), &one,
                           static_cast<const float*>(call.in[b]), narrow(s.b_transposed ? s.k : s.n), step_of(s.b),
                           static_cast<const float*>(call.in[a]), narrow(s.a_transposed ? s.m : s.k), step_of(s.a),
                           &nothing, static_cast<float*>(call.out[0]), narrow(s.n), s.m * s.n, narrow(s.products())),
        "a matrix product");
  }
};

inline cublasLtEpilogue_t epilogue_of(const any_match& m, bool has_bias) {
  const std::uint32_t last = m.nodes()[m.nodes().size() - 1];
  if (m.is(last, ops::relu)) return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  if (m.is(last, ops::gelu_tanh)) return has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// The algorithms that the library's heuristics propose, best first. There may be fewer than cublas::most_algorithms.
inline std::vector<cublasLtMatmulHeuristicResult_t> algorithms_for(const lt_matmul& run) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(the_cublas().create_preference(&made), "limiting the search for a matrix product's algorithms");
  const lt_preference preference(made);
  const std::uint64_t most_workspace = std::uint64_t{32} << 20;
  check_cublas(the_cublas().set_preference(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_workspace,
                                           sizeof most_workspace),
               "limiting the search for a matrix product's algorithms");
  // In the arena values begin at multiples of 64 bytes, and views at multiples of 64 bytes within a value.
  const std::uint32_t alignment = 64;
  for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    check_cublas(the_cublas().set_preference(made, operand, &alignment, sizeof alignment),
                 "limiting the search for a matrix product's algorithms");
  std::vector<cublasLtMatmulHeuristicResult_t> found(cublas::most_algorithms);
  int count = 0;
  const auto& [b, a, c] = *run.matrices;
  const cublasStatus_t code =
      the_cublas().find_algorithms(lt_handle(), run.operation->get(), b.get(), a.get(), c.get(), c.get(), made,
                                   static_cast<int>(found.size()), found.data(), &count);
  if (code == CUBLAS_STATUS_NOT_SUPPORTED) count = 0;
  else check_cublas(code, "the search for a matrix product's algorithms");
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [](const cublasLtMatmulHeuristicResult_t& f) { return f.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

inline kernel make_lt_matmul(const any_match& m, const matmul_shape& s, lt_matmul run, const build_context& context) {
  const std::uint32_t bias = cublas::bias_of(m);
  const bool has_bias = bias != cublas::none;
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(the_cublas().create_operation(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a matrix product");
  lt_operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(m, has_bias));
  if (has_bias) {
    const std::size_t bytes = m.type_of(bias).bytes();
    const float* const from = context.constant<float>(bias);
    run.bias = context.packed(bias, "cublas bias", bytes, [&](std::byte* to) { std::memcpy(to, from, bytes); });
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(run.bias.get()));
  }
  run.operation = std::make_shared<const lt_operation>(std::move(operation));
  const std::int64_t products = s.products();
  run.matrices = std::make_shared<const std::array<lt_matrix, 3>>(std::array<lt_matrix, 3>{
      s.b_transposed ? make_matrix(s.k, s.n, products, step_of(s.b)) : make_matrix(s.n, s.k, products, step_of(s.b)),
      s.a_transposed ? make_matrix(s.m, s.k, products, step_of(s.a)) : make_matrix(s.k, s.m, products, step_of(s.a)),
      make_matrix(s.n, s.m, products, s.m * s.n)});
  const auto found = algorithms_for(run);
  if (context.choice() >= found.size())
    throw error(error_kind::unsupported,
                "cuBLASLt has only " + std::to_string(found.size()) + " algorithms for this product", cublas::name);
  run.algorithm = found[context.choice()].algo;
  run.workspace = found[context.choice()].workspaceSize;
  const std::size_t workspace = run.workspace, a = run.a, b = run.b;
  kernel built("cublasLt algorithm " + std::to_string(context.choice()), std::move(run), workspace);
  // A value has one position among the arguments, even where it is both the bias and an operand.
  const bool is_operand = has_bias && (m.index_of(bias) == a || m.index_of(bias) == b);
  if (has_bias && !is_operand) built.does_not_read(m.index_of(bias));
  return built;
}

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0 {

kernel cublas::build(const any_match& m, build_context& context) {
  using namespace detail::host;
  if (const probe_result here = probe(); !here.available) throw error(error_kind::unsupported, here.reason, name);
  const cuda_scope scope(use_cuda());
  const std::uint32_t product = m.nodes()[0];
  const matmul_shape s = matmul_shape_of(m, product);
  const std::size_t a = m.index_of(m.inputs_of(product)[0]), b = m.index_of(m.inputs_of(product)[1]);
  if (context.choice() == most_algorithms) return {"cublasSgemm", classic_matmul{s, a, b}};
  lt_matmul run;
  run.a = a;
  run.b = b;
  return make_lt_matmul(m, s, std::move(run), context);
}

probe_result cublas::probe() {
  const detail::host::cublas_library& library = detail::host::the_cublas();
  return {.available = library.reason.empty(),
          .version = library.version.c_str(),
          .details = library.details.c_str(),
          .reason = library.reason.c_str()};
}

int cublas::enter(int) {
  const detail::host::cuda_driver& driver = detail::host::use_cuda();
  detail::host::check_cuda(driver, driver.push_context(driver.context), "using the device");
  return 0;
}
void cublas::leave(int) {
  CUcontext old = nullptr;
  (void)detail::host::the_cuda_driver().pop_context(&old);
}

}  // namespace collage::inline v0
