// Which matches the backend `jit` takes: products and convolutions, each with what follows it, and products that share their left
// operand. An enlargement or a depthwise convolution may come before a convolution.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_attention_rules.hpp>
#include <collage/backends/jit_patterns.hpp>
#include <collage/backends/jit_quantised_rules.hpp>
#include <collage/ops.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// How an operand of a later operator lies over the rows and columns of the product.
enum class operand_place : std::uint8_t {
  whole,       ///< one number for each element
  per_row,     ///< one for each row
  per_column,  ///< one for each column
  single,      ///< one for all
  other        ///< anything else
};

/// Whether `dims`, aligned with `whole` at the last dimension, has `whole`'s extent in every dimension d where keep(d)
/// holds, and 1 in all others.
template <class Keep>
constexpr bool has_extents(const shape& dims, const shape& whole, const Keep& keep) {
  if (dims.rank > whole.rank) return false;
  const std::size_t missing = whole.rank - dims.rank;
  for (std::size_t d = 0; d < whole.rank; ++d)
    if ((d < missing ? 1 : dims[d - missing]) != (keep(d) ? whole[d] : 1)) return false;
  return true;
}

/// `column` is the dimension that the columns of the product are.
constexpr operand_place place_of(const shape& dims, const shape& whole, std::size_t column) {
  if (has_extents(dims, whole, [](std::size_t) { return false; })) return operand_place::single;
  if (has_extents(dims, whole, [](std::size_t) { return true; })) return operand_place::whole;
  if (has_extents(dims, whole, [&](std::size_t d) { return d == column; })) return operand_place::per_column;
  if (has_extents(dims, whole, [&](std::size_t d) { return d != column; })) return operand_place::per_row;
  return operand_place::other;
}

/// Whether a node multiplies matrices: a product or a convolution. A resize or a depthwise convolution may come before one, and all
/// others follow.
constexpr bool is_anchor(const any_match& m, std::uint32_t node) {
  if (!m.is(node, ops::conv)) return m.is(node, ops::matmul);
  bool is_last = false;
  for (const std::uint32_t other : m.nodes())
    if (m.is(other, ops::conv)) is_last = other == node;
  return is_last;
}
/// How many such operators a match has. Several of them share their left operand.
constexpr std::size_t anchors(const any_match& m) {
  std::size_t count = 0;
  for (const std::uint32_t node : m.nodes()) count += is_anchor(m, node) ? 1 : 0;
  return count;
}
/// The one that a node of a match comes after, or the node itself. No node before an anchor is allowed.
constexpr std::uint32_t anchor_before(const any_match& m, std::uint32_t node) {
  while (!is_anchor(m, node))
    for (const std::uint32_t v : m.inputs_of(node))
      if (const std::int32_t from = m.at(v).producer; from >= 0 && m.contains(static_cast<std::uint32_t>(from))) {
        node = static_cast<std::uint32_t>(from);
        break;
      }
  return node;
}
/// The first of them.
constexpr std::uint32_t anchor_of(const any_match& m) {
  for (const std::uint32_t node : m.nodes())
    if (is_anchor(m, node)) return node;
  return m.nodes()[0];
}

/// The windows for which there are algorithms with fewer multiplications. In three dimensions they are the window's slices.
constexpr bool has_algorithms(std::int64_t height, std::int64_t width) {
  return height == width && (height == 3 || height == 5);
}

/// A match as a product [m x k] [k x n], with the operators that follow it. A convolution with a window is the sum of such
/// products.
struct product_match {
  std::uint32_t anchor = 0, left = 0, right = 0;
  std::uint32_t resize = match_record::nothing;  ///< which enlarges `left` before a convolution
  /// Which computes the left operand from `left`, and the operator between both, if there is one.
  std::uint32_t depthwise = match_record::nothing, between = match_record::nothing;
  std::uint32_t bias = match_record::nothing;  ///< of a convolution
  bool is_convolution = false;
  bool is_windowed = false;          ///< a convolution that is no single product: with a window, strides or pads
  bool suits_bilinear = false;       ///< a convolution that algorithms with fewer multiplications compute
  bool right_is_transposed = false;  ///< it lies as [n, k]
  std::int64_t m = 1, n = 1, k = 1;
  std::size_t column = 0;  ///< the dimension of the result that the columns are

