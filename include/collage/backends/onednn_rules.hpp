// The matches that the oneDNN adapter accepts. A match that the library computes differently from the operator's
// definition is refused here or guarded in impl/. Refusals by the library itself come from `build`.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_quantised_products.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::onednn {

/// All tensors must be float32 and have elements. Only conversions also take integers of 8 bits.
constexpr verdict accepts_types(const any_match& m) {
  const bool converts = m.is(m.nodes().back(), ops::convert_layout);
  for (const std::uint32_t v : m.arguments()) {
    const dtype type = m.type_of(v).type;
    if (type != dtype::f32 && !(converts && is_8_bit_integer(type))) return {false, "onednn computes only in float32"};
    if (m.type_of(v).dims.elements() <= 0) return {false, "onednn needs shapes that are known and not empty"};
  }
  return {m.type_of(m.output()).dims.elements() > 0, "onednn needs shapes that are known and not empty"};
}

/// A convolution with a window of one element, then a depthwise one of 3x3 with a pad of 1 all around.
constexpr verdict accepts_pair(const chain& m) {
  if (!m.why) return m.why;
  const shape& x = m.type_of(m.inputs_of(m.anchor)[0]).dims;
  const shape& inner = m.type_of(m.output_of(m.anchor)).dims;
  const shape& w = m.type_of(m.inputs_of(m.depthwise)[1]).dims;
  const auto a = m.attributes(m.anchor, ops::conv);
  const auto b = m.attributes(m.depthwise, ops::conv);
  if (x.rank != 4 || a.groups != 1 || m.type_of(m.inputs_of(m.anchor)[1]).dims.from(2).elements() != 1)
    return {false, "onednn fuses a depthwise convolution only into a 1x1 convolution of 2D images"};
  if (b.groups != inner[1] || w[0] != inner[1]) return {false, "the second convolution must be depthwise"};
  bool fits = b.strides[0] == b.strides[1];
  for (std::size_t i = 0; i < 2; ++i) {
    fits = fits && a.strides[i] == 1 && a.pads_begin[i] == 0 && a.pads_end[i] == 0 && w[i + 2] == 3;
    fits = fits && b.dilations[i] == 1 && b.pads_begin[i] == 1 && b.pads_end[i] == 1 && b.strides[i] <= 2;
  }
  return {
      fits,
      "onednn fuses only a 3x3 depthwise convolution with pads of 1 and equal strides of 1 or 2 into a 1x1 convolution "
      "with strides of 1 and no pads"};
}

constexpr verdict accepts_pool(const any_match& m, std::uint32_t node) {
  const auto a = m.is(node, ops::max_pool) ? m.attributes(node, ops::max_pool) : m.attributes(node, ops::average_pool);
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  const shape& y = m.type_of(m.output_of(node)).dims;
  if (x.rank > 5) return {false, "onednn pools over at most 3 dimensions"};
  for (std::size_t i = 0; i < a.window.size(); ++i) {
    if (a.dilations[i] != 1) return {false, "onednn pools dilated windows only in slow loops"};
    // Rounding up may leave a window partly beyond the pads; the library would count the elements there.
    const std::int64_t beyond =
        (y[i + 2] - 1) * a.strides[i] + a.window[i] - x[i + 2] - a.pads_begin[i] - a.pads_end[i];
    if (m.is(node, ops::average_pool) && a.count_padding && beyond > 0)
      return {false, "onednn divides by the whole window where it reaches beyond the pads"};
  }
  return {};
}

/// The library picks round(x), with halves away from zero, by half-pixel coordinates. Other rules pass where they pick
/// the same elements, as when an image grows by a whole factor.
constexpr bool picks_the_same(const ops::resize_attributes& a, std::int64_t in, std::int64_t out) {
  using enum ops::resize_coordinates;
  using enum ops::resize_rounding;
  const auto below = [](std::int64_t n, std::int64_t d) { return n >= 0 ? n / d : -((d - 1 - n) / d); };
  const auto within = [in](std::int64_t i) { return i < 0 ? 0 : i >= in ? in - 1 : i; };
  for (std::int64_t o = 0; o < out; ++o) {
    // The position in the input is n / d.
    std::int64_t n = (2 * o + 1) * in - out, d = 2 * out;
    const std::int64_t library = within(below(2 * n + d, 2 * d));
    if (a.coordinates == asymmetric) n = o * in, d = out;
    if (a.coordinates == align_corners || (a.coordinates == pytorch_half_pixel && out == 1))
      n = out == 1 ? 0 : o * (in - 1), d = out == 1 ? 1 : out - 1;
    std::int64_t wanted = below(2 * n + d, 2 * d);
    if (a.rounding == prefer_floor) wanted = -below(d - 2 * n, 2 * d);
    if (a.rounding == down) wanted = below(n, d);
    if (a.rounding == up) wanted = -below(-n, d);
    if (within(wanted) != library) return false;
  }
  return true;
}

