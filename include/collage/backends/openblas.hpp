// OpenBLAS: matrix products, and convolutions as matrix products, with bias, sum and relu applied while the result is
// in the cache.
//
// Declarations. The definitions are in collage/backends/impl/openblas.hpp, compiled in exactly one file (by default the
// target collage::openblas), which opens the library while the program runs.
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>

namespace collage::inline v0 {

namespace openblas_patterns {

struct conv_relu : pattern<"conv_relu"> {
  static constexpr auto expr = ops::relu(ops::conv(any, any, maybe(any)));
};
struct conv_clip : pattern<"conv_clip"> {
  static constexpr auto expr = ops::clip(ops::conv(any, any, maybe(any)), any, any);
};
struct conv_add : pattern<"conv_add"> {
  static constexpr auto expr = ops::add(ops::conv(any, any, maybe(any)), any);
};
struct conv_add_relu : pattern<"conv_add_relu"> {
  static constexpr auto expr = ops::relu(ops::add(ops::conv(any, any, maybe(any)), any));
};
struct matmul_add : pattern<"matmul_add"> {
  static constexpr auto expr = ops::add(ops::matmul(any, any), any);
};
struct matmul_add_relu : pattern<"matmul_add_relu"> {
  static constexpr auto expr = ops::relu(ops::add(ops::matmul(any, any), any));
};
struct matmul_add_add : pattern<"matmul_add_add"> {
  static constexpr auto expr = ops::add(ops::add(ops::matmul(any, any), any), any);
};

}  // namespace openblas_patterns

/// Opens the file that the environment variable COLLAGE_OPENBLAS names, else the one found when this was built. Threads
/// are ours; each calls the library for its part of the product.
struct openblas : backend<"openblas"> {
  using patterns = collage::patterns<single<ops::conv>, openblas_patterns::conv_relu, openblas_patterns::conv_clip,
                                     openblas_patterns::conv_add, openblas_patterns::conv_add_relu, single<ops::matmul>,
                                     openblas_patterns::matmul_add, openblas_patterns::matmul_add_relu,
                                     openblas_patterns::matmul_add_add>;

  static constexpr verdict accepts(const any_match& m) {
    const std::uint32_t product = m.nodes()[0];  // the innermost operator comes first
    for (const std::uint32_t v : m.arguments()) {
      if (m.type_of(v).type != dtype::f32) return {false, "openblas computes only in float32"};
      if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
    }
    const shape& result = m.type_of(m.output_of(product)).dims;
    for (const std::uint32_t node : m.nodes())
      if (m.type_of(m.output_of(node)).dims != result)
        return {false, "an operand that broadcasts the product to a larger shape cannot be fused"};
    constexpr std::int64_t limit = 0x7FFFFFFF;
    for (const std::uint32_t v : m.inputs_of(product))
      if (m.type_of(v).dims.elements() > limit)
        return {false, "it computes tensors of at most 2^31 - 1 elements, and this one is larger"};
    return {result.elements() <= limit, "it computes tensors of at most 2^31 - 1 elements, and this one is larger"};
  }
  static kernel build(const any_match& m, build_context& context);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);
};

}  // namespace collage::inline v0
