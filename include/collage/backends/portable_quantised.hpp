// Operators between the convolutions and products of quantised files, on integers of 8 bits: patterns, and which matches `portable`
// accepts.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/known_scale.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

namespace portable_patterns {

inline constexpr auto real = ops::dequantize_linear(any, constant, maybe(constant));
template <class E>
constexpr auto integers(const E& e) {
  return ops::quantize_linear(e, constant, maybe(constant));
}
/// Operators of one operand. Others of their operands are constants of one element.
inline constexpr auto of_one =
    either(one_of(ops::relu, ops::leaky_relu, ops::elu, ops::sigmoid, ops::tanh, ops::erf, ops::exp, ops::sqrt,
                  ops::abs, ops::neg)(previous),
           ops::clip(previous, constant, constant), ops::mul(previous, ops::sigmoid(previous)),
           one_of(ops::add, ops::sub, ops::mul, ops::div, ops::max, ops::min)(previous, constant));

/// Up to four operators of one operand, or none: then the integers get another scale.
struct quantised_function : pattern<"quantised_function"> {
  static constexpr auto expr = integers(repeat<0, 4>(of_one, real));
};
/// A sum, difference or product of two tensors of one shape, and an activation.
struct quantised_pair : pattern<"quantised_pair"> {
  static constexpr auto pair = one_of(ops::add, ops::sub, ops::mul)(real, real);
  static constexpr auto bounded = either(ops::relu(previous), ops::clip(previous, constant, constant));
  static constexpr auto expr = integers(optional(bounded, pair));
};
/// Means over places of images, perhaps quantised again.
struct quantised_mean : pattern<"quantised_mean"> {
  static constexpr auto expr = optional(integers(previous), one_of(ops::average_pool, ops::reduce_mean)(real));
};

}  // namespace portable_patterns

namespace detail::host {

/// Whether loops on integers have windows in so many dimensions.
constexpr verdict accepts_window(const any_match& m, std::uint32_t node) {
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  return {x.rank >= 3 && x.rank <= 5, "only windows over 1 to 3 dimensions after N and C have loops on integers"};
}
/// The geometry of a mean over places: whether a node is an average_pool, or a reduce_mean over all places.
constexpr verdict accepts_mean(const any_match& m, std::uint32_t node) {
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  if (const verdict v = accepts_window(m, node); !v) return v;
  if (m.is(node, ops::average_pool)) return {};
  const auto a = m.attributes(node, ops::reduce_mean);
  bool fits = a.axes.rank == x.rank - 2;
  for (std::size_t i = 0; fits && i < a.axes.rank; ++i) fits = a.axes[i] == static_cast<std::int64_t>(i) + 2;
  return {fits, "only means over all dimensions after N and C have loops on integers"};
}

/// A match of one of the patterns above, all of whose shapes are known.
constexpr verdict accepts_quantised(const any_match& m) {
  for (const std::uint32_t n : m.nodes()) {
    const bool changes = m.is(n, ops::quantize_linear) || m.is(n, ops::dequantize_linear);
    if (changes && !has_one_known_scale(m, n))
      return {false, "loops on integers of 8 bits need one known positive float32 scale, and one known zero point"};
    if (m.is(n, ops::average_pool) || m.is(n, ops::reduce_mean)) return accepts_mean(m, n);
    if (changes || !m.kind_of(n).has_body) continue;
    const auto in = m.inputs_of(n);
    const shape& y = m.type_of(m.output_of(n)).dims;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (m.at(in[i]).role == value_role::constant && !m.at(in[i]).has_scalar)
        return {false, "loops on integers of 8 bits need known numbers as the other operands"};
      if (m.at(in[i]).role != value_role::constant && m.type_of(in[i]).dims != y)
        return {false, "loops on integers of 8 bits do not broadcast"};
    }
  }
  return {};
}

/// Whether a single operator has loops on images of bytes with channels last.
constexpr bool is_on_bytes(const any_match& m, std::uint32_t node) {
  if (m.is(node, ops::quantize_linear) || m.is(node, ops::dequantize_linear)) return has_one_known_scale(m, node);
  const bool bytes = is_8_bit_integer(m.type_of(m.output_of(node)).type);
  return bytes && (m.is(node, ops::max_pool) || (m.is(node, ops::concat) && m.attributes(node, ops::concat).axis == 1));
}

/// Whether images of all arguments and of the result can lie with channels last. A result of one place lies the same way anyhow.
constexpr bool can_have_channels_last(const any_match& m) {
  const auto fits = [&](std::uint32_t v) {
    const shape& s = m.type_of(v).dims;
    return s.rank >= 4 && s.rank <= 5 && s[1] >= 16;
  };
  for (const std::uint32_t v : m.arguments())
    if (m.type_of(v).dims.elements() != 1 && (m.graph().is_constant(v) || !fits(v))) return false;
  const shape& y = m.type_of(m.output()).dims;
  return fits(m.output()) || (y.rank >= 2 && y.from(2).elements() == 1);
}

}  // namespace detail::host

}  // namespace collage::inline v0
