// Conversion between element types.
#pragma once

#include <collage/detail/small_types.hpp>
#include <collage/op/elementwise.hpp>

namespace collage::inline v0::ops {

/// `saturate` and `rounding` are for casts to small floating-point types, and only their nodes store them.
struct cast_attributes {
  dtype to = dtype::f32;
  bool saturate = true;                          ///< a number beyond the range becomes the nearest end of it
  power_rounding rounding = power_rounding::up;  ///< to float8e8m0
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("to", self.to);
    if (!collage::detail::is_small_real(self.to)) return;
    visitor("saturate", self.saturate);
    visitor("rounding", self.rounding);
  }
};

/// cast(x): converts x to another element type. A floating-point result is the nearest number, ties to even. From
/// floating point to an integer type, the fraction is dropped. A number that does not fit becomes the nearest that fits,
/// and NaN becomes 0. Integers wrap around. As a boolean everything but 0 is true, NaN included; true converts to 1.
///
/// Small types differ, as in ONNX. For integers of 4 or 2 bits, floating-point numbers become int64, which then wraps around.
/// For small floating-point types, `saturate` says what a number beyond the range becomes, infinity included. It is the
/// largest finite number, or else infinity (float8e5m2) or NaN. float4e2m1 has neither; NaN becomes its -0. float8e8m0
/// rounds as `rounding` says; negative numbers become NaN, and zero counts as below the range.
inline constexpr struct cast : elementwise_kind<cast, 1> {
  static constexpr char name[] = "cast";
  static constexpr bool takes_small_types = true;
  using attributes = cast_attributes;
  static constexpr dtype result_type(const attributes& a, dtype) { return a.to; }
  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    // A cast to the same type changes nothing. Where an attribute has no effect, it has its default.
    if (a.to != dtype::f8e8m0 || a.to == in[0].type) a.rounding = power_rounding::up;
    if (a.to == dtype::f4e2m1) a.saturate = true;
    else if (a.to == in[0].type) a.saturate = false;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (size_of(a.to) == 0) return {false, "its attribute `to` must be a value of dtype, such as dtype::f32"};
    if (a.rounding > power_rounding::nearest) return {false, "its rounding must be up, down or nearest"};
    return elementwise_kind::infer(a, io);
  }
  static constexpr auto body(auto x, auto) { return x; }
} cast{};

}  // namespace collage::inline v0::ops
