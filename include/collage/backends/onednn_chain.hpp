// The work of a oneDNN kernel, read from a match: an anchor and the steps after it.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/onednn_patterns.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::onednn {

/// How an operand of a step broadcasts to the result.
enum class spread : std::uint8_t {
  full,     ///< one element for each element of the result
  channel,  ///< one for each channel (dimension 1) of a convolution, or each column (the last dimension) of a product
  single,   ///< one element
  other,    ///< anything else
};

/// Whether `dims`, aligned with `whole` at the last dimension, has `whole`'s extent in every dimension d where keep(d)
/// holds, and 1 in all others.
template <class Keep>
constexpr bool lies_over(const shape& dims, const shape& whole, const Keep& keep) {
  if (dims.rank > whole.rank) return false;
  const std::size_t missing = whole.rank - dims.rank;
  for (std::size_t d = 0; d < whole.rank; ++d) {
    const std::int64_t extent = d < missing ? 1 : dims[d - missing];
    if (extent != (keep(d) ? whole[d] : 1)) return false;
  }
  return true;
}

/// One operation on the anchor's result.
struct chain_step {
  enum class action : std::uint8_t {
    binary,      ///< with operand, by the operator `kind`
    scale,       ///< * alpha
    activation,  ///< of kind `kind`, with alpha
    clip,        ///< to [alpha, beta]
    gelu,
    swish,
    round,      ///< quantised and dequantised at once; `node` is the dequantize_linear
    transpose,  ///< of the finished result
  };
  action what = action::binary;
  std::uint32_t node = 0;     ///< the operator, or the last of several
  std::uint32_t operand = 0;  ///< for `binary`: the other operand
  std::uint64_t kind = 0;
  double alpha = 0;
  double beta = 0;

  constexpr bool adds() const { return what == action::binary && kind == kind_id<struct ops::add>; }
};

/// Whether neither a factor nor its inverse overflows or vanishes.
constexpr bool is_sane_factor(double x) {
  const double size = x < 0 ? -x : x;
  return size >= 1e-30 && size <= 1e30;
}

constexpr verdict accepts_activation(const any_match& m, std::uint32_t node) {
  if (m.is(node, ops::leaky_relu))
    return {m.attributes(node, ops::leaky_relu).alpha != 0, "onednn's leaky_relu of slope 0 loses NaN"};
  return {!m.is(node, ops::elu) || m.attributes(node, ops::elu).alpha >= 0, "onednn's elu needs an alpha of 0 or more"};
}

/// Patterns of convolutions and products of integers declare `static constexpr bool on_integers = true`. They are read elsewhere
/// (onednn_quantised_rules.hpp).
template <class P> concept on_integers = requires { P::on_integers; };

/// A match with an anchor (a convolution, perhaps transposed, or a product) and the steps after it, or of any other
/// operator.
struct chain : any_match {
  using action = chain_step::action;

  std::uint32_t anchor = match_record::nothing;     ///< the node, or `nothing`
  std::uint32_t resize = match_record::nothing;     ///< of upsampled_conv
  std::uint32_t depthwise = match_record::nothing;  ///< of conv_depthwise: the second convolution
  std::size_t between = 0;                          ///< the number of steps before `depthwise`
  chain_step step[onednn_patterns::most_post_ops];
  std::size_t steps = 0;
  verdict why;  ///< why the library cannot compute the steps

  template <class P>
    requires(!on_integers<P>)
  constexpr chain(const match<P>& m) : any_match(m) {
    if constexpr (captures_name<P, "anchor">) read(m);
    else if (const std::uint32_t root = nodes().back(); is_convolution(root) || is(root, ops::matmul)) anchor = root;
  }

  constexpr bool is_convolution(std::uint32_t node) const {
    return is(node, ops::conv) || is(node, ops::conv_transpose);
  }
  constexpr spread spread_of(const chain_step& s) const {
    const shape& dims = type_of(s.operand).dims;
    const shape& whole = type_of(output_of(anchor)).dims;
    const std::size_t channels = is_convolution(anchor) ? 1 : whole.rank - 1;
    if (lies_over(dims, whole, [](std::size_t) { return true; })) return spread::full;
    if (lies_over(dims, whole, [&](std::size_t d) { return d == channels; })) return spread::channel;
    return lies_over(dims, whole, [](std::size_t) { return false; }) ? spread::single : spread::other;
  }
  /// Whether the first step adds one number for each channel or column, as a bias does.
  constexpr bool begins_with_bias() const {
    return steps > 0 && step[0].adds() && spread_of(step[0]) == spread::channel;
  }
  /// Whether the last step transposes the result.
  constexpr bool ends_in_transpose() const { return steps > 0 && step[steps - 1].what == action::transpose; }

