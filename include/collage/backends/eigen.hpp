// Eigen: enough operators to run most networks on it alone. Elementwise operators are fused with each other, and with the operator
// that they follow.
//
// Declarations. The definitions are in collage/backends/impl/eigen.hpp, compiled in exactly one file (by default the
// target collage::eigen).
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>

namespace collage::inline v0 {

namespace eigen_patterns {

/// GELU as exporters spell it, with a division by sqrt(2): 0.5 * (1 + erf(x / sqrt(2))) * x.
template <std::size_t N>
constexpr auto gelu_of(const expression<N>& x) {
  return ops::mul(
      x.template as<"x">(),
      ops::mul(ops::add(ops::erf(ops::div(same<"x">(), scalar(1.4142135623730951))), scalar(1.0)), scalar(0.5)));
}
inline constexpr auto convolved = ops::conv(any, any, maybe(any));

struct conv_activation : pattern<"conv_activation"> {
  static constexpr auto expr = one_of(ops::relu, ops::sigmoid, ops::tanh)(convolved);
};
struct conv_clip : pattern<"conv_clip"> {
  static constexpr auto expr = ops::clip(convolved, any, any);
};
struct conv_add : pattern<"conv_add"> {
  static constexpr auto expr = ops::add(convolved, any);
};
struct conv_add_relu : pattern<"conv_add_relu"> {
  static constexpr auto expr = ops::relu(ops::add(convolved, any));
};
struct pool_add : pattern<"pool_add"> {
  static constexpr auto expr = ops::add(one_of(ops::average_pool, ops::max_pool)(any), any);
};
struct matmul_add : pattern<"matmul_add"> {
  static constexpr auto expr = ops::add(ops::matmul(any, any), any);
};
struct matmul_add_activation : pattern<"matmul_add_activation"> {
  static constexpr auto expr = one_of(ops::relu, ops::sigmoid, ops::tanh)(ops::add(ops::matmul(any, any), any));
};
struct matmul_add_add : pattern<"matmul_add_add"> {
  static constexpr auto expr = ops::add(ops::add(ops::matmul(any, any), any), any);
};
struct matmul_add_gelu : pattern<"matmul_add_gelu"> {
  static constexpr auto expr = gelu_of(ops::add(ops::matmul(any, any), any));
};
struct gelu : pattern<"gelu"> {
  static constexpr auto expr = gelu_of(any);
};
struct add_relu : pattern<"add_relu"> {
  static constexpr auto expr = ops::relu(ops::add(any, any));
};
struct scaled_softmax : pattern<"scaled_softmax"> {
  static constexpr auto expr = ops::softmax(one_of(ops::div, ops::mul)(any, any));
};
struct add_layer_norm : pattern<"add_layer_norm"> {
  static constexpr auto expr = ops::layer_norm(ops::add(any, any), any, maybe(any));
};

}  // namespace eigen_patterns

/// Eigen is header-only, so it is available unless the processor lacks what this was compiled for. Products and windows are
/// computed in tiles of Eigen's packets, elementwise functions by its array expressions.
struct eigen : backend<"eigen"> {
  using patterns = collage::patterns<
      single<ops::conv>, single<ops::max_pool>, single<ops::average_pool>, single<ops::matmul>, single<ops::softmax>,
      single<ops::layer_norm>, single<ops::reduce_mean>, single<ops::reduce_sum>, single<ops::reduce_max>,
      single<ops::reduce_min>, single<ops::transpose>, single<ops::concat>, single<ops::resize>, single<ops::relu>,
      single<ops::leaky_relu>, single<ops::elu>, single<ops::hard_sigmoid>, single<ops::sigmoid>, single<ops::tanh>,
      single<ops::erf>, single<ops::exp>, single<ops::log>, single<ops::sqrt>, single<ops::reciprocal>,
      single<ops::neg>, single<ops::abs>, single<ops::floor>, single<ops::ceil>, single<ops::sin>, single<ops::cos>,
      single<ops::softplus>, single<ops::add>, single<ops::sub>, single<ops::mul>, single<ops::div>, single<ops::max>,
      single<ops::min>, single<ops::pow>, single<ops::clip>, single<ops::round>, single<ops::sign>, single<ops::prelu>,
      single<ops::celu>, single<ops::selu>, single<ops::thresholded_relu>, single<ops::shrink>, single<ops::hard_swish>,
      single<ops::gelu_tanh>, single<ops::mish>, single<ops::softsign>, eigen_patterns::conv_activation,
      eigen_patterns::conv_clip, eigen_patterns::conv_add, eigen_patterns::conv_add_relu, eigen_patterns::pool_add,
      eigen_patterns::matmul_add, eigen_patterns::matmul_add_activation, eigen_patterns::matmul_add_add,
      eigen_patterns::matmul_add_gelu, eigen_patterns::gelu, eigen_patterns::add_relu, eigen_patterns::scaled_softmax,
      eigen_patterns::add_layer_norm>;

