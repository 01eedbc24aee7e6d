// Deformable convolution: offsets move the taps of its windows.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/window.hpp>

namespace collage::inline v0::ops {

/// Lists left empty mean strides and dilations of 1 and pads of 0; they are filled in when a node is added.
struct deform_conv_attributes {
  std::int64_t groups = 1;
  std::int64_t offset_groups = 1;  ///< how many parts of the channels have offsets of their own
  shape strides{};
  shape dilations{};
  shape pads_begin{};
  shape pads_end{};
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("groups", self.groups);
    visitor("offset_groups", self.offset_groups);
    visitor("strides", self.strides);
    visitor("dilations", self.dilations);
    visitor("pads_begin", self.pads_begin);
    visitor("pads_end", self.pads_end);
  }
};

/// deform_conv(x, w, offsets[, mask]): a convolution of x [N, C, H, W] with w [M, C / groups, h, w] whose taps are
/// moved. The offsets are [N, offset_groups * h * w * 2, places...], rows before columns. Between elements x is
/// interpolated linearly; outside it is zero. The mask [N, offset_groups * h * w, places...] multiplies each tap.
/// Output: [N, M, places...].
inline constexpr struct deform_conv : kind<deform_conv> {
  static constexpr char name[] = "deform_conv";
  static constexpr fusion_kind fusion = fusion_kind::anchor;
  static constexpr arity inputs{3, 4};
  using attributes = deform_conv_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type>) {
    detail::default_window(2, a.strides, a.dilations, a.pads_begin, a.pads_end);
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& w = io.in[1].dims;
    if (x.rank != 4 || !is_floating(io.in[0].type))
      return {false, "its input must have shape [N, C, H, W] and a floating-point type", 0};
    for (std::size_t i = 1; i < io.in.size(); ++i) {
      const auto which = static_cast<std::int32_t>(i);
      if (io.in[i].type != io.in[0].type) return {false, "its operands must have the same element type", which};
      if (io.in[i].dims.rank != 4) return {false, "its operands must have rank 4", which};
    }
    if (w[2] < 0 || w[3] < 0) return {false, "the window of its weights must be known", 1};
    const shape window{w[2], w[3]};
    if (verdict v = detail::check_window(2, window, a.strides, a.dilations, a.pads_begin, a.pads_end); !v) return v;
    if (a.groups < 1 || a.offset_groups < 1) return {false, "its groups must be at least 1"};
    if (w[0] >= 0 && w[0] % a.groups != 0)
      return {false, "the number of its output channels must be a multiple of groups", 1};
    if (x[1] >= 0 && (x[1] % a.groups != 0 || (w[1] >= 0 && x[1] / a.groups != w[1])))
      return {false, "its weights must have shape [M, C / groups, h, w] for an input of C channels", 1};
    if (x[1] >= 0 && x[1] % a.offset_groups != 0)
      return {false, "the number of its input channels must be a multiple of offset_groups"};
    io.out[0] = {io.in[0].type, {x[0], w[0]}};
    for (std::size_t i = 0; i < 2; ++i)
      io.out[0].dims.push_back(detail::window_places(x[i + 2], window[i], a.strides[i], a.dilations[i], a.pads_begin[i],
                                                     a.pads_end[i], false));
    if (!detail::is_countable(io.out[0].dims)) return {false, "its output is too large"};
    for (std::size_t i = 2; i < io.in.size(); ++i) {
      const auto& moves = io.in[i].dims;
      const std::int64_t each = i == 2 ? 2 : 1;
      bool fits = detail::may_equal(moves[0], x[0]) && detail::may_equal(moves[2], io.out[0].dims[2]) &&
                  detail::may_equal(moves[3], io.out[0].dims[3]);
      // Divides rather than multiplies, so that no product overflows.
      if (moves[1] >= 0)
        fits = fits && moves[1] % a.offset_groups == 0 && moves[1] / a.offset_groups % each == 0 &&
               moves[1] / a.offset_groups / each == window[0] * window[1];
      if (!fits)
        return {false, "for each tap at each place, its offsets must have two entries and its mask one",
                static_cast<std::int32_t>(i)};
    }
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    const auto& w = io.in[1].dims;
    const double taps = static_cast<double>(w[1]) * static_cast<double>(w[2]) * static_cast<double>(w[3]);
    return {2.0 * static_cast<double>(io.out[0].dims.elements()) * taps};
  }
  static void reference(const attributes& a, const reference_call& call);
} deform_conv{};

}  // namespace collage::inline v0::ops
