// Quantised convolutions of files, read from matches with the contents of their scales and zero points.
#pragma once

#include <collage/backends/impl/onednn_quantised_conv.hpp>
#include <collage/backends/impl/onednn_quantised_float.hpp>
#include <collage/backends/onednn_quantised_rules.hpp>
#include <collage/error.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// Elements of a constant of integers of 8 bits.
inline std::vector<std::int32_t> zeros_of(const build_context& context, const any_match& m, std::uint32_t value) {
  const auto* const bytes = context.constant<std::byte>(value);
  std::vector<std::int32_t> list;
  for (std::int64_t i = 0; i < m.type_of(value).dims.elements(); ++i)
    list.push_back(widened(m.type_of(value).type, bytes + i));
  return list;
}

/// The form of the integers of a quantize_linear or dequantize_linear, whose scale and zero point are known.
inline quantised_form form_of(const any_match& m, std::uint32_t node, dtype type) {
  const auto in = m.inputs_of(node);
  return {type, m.at(in[1]).scalar, in.size() == 3 ? static_cast<std::int64_t>(m.at(in[2]).scalar) : 0};
}

inline void read_quantised_steps(const quantised_conv_match& m, quantised_conv& q) {
  using enum quantised_step::action;
  using step = quantised_conv::step;
  for (std::size_t i = 0; i < m.steps; ++i) {
    const quantised_step& s = m.step[i];
    const auto integers = [&](std::uint32_t node) { return m.type_of(m.output_of(node)).type; };
    if (s.what == relu) q.steps.push_back({});
    if (s.what == clip) q.steps.push_back({.low = s.low, .high = s.high});
    if (s.what == round) {
      const quantised_form there = form_of(m, s.node, integers(s.node)), back = form_of(m, s.back, there.type);
      if (there.scale != back.scale || there.zero_point != back.zero_point)
        throw error(error_kind::unsupported, "a value is dequantised with another scale than it was quantised with",
                    "onednn");
      q.steps.push_back({.what = step::action::round, .as = there});
    }
    if (s.what == add) {
      const std::uint32_t v = m.integers_of(s.back);
      q.steps.push_back({.what = step::action::add, .as = form_of(m, s.back, m.type_of(v).type), .value = v});
    }
    if (s.what == quantise) q.target = form_of(m, s.node, integers(s.node));
    if (s.what == integers_cast) q.target.type = dtype::i32;
  }
}

inline quantised_conv quantised_conv_of(const quantised_conv_match& m, const build_context& context) {
  quantised_conv q;
  q.p = conv_problem_of(m, m.conv);
  q.p.x_value = m.integers_of(m.source);
  q.p.w_value = m.integers_of(m.weights);
  q.source = form_of(m, m.source, m.type_of(q.p.x_value).type);
  q.weights = m.type_of(q.p.w_value).type;
  const auto w = m.inputs_of(m.weights);
  const std::int64_t scales = m.type_of(w[1]).dims.elements();
  if (m.type_of(w[1]).type == dtype::f32)
    q.weight_scales.assign(context.constant<float>(w[1]), context.constant<float>(w[1]) + scales);
  else q.weight_scales = {1};  // float64, of exact sums
  if (w.size() == 3) q.weight_zeros = zeros_of(context, m, w[2]);
  if (const auto in = m.inputs_of(m.conv); in.size() == 3) {
    const auto* const bias = context.constant<float>(in[2]);
    q.bias.assign(bias, bias + q.p.y[1]);
  }
  read_quantised_steps(m, q);
  return q;
}

/// How a quantised convolution is computed: its choices, in this order.
enum class quantised_way : std::uint8_t {
  channels_last,
  plain,
  in_float,  ///< with channels last
};
inline constexpr std::size_t quantised_ways = 3;

/// The layouts of the values at the border: channels last for those with enough channels, or plain.
inline value_forms quantised_borders(const quantised_conv_match& m, std::size_t choice) {
  value_forms list;
  const auto set = [&](std::uint32_t v) {
    if (!m.graph().is_constant(v) && m.type_of(v).dims[1] >= block_size()) list.set(v, channels_last);
  };
  if (static_cast<quantised_way>(choice) == quantised_way::plain || block_size() == 0) return list;
  m.visit_images(set);
  set(m.output());
  return list;
}

inline kernel build_quantised(const quantised_conv_match& m, build_context& context) {
  const quantised_conv q = quantised_conv_of(m, context);
  const value_forms borders = quantised_borders(m, context.choice());
  if (static_cast<quantised_way>(context.choice()) == quantised_way::in_float)
    return build_quantised_in_float(m, context, q, borders);
  return build_quantised_conv(m, context, q, borders);
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
