// Products of quantised operands on oneDNN, as patterns, and what they need to be computed from the integers themselves.
//
//   dequantize_linear(a) x dequantize_linear(b) -> [casts] -> [post-ops] -> [GELU] -> [quantize_linear]
//
// This is the form of MatMulInteger, QLinearMatMul, and of products between quantize and dequantize nodes. Dynamic quantisation
// makes it, too. Its scales are a factor after the product.
#pragma once

#include <collage/backends/known_scale.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_patterns.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::onednn_patterns {

inline constexpr auto dequantized = ops::dequantize_linear(any, any, maybe(any));
inline constexpr auto any_product_of_integers =
    product(optional(ops::transpose(previous), dequantized), optional(ops::transpose(previous), dequantized));
/// With the casts by which ONNX's integer products are lowered, and the factor that dynamic quantisation has after them. That is often
/// a scale that was just computed, times a known one.
inline constexpr auto scaled_product_of_integers =
    optional(ops::mul(previous, either(ops::mul(any, constant).as<"scales">(), any)).as<"scaled">(),
             repeat<0, 3>(ops::cast(previous), any_product_of_integers).as<"product">());
/// A result that the file rounds to integers before it goes on with it, as most files do between a product and its bias.
inline constexpr auto rounded_product_of_integers =
    ops::dequantize_linear(ops::quantize_linear(any_product_of_integers, constant, maybe(constant)), constant,
                           maybe(constant))
        .as<"rounded">();
inline constexpr std::size_t most_quantised_post_ops = 3;  // a pattern has at most 64 nodes

/// The result may stay a number or become an integer again.
template <class Result>
constexpr auto perhaps_quantized(const Result& result) {
  return optional(ops::quantize_linear(previous, any, maybe(any)).template as<"quantized">(), result);
}

struct quantised_product : pattern<"quantised_product"> {
  static constexpr auto expr =
      perhaps_quantized(repeat<0, most_quantised_post_ops>(post_op, scaled_product_of_integers));
};
struct rounded_product : pattern<"rounded_product"> {
  static constexpr auto expr =
      perhaps_quantized(repeat<0, most_quantised_post_ops>(post_op, rounded_product_of_integers));
};

/// As matmul_add_gelu.
template <class Sum>
constexpr auto gelu_of(const Sum& sum) {
  const auto erf = ops::erf(ops::div(same<"behind">(), scalar(1.4142135623730951)));
  return ops::mul(sum, ops::mul(scalar(0.5), ops::add(erf, scalar(1)))).template as<"gelu">();
}
struct quantised_product_gelu : pattern<"quantised_product_gelu"> {
  static constexpr auto expr = perhaps_quantized(gelu_of(ops::add(scaled_product_of_integers, any).as<"behind">()));
};
struct rounded_product_gelu : pattern<"rounded_product_gelu"> {
  static constexpr auto expr = perhaps_quantized(gelu_of(ops::add(rounded_product_of_integers, any).as<"behind">()));
};

}  // namespace collage::inline v0::onednn_patterns

namespace collage::inline v0::detail::onednn {

/// So many products of integers of 8 bits add up in int32 without overflow: 255 * 255 times this is less than 2^31.
inline constexpr std::int64_t most_products_of_bytes = 33'025;

/// An operand of a quantised product: integers that stand for (integer - zero point) * scale.
struct quantised_operand {
  std::uint32_t node = match_record::nothing;  ///< the dequantize_linear
  std::uint32_t integers = 0;                  ///< its operand of 8 bits
  std::uint32_t scale = 0;
  std::uint32_t zero_point = match_record::nothing;

  constexpr bool has_one_scale(const any_match& m) const { return m.type_of(scale).dims.elements() == 1; }
  constexpr bool is_unscaled(const any_match& m) const { return m.at(scale).has_scalar && m.at(scale).scalar == 1; }
};

/// The dequantize_linear of the match that computes `value`, perhaps before a transpose; without one, `node` is `nothing`.
constexpr quantised_operand quantised_operand_of(const any_match& m, std::uint32_t value) {
  for (int step = 0; step < 2; ++step) {
    const std::int32_t producer = m.at(value).producer;
    if (producer < 0 || !m.contains(static_cast<std::uint32_t>(producer))) break;
    const auto node = static_cast<std::uint32_t>(producer);
    const auto in = m.inputs_of(node);
    if (m.is(node, ops::dequantize_linear)) return {node, in[0], in[1], in.size() == 3 ? in[2] : match_record::nothing};
    if (!m.is(node, ops::transpose)) break;
    value = in[0];
  }
  return {};
}

/// A quantised product, read from a match.
struct quantised_product {
  quantised_operand a, b;
  std::uint32_t quantizer = match_record::nothing;  ///< the quantize_linear at the end
  std::size_t casts = 0;
  dtype cast_to[3] = {};
  std::size_t first_step = 0;  ///< the first step that is a post-op
  /// The operands of the step before, which is a factor: one number or one for each column, and perhaps one more number.
  std::uint32_t factor = match_record::nothing, more_factor = match_record::nothing;
  dtype result = dtype::f32;

