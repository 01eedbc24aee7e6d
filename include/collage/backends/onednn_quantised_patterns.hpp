// Convolutions of quantised files, as patterns: dequantise, convolve in floating point, perhaps quantise again.
// onednn_quantised_rules.hpp reads them by walking from the convolution to the root.
#pragma once

#include <collage/op/cast.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>

namespace collage::inline v0::onednn_patterns {

/// One scale and perhaps one zero point: of a whole tensor, or for weights also of each filter. `accepts` checks them.
inline constexpr auto dequantised = ops::dequantize_linear(any, constant, maybe(constant));
inline constexpr auto dequantised_weights = ops::dequantize_linear(constant, constant, maybe(constant));
template <class E>
constexpr auto quantised(const E& e) {
  return ops::quantize_linear(e, constant, maybe(constant));
}
inline constexpr auto bounded = either(ops::relu(previous), ops::clip(previous, constant, constant));
inline constexpr auto integer_conv = ops::conv(dequantised, dequantised_weights, maybe(constant));

/// A convolution, an activation, and a quantisation. The last two may be missing: then the result is float32.
struct quantised_conv : pattern<"quantised_conv"> {
  static constexpr bool on_integers = true, convolves_integers = true;
  static constexpr auto expr = optional(quantised(previous), optional(bounded, integer_conv));
};

/// The end of a residual block. Most files quantise the convolution's result before the sum, and the kernel does, too.
struct quantised_conv_sum : pattern<"quantised_conv_sum"> {
  static constexpr bool on_integers = true, convolves_integers = true;
  static constexpr auto whole = optional(bounded, integer_conv);
  static constexpr auto rounded = ops::dequantize_linear(quantised(whole), constant, maybe(constant));
  static constexpr auto sum = ops::add(either(rounded, whole), dequantised);
  static constexpr auto expr = optional(quantised(previous), optional(bounded, sum));
};

/// ConvInteger: exact sums of products, as int32.
struct conv_to_integers : pattern<"conv_to_integers"> {
  static constexpr bool on_integers = true, convolves_integers = true;
  static constexpr auto expr = ops::cast(optional(ops::cast(previous), integer_conv));
};

}  // namespace collage::inline v0::onednn_patterns
