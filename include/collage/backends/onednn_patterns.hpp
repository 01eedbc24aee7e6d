// The fusions of oneDNN, as patterns. A convolution or product can have any chain of post-ops after it, and a
// convolution an operator before it that repeats elements. Transposed operands of products are read in place.
//
// onednn_chain.hpp reads all patterns by the names that they share: the "anchor", each "post_op" after it, and the
// single step "behind" it. Some patterns have further names.
#pragma once

#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>

namespace collage::inline v0::onednn_patterns {

inline constexpr auto any_conv = ops::conv(any, any, maybe(any)).as<"anchor">();
inline constexpr auto any_transposed_conv = ops::conv_transpose(any, any, maybe(any)).as<"anchor">();
inline constexpr auto activation = one_of(ops::relu, ops::leaky_relu, ops::elu, ops::sigmoid, ops::tanh);
inline constexpr auto scaled = one_of(ops::div, ops::mul);

/// A product as the anchor.
template <class... Operands>
constexpr auto product(const Operands&... operands) {
  return ops::matmul(operands...).template as<"anchor">();
}
inline constexpr auto any_matmul = product(any, any);

/// The operators that can become a post-op, in any order. `accepts` checks the operands.
inline constexpr auto post_op =
    either(activation(previous), ops::mul(previous, ops::sigmoid(previous)).as<"swish">(),
           ops::clip(previous, constant, constant), one_of(ops::add, ops::sub, ops::mul, ops::div)(previous, any))
        .as<"post_op">();
inline constexpr std::size_t most_post_ops = 6;  // longer chains are not known, and patterns have at most 64 nodes

struct conv_chain : pattern<"conv_chain"> {
  static constexpr auto expr = repeat<1, most_post_ops>(post_op, any_conv);
};
struct conv_transpose_chain : pattern<"conv_transpose_chain"> {
  static constexpr auto expr = repeat<1, most_post_ops>(post_op, any_transposed_conv);
};
/// An image is enlarged by repeating its elements, then convolved. This is a transposed convolution of the small image.
struct upsampled_conv : pattern<"upsampled_conv"> {
  static constexpr auto expr = repeat<0, most_post_ops>(
      post_op, ops::conv(ops::resize(any).as<"resize">(), constant, maybe(any)).as<"anchor">());
};
struct matmul_chain : pattern<"matmul_chain"> {
  static constexpr auto expr = repeat<1, most_post_ops>(post_op, any_matmul);
};

inline constexpr auto pointwise = either(activation(previous), ops::clip(previous, constant, constant));
/// A convolution, then a depthwise one, each followed by an activation or by nothing.
struct conv_depthwise : pattern<"conv_depthwise"> {
  static constexpr auto first = optional(pointwise.as<"between">(), any_conv);
  static constexpr auto expr =
      optional(pointwise.as<"behind">(), ops::conv(first, constant, maybe(any)).as<"depthwise">());
};

/// y (1 + erf(y / sqrt(2))) / 2, the usual export of GELU. Half of sqrt(2)'s digits are enough: weights are float32.
struct matmul_add_gelu : pattern<"matmul_add_gelu"> {
  static constexpr auto y = ops::add(any_matmul, any).as<"behind">();
  static constexpr auto erf = ops::erf(ops::div(same<"behind">(), scalar(1.4142135623730951)));
  static constexpr auto expr = ops::mul(y, ops::mul(scalar(0.5), ops::add(erf, scalar(1)))).as<"gelu">();
};

// Attention: transposes before and after the products move the heads.
struct matmul_of_transposed : pattern<"matmul_of_transposed"> {
  static constexpr auto expr = product(ops::transpose(any), any);
};
struct matmul_by_transposed : pattern<"matmul_by_transposed"> {
  static constexpr auto expr = product(any, ops::transpose(any));
};
struct matmul_both_transposed : pattern<"matmul_both_transposed"> {
  static constexpr auto expr = product(ops::transpose(any), ops::transpose(any));
};
struct matmul_both_transposed_scale : pattern<"matmul_both_transposed_scale"> {
  static constexpr auto expr = scaled(product(ops::transpose(any), ops::transpose(any)), constant).as<"behind">();
};
struct matmul_transpose : pattern<"matmul_transpose"> {
  static constexpr auto expr = ops::transpose(any_matmul).as<"behind">();
};
struct matmul_by_transposed_transpose : pattern<"matmul_by_transposed_transpose"> {
  static constexpr auto expr = ops::transpose(product(any, ops::transpose(any))).as<"behind">();
};

/// Has more operands than single<ops::lstm> could name.
struct lstm : pattern<"lstm"> {
  static constexpr auto expr = ops::lstm(any, any, any, any, any, many(any));
};

}  // namespace collage::inline v0::onednn_patterns