  /// Reads an accepted match.
  constexpr explicit product_match(const any_match& match) : product_match(match, anchor_of(match)) {}
  /// Reads one of several products.
  constexpr product_match(const any_match& match, std::uint32_t which) : anchor(which) {
    const auto in = match.inputs_of(anchor);
    const std::uint32_t first = match.nodes()[0];
    if (match.is(first, ops::resize)) resize = first;
    if (match.is(first, ops::conv) && first != anchor) depthwise = first;
    if (is_depthwise() && match.nodes()[1] != anchor) between = match.nodes()[1];
    left = is_enlarged() || is_depthwise() ? match.inputs_of(first)[0] : in[0];
    right = in[1];
    const shape& result = match.type_of(match.output_of(anchor)).dims;
    const shape& a = match.type_of(left).dims;  // a depthwise convolution keeps the channels
    is_convolution = match.is(anchor, ops::conv);
    if (is_convolution) read_window(match.type_of(right).dims, match.attributes(anchor, ops::conv));
    right_is_transposed = is_convolution || match.attributes(anchor, ops::matmul).transpose_b;
    column = is_convolution ? 1 : result.rank - 1;
    if (is_convolution && in.size() > 2) bias = in[2];
    n = result[column];
    k = is_convolution ? a[1] : a[a.rank - 1];
    for (std::size_t d = 0; d < result.rank; ++d)
      if (d != column) m *= result[d];
  }

  constexpr bool is_enlarged() const { return resize != match_record::nothing; }
  constexpr bool is_depthwise() const { return depthwise != match_record::nothing; }
  constexpr void read_window(const shape& w, const ops::conv_attributes& t) {
    suits_bilinear = (w.rank == 4 || w.rank == 5) && has_algorithms(w[w.rank - 2], w[w.rank - 1]);
    for (std::size_t d = 2; d < w.rank; ++d) {
      is_windowed =
          is_windowed || w[d] != 1 || t.strides[d - 2] != 1 || t.pads_begin[d - 2] != 0 || t.pads_end[d - 2] != 0;
      suits_bilinear = suits_bilinear && t.strides[d - 2] == 1 && (w[d] == 1 || t.dilations[d - 2] == 1);
    }
  }
  /// Whether a node of the match comes after this product.
  constexpr bool is_later(const any_match& match, std::uint32_t node) const {
    return node != anchor && node != resize && node != depthwise && node != between &&
           anchor_before(match, node) == anchor;
  }

  /// How an operand of a later operator lies, for the result's shape `whole`. Beside an image, a tensor of another rank has the
  /// elements in plain order alone, whatever the result's layout is.
  constexpr operand_place place(const shape& dims, const shape& whole) const {
    if (!is_windowed) {
      const operand_place place = place_of(dims, whole, column);
      return place == operand_place::whole && is_convolution && dims != whole ? operand_place::other : place;
    }
    if (has_extents(dims, whole, [](std::size_t) { return false; })) return operand_place::single;
    if (has_extents(dims, whole, [&](std::size_t d) { return d == column; })) return operand_place::per_column;
    return dims == whole ? operand_place::whole : operand_place::other;
  }
};

constexpr verdict accepts_convolution(const any_match& m, const product_match& product) {
  const shape& x = m.type_of(m.inputs_of(product.anchor)[0]).dims;
  const shape& w = m.type_of(product.right).dims;
  if (m.attributes(product.anchor, ops::conv).groups != 1) return {false, "it computes convolutions of one group"};
  if (!product.is_windowed) return {};
  if (w.rank > 5) return {false, "it computes windows of at most three dimensions"};
  constexpr std::int64_t most = (std::int64_t{1} << 31U) - 1;
  const auto is_sound = [](std::int64_t extent) { return extent >= 1 && extent <= most; };
  const shape& y = m.type_of(m.output_of(product.anchor)).dims;
  for (std::size_t d = 0; d < x.rank; ++d)
    if (!is_sound(x[d]) || !is_sound(y[d]) || !is_sound(w[d]))
      return {false, "its extents must be from 1 to 2147483647"};
  return {};
}

/// Whether elements 2i and 2i + 1 of a dimension that becomes twice as long are element i.
constexpr bool repeats_once(const ops::resize_attributes& a) {
  using enum ops::resize_coordinates;
  using enum ops::resize_rounding;
  if (!decltype(ops::resize)::is_common(a) || a.mode != ops::resize_mode::nearest) return false;
  // The places are i and i + 1/2, or i - 1/4 and i + 1/4.
  if (a.coordinates == asymmetric) return a.rounding == down || a.rounding == prefer_floor;
  return a.coordinates != align_corners && (a.rounding == prefer_floor || a.rounding == prefer_ceil);
}

