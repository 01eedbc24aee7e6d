// Patterns of generated kernels. Products may share their left operand, as the queries, keys and values of attention do. A chain after a
// product may have two outputs. Attention is one kernel. Depthwise convolutions are before pointwise ones, or on bytes.
#pragma once

#include <collage/backends/onednn_patterns.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>

namespace collage::inline v0::jit_patterns {

/// The operators that may follow each product. Their other operands are constant, so that no product waits for another.
inline constexpr auto later = either(onednn_patterns::activation(previous), ops::mul(previous, ops::sigmoid(previous)),
                                     one_of(ops::add, ops::sub, ops::mul, ops::div)(previous, constant));
/// A bias, and a scale or an activation. A pattern has at most 64 nodes.
inline constexpr std::size_t most_later = 2;

/// A product, alone or with what follows it. One pattern has all numbers of operators.
template <class Left>
constexpr auto product_of(const Left& left) {
  return repeat<0, most_later>(later, ops::matmul(left, constant.rank(2)));
}

struct two_products : pattern<"two_products"> {
  static constexpr auto expr = outputs(product_of(any.as<"left">()), product_of(same<"left">()));
};
struct three_products : pattern<"three_products"> {
  static constexpr auto expr =
      outputs(product_of(any.as<"left">()), product_of(same<"left">()), product_of(same<"left">()));
};

/// A product or a convolution with what follows it, where one value before the last is read outside, too. In residual networks whose
/// activations come first, this is the sum: the residual of the next block.
struct two_output_chain : pattern<"two_output_chain"> {
  static constexpr auto step =
      either(onednn_patterns::activation(previous), ops::mul(previous, ops::sigmoid(previous)),
             ops::clip(previous, constant, constant), one_of(ops::add, ops::sub, ops::mul, ops::div)(previous, any));
  static constexpr auto start = either(onednn_patterns::any_conv, onednn_patterns::any_matmul);
  static constexpr auto kept =
      repeat<1, 2>(step, start)
          .where([](const value_record& v) { return v.uses > 1 || v.is_output; }, "it must be read outside, too")
          .escaping();
  static constexpr auto expr = repeat<1, 3>(step, kept);
};

/// Attention as exporters write it: scores, their scale and mask, softmax, and the product with the values. Transposes move the heads.
struct attention : pattern<"attention"> {
  static constexpr auto operand = optional(ops::transpose(previous), any);
  static constexpr auto scores = ops::matmul(operand, operand);
  static constexpr auto scaled = optional(one_of(ops::div, ops::mul)(previous, constant), scores);
  static constexpr auto masked = optional(ops::add(previous, any), scaled);
  static constexpr auto expr = optional(ops::transpose(previous), ops::matmul(ops::softmax(masked), operand));
};

/// A depthwise convolution, relu or clip or nothing, and a pointwise convolution with what follows it.
struct depthwise_pointwise : pattern<"depthwise_pointwise"> {
  static constexpr auto depthwise =
      ops::conv(any, constant, maybe(any))
          .where([](const ops::conv_attributes& a) { return a.groups > 1; }, "it must have several groups")
          .as<"depthwise">();
  static constexpr auto between =
      optional(either(ops::relu(previous), ops::clip(previous, constant, constant)).as<"between">(), depthwise);
  static constexpr auto expr =
      repeat<0, 4>(onednn_patterns::post_op, ops::conv(between, constant, maybe(any)).as<"anchor">());
};

/// A depthwise convolution of a quantised file: of dequantised images by dequantised weights, then relu or clip or nothing. If the
/// result is not quantised again, it is float32.
struct quantised_depthwise : pattern<"quantised_depthwise"> {
  static constexpr auto image = ops::dequantize_linear(any, constant, maybe(constant));
  static constexpr auto weights = ops::dequantize_linear(constant, constant, maybe(constant));
  static constexpr auto depthwise =
      ops::conv(image, weights, maybe(constant))
          .where([](const ops::conv_attributes& a) { return a.groups > 1; }, "it must have several groups")
          .as<"depthwise">();
  static constexpr auto limited =
      optional(either(ops::relu(previous), ops::clip(previous, constant, constant)), depthwise);
  static constexpr auto expr = optional(ops::quantize_linear(previous, constant, maybe(constant)), limited);
};

/// A depthwise convolution of a network in float32, then relu or clip or nothing. It is computed on bytes where a plan stores its image
/// and its result so.
struct byte_depthwise : pattern<"byte_depthwise"> {
  static constexpr auto depthwise =
      ops::conv(any, constant, maybe(constant))
          .where([](const ops::conv_attributes& a) { return a.groups > 1; }, "it must have several groups")
          .as<"depthwise">();
  static constexpr auto expr =
      optional(either(ops::relu(previous), ops::clip(previous, constant, constant)), depthwise);
};

}  // namespace collage::inline v0::jit_patterns
