// cuBLAS: matrix products on a CUDA device, with bias, relu and GELU fused into the product.
//
// Declarations. The definitions are in collage/backends/impl/cublas.hpp, compiled in exactly one file (by default the target
// collage::cublas), which opens the library at run time. Values lie in cuda_space: a backend set with `cublas` needs `cuda` as
// well, which copies values to the device and back.
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/backends/cuda.hpp>
#include <collage/op/matmul.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

namespace cublas_patterns {

struct matmul_add : pattern<"matmul_add"> {
  static constexpr auto expr = ops::add(ops::matmul(any, any), any);
};
struct matmul_relu : pattern<"matmul_relu"> {
  static constexpr auto expr = ops::relu(ops::matmul(any, any));
};
struct matmul_add_relu : pattern<"matmul_add_relu"> {
  static constexpr auto expr = ops::relu(ops::add(ops::matmul(any, any), any));
};
/// The library's GELU is the approximation by tanh. It differs from the exact GELU, by erf, by more than tests allow.
struct matmul_gelu_tanh : pattern<"matmul_gelu_tanh"> {
  static constexpr auto expr = ops::gelu_tanh(ops::matmul(any, any));
};
struct matmul_add_gelu_tanh : pattern<"matmul_add_gelu_tanh"> {
  static constexpr auto expr = ops::gelu_tanh(ops::add(ops::matmul(any, any), any));
};

}  // namespace cublas_patterns

/// Opens libcublasLt and libcublas of CUDA 12 or 13, in a version that is not newer than the driver's. If the environment
/// variable COLLAGE_CUDA_LIBRARIES names a folder, only that folder is searched. Otherwise the folder of the toolkit that the
/// build found is searched first, then the loader's folders. Computes in float32 throughout, not in TF32.
struct cublas : backend<"cublas"> {
  using patterns = collage::patterns<single<ops::matmul>, cublas_patterns::matmul_add, cublas_patterns::matmul_relu,
                                     cublas_patterns::matmul_add_relu, cublas_patterns::matmul_gelu_tanh,
                                     cublas_patterns::matmul_add_gelu_tanh>;
  static constexpr const memory_space* space = &cuda_space;

  /// The most algorithms of cuBLASLt that are offered, in the order in which its heuristics rank them.
  static constexpr std::size_t most_algorithms = 4;

  static constexpr verdict accepts(const any_match& m) {
    const std::uint32_t product = m.nodes()[0];  // the innermost operator comes first
    for (const std::uint32_t v : m.arguments()) {
      if (m.type_of(v).type != dtype::f32) return {false, "cublas computes only in float32"};
      if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
      if (m.type_of(v).dims.elements() > limit)
        return {false, "it computes tensors of at most 2^31 - 1 elements, and this one is larger"};
    }
    const shape& a = m.type_of(m.inputs_of(product)[0]).dims;
    const shape& b = m.type_of(m.inputs_of(product)[1]).dims;
    const shape& result = m.type_of(m.output_of(product)).dims;
    if (a.elements() == 0 || b.elements() == 0) return {false, "one of its operands has no elements"};
    if (result.elements() > limit)
      return {false, "it computes tensors of at most 2^31 - 1 elements, and this one is larger"};
    const auto e = decltype(ops::matmul)::extents_of(m.attributes(product, ops::matmul), a, b);
    const std::int64_t products = result.elements() / (e.m * e.n);
    if (!is_strided(e.batch_a.elements(), products) || !is_strided(e.batch_b.elements(), products))
      return {false, "its matrices must be at equal distances in memory (one stride per batch)"};
    if (const std::uint32_t bias = bias_of(m); bias != none) {
      if (m.at(bias).role != value_role::constant) return {false, "the bias must be a constant"};
      const shape& added = m.type_of(bias).dims;
      if (b.rank < 2 || added.rank == 0 || added[added.rank - 1] != e.n || added.elements() != e.n ||
          m.type_of(m.output()).dims != result)
        return {false, "the added operand must have one number per column"};
    }
    return {};
  }
  /// The algorithms of cuBLASLt. A product without fused operators has one more choice, the classic cuBLAS.
  static constexpr std::size_t choices(const any_match& m) { return most_algorithms + (m.nodes().size() == 1 ? 1 : 0); }
  static kernel build(const any_match& m, build_context& context);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);

  static constexpr std::uint32_t none = match_record::nothing;
  /// The value that is added to the product, or `none`.
  static constexpr std::uint32_t bias_of(const any_match& m) {
    const std::uint32_t product = m.output_of(m.nodes()[0]);
    for (const std::uint32_t node : m.nodes())
      if (m.is(node, ops::add)) return m.inputs_of(node)[m.inputs_of(node)[0] == product ? 1 : 0];
    return none;
  }

 private:
  static constexpr std::int64_t limit = 0x7FFFFFFF;
  /// Whether the operands of a batch have a constant stride: each product has its own operand, or all share one.
  static constexpr bool is_strided(std::int64_t operands, std::int64_t products) {
    return operands == 1 || operands == products;
  }
};

}  // namespace collage::inline v0