constexpr verdict accepts_enlarged(const any_match& m, const product_match& product) {
  const std::uint32_t node = product.resize;
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  const shape& y = m.type_of(m.output_of(node)).dims;
  return first_failure({{x.rank == 4 && x[0] == y[0] && x[1] == y[1] && y[2] == 2 * x[2] && y[3] == 2 * x[3] &&
                             repeats_once(m.attributes(node, ops::resize)),
                         "before a convolution it computes a resize that repeats each element of an image once in both "
                         "dimensions, and no other"},
                        {product.suits_bilinear,
                         "after a resize it computes convolutions of 3x3 and 5x5 with stride 1 and dilation 1, and no "
                         "other"}});
}

/// A depthwise convolution, and relu or clip after it if there is one of them.
constexpr verdict accepts_depthwise(const any_match& m, const product_match& product) {
  const auto in = m.inputs_of(product.depthwise);
  const shape& x = m.type_of(in[0]).dims;
  const shape& w = m.type_of(in[1]).dims;
  const ops::conv_attributes t = m.attributes(product.depthwise, ops::conv);
  if (x.rank != 4 || t.groups != x[1] || w[0] != x[1] || w[1] != 1 || product.is_windowed)
    return {false,
            "before a convolution of 1x1 it computes a depthwise one of images, with as many outputs as channels"};
  bool is_sound = true;
  for (std::size_t d = 0; d < 4; ++d) is_sound = is_sound && x[d] >= 1 && x[d] < std::int64_t{1} << 31U;
  for (std::size_t d = 0; d < 2; ++d)
    is_sound = is_sound && t.pads_begin[d] >= 0 && t.pads_end[d] >= 0 &&
               m.type_of(m.output_of(product.depthwise)).dims[d + 2] >= 1;
  const bool has_clip = product.between != match_record::nothing && m.is(product.between, ops::clip);
  const auto bounds = has_clip ? m.inputs_of(product.between) : in;
  return first_failure(
      {{w[2] == w[3] && (w[2] == 3 || w[2] == 5 || w[2] == 7) && t.strides[0] == t.strides[1] &&
            (t.strides[0] == 1 || t.strides[0] == 2) && t.dilations[0] == 1 && t.dilations[1] == 1,
        "it computes depthwise convolutions of 3x3, 5x5 and 7x7, with stride 1 or 2 and dilation 1"},
       {is_sound, "the extents of a depthwise convolution must be from 1 to 2147483647, and its pads at least 0"},
       {m.graph().is_constant(in[1]), "its weights must be constant"},
       {!has_clip || (m.at(bounds[1]).has_scalar && m.at(bounds[2]).has_scalar),
        "the bounds of clip after a depthwise convolution must be constant numbers"}});
}

constexpr verdict accepts_anchor(const any_match& m, std::uint32_t anchor) {
  const auto in = m.inputs_of(anchor);
  if (!m.graph().is_constant(in[1])) return {false, "its weights must be constant"};
  const shape& a = m.type_of(in[0]).dims;
  const shape& b = m.type_of(in[1]).dims;
  if (m.is(anchor, ops::matmul)) {
    const ops::matmul_attributes t = m.attributes(anchor, ops::matmul);
    return first_failure({{b.rank == 2, "its right operand must be one matrix"},
                          {!t.transpose_a || a.rank == 1, "it reads the rows of its left operand as they lie"}});
  }
  return accepts_convolution(m, product_match(m, anchor));
}

/// A product or convolution with what follows it.
constexpr verdict accepts_product(const any_match& m, std::uint32_t anchor) {
  if (const verdict v = accepts_anchor(m, anchor); !v) return v;
  const product_match product(m, anchor);
  if (product.is_enlarged())
    if (const verdict v = accepts_enlarged(m, product); !v) return v;
  if (product.is_depthwise())
    if (const verdict v = accepts_depthwise(m, product); !v) return v;
  const shape& result = m.type_of(m.output_of(product.anchor)).dims;
  for (const std::uint32_t node : m.nodes()) {
    if (!product.is_later(m, node)) continue;
    if (m.type_of(m.output_of(node)).dims != result)
      return {false, "an operand that broadcasts the product to a larger shape cannot be fused"};
    for (const std::uint32_t v : m.inputs_of(node)) {
      if (m.index_of(v) == match_record::nothing) continue;
      const operand_place place = product.place(m.type_of(v).dims, result);
      if (place == operand_place::other)
        return {false, product.is_windowed
                           ? "an operand must have one number for each element or channel of the result, or one for all"
                           : "an operand must have one number for each element, row or column of the product, or one "
                             "for all"};
      if (product.is_convolution && place == operand_place::whole && m.graph().is_constant(v))
        return {false, "a constant of the size of the result would have to lie in the result's layout"};
    }
  }
  return {};
}

