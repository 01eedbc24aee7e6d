// Operators of float32 networks on values that a plan stores as uint8: the patterns of `portable` that need more than one operator.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/graph/view.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <string_view>

namespace collage::inline v0 {

namespace portable_patterns {

inline constexpr auto number =
    constant.of(dtype::f32).where([](const value_record& v) { return v.has_scalar; }, "must be a known number");
inline constexpr auto real_value = variable.of(dtype::f32);
inline constexpr auto real_step =
    either(one_of(ops::relu, ops::leaky_relu, ops::elu, ops::sigmoid, ops::hard_sigmoid, ops::tanh, ops::erf, ops::exp,
                  ops::sqrt, ops::abs, ops::neg)(previous),
           ops::clip(previous, number, number),
           one_of(ops::add, ops::sub, ops::mul, ops::div, ops::max, ops::min)(previous, number));

/// Several operators of one operand, which together are a function of one number.
struct byte_function : pattern<"byte_function"> {
  static constexpr auto expr = repeat<2, 5>(real_step, real_value);
};
/// A value times a function of it, perhaps times a number: SiLU, and GELU and hard_swish as exporters spell them.
struct byte_gate : pattern<"byte_gate"> {
  static constexpr auto gate = ops::mul(real_value.as<"x">(), repeat<1, 4>(real_step, same<"x">()));
  static constexpr auto expr = optional(one_of(ops::mul, ops::div)(previous, number), gate);
};
/// A sum, difference or product of two values of one shape, and an activation.
struct byte_pair : pattern<"byte_pair"> {
  static constexpr auto bounded = either(ops::relu(previous), ops::clip(previous, number, number));
  static constexpr auto expr = repeat<1, 1>(bounded, one_of(ops::add, ops::sub, ops::mul)(real_value, real_value));
};

}  // namespace portable_patterns

namespace detail::host {

/// Whether a match is of a pattern above. It has kernels on uint8 alone.
constexpr bool is_of_reals_on_bytes(const any_match& m) {
  const std::string_view pattern = m.pattern();
  return pattern == portable_patterns::byte_function::name || pattern == portable_patterns::byte_gate::name ||
         pattern == portable_patterns::byte_pair::name;
}

/// Their values have one shape, but for numbers.
constexpr verdict accepts_reals_on_bytes(const any_match& m) {
  const shape& y = m.type_of(m.output()).dims;
  for (const std::uint32_t n : m.nodes()) {
    bool fits = m.type_of(m.output_of(n)).dims == y;
    for (const std::uint32_t v : m.inputs_of(n)) fits = fits && (m.graph().is_constant(v) || m.type_of(v).dims == y);
    if (!fits) return {false, "loops on integers of 8 bits do not broadcast"};
  }
  return {};
}

}  // namespace detail::host

}  // namespace collage::inline v0
