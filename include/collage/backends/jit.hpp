// Kernels that are generated while the program runs: products with constant weights, and convolutions. Those of 1x1 are
// products, and those of 3x3 and 5x5 have algorithms with fewer multiplications, in two and three dimensions. Others with one group are
// computed directly. Depthwise convolutions are computed together with the one of 1x1 after them, or on the 8-bit values of quantised files. The operators that follow are part of a kernel. Two or three products of one
// left operand are one kernel, too.
//
// Declarations. The definitions are in src/jit.cpp and src/jit/ (the target collage::jit), which alone know the generator.
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_patterns.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/backends/onednn_patterns.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/weights.hpp>
#include <memory>

namespace collage::inline v0 {

/// Generated code for AVX-512 and AVX2. Where the processor or the system does not allow it, a portable replica runs. So the
/// backend is always available, and `probe` says which of both runs.
///
/// A configuration is an algorithm and how its kernels are generated, such as "product1 classical avx512 tile 14x2 unroll 4
/// prefetch 0". The classical algorithm, which is the operator's definition, is proposed with several tiles. Up to three others, such
/// as "strassen", are proposed where they should save time. These spread NaN and infinity over whole blocks of the result.
/// `jit_with` adds a program's own.
///
/// Convolutions of 3x3 and 5x5 are computed by tiles of outputs, over which NaN and infinity spread. Their configurations end
/// with the layouts of input and result, as in "from blocked-16 to plain" (docs/cpu-backends.md). A resize before them that repeats
/// each element once in both dimensions is part of the kernel, by an algorithm whose name begins with "up2".
///
/// Other convolutions of one group are computed as they are defined. Their configurations are as "direct1 avx512 tile 14x2 unroll 4
/// prefetch 0 broadcast memory rows 4". Such a configuration also holds for windows of 3x3 and 5x5, where it is not proposed.
///
/// A depthwise convolution before one of 1x1 is part of its kernel. These configurations are as "depthwise1 avx512 tile 14x2 unroll 4
/// prefetch 0 broadcast memory rows 4 threads blocks".
///
/// A depthwise convolution of a quantised file is one kernel on bytes, from dequantize_linear to quantize_linear. One of a network in
/// float32 is, too, where a plan stores its image and its result as uint8. Configurations are as "bytes1 avx512-vnni tile 3x4 order
/// channels".
///
/// Attention is one kernel, from the product of queries and keys to the product with the values. Its configurations are as
/// "attention1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 28".
///
/// Products that share their left operand have the configurations of single products, and keep the same packed weights.
struct jit : backend<"jit"> {
  using patterns =
      collage::patterns<single<ops::matmul>, onednn_patterns::matmul_chain, onednn_patterns::matmul_add_gelu,
                        single<ops::conv>, onednn_patterns::conv_chain, onednn_patterns::upsampled_conv,
                        jit_patterns::two_products, jit_patterns::three_products, jit_patterns::two_output_chain,
                        jit_patterns::attention, jit_patterns::depthwise_pointwise, jit_patterns::quantised_depthwise,
                        jit_patterns::byte_depthwise>;

  static constexpr verdict accepts(const any_match& m) { return detail::jit::accepts(m); }
  static kernel build(const any_match& m, build_context& context);

  /// At most 12 for each shape.
  static void configurations(const any_match& m, configuration_list& to);
  /// Null for bilinear convolutions in three dimensions, and where the replica of kernels on bytes runs. The spaces of other windowed
  /// convolutions hold all algorithms for the window, whose rounding differs: `algorithm` says how much.
  static std::shared_ptr<const tune::any_space> search_space(const any_match& m, const configuration& like,
                                                             int threads);
  static kernel_algorithm algorithm(const any_match& m, const configuration& how);
  static kept_constants weights(const any_match& m, const configuration& how);
  static verdict knows(const any_match& m, const configuration& how);
  /// Convolutions of 1x1 and direct ones read and write with channels last. Others do as their configuration says.
  static void layouts(const any_match& m, const configuration& how, value_forms& to);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);
};

}  // namespace collage::inline v0