 private:
  /// Reads a match of one of the onednn_patterns with an anchor, by the names in the pattern.
  template <class P>
  constexpr void read(const match<P>& m) {
    anchor = node_named<"anchor">(m);
    resize = node_named<"resize">(m);
    read_step(node_named<"between">(m), output_of(anchor));
    between = steps;
    depthwise = node_named<"depthwise">(m);
    std::uint32_t before = output_of(anchor);
    if constexpr (captures_name<P, "product">) before = m.template get<"product">().value;
    read_step(node_named<"scaled">(m), before);
    if constexpr (captures_name<P, "rounded">) append({.what = action::round, .node = node_named<"rounded">(m)});
    if constexpr (captures_name<P, "post_op">) {
      for (const auto s : m.template iterations<"post_op">())
        if (s.template is<"swish">()) append({.what = action::swish, .node = m.node_of(s.value())});
        else read_step(m.node_of(s.value()), s.previous().value);
    }
    if (steps > between) before = output_of(step[steps - 1].node);
    read_step(node_named<"behind">(m), depthwise != match_record::nothing ? output_of(depthwise) : before);
    if constexpr (captures_name<P, "gelu">) append({.what = action::gelu, .node = node_named<"gelu">(m)});
  }
  /// The node, or `nothing` where the pattern has no such name, or where that part is optional and missing.
  template <fixed_string Name, class P>
  static constexpr std::uint32_t node_named(const match<P>& m) {
    if constexpr (captures_name<P, Name>) return m.node_of(m.template get<Name>());
    else return match_record::nothing;
  }

  /// Reads one operator; `before` is the value to which the operator is applied.
  constexpr void read_step(std::uint32_t node, std::uint32_t before) {
    if (node == match_record::nothing) return;
    const auto in = inputs_of(node);
    const bool is_factor = is(node, ops::mul) || is(node, ops::div);
    chain_step s{.node = node, .kind = kind_of(node).id};
    if (is_factor || is(node, ops::add) || is(node, ops::sub)) {
      s.operand = in[0] == before ? in[1] : in[0];
      const value_record& factor = at(s.operand);
      if (is_factor && factor.has_scalar && is_sane_factor(factor.scalar)) {
        s.what = action::scale;
        s.alpha = is(node, ops::mul) ? factor.scalar : 1 / factor.scalar;
      }
    } else if (is(node, ops::clip)) {
      s.what = action::clip;
      s.alpha = at(in[1]).scalar;
      s.beta = at(in[2]).scalar;
      const bool are_known = at(in[1]).has_scalar && at(in[2]).has_scalar;
      if (!are_known) refuse("onednn clips only to bounds that are known numbers");
      else if (!(s.alpha <= s.beta)) refuse("onednn needs a lower bound that is not above the upper one");
    } else if (is(node, ops::transpose)) {
      s.what = action::transpose;
    } else {
      s.what = action::activation;
      if (is(node, ops::leaky_relu)) s.alpha = attributes(node, ops::leaky_relu).alpha;
      if (is(node, ops::elu)) s.alpha = attributes(node, ops::elu).alpha;
      if (const verdict v = accepts_activation(*this, node); !v) refuse(v.rule);
    }
    append(s);
  }
  constexpr void refuse(const char* rule) {
    if (why) why = {false, rule};
  }
  constexpr void append(const chain_step& s) { step[steps++] = s; }
};

/// The steps after a convolution or product.
constexpr verdict accepts_steps(const chain& m) {
  if (!m.why) return m.why;
  const shape& result = m.type_of(m.output_of(m.anchor)).dims;
  for (std::size_t i = 0; i < m.steps; ++i) {
    const chain_step& s = m.step[i];
    if (s.what == chain_step::action::transpose) continue;
    if (m.type_of(m.output_of(s.node)).dims != result)
      return {false, "an operand that broadcasts the result to a larger shape cannot be fused"};
    if (s.what != chain_step::action::binary) continue;
    const spread lies = m.spread_of(s);
    // In a product of a matrix and a vector of rank 1, the last dimension is the rows.
    const bool of_rows = lies == spread::channel && m.type_of(m.inputs_of(m.anchor)[1]).dims.rank == 1;
    if (lies == spread::other || of_rows)
      return {
          false,
          "onednn combines the result only with a tensor of its shape, with one number per channel or column, or with "
          "one number"};
  }
  return {};
}

}  // namespace collage::inline v0::detail::onednn
