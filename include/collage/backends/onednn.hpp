// oneDNN: convolutions, transposed convolutions and products with fused post-ops, pooling, softmax, norms, LSTM and
// GRU. Between kernels, channels lie in blocks or last; inside a kernel, the library uses layouts of its own.
//
// Declarations. The definitions are in collage/backends/impl/onednn.hpp, compiled in exactly one file (by default the
// target collage::onednn). No other file sees the library's headers.
//
// For finite values, every accepted match agrees with the reference. NaN and infinity may differ:
// - relu and clip fused after a convolution or product turn NaN into 0 and into the lower bound, and fused GELU turns
//   infinity into NaN. The library computes them like this, and no cheap post-op avoids it. A relu by itself, max_pool
//   and softmax pass NaN on, which takes an extra look at the data.
// - A convolution with channels in blocks multiplies the padding of a last block by zero. After an infinity the padding
//   is NaN. The next convolution then computes NaN there, where the reference may have an infinity.
// - After a resize that repeats elements, a convolution adds weights before it multiplies. If an infinity meets weights
//   of both signs, the reference has NaN, but the result may be an infinity.
// - exp, log, hard_sigmoid, softplus, max, min, reduce_max and reduce_min lose NaN or digits and are not accepted.
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_patterns.hpp>
#include <collage/backends/onednn_quantised_patterns.hpp>
#include <collage/backends/onednn_quantised_products.hpp>
#include <collage/backends/onednn_quantised_rules.hpp>
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
      onednn_patterns::matmul_chain, onednn_patterns::matmul_add_gelu, onednn_patterns::quantised_product,
      onednn_patterns::quantised_product_gelu, onednn_patterns::rounded_product, onednn_patterns::rounded_product_gelu,
      onednn_patterns::matmul_of_transposed, onednn_patterns::matmul_by_transposed,
      onednn_patterns::matmul_both_transposed, onednn_patterns::matmul_both_transposed_scale,
      onednn_patterns::matmul_transpose, onednn_patterns::matmul_by_transposed_transpose, single<ops::average_pool>,
      single<ops::max_pool>, single<ops::softmax>, single<ops::layer_norm>, single<ops::reduce_mean>,
      single<ops::reduce_sum>, single<ops::resize>, single<ops::concat>, single<ops::transpose>, single<ops::add>,
      single<ops::sub>, single<ops::mul>, single<ops::div>, single<ops::relu>, single<ops::leaky_relu>,
      single<ops::elu>, single<ops::sigmoid>, single<ops::tanh>, single<ops::sqrt>, single<ops::reciprocal>,
      single<ops::neg>, single<ops::abs>, onednn_patterns::lstm, single<ops::gru>, single<ops::convert_layout>,
      onednn_patterns::quantised_conv, onednn_patterns::quantised_conv_sum, onednn_patterns::conv_to_integers>;

  static constexpr verdict accepts(const detail::onednn::chain& m) { return detail::onednn::accepts(m); }
  static kernel build(const detail::onednn::chain& m, build_context& context);
  static constexpr verdict accepts(const detail::onednn::quantised_conv_match& m) { return detail::onednn::accepts(m); }
  static kernel build(const detail::onednn::quantised_conv_match& m, build_context& context);

  /// The number of variants. Convolutions have up to three, which compute in different layouts or as a product. The
  /// first is the best guess. Elementwise operators on images, pooling and concatenation also have variants in blocks
  /// of channels and with channels last. A convolution with a depthwise one after it has two: in blocks, and with
  /// channels last. Transposed convolutions, and convolutions after a resize, have two: with channels last, and plain.
  /// Products have two: the library's first implementation, and its second, which `build` refuses if there is none.
  /// Products of integers have two: by integers, and in float32 where the processor or zero points do not allow that.
  static std::size_t choices(const detail::onednn::chain& m);
  static void layouts(const detail::onednn::chain& m, std::size_t choice, value_forms& to);
  /// Convolutions of integers have three variants: with channels last, plain, and in float32 within the kernel.
  static std::size_t choices(const detail::onednn::quantised_conv_match& m);
  static void layouts(const detail::onednn::quantised_conv_match& m, std::size_t choice, value_forms& to);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);
};

}  // namespace collage::inline v0
