// Pooling: the largest or the mean element of a sliding window.
#pragma once

#include <collage/op/window.hpp>

namespace collage::inline v0::ops {

/// Lists left empty mean strides and dilations of 1 and pads of 0; they are filled in when a node is added.
struct pool_attributes {
  shape window{};
  shape strides{};
  shape dilations{};
  shape pads_begin{};
  shape pads_end{};
  bool round_up = false;       ///< ONNX ceil_mode
  bool count_padding = false;  ///< the mean divides by the whole window, pads included (ONNX count_include_pad)
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("window", self.window);
    visitor("strides", self.strides);
    visitor("dilations", self.dilations);
    visitor("pads_begin", self.pads_begin);
    visitor("pads_end", self.pads_end);
    visitor("round_up", self.round_up);
    visitor("count_padding", self.count_padding);
  }
};

/// The base of both kinds. x: [N, C, spatial...]; output: [N, C, places...].
template <class Derived>
struct pool_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::anchor;
  using attributes = pool_attributes;

  static constexpr void normalise(attributes& a, std::span<const tensor_type> in) {
    if (in[0].rank() >= 2) detail::default_window(in[0].rank() - 2, a.strides, a.dilations, a.pads_begin, a.pads_end);
  }
  static constexpr verdict infer(const attributes& a, inference& io) {
    const shape& x = io.in[0].dims;
    if (x.rank < 3)
      return {false, "its input must have shape [N, C, spatial...] with at least one spatial dimension", 0};
    const std::size_t rank = x.rank - 2;
    if (verdict v = detail::check_window(rank, a.window, a.strides, a.dilations, a.pads_begin, a.pads_end); !v)
      return v;
    for (std::size_t i = 0; i < rank; ++i)
      if (a.pads_begin[i] >= a.dilations[i] * (a.window[i] - 1) + 1 ||
          a.pads_end[i] >= a.dilations[i] * (a.window[i] - 1) + 1)
        return {false, "pads must be smaller than the window, or a place would hold no element"};
    io.out[0] = {io.in[0].type, {x[0], x[1]}};
    for (std::size_t i = 0; i < rank; ++i)
      io.out[0].dims.push_back(detail::window_places(x[i + 2], a.window[i], a.strides[i], a.dilations[i],
                                                     a.pads_begin[i], a.pads_end[i], a.round_up));
    return {};
  }
  static constexpr work count(const attributes& a, const inference& io) {
    return {static_cast<double>(io.out[0].dims.elements()) * static_cast<double>(a.window.elements())};
  }
};

inline constexpr struct max_pool : pool_kind<max_pool> {
  static constexpr char name[] = "max_pool";
  static void reference(const attributes& a, const reference_call& call);
} max_pool{};

inline constexpr struct average_pool : pool_kind<average_pool> {
  static constexpr char name[] = "average_pool";
  static void reference(const attributes& a, const reference_call& call);
} average_pool{};

}  // namespace collage::inline v0::ops