  static constexpr verdict accepts(const any_match& m);
  static kernel build(const any_match& m, build_context& context);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);
};

namespace detail {

/// Whether a body can be computed in int64: it consists only of arithmetic. Attributes are excluded, because they are real numbers.
constexpr bool is_integer_body(const traced_body& body) {
  for (std::uint32_t i = 0; i < body.size; ++i) {
    const opcode code = body.code[i].code;
    const bool arithmetic = code == opcode::add || code == opcode::subtract || code == opcode::multiply ||
                            code == opcode::divide || code == opcode::minimum || code == opcode::maximum ||
                            code == opcode::negate || code == opcode::absolute;
    if (!arithmetic && code != opcode::input && code != opcode::constant) return false;
  }
  return true;
}

/// Whether `eigen` accepts one operator of a match.
constexpr verdict eigen_accepts_node(const any_match& m, std::uint32_t node) {
  const kind_info& kind = m.kind_of(node);
  const tensor_type& x = m.type_of(m.inputs_of(node)[0]);
  if (m.is(node, ops::transpose) || m.is(node, ops::concat)) return {};  // moves elements of any type
  if (m.is(node, ops::resize)) {
    const ops::resize_attributes a = m.attributes(node, ops::resize);
    if (!decltype(ops::resize)::is_common(a))
      return {false, "eigen resizes to the nearest element or linearly, by the ratio of the extents"};
    if (a.mode == ops::resize_mode::nearest) return {};
  }
  if (kind.has_body) {
    for (const std::uint32_t v : m.inputs_of(node))
      if (m.type_of(v).type != m.type_of(m.output_of(node)).type)
        return {false, "eigen needs operands and results of the same element type"};
    if (x.type == dtype::i64) return {is_integer_body(*kind.body), "eigen computes this only in float32, not in int64"};
    if (x.type != dtype::f32) return {false, "eigen computes only in float32 and int64"};
  }
  if (x.type != dtype::f32) return {false, "eigen computes this only in float32"};
  if ((m.is(node, ops::max_pool) || m.is(node, ops::average_pool)) && x.rank() > 5)
    return {false, "eigen pools over at most three spatial dimensions"};
  return {};
}

}  // namespace detail

constexpr verdict eigen::accepts(const any_match& m) {
  const shape& result = m.type_of(m.output()).dims;
  if (!result.is_concrete()) return {false, "its shapes must be known"};
  for (const std::uint32_t v : m.arguments())
    if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
  bool only_elementwise = true;
  for (const std::uint32_t node : m.nodes()) {
    if (verdict v = detail::eigen_accepts_node(m, node); !v) return v;
    only_elementwise = only_elementwise && m.kind_of(node).has_body;
  }
  for (const std::uint32_t node : m.nodes())
    if (!only_elementwise && m.type_of(m.output_of(node)).dims != result)
      return {false, "an operand that broadcasts to a larger shape cannot be fused"};
  return {};
}

}  // namespace collage::inline v0
