// Elementwise operators with boolean operands or results: comparisons, logic, selection.
#pragma once

#include <collage/op/elementwise.hpp>

namespace collage::inline v0::ops {

/// The base of elementwise kinds that return booleans.
template <class Derived, std::uint32_t Inputs>
struct predicate_kind : elementwise_kind<Derived, Inputs> {
  static constexpr dtype result_type(const auto&, dtype) { return dtype::boolean; }
};
/// A predicate of floating-point numbers only.
template <class Derived>
struct real_predicate_kind : predicate_kind<Derived, 1> {
  static constexpr bool takes(dtype type) { return is_floating(type); }
};
/// An operator of booleans only.
template <class Derived, std::uint32_t Inputs>
struct logical_kind : elementwise_kind<Derived, Inputs> {
  static constexpr bool takes(dtype type) { return type == dtype::boolean; }
};

// Every comparison with NaN is false.

inline constexpr struct less : predicate_kind<less, 2> {
  static constexpr char name[] = "less";
  static constexpr auto body(auto x, auto y) { return x < y; }
} less{};

inline constexpr struct less_equal : predicate_kind<less_equal, 2> {
  static constexpr char name[] = "less_equal";
  static constexpr auto body(auto x, auto y) { return x < y || x == y; }
} less_equal{};

inline constexpr struct greater : predicate_kind<greater, 2> {
  static constexpr char name[] = "greater";
  static constexpr auto body(auto x, auto y) { return y < x; }
} greater{};

inline constexpr struct greater_equal : predicate_kind<greater_equal, 2> {
  static constexpr char name[] = "greater_equal";
  static constexpr auto body(auto x, auto y) { return y < x || x == y; }
} greater_equal{};

inline constexpr struct equal : predicate_kind<equal, 2> {
  static constexpr char name[] = "equal";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return x == y; }
} equal{};

inline constexpr struct is_nan : real_predicate_kind<is_nan> {
  static constexpr char name[] = "is_nan";
  static constexpr auto body(auto x) { return !(x == x); }
} is_nan{};

/// is_infinite(x): whether x is infinite, of either sign. The builtin saves every includer <limits>.
inline constexpr struct is_infinite : real_predicate_kind<is_infinite> {
  static constexpr char name[] = "is_infinite";
  static constexpr auto body(auto x) { return math::abs(x) == __builtin_huge_val(); }
} is_infinite{};

inline constexpr struct logical_not : logical_kind<logical_not, 1> {
  static constexpr char name[] = "logical_not";
  static constexpr auto body(auto x) { return !x; }
} logical_not{};

inline constexpr struct logical_and : logical_kind<logical_and, 2> {
  static constexpr char name[] = "logical_and";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return x && y; }
} logical_and{};

inline constexpr struct logical_or : logical_kind<logical_or, 2> {
  static constexpr char name[] = "logical_or";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return x || y; }
} logical_or{};

inline constexpr struct logical_xor : logical_kind<logical_xor, 2> {
  static constexpr char name[] = "logical_xor";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return !(x == y); }
} logical_xor{};

/// where(condition, x, y): x where the condition holds, y elsewhere.
inline constexpr struct where : elementwise_kind<where, 3> {
  static constexpr char name[] = "where";
  static constexpr std::uint32_t conditions = 1;
  static constexpr auto body(auto condition, auto x, auto y) { return math::select(condition, x, y); }
} where{};

}  // namespace collage::inline v0::ops
