// What a oneDNN kernel computes, read off a match: an anchor and the steps behind it.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/onednn_patterns.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::onednn {

/// How an operand of a step lies over the result.
enum class spread : std::uint8_t {
  full,     ///< one element for each
  channel,  ///< behind a convolution one for each channel, dimension 1; behind a product one for each column, the last one
  single,  ///< one element
  other,   ///< anything else
};

/// Whether `dims`, counted from the last dimension, is 1 everywhere but in the dimensions where keep(d) says that it
/// must be `whole`'s extent.
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

/// What happens to the anchor's result.
struct chain_step {
  enum class action : std::uint8_t {
    binary,      ///< with operand, by the operator `kind`
    scale,       ///< * alpha
    activation,  ///< of kind `kind`, with alpha
    clip,        ///< to [alpha, beta]
    gelu,
    swish,
    transpose,  ///< of the finished result
  };
  action what = action::binary;
  std::uint32_t node = 0;     ///< the operator; of several, the last
  std::uint32_t operand = 0;  ///< `binary`: which value
  std::uint64_t kind = 0;
  double alpha = 0;
  double beta = 0;

  constexpr bool adds() const { return what == action::binary && kind == kind_id<struct ops::add>; }
};

/// A factor that neither overflows nor vanishes when it is turned around.
constexpr bool is_sane_factor(double x) {
  const double size = x < 0 ? -x : x;
  return size >= 1e-30 && size <= 1e30;
}

constexpr verdict accepts_activation(const any_match& m, std::uint32_t node) {
  if (m.is(node, ops::leaky_relu))
    return {m.attributes(node, ops::leaky_relu).alpha != 0, "onednn's leaky_relu of slope 0 loses NaN"};
  return {!m.is(node, ops::elu) || m.attributes(node, ops::elu).alpha >= 0,
          "onednn's elu wants an alpha that is not negative"};
}

/// A match with an anchor (convolution, also a transposed one, or product) and steps behind it, or of any other operator.
struct chain : any_match {
  using action = chain_step::action;

  std::uint32_t anchor = match_record::nothing;     ///< the node; nothing where there is none
  std::uint32_t resize = match_record::nothing;     ///< of upsampled_conv
  std::uint32_t depthwise = match_record::nothing;  ///< of conv_depthwise: the second convolution
  std::size_t between = 0;                          ///< how many of the steps stand before that
  chain_step step[onednn_patterns::most_post_ops];
  std::size_t steps = 0;
  verdict why;  ///< why the library cannot compute the steps

  template <class P>
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
  /// Whether the last step moves the result.
  constexpr bool ends_in_transpose() const { return steps > 0 && step[steps - 1].what == action::transpose; }

 private:
  /// A match of one of onednn_patterns that have an anchor, by the names in them.
  template <class P>
  constexpr void read(const match<P>& m) {
    anchor = node_named<"anchor">(m);
    resize = node_named<"resize">(m);
    read_step(node_named<"between">(m), output_of(anchor));
    between = steps;
    depthwise = node_named<"depthwise">(m);
    if constexpr (captures_name<P, "post_op">) {
      for (const auto s : m.template iterations<"post_op">())
        if (s.template is<"swish">()) append({.what = action::swish, .node = m.node_of(s.value())});
        else read_step(m.node_of(s.value()), s.previous().value);
    }
    read_step(node_named<"behind">(m), output_of(depthwise != match_record::nothing ? depthwise : anchor));
    if constexpr (captures_name<P, "gelu">) append({.what = action::gelu, .node = nodes().back()});
  }
  /// Nothing where the pattern has no such name, or it was optional and is missing.
  template <fixed_string Name, class P>
  static constexpr std::uint32_t node_named(const match<P>& m) {
    if constexpr (captures_name<P, Name>) return m.node_of(m.template get<Name>());
    else return match_record::nothing;
  }

  /// One operator, in which `before` is the value that it is a step of.
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
      if (!are_known) refuse("onednn clips to bounds that are known numbers alone");
      else if (!(s.alpha <= s.beta)) refuse("onednn clips to a lower bound that is not above the upper one");
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

}  // namespace collage::inline v0::detail::onednn
