// Pooling over a sliding window: its largest element, its mean or its norm.
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

/// The base of the pooling kinds. x: [N, C, spatial...]; output: [N, C, places...]. Elements in the pads do not take part.
template <class Derived, class Attributes = pool_attributes>
struct pool_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::anchor;
  using attributes = Attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    if (in[0].rank() >= 2) detail::default_window(in[0].rank() - 2, a.strides, a.dilations, a.pads_begin, a.pads_end);
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (x.rank < 3)
      return {false, "its input must have shape [N, C, spatial...] with at least one spatial dimension", 0};
    const std::size_t rank = x.rank - 2;
    if (verdict v = detail::check_window(rank, a.window, a.strides, a.dilations, a.pads_begin, a.pads_end); !v)
      return v;
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t reach = a.dilations.extent[i] * (a.window.extent[i] - 1) + 1;
      if (a.pads_begin.extent[i] >= reach || a.pads_end.extent[i] >= reach)
        return {false, "pads must be smaller than the window, or a place would hold no element"};
    }
    if (verdict v = detail::check_fit(x, a.window, a.dilations, a.pads_begin, a.pads_end); !v) return v;
    tensor_type& y = io.out[0];
    y = io.in[0];
    for (std::size_t i = 0; i < rank; ++i)
      y.dims.extent[i + 2] =
          detail::window_places(x.extent[i + 2], a.window.extent[i], a.strides.extent[i], a.dilations.extent[i],
                                a.pads_begin.extent[i], a.pads_end.extent[i], a.round_up);
    return {};
  }
  static constexpr work count(const attributes& a, const auto& io) {
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

struct max_pool_with_indices_attributes : pool_attributes {
  bool column_major = false;  ///< the first spatial dimension varies fastest in the indices (storage_order 1)
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    pool_attributes::visit(self, visitor);
    visitor("column_major", self.column_major);
  }
};

/// max_pool_with_indices(x): the largest elements, and in a second output, of type int64, their positions in the whole
/// of x. A position is (n * C + c) * spatial elements + place in the channel. Among equal elements the first counts,
/// and the first NaN counts before all numbers. A window that covers no element has position -1.
inline constexpr struct max_pool_with_indices : pool_kind<max_pool_with_indices, max_pool_with_indices_attributes> {
  static constexpr char name[] = "max_pool_with_indices";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr std::uint32_t outputs = 2;
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (verdict v = pool_kind::infer(a, io); !v) return v;
    io.out[1] = {dtype::i64, io.out[0].dims};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} max_pool_with_indices{};

struct lp_pool_attributes : pool_attributes {
  double p = 2;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    pool_attributes::visit(self, visitor);
    visitor("p", self.p);
  }
};

/// lp_pool(x): (sum of |x|^p)^(1/p) under each window.
inline constexpr struct lp_pool : pool_kind<lp_pool, lp_pool_attributes> {
  static constexpr char name[] = "lp_pool";
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    if (!(a.p > 0)) return {false, "its exponent must be positive"};
    return pool_kind::infer(a, io);
  }
  static void reference(const attributes& a, const reference_call& call);
} lp_pool{};

}  // namespace collage::inline v0::ops