constexpr verdict accepts_resize(const any_match& m, std::uint32_t node) {
  const auto a = m.attributes(node, ops::resize);
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  const shape& y = m.type_of(m.output()).dims;
  if (x.rank < 3 || x.rank > 5 || x[0] != y[0] || x[1] != y[1])
    return {false, "onednn resizes only the 1 to 3 dimensions after N and C"};
  if (!decltype(ops::resize)::is_common(a))
    return {false, "onednn resizes to the nearest element or linearly, by the ratio of the extents"};
  for (std::size_t d = 2; d < x.rank; ++d) {
    if (x[d] == y[d]) continue;
    if (y[d] > (std::int64_t{1} << 16)) return {false, "onednn's coordinates are float32, too coarse for this size"};
    if (a.mode == ops::resize_mode::nearest && !picks_the_same(a, x[d], y[d]))
      return {false, "onednn rounds half-pixel coordinates and would pick other elements here"};
    const bool half_pixel = a.coordinates == ops::resize_coordinates::half_pixel ||
                            (a.coordinates == ops::resize_coordinates::pytorch_half_pixel && y[d] > 1);
    if (a.mode == ops::resize_mode::linear && !half_pixel)
      return {false, "onednn resizes linearly only with half-pixel coordinates"};
  }
  return {};
}

/// A convolution after a resize, computed as a transposed convolution of the smaller image. Each element of that image
/// stands for a block of equal elements.
constexpr verdict accepts_upsampled(const chain& m) {
  const auto r = m.attributes(m.resize, ops::resize);
  const auto a = m.attributes(m.anchor, ops::conv);
  const shape& x = m.type_of(m.inputs_of(m.resize)[0]).dims;
  const shape& between = m.type_of(m.output_of(m.resize)).dims;
  const shape& w = m.type_of(m.inputs_of(m.anchor)[1]).dims;
  if (!decltype(ops::resize)::is_common(r) || r.mode != ops::resize_mode::nearest || x[0] != between[0] ||
      x[1] != between[1])
    return {false, "onednn fuses only a nearest resize of the dimensions after N and C"};
  bool fits = true, gains = false;
  for (std::size_t d = 2; d < x.rank; ++d) {
    if (between[d] % x[d] != 0 || between[d] > (std::int64_t{1} << 16) || !picks_the_same(r, x[d], between[d]))
      return {false, "onednn fuses only a resize by a whole factor"};
    gains = gains || (between[d] != x[d] && w[d] > 1);  // else fusing saves no work
    fits = fits && a.strides[d - 2] == 1 && a.dilations[d - 2] == 1 && a.pads_begin[d - 2] < w[d] &&
           a.pads_end[d - 2] < w[d];
  }
  if (!gains) return {false, "there is nothing to gain from fusing this resize"};
  return {fits, "after a resize, onednn needs strides of 1, no dilation, and pads smaller than the window"};
}

constexpr verdict accepts_binary(const any_match& m, std::uint32_t node) {
  const shape& out = m.type_of(m.output()).dims;
  const auto is_full = [&](std::size_t operand) {
    return m.type_of(m.inputs_of(node)[operand]).dims.elements() == out.elements();
  };
  if (is_full(0)) return {};
  return {m.kind_of(node).commutative && is_full(1), "onednn broadcasts only the second operand"};
}

constexpr verdict accepts_softmax(const any_match& m, std::uint32_t node) {
  const shape& x = m.type_of(m.output()).dims;
  const auto axis = static_cast<std::size_t>(m.attributes(node, ops::softmax).axis);
  return {x.from(axis + 1).elements() == 1, "onednn has a fast softmax only over the last dimension"};
}

/// Whether each operand of a layer_norm holds one number for each element of a row. The library then applies the
/// operands itself.
constexpr bool scales_rows(const any_match& m, std::uint32_t node) {
  const shape& x = m.type_of(m.output()).dims;
  const auto axis = static_cast<std::size_t>(m.attributes(node, ops::layer_norm).axis);
  const auto in = m.inputs_of(node);
  for (std::size_t i = 1; i < in.size(); ++i)
    if (!lies_over(m.type_of(in[i]).dims, x, [&](std::size_t d) { return d >= axis; })) return false;
  return true;
}

