// oneDNN: convolutions, transposed ones and products with what follows them fused as post-ops, pooling, softmax, norms, LSTM and
// GRU; with channels in blocks between kernels or channels last, and in layouts of its own inside a kernel.
//
// Declarations. The definitions are in collage/backends/impl/onednn.hpp, compiled in exactly one file (by default the
// target collage::onednn), which is the only one that sees the library's headers.
//
// Where values are finite, all that is accepted here agrees with the reference. NaN and infinity:
//  - relu and clip fused behind a convolution or product turn NaN into 0 and into the lower bound, and fused GELU turns
//    infinity into NaN: so the library computes them, and no cheap post-op computes anything else. A relu by itself,
//    max_pool and softmax pass NaN on, which costs a look at the data.
//  - convolutions of channels in blocks multiply what fills up a last block by zero: behind an infinity it is NaN, and so is
//    what the next one computes there, where the reference may have an infinity.
//  - behind a resize that repeats elements a convolution adds weights before it multiplies: behind an infinity that meets
//    weights of both signs the reference has NaN, and it may be an infinity.
//  - exp, log, hard_sigmoid, softplus, max, min, reduce_max and reduce_min lose NaN or digits and are not taken.
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_patterns.hpp>
#include <collage/backends/onednn_rules.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <cstddef>

namespace collage::inline v0 {

struct onednn : backend<"onednn"> {
  using patterns = collage::patterns<
      single<ops::conv>, onednn_patterns::conv_chain, onednn_patterns::conv_depthwise, onednn_patterns::upsampled_conv,
      single<ops::conv_transpose>, onednn_patterns::conv_transpose_chain, single<ops::matmul>,
      onednn_patterns::matmul_chain, onednn_patterns::matmul_add_gelu, onednn_patterns::matmul_of_transposed,
      onednn_patterns::matmul_by_transposed, onednn_patterns::matmul_both_transposed,
      onednn_patterns::matmul_both_transposed_scale, onednn_patterns::matmul_transpose,
      onednn_patterns::matmul_by_transposed_transpose, single<ops::average_pool>, single<ops::max_pool>,
      single<ops::softmax>, single<ops::layer_norm>, single<ops::reduce_mean>, single<ops::reduce_sum>,
      single<ops::resize>, single<ops::concat>, single<ops::transpose>, single<ops::add>, single<ops::sub>,
      single<ops::mul>, single<ops::div>, single<ops::relu>, single<ops::leaky_relu>, single<ops::elu>,
      single<ops::sigmoid>, single<ops::tanh>, single<ops::sqrt>, single<ops::reciprocal>, single<ops::neg>,
      single<ops::abs>, onednn_patterns::lstm, single<ops::gru>, single<ops::convert_layout>>;

  static constexpr verdict accepts(const detail::onednn::chain& m) { return detail::onednn::accepts(m); }
  static kernel build(const detail::onednn::chain& m, build_context& context);

  /// Convolutions have up to three: in which layout they compute, or whether as a product. The first is the better guess.
  /// What works on images element by element, pools or concatenates has others in blocks of channels and with channels last.
  /// With a depthwise one behind they have two: in blocks and with channels last. Transposed ones, and those behind a resize,
  /// have two: with channels last, and plain.
  /// Products have the library's first implementation and its second one, which `build` refuses where there is none.
  static std::size_t choices(const detail::onednn::chain& m);
  static void layouts(const detail::onednn::chain& m, std::size_t choice, value_forms& to);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);
};

}  // namespace collage::inline v0
