// What a oneDNN kernel computes, read off a match: an anchor and the steps behind it.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::onednn {

/// How an operand of an addition lies over the result.
enum class spread : std::uint8_t {
  full,     ///< one element for each
  channel,  ///< one for each extent of dimension 1
  last,     ///< one for each extent of the last dimension
  single,   ///< one element
  other,    ///< anything else
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

/// What an addition is to a convolution (channels in dimension 1) or to a product (columns in the last dimension).
constexpr spread spread_of(const shape& dims, const shape& whole, bool convolution) {
  if (lies_over(dims, whole, [](std::size_t) { return true; })) return spread::full;
  if (convolution && lies_over(dims, whole, [](std::size_t d) { return d == 1; })) return spread::channel;
  if (!convolution && lies_over(dims, whole, [&](std::size_t d) { return d + 1 == whole.rank; })) return spread::last;
  return lies_over(dims, whole, [](std::size_t) { return false; }) ? spread::single : spread::other;
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

/// An anchor (convolution, also a transposed one, or product), then steps.
struct chain {
  std::uint32_t anchor = match_record::nothing;
  chain_step step[8];
  std::size_t steps = 0;
  verdict why;  ///< why it cannot be read so

  constexpr void append(const chain_step& s) { step[steps++] = s; }
};

constexpr bool is_convolution(const any_match& m, std::uint32_t node) {
  return m.is(node, ops::conv) || m.is(node, ops::conv_transpose);
}
constexpr bool is_anchor(const any_match& m, std::uint32_t node) {
  return is_convolution(m, node) || m.is(node, ops::matmul);
}

/// The resize before a convolution in a match of upsampled_conv; nothing in other matches of anchors.
constexpr std::uint32_t upsampling_of(const any_match& m) {
  for (const std::uint32_t node : m.nodes())
    if (m.is(node, ops::resize)) return node;
  return match_record::nothing;
}

/// The one operator of the match that reads a value; `several` becomes true where more do.
constexpr std::uint32_t reader_of(const any_match& m, std::uint32_t value, bool& several) {
  std::uint32_t found = match_record::nothing;
  for (const std::uint32_t node : m.nodes())
    for (const std::uint32_t operand : m.inputs_of(node)) {
      if (operand != value || node == found) continue;
      several = several || found != match_record::nothing;
      found = node;
    }
  return found;
}

/// A factor that neither overflows nor vanishes when it is turned around.
constexpr bool is_sane_factor(double x) {
  const double size = x < 0 ? -x : x;
  return size >= 1e-30 && size <= 1e30;
}

constexpr verdict read_step(const any_match& m, std::uint32_t node, std::uint32_t value, chain& c) {
  const auto in = m.inputs_of(node);
  const std::uint32_t other = in.size() < 2 ? value : in[0] == value ? in[1] : in[0];
  chain_step s{.node = node, .operand = other, .kind = m.kind_of(node).id};
  if (m.is(node, ops::add) || m.is(node, ops::sub) || m.is(node, ops::mul) || m.is(node, ops::div)) {
    const value_record& factor = m.at(other);
    const bool is_factor = m.is(node, ops::mul) || m.is(node, ops::div);
    if (m.is(node, ops::add) && other == value) {
      s = {.what = chain_step::action::scale, .node = node, .alpha = 2};
    } else if (other == value) {
      return {false, "onednn combines its result with other values"};
    } else if (is_factor && factor.has_scalar && is_sane_factor(factor.scalar)) {
      s.what = chain_step::action::scale;
      s.alpha = m.is(node, ops::mul) ? factor.scalar : 1 / factor.scalar;
    }
  } else if (m.is(node, ops::clip)) {
    if (in[0] != value || !m.at(in[1]).has_scalar || !m.at(in[2]).has_scalar)
      return {false, "onednn clips to bounds that are known numbers alone"};
    s.what = chain_step::action::clip;
    s.alpha = m.at(in[1]).scalar;
    s.beta = m.at(in[2]).scalar;
    if (!(s.alpha <= s.beta)) return {false, "onednn clips to a lower bound that is not above the upper one"};
  } else if (m.is(node, ops::transpose)) {
    s.what = chain_step::action::transpose;
  } else {
    s.what = chain_step::action::activation;
    if (m.is(node, ops::leaky_relu)) s.alpha = m.attributes(node, ops::leaky_relu).alpha;
    if (m.is(node, ops::elu)) s.alpha = m.attributes(node, ops::elu).alpha;
    if (m.is(node, ops::leaky_relu) && s.alpha == 0) return {false, "onednn's leaky_relu of slope 0 loses NaN"};
    if (m.is(node, ops::elu) && !(s.alpha >= 0)) return {false, "onednn's elu wants an alpha that is not negative"};
  }
  c.append(s);
  return {};
}

/// The operator that multiplies a value by its own sigmoid, where nothing else of the match reads either.
constexpr std::uint32_t swish_of(const any_match& m, std::uint32_t value) {
  std::uint32_t sigmoid = match_record::nothing, product = match_record::nothing;
  for (const std::uint32_t node : m.nodes())
    for (const std::uint32_t operand : m.inputs_of(node)) {
      if (operand != value) continue;
      std::uint32_t& found = m.is(node, ops::sigmoid) ? sigmoid : product;
      if (found != match_record::nothing) return match_record::nothing;
      found = node;
    }
  if (sigmoid == match_record::nothing || product == match_record::nothing || !m.is(product, ops::mul))
    return match_record::nothing;
  bool several = false;
  return reader_of(m, m.output_of(sigmoid), several) == product && !several ? product : match_record::nothing;
}

/// An anchor and the steps behind it, up to the one that computes `last`.
constexpr chain chain_between(const any_match& m, std::uint32_t anchor, std::uint32_t last) {
  chain c;
  c.anchor = anchor;
  std::uint32_t value = m.output_of(c.anchor);
  while (value != last && c.why) {
    bool several = false;
    const std::uint32_t node = reader_of(m, value, several);
    if (several) {
      if (const std::uint32_t product = swish_of(m, value); product != match_record::nothing) {
        c.append({.what = chain_step::action::swish, .node = product});
        value = m.output_of(product);
        continue;
      }
      bool has_erf = false;
      for (const std::uint32_t n : m.nodes()) has_erf = has_erf || m.is(n, ops::erf);
      if (has_erf) c.append({.what = chain_step::action::gelu, .node = m.nodes().back()});
      else c.why = {false, "onednn's post-ops read what is before them once"};
      break;
    }
    c.why = read_step(m, node, value, c);
    value = m.output_of(node);
  }
  return c;
}

/// Reads a match of one of onednn_patterns with one anchor, or of an anchor alone.
constexpr chain chain_of(const any_match& m) {
  for (const std::uint32_t node : m.nodes())
    if (is_anchor(m, node)) return chain_between(m, node, m.output());
  chain c;
  c.why = {false, "there is nothing that onednn could fuse behind"};
  return c;
}

/// Two convolutions, one behind the other.
struct conv_pair {
  std::uint32_t first = match_record::nothing, second = match_record::nothing;
  chain between, behind;
  constexpr explicit operator bool() const { return second != match_record::nothing; }
};

/// Reads a match of conv_depthwise; nothing where there are not two convolutions.
constexpr conv_pair conv_pair_of(const any_match& m) {
  conv_pair p;
  for (const std::uint32_t node : m.nodes())
    if (m.is(node, ops::conv)) (p.first == match_record::nothing ? p.first : p.second) = node;
  if (!p) return p;
  p.between = chain_between(m, p.first, m.inputs_of(p.second)[0]);
  p.behind = chain_between(m, p.second, m.output());
  return p;
}

/// The value that is read where an operand is a transpose of the match; `permutation` is then set.
constexpr std::uint32_t source_of(const any_match& m, std::uint32_t value, shape& permutation) {
  const std::int32_t producer = m.at(value).producer;
  if (producer < 0 || !m.contains(static_cast<std::uint32_t>(producer))) return value;
  const auto node = static_cast<std::uint32_t>(producer);
  permutation = m.attributes(node, ops::transpose).permutation;
  return m.inputs_of(node)[0];
}

}  // namespace collage::inline v0::detail::onednn
