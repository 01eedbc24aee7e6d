// What oneDNN can fuse, as patterns: a convolution or a product with any chain of what may follow it (post-ops), what repeats
// elements before a convolution, and products of transposed operands, which are read where they lie.
#pragma once

#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>

namespace collage::inline v0::onednn_patterns {

inline constexpr auto any_conv = ops::conv(any, any, maybe(any));
inline constexpr auto any_transposed_conv = ops::conv_transpose(any, any, maybe(any));
inline constexpr auto any_matmul = ops::matmul(any, any);
inline constexpr auto activation = one_of(ops::relu, ops::leaky_relu, ops::elu, ops::sigmoid, ops::tanh);
inline constexpr auto scaled = one_of(ops::div, ops::mul);

/// y (1 + erf(y / sqrt(2))) / 2, as exporters spell GELU. Half of sqrt(2)'s digits are enough: weights are float32.
template <std::size_t N>
constexpr auto gelu(const expression<N>& y) {
  return ops::mul(
      y.template as<"y">(),
      ops::mul(scalar(0.5), ops::add(ops::erf(ops::div(same<"y">(), scalar(1.4142135623730951))), scalar(1))));
}

/// What can become a post-op, in any order. `accepts` looks at the operands.
inline constexpr auto post_op =
    either(activation(previous), ops::mul(previous, ops::sigmoid(previous)), ops::clip(previous, constant, constant),
           one_of(ops::add, ops::sub, ops::mul, ops::div)(previous, any));
inline constexpr std::size_t most_post_ops = 6;  // longer chains are not known, and patterns have at most 64 nodes

struct conv_chain : pattern<"conv_chain"> {
  static constexpr auto expr = repeat<1, most_post_ops>(post_op, any_conv);
};
struct conv_transpose_chain : pattern<"conv_transpose_chain"> {
  static constexpr auto expr = repeat<1, most_post_ops>(post_op, any_transposed_conv);
};
/// The image is made larger by repeating its elements, then convolved: a transposed convolution of the small image.
struct upsampled_conv : pattern<"upsampled_conv"> {
  static constexpr auto expr = repeat<0, most_post_ops>(post_op, ops::conv(ops::resize(any), constant, maybe(any)));
};
struct matmul_chain : pattern<"matmul_chain"> {
  static constexpr auto expr = repeat<1, most_post_ops>(post_op, any_matmul);
};

template <std::size_t N>
constexpr auto maybe_activated(const expression<N>& x) {
  return optional(either(activation(previous), ops::clip(previous, constant, constant)), x);
}
/// With nothing or an activation between and behind.
struct conv_depthwise : pattern<"conv_depthwise"> {
  static constexpr auto expr = maybe_activated(ops::conv(maybe_activated(any_conv), constant, maybe(any)));
};

struct matmul_add_gelu : pattern<"matmul_add_gelu"> {
  static constexpr auto expr = gelu(ops::add(any_matmul, any));
};

// Attention: heads are moved by transposes before and behind the products.
struct matmul_of_transposed : pattern<"matmul_of_transposed"> {
  static constexpr auto expr = ops::matmul(ops::transpose(any), any);
};
struct matmul_by_transposed : pattern<"matmul_by_transposed"> {
  static constexpr auto expr = ops::matmul(any, ops::transpose(any));
};
struct matmul_both_transposed : pattern<"matmul_both_transposed"> {
  static constexpr auto expr = ops::matmul(ops::transpose(any), ops::transpose(any));
};
struct matmul_both_transposed_scale : pattern<"matmul_both_transposed_scale"> {
  static constexpr auto expr = scaled(ops::matmul(ops::transpose(any), ops::transpose(any)), constant);
};
struct matmul_transpose : pattern<"matmul_transpose"> {
  static constexpr auto expr = ops::transpose(any_matmul);
};
struct matmul_by_transposed_transpose : pattern<"matmul_by_transposed_transpose"> {
  static constexpr auto expr = ops::transpose(ops::matmul(any, ops::transpose(any)));
};

/// Has more operands than single<ops::lstm> could name.
struct lstm : pattern<"lstm"> {
  static constexpr auto expr = ops::lstm(any, any, any, any, any, many(any));
};

}  // namespace collage::inline v0::onednn_patterns