  constexpr explicit quantised_product(const chain& m)
      : a(quantised_operand_of(m, m.inputs_of(m.anchor)[0])), b(quantised_operand_of(m, m.inputs_of(m.anchor)[1])) {
    for (const std::uint32_t node : m.nodes())
      if (m.is(node, ops::cast) && casts < 3) cast_to[casts++] = m.attributes(node, ops::cast).to;
    if (const std::uint32_t root = m.nodes().back(); m.is(root, ops::quantize_linear)) quantizer = root;
    result = m.type_of(m.output()).type;
    if (m.steps == 0 || !a.is_unscaled(m) || !b.is_unscaled(m)) return;
    const chain_step& s = m.step[0];
    const bool multiplies = s.what == chain_step::action::binary && s.kind == kind_id<struct ops::mul>;
    if (multiplies && (m.spread_of(s) == spread::channel || m.spread_of(s) == spread::single)) {
      factor = s.operand;
      first_step = 1;
      const std::int32_t made = m.at(factor).producer;
      if (made < 0 || !m.contains(static_cast<std::uint32_t>(made))) return;
      const auto parts = m.inputs_of(static_cast<std::uint32_t>(made));
      const bool is_first = m.type_of(parts[0]).dims.elements() == 1;
      more_factor = parts[is_first ? 0 : 1];
      factor = parts[is_first ? 1 : 0];
    }
  }
  /// Whether the step after the factor adds one number to each column, as a bias does.
  constexpr bool has_bias(const chain& m) const {
    return m.steps > first_step && m.step[first_step].adds() && m.spread_of(m.step[first_step]) == spread::channel;
  }
};

constexpr bool is_quantised_product(const chain& m) {
  return m.anchor != match_record::nothing && m.is(m.anchor, ops::matmul) &&
         quantised_operand_of(m, m.inputs_of(m.anchor)[0]).node != match_record::nothing;
}

/// The dimension of the columns in a product's second operand as dequantize_linear sees it; -1 if there is none.
constexpr std::int64_t column_axis(const chain& m, const quantised_operand& b) {
  const std::uint32_t value = m.inputs_of(m.anchor)[1];
  const std::size_t rank = m.type_of(value).dims.rank;
  if (rank < 2) return -1;
  const std::size_t at = rank - (m.attributes(m.anchor, ops::matmul).transpose_b ? 2 : 1);
  if (m.output_of(b.node) == value) return static_cast<std::int64_t>(at);
  const auto transpose = static_cast<std::uint32_t>(m.at(value).producer);
  return m.attributes(transpose, ops::transpose).permutation[at];
}

constexpr verdict accepts_quantised_operand(const chain& m, const quantised_operand& o, std::int64_t axis) {
  if (!is_8_bit_integer(m.type_of(o.integers).type)) return {false, "onednn multiplies only integers of 8 bits"};
  const bool is_single = o.has_one_scale(m);
  const auto attributes = m.attributes(o.node, ops::dequantize_linear);
  if (!is_single && (attributes.block != 0 || attributes.axis != axis || m.type_of(o.scale).type != dtype::f32))
    return {false, "onednn takes one scale for an operand, or one for each column of the second"};
  if (!is_single && o.zero_point != match_record::nothing && !m.graph().is_constant(o.zero_point))
    return {false, "onednn takes several zero points only as constants"};
  if (m.type_of(o.scale).type != dtype::f32 && !m.at(o.scale).has_scalar)
    return {false, "onednn takes scales in float32"};
  return {};
}

/// The casts between the product and the steps. A product of integers is cast to int64 and int32, which keeps it.
constexpr verdict accepts_casts(const chain& m, const quantised_product& p) {
  const dtype type = m.type_of(m.output_of(m.anchor)).type;
  if (p.casts == 0) return {type == dtype::f32, "onednn's products of integers become int32 or float32"};
  const bool are_whole = p.a.is_unscaled(m) && p.b.is_unscaled(m);
  if (p.casts == 1)
    return {are_whole && p.cast_to[0] == dtype::f32, "onednn casts products of integers only to float32"};
  bool fits = are_whole && p.cast_to[0] == dtype::i64 && p.cast_to[1] == dtype::i32;
  if (p.casts == 3) fits = fits && p.cast_to[2] == dtype::f32;
  else fits = fits && m.steps == 0 && p.quantizer == match_record::nothing;
  return {fits, "onednn casts products of integers only to int32, and from there to float32"};
}

/// A result that is quantised and dequantised at once.
constexpr verdict accepts_rounding(const chain& m, std::uint32_t dequantizer) {
  const auto back = m.inputs_of(dequantizer);
  const auto quantizer = static_cast<std::uint32_t>(m.at(back[0]).producer);
  const bool is_known = has_one_known_scale(m, quantizer) && has_one_known_scale(m, dequantizer);
  return {is_known && m.at(back[1]).scalar == m.at(m.inputs_of(quantizer)[1]).scalar &&
              zero_point_of(m, dequantizer) == zero_point_of(m, quantizer),
          "onednn rounds a result only to 8 bits, by one known scale and zero point, by which it is dequantised again"};
}

/// Whether the integers are multiplied as they are: without zero points, and int8 on the right.
constexpr bool has_plain_integers(const chain& m, const quantised_product& p) {
  return p.a.zero_point == match_record::nothing && p.b.zero_point == match_record::nothing &&
         m.type_of(p.b.integers).type == dtype::i8;
}

/// A product whose operands are dequantised. The processor's instructions are checked in `build`.
constexpr verdict accepts_quantised(const chain& m) {
  if (!m.why) return m.why;
  for (const std::uint32_t v : m.arguments())
    if (m.type_of(v).dims.elements() <= 0) return {false, "onednn needs shapes that are known and not empty"};
  if (m.type_of(m.output()).dims.elements() <= 0) return {false, "onednn needs shapes that are known and not empty"};
  const quantised_product p(m);
  if (p.a.node == match_record::nothing || p.b.node == match_record::nothing)
    return {false, "onednn multiplies integers only by integers"};
  if (verdict v = accepts_quantised_operand(m, p.a, -1); !v) return v;
  if (verdict v = accepts_quantised_operand(m, p.b, column_axis(m, p.b)); !v) return v;
  if (verdict v = accepts_casts(m, p); !v) return v;
  if (verdict v = accepts_steps(m); !v) return v;
  for (std::size_t i = 0; i < m.steps; ++i) {
    if (m.step[i].what == chain_step::action::binary && m.type_of(m.step[i].operand).type != dtype::f32)
      return {false, "onednn computes only in float32"};
    if (m.step[i].what == chain_step::action::round)
      if (verdict v = accepts_rounding(m, m.step[i].node); !v) return v;
  }
  if (p.more_factor != match_record::nothing && m.type_of(p.more_factor).dims.elements() != 1)
    return {false, "onednn multiplies a product by one list of scales"};
  if (p.quantizer != match_record::nothing) {
    const std::uint32_t scale = m.inputs_of(p.quantizer)[1];
    if (!is_8_bit_integer(p.result)) return {false, "onednn quantises only to integers of 8 bits"};
    if (m.type_of(scale).dims.elements() != 1 || m.type_of(scale).type != dtype::f32)
      return {false, "onednn quantises a product only by one scale in float32"};
  }
  const shape& a = m.type_of(m.inputs_of(m.anchor)[0]).dims;
  const shape& b = m.type_of(m.inputs_of(m.anchor)[1]).dims;
  const auto e = decltype(ops::matmul)::extents_of(m.attributes(m.anchor, ops::matmul), a, b);
  if (p.result == dtype::i32 && !has_plain_integers(m, p))
    return {e.k_a <= 258,
            "onednn returns sums with zero points by way of float32, in which at most 258 products are exact"};
  return {e.k_a <= most_products_of_bytes,
          "onednn adds up at most 33,025 products of integers, so that no sum overflows"};
}

}  // namespace collage::inline v0::detail::onednn
