// Convolution of any rank.
#pragma once

#include <collage/op/window.hpp>

namespace collage::inline v0::ops {

/// Lists left empty mean strides and dilations of 1 and pads of 0; they are filled in when a node is added.
struct conv_attributes {
  std::int64_t groups = 1;
  shape strides{};
  shape dilations{};
  shape pads_begin{};
  shape pads_end{};
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("groups", self.groups);
    visitor("strides", self.strides);
    visitor("dilations", self.dilations);
    visitor("pads_begin", self.pads_begin);
    visitor("pads_end", self.pads_end);
  }
};

/// conv(x, w[, bias]): cross-correlation as in ONNX Conv.
/// x: [N, C, spatial...]; w: [M, C / groups, window...]; bias: [M]; output: [N, M, places...].
inline constexpr struct conv : kind<conv> {
  static constexpr char name[] = "conv";
  static constexpr fusion_kind fusion = fusion_kind::anchor;
  static constexpr arity inputs{2, 3};
  using attributes = conv_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    if (in[0].rank() >= 2) detail::default_window(in[0].rank() - 2, a.strides, a.dilations, a.pads_begin, a.pads_end);
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& w = io.in[1].dims;
    if (x.rank < 3)
      return {false, "its input must have shape [N, C, spatial...] with at least one spatial dimension", 0};
    if (w.rank != x.rank) return {false, "its weights must have the rank of its input", 1};
    for (std::size_t i = 1; i < io.in.size(); ++i)
      if (io.in[i].type != io.in[0].type)
        return {false, "its operands must have the same element type", static_cast<std::int32_t>(i)};
    const std::size_t rank = x.rank - 2;
    const shape window = w.from(2);
    shape known = window;
    for (std::size_t i = 0; i < rank; ++i)
      if (known.extent[i] < 0) known.extent[i] = 1;
    if (verdict v = detail::check_window(rank, known, a.strides, a.dilations, a.pads_begin, a.pads_end); !v) return v;
    if (verdict v = detail::check_fit(x, window, a.dilations, a.pads_begin, a.pads_end); !v) return v;
    if (a.groups < 1) return {false, "groups must be at least 1"};
    const std::int64_t c = x.extent[1], m = w.extent[0], c_of_group = w.extent[1];
    if (m >= 0 && m % a.groups != 0)
      return {false, "the number of its output channels must be a multiple of groups", 1};
    if (c >= 0 && (c % a.groups != 0 || (c_of_group >= 0 && c / a.groups != c_of_group)))
      return {false, "its weights must have shape [M, C / groups, window...] for an input of C channels", 1};
    if (io.in.size() == 3) {
      const shape& bias = io.in[2].dims;
      if (bias.rank != 1 || (bias.extent[0] >= 0 && m >= 0 && bias.extent[0] != m))
        return {false, "its bias must have shape [M] for M output channels", 2};
    }
    tensor_type& y = io.out[0];
    y = {io.in[0].type, {x.extent[0], m}};
    y.dims.rank = x.rank;
    for (std::size_t i = 0; i < rank; ++i)
      y.dims.extent[i + 2] =
          detail::window_places(x.extent[i + 2], window.extent[i], a.strides.extent[i], a.dilations.extent[i],
                                a.pads_begin.extent[i], a.pads_end.extent[i], false);
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    const auto& w = io.in[1].dims;
    const double outputs = static_cast<double>(io.out[0].dims.elements());
    const double per_output = w[0] == 0 ? 0.0 : static_cast<double>(w.elements() / w[0]);
    return {2.0 * outputs * per_output + (io.in.size() == 3 ? outputs : 0.0)};
  }
  static void reference(const attributes& a, const reference_call& call);
} conv{};

}  // namespace collage::inline v0::ops
