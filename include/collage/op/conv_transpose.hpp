// Transposed convolution of any rank.
#pragma once

#include <collage/op/window.hpp>

namespace collage::inline v0::ops {

/// Lists left empty mean strides and dilations of 1 and pads of 0; they are filled in when a node is added.
struct conv_transpose_attributes {
  std::int64_t groups = 1;
  shape strides{};
  shape dilations{};
  shape pads_begin{};  ///< how much of the output is cut off
  shape pads_end{};
  shape output_padding{};  ///< places added to the output at the end of each dimension
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("groups", self.groups);
    visitor("strides", self.strides);
    visitor("dilations", self.dilations);
    visitor("pads_begin", self.pads_begin);
    visitor("pads_end", self.pads_end);
    visitor("output_padding", self.output_padding);
  }
};

/// conv_transpose(x, w[, bias]): each element of x adds its multiple of the window to the output, as in ONNX
/// ConvTranspose. The windows of neighbouring elements are a stride apart.
///
/// x: [N, C, spatial...]; w: [C, M / groups, window...]; bias: [M]; output: [N, M, places...].
/// Here places = stride (extent - 1) + dilation (window - 1) + 1 - pads + output_padding.
inline constexpr struct conv_transpose : kind<conv_transpose> {
  static constexpr char name[] = "conv_transpose";
  static constexpr fusion_kind fusion = fusion_kind::anchor;
  static constexpr arity inputs{2, 3};
  using attributes = conv_transpose_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    if (in[0].rank() < 2) return;
    detail::default_window(in[0].rank() - 2, a.strides, a.dilations, a.pads_begin, a.pads_end);
    if (a.output_padding.empty()) a.output_padding = shape::filled(in[0].rank() - 2, 0);
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
    shape window = w.from(2);
    for (std::size_t i = 0; i < rank; ++i)
      if (window[i] < 0) window[i] = 1;
    if (verdict v = detail::check_window(rank, window, a.strides, a.dilations, a.pads_begin, a.pads_end); !v) return v;
    if (a.output_padding.size() != rank) return {false, "output_padding must have one entry per spatial dimension"};
    if (a.groups < 1) return {false, "groups must be at least 1"};
    if (x[1] >= 0 && x[1] % a.groups != 0)
      return {false, "the number of its input channels must be a multiple of groups", 0};
    if (x[1] >= 0 && w[0] >= 0 && x[1] != w[0])
      return {false, "its weights must have shape [C, M / groups, window...] for an input of C channels", 1};
    if (w[1] > detail::largest_extent / a.groups) return {false, "it has too many output channels", 1};
    const std::int64_t channels = w[1] < 0 ? unknown : w[1] * a.groups;
    if (io.in.size() == 3) {
      const auto& bias = io.in[2].dims;
      if (bias.rank != 1 || (bias[0] >= 0 && channels >= 0 && bias[0] != channels))
        return {false, "its bias must have shape [M] for M output channels", 2};
    }
    io.out[0] = {io.in[0].type, {x[0], channels}};
    for (std::size_t i = 0; i < rank; ++i) {
      if (a.output_padding[i] < 0 || a.output_padding[i] > 0x7FFFFFFF)
        return {false, "output_padding must not be negative, and below 2^31"};
      if (x[i + 2] < 0 || w[i + 2] < 0) {
        io.out[0].dims.push_back(unknown);
        continue;
      }
      if (x[i + 2] == 0) return {false, "its input must not be empty in a spatial dimension", 0};
      if (x[i + 2] > detail::largest_extent / a.strides[i]) return {false, "its output would be too large", 0};
      const std::int64_t places = a.strides[i] * (x[i + 2] - 1) + a.dilations[i] * (window[i] - 1) + 1 -
                                  a.pads_begin[i] - a.pads_end[i] + a.output_padding[i];
      if (places < 1) return {false, "its pads must leave something of its output"};
      io.out[0].dims.push_back(places);
    }
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    const auto& w = io.in[1].dims;
    const double per_element = w[0] == 0 ? 0.0 : static_cast<double>(w.elements() / w[0]);
    return {2.0 * static_cast<double>(io.in[0].dims.elements()) * per_element +
            (io.in.size() == 3 ? static_cast<double>(io.out[0].dims.elements()) : 0.0)};
  }
  static void reference(const attributes& a, const reference_call& call);
} conv_transpose{};

}  // namespace collage::inline v0::ops