constexpr verdict accepts_layer_norm(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  return {scales_rows(m, node) || in.size() == 2 || m.type_of(in[1]).dims == m.type_of(in[2]).dims,
          "onednn needs one scale and bias for each normalised element, or a scale and a bias of the same shape", 2};
}

constexpr verdict accepts_reduction(const any_match& m, std::uint32_t node) {
  const auto a =
      m.is(node, ops::reduce_mean) ? m.attributes(node, ops::reduce_mean) : m.attributes(node, ops::reduce_sum);
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  bool inner = true;
  for (std::size_t d = x.rank; d > 0; --d) {
    bool reduced = false;
    for (const std::int64_t axis : a.axes) reduced = reduced || axis == static_cast<std::int64_t>(d) - 1;
    if (x[d - 1] != 1 && reduced && !inner) return {false, "onednn has fast reductions only over the last dimensions"};
    if (x[d - 1] != 1 && !reduced) inner = false;
  }
  return {};
}

/// A recurrent cell over whole sequences.
template <operator_kind Kind>
constexpr verdict accepts_cell(const any_match& m, std::uint32_t node, const Kind& kind) {
  const auto in = m.inputs_of(node);
  if (in.size() > Kind::inputs.least)
    return {false, "onednn runs all steps of all sequences, without peepholes",
            static_cast<std::int32_t>(Kind::inputs.least)};
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
    if (!m.graph().is_constant(in[i]))
      return {false, "onednn needs constant weights and biases in recurrent cells, because it packs them",
              static_cast<std::int32_t>(i)};
  const auto a = m.attributes(node, kind);
  if (a.clip != 0) return {false, "onednn has no clip in recurrent cells"};
  using enum recurrent_activation;
  for (std::size_t i = 0; i < a.activations.size(); ++i) {
    const auto wanted = i % Kind::activations == 0 ? sigmoid : tanh;
    if (static_cast<recurrent_activation>(a.activations[i]) != wanted)
      return {false, "onednn has recurrent cells only with sigmoid and tanh"};
  }
  if constexpr (requires { a.input_forget; })
    if (a.input_forget) return {false, "onednn's lstm cannot couple the input and forget gates (input_forget)"};
  return {};
}

/// Float32 values of any shape are converted to bfloat16 and back. Layouts are of images.
constexpr verdict accepts_conversion(const any_match& m) {
  const tensor_type& type = m.type_of(m.output());
  return {type.type == dtype::f32 || (type.dims.rank >= 3 && type.dims.rank <= 5),
          "onednn converts the layouts of images of 1 to 3 dimensions"};
}

constexpr verdict accepts_single(const any_match& m, std::uint32_t node) {
  if (m.is(node, ops::convert_layout)) return accepts_conversion(m);
  if (m.is(node, ops::max_pool) || m.is(node, ops::average_pool)) return accepts_pool(m, node);
  if (m.is(node, ops::resize)) return accepts_resize(m, node);
  if (m.is(node, ops::softmax)) return accepts_softmax(m, node);
  if (m.is(node, ops::layer_norm)) return accepts_layer_norm(m, node);
  if (m.is(node, ops::reduce_mean) || m.is(node, ops::reduce_sum)) return accepts_reduction(m, node);
  if (m.is(node, ops::lstm)) return accepts_cell(m, node, ops::lstm);
  if (m.is(node, ops::gru)) return accepts_cell(m, node, ops::gru);
  if (m.inputs_of(node).size() == 2 && m.kind_of(node).has_body) return accepts_binary(m, node);
  return accepts_activation(m, node);
}

constexpr verdict accepts(const chain& m) {
  if (is_quantised_product(m)) return accepts_quantised(m);
  if (verdict v = accepts_types(m); !v) return v;
  if (m.anchor == match_record::nothing) return accepts_single(m, m.nodes().back());
  if (m.depthwise != match_record::nothing) return accepts_pair(m);
  if (verdict v = accepts_steps(m); !v) return v;
  const std::size_t rank = m.type_of(m.inputs_of(m.anchor)[0]).dims.rank;
  if (m.is_convolution(m.anchor) && rank > 5) return {false, "onednn convolves over at most 3 dimensions"};
  if (m.resize != match_record::nothing) return accepts_upsampled(m);
  const bool moved = m.ends_in_transpose();
  return {!moved || (rank > 1 && m.type_of(m.inputs_of(m.anchor)[1]).dims.rank > 1),
          "onednn transposes only products of two matrices"};
}

}  // namespace collage::inline v0::detail::onednn