/// Whether a larger match goes on after a value: by the one operator that reads it, or by the two of y sigmoid(y).
constexpr bool is_continued(const any_match& m, std::uint32_t value) {
  const value_record& v = m.at(value);
  if (v.is_output || v.uses == 0 || v.uses > 2) return false;
  const auto uses = m.graph().uses_of(value);
  const std::uint32_t last = uses[v.uses - 1].node;
  if (m.type_of(m.output_of(last)).dims != v.type.dims) return false;
  if (v.uses == 2) {
    const auto in = m.inputs_of(last);
    const std::uint32_t gate = uses[0].node;
    return m.is(gate, ops::sigmoid) && m.is(last, ops::mul) && m.at(m.output_of(gate)).uses == 1 &&
           (in[0] == m.output_of(gate) || in[1] == m.output_of(gate));
  }
  if (m.is(last, ops::relu) || m.is(last, ops::leaky_relu) || m.is(last, ops::elu) || m.is(last, ops::sigmoid) ||
      m.is(last, ops::tanh))
    return true;
  const bool commutes = m.is(last, ops::add) || m.is(last, ops::mul);
  if (!commutes && !((m.is(last, ops::sub) || m.is(last, ops::div)) && uses[0].operand == 0)) return false;
  const std::uint32_t other = m.inputs_of(last)[1 - uses[0].operand];
  return m.graph().is_constant(other) &&
         place_of(m.type_of(other).dims, v.type.dims, v.type.dims.rank - 1) != operand_place::other;
}

/// How many operators follow a product, where y sigmoid(y) is one.
constexpr std::size_t later_operators(const any_match& m, const product_match& product) {
  std::size_t count = 0;
  for (const std::uint32_t node : m.nodes()) {
    if (!product.is_later(m, node)) continue;
    const bool is_gate = m.is(node, ops::sigmoid) && m.at(m.inputs_of(node)[0]).uses == 2;
    count += is_gate ? 0 : 1;
  }
  return count;
}

/// How many products with constant matrices read a value as their left operand.
constexpr std::size_t products_of(const any_match& m, std::uint32_t left) {
  std::size_t count = 0;
  for (const use& u : m.graph().uses_of(left))
    if (m.is(u.node, ops::matmul) && u.operand == 0) {
      const std::uint32_t right = m.inputs_of(u.node)[1];
      count += m.graph().is_constant(right) && m.type_of(right).dims.rank == 2 ? 1 : 0;
    }
  return count;
}

/// Several products of one left operand. Only one of the matches that have the same products is taken.
constexpr verdict accepts_shared(const any_match& m) {
  for (const std::uint32_t node : m.nodes())
    if (is_anchor(m, node))
      if (const verdict v = accepts_product(m, node); !v) return v;
  const product_match first(m);
  const auto root = static_cast<std::uint32_t>(m.at(m.output()).producer);
  return first_failure(
      {{anchor_before(m, root) == first.anchor, "the match of these products begins with the first of them"},
       {later_operators(m, first) == jit_patterns::most_later || !is_continued(m, m.output()),
        "the operator after its first product is part of a larger match"},
       {anchors(m) != 2 || products_of(m, first.left) == 2,
        "more than two products have its left operand, and three of "
        "them are one match"}});
}

constexpr verdict accepts(const any_match& m) {
  if (is_on_bytes(m)) return accepts_on_bytes(m);
  if (is_attention(m)) return accepts_attention(m);
  for (const std::uint32_t v : m.arguments()) {
    if (m.type_of(v).type != dtype::f32) return {false, "it computes float32 only"};
    if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
  }
  if (m.outputs().size() == 1 && std::string_view(m.pattern()) == jit_patterns::two_output_chain::name)
    return {false, "no value but the last is read outside, so that another pattern has this match"};
  return anchors(m) > 1 ? accepts_shared(m) : accepts_product(m, anchor_of(m));
}

}  // namespace collage::inline v0::detail::jit
