// Conversion between element types.
#pragma once

#include <collage/op/elementwise.hpp>

namespace collage::inline v0::ops {

struct cast_attributes {
  dtype to = dtype::f32;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("to", self.to);
  }
};

/// cast(x): converts x to another element type. A floating-point result is the nearest number, ties to even. From
/// floating point to an integer type, the fraction is dropped. A number that does not fit becomes the nearest that fits,
/// and NaN becomes 0. Integers wrap around. As a boolean everything but 0 is true, NaN included; true converts to 1.
inline constexpr struct cast : elementwise_kind<cast, 1> {
  static constexpr char name[] = "cast";
  using attributes = cast_attributes;
  static constexpr dtype result_type(const attributes& a, dtype) { return a.to; }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (size_of(a.to) == 0) return {false, "its attribute `to` must be a value of dtype, such as dtype::f32"};
    return elementwise_kind::infer(a, io);
  }
  static constexpr auto body(auto x, auto) { return x; }
} cast{};

}  // namespace collage::inline v0::ops
