// Which depthwise convolutions the backend `jit` computes on bytes: of quantised files, and of networks in float32.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_patterns.hpp>
#include <collage/backends/known_scale.hpp>
#include <collage/ops.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// A match of the pattern `quantised_depthwise` or `byte_depthwise`: its nodes, and the values that its kernel reads.
/// match_record::nothing stands for what is missing.
struct quantised_depthwise_match {
  std::uint32_t depthwise = match_record::nothing;                                            ///< the convolution
  std::uint32_t image_scales = match_record::nothing, weight_scales = match_record::nothing;  ///< dequantize_linear
  std::uint32_t between = match_record::nothing, last = match_record::nothing;  ///< relu or clip; quantize_linear
  std::uint32_t image = 0, weights = 0, bias = match_record::nothing;           ///< values

  constexpr explicit quantised_depthwise_match(const any_match& m) {
    for (const std::uint32_t node : m.nodes()) {
      if (m.is(node, ops::conv)) depthwise = node;
      else if (m.is(node, ops::relu) || m.is(node, ops::clip)) between = node;
      else if (m.is(node, ops::quantize_linear)) last = node;
    }
    if (depthwise == match_record::nothing) return;
    const auto in = m.inputs_of(depthwise);
    image = in[0], weights = in[1];
    if (in.size() > 2) bias = in[2];
    if (m.at(weights).producer < 0) return;
    image_scales = static_cast<std::uint32_t>(m.at(image).producer);
    weight_scales = static_cast<std::uint32_t>(m.at(weights).producer);
    image = m.inputs_of(image_scales)[0];
    weights = m.inputs_of(weight_scales)[0];
  }
  /// Whether the network has the integers. Otherwise a plan stores values as integers.
  constexpr bool is_of_file() const { return weight_scales != match_record::nothing; }
  constexpr bool is_quantised() const { return last != match_record::nothing; }
};

/// Whether a match is of one of these patterns.
constexpr bool is_on_bytes(const any_match& m) {
  if (std::string_view(m.pattern()) == jit_patterns::byte_depthwise::name) return true;
  for (const std::uint32_t node : m.nodes())
    if (m.is(node, ops::dequantize_linear)) return true;
  return false;
}

/// Weights [channels, 1, rows, columns] with one scale, or one for each channel.
constexpr bool has_scales_of_channels(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  const std::int64_t scales = m.type_of(in[1]).dims.elements();
  const ops::quantize_attributes a = m.attributes(node, ops::dequantize_linear);
  return m.type_of(in[1]).type == dtype::f32 &&
         (scales == 1 || (a.axis == 0 && a.block == 0 && scales == m.type_of(in[0]).dims[0]));
}

constexpr verdict accepts_quantised_window(const any_match& m, const quantised_depthwise_match& q) {
  const shape& x = m.type_of(q.image).dims;
  const shape& w = m.type_of(q.weights).dims;
  const ops::conv_attributes t = m.attributes(q.depthwise, ops::conv);
  if (x.rank != 4 || t.groups != x[1] || w[0] != x[1] || w[1] != 1)
    return {false, "of quantised files it computes depthwise convolutions of images, with as many outputs as channels"};
  constexpr std::int64_t most = (std::int64_t{1} << 31U) - 1, most_taps = 512;
  const shape& y = m.type_of(m.output_of(q.depthwise)).dims;
  bool is_sound = true;
  for (std::size_t d = 0; d < 4; ++d)
    is_sound = is_sound && x[d] >= 1 && x[d] <= most && w[d] >= 1 && w[d] <= most && y[d] >= 1 && y[d] <= most;
  for (std::size_t d = 0; d < 2; ++d)
    is_sound = is_sound && t.pads_begin[d] >= 0 && t.pads_end[d] >= 0 && t.pads_begin[d] <= most &&
               t.pads_end[d] <= most && t.strides[d] <= most && t.dilations[d] <= most;
  return first_failure(
      {{is_sound, "the extents of a depthwise convolution must be from 1 to 2147483647, and its pads at least 0"},
       {w[2] <= most_taps && w[3] <= most_taps && w[2] * w[3] <= most_taps,
        "the window of a quantised depthwise convolution may have 512 elements"}});
}

/// The scales and types that a quantised file must have.
constexpr verdict accepts_quantisation(const any_match& m, const quantised_depthwise_match& q) {
  const dtype stored = m.type_of(q.weights).type;
  if (!has_one_known_scale(m, q.image_scales))
    return {false, "the image of a quantised convolution must be int8 or uint8, with one known positive scale"};
  if (!is_8_bit_integer(stored) || !has_scales_of_channels(m, q.weight_scales))
    return {false, "quantised weights must be int8 or uint8, with one scale or one for each channel"};
  if (q.is_quantised() && !has_one_known_scale(m, q.last))
    return {false, "the result of a quantised convolution must be int8 or uint8, with one known positive scale"};
  return {};
}

constexpr verdict accepts_on_bytes(const any_match& m) {
  for (const std::uint32_t v : m.arguments())
    if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
  const quantised_depthwise_match q(m);
  if (q.is_of_file())
    if (const verdict v = accepts_quantisation(m, q); !v) return v;
  if (m.type_of(m.output_of(q.depthwise)).type != dtype::f32)
    return {false, "between quantised values it computes float32 only"};
  if (q.between != match_record::nothing && m.is(q.between, ops::clip)) {
    const value_record &low = m.at(m.inputs_of(q.between)[1]), &high = m.at(m.inputs_of(q.between)[2]);
    if (!low.has_scalar || !high.has_scalar || !(low.scalar <= high.scalar))
      return {false, "the bounds of clip after a depthwise convolution must be constant numbers in ascending order"};
  }
  if (const verdict v = accepts_quantised_window(m, q); !v) return v;
  const tail next = tail_of(m, m.output());
  const bool is_bounded = q.between != match_record::nothing;
  return {next == tail::none || (next == tail::bounds_and_quantises && is_bounded), longer_match_is_better};
}

}  // namespace collage::inline v0::detail::jit
