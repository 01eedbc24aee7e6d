// Elementwise operators on the bits of integers.
#pragma once

#include <collage/op/elementwise.hpp>

namespace collage::inline v0::ops {

/// The base of elementwise kinds that take only integers.
template <class Derived, std::uint32_t Inputs>
struct integer_kind : elementwise_kind<Derived, Inputs> {
  static constexpr bool takes(dtype type) { return !is_floating(type) && type != dtype::boolean; }
};

inline constexpr struct bitwise_not : integer_kind<bitwise_not, 1> {
  static constexpr char name[] = "bitwise_not";
  static constexpr auto body(auto x) { return math::bitwise_not(x); }
} bitwise_not{};

inline constexpr struct bitwise_and : integer_kind<bitwise_and, 2> {
  static constexpr char name[] = "bitwise_and";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return math::bitwise_and(x, y); }
} bitwise_and{};

inline constexpr struct bitwise_or : integer_kind<bitwise_or, 2> {
  static constexpr char name[] = "bitwise_or";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return math::bitwise_or(x, y); }
} bitwise_or{};

inline constexpr struct bitwise_xor : integer_kind<bitwise_xor, 2> {
  static constexpr char name[] = "bitwise_xor";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return math::bitwise_xor(x, y); }
} bitwise_xor{};

// By a count of bits that is negative, or not less than the element type has, everything is shifted out.

inline constexpr struct shift_left : integer_kind<shift_left, 2> {
  static constexpr char name[] = "shift_left";
  static constexpr auto body(auto x, auto count) { return math::shift_left(x, count); }
} shift_left{};

/// shift_right(x, count): a negative number stays negative.
inline constexpr struct shift_right : integer_kind<shift_right, 2> {
  static constexpr char name[] = "shift_right";
  static constexpr auto body(auto x, auto count) { return math::shift_right(x, count); }
} shift_right{};

}  // namespace collage::inline v0::ops
