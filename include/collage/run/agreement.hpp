// The rule by which a computed tensor agrees with the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace collage::inline v0 {

/// The allowed distance of a floating-point tensor from the reference: max|a - r| <= relative * max|r| + absolute.
struct tolerance {
  double relative = 1e-4;
  double absolute = 1e-6;
};

/// The tolerance for results whose precision is not lowered on purpose. Integers and booleans must be equal.
constexpr tolerance tolerance_of(dtype type) {
  switch (type) {
    case dtype::f64: return {1e-10, 1e-12};
    case dtype::f16: return {1e-2, 1e-3};
    case dtype::bf16: return {4e-2, 1e-2};
    default: return {};
  }
}

/// The outcome of one comparison.
struct agreement {
  bool agrees = true;
  /// max|a - r| / (max|r| + absolute / relative) over the elements where both are finite. These agree if it is at most
  /// `relative`. 0 for integers.
  double worst_relative = 0;
  std::int64_t worst_index = -1;  ///< the first with a wrong NaN or infinity, or else the farthest; -1: none
  double actual = 0;              ///< the value of that element
  double expected = 0;
  const char* why = nullptr;  ///< the broken rule, to be read after the tensor's name; nullptr if all is well

  explicit operator bool() const { return agrees; }
};

namespace detail {

/// The reference's element when stored in `type`, as far as finiteness goes: a value beyond the range is infinite.
inline double finiteness_of(dtype type, double r) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double limit = infinity;  // the smallest magnitude that rounds to infinity
  if (type == dtype::f32) limit = 0x1.ffffffp127;
  if (type == dtype::f16) limit = 65520.0;
  if (type == dtype::bf16) limit = 0x1.ffp127;
  return std::abs(r) >= limit ? std::copysign(infinity, r) : r;
}

inline agreement compare_reals(dtype type, std::span<const double> actual, std::span<const double> expected,
                               tolerance allowed) {
  agreement result;
  double largest = 0;
  double farthest = 0;
  std::size_t where = 0;
  const auto refuse = [&](std::size_t i, const char* why) {
    result.agrees = false;
    result.why = why;
    result.worst_index = static_cast<std::int64_t>(i);
    result.actual = actual[i];
    result.expected = expected[i];
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double r = finiteness_of(type, expected[i]);
    const double a = actual[i];
    if (std::isfinite(r)) largest = std::max(largest, std::abs(r));
    if (std::isfinite(r) && std::isfinite(a)) {
      const double distance = std::abs(a - r);
      if (distance > farthest) {
        farthest = distance;
        where = i;
      }
    } else if (result.agrees) {
      if (std::isnan(a) != std::isnan(r))
        refuse(i, std::isnan(a) ? "it has a NaN where the reference has none"
                                : "it has no NaN where the reference has one");
      else if (std::isinf(a) != std::isinf(r))
        refuse(i, std::isinf(a) ? "it has an infinity where the reference has none"
                                : "it has no infinity where the reference has one");
      else if (std::isinf(a) && std::signbit(a) != std::signbit(r))
        refuse(i, "it has an infinity of the other sign than the reference");
    }
  }
  const double floor = allowed.relative > 0 ? allowed.absolute / allowed.relative : 0.0;
  if (farthest > 0) result.worst_relative = farthest / std::max(largest + floor, std::numeric_limits<double>::min());
  if (!result.agrees) return result;
  if (farthest > allowed.relative * largest + allowed.absolute)
    return refuse(where, "it is too far from the reference"), result;
  if (farthest > 0) {
    result.worst_index = static_cast<std::int64_t>(where);
    result.actual = actual[where];
    result.expected = expected[where];
  }
  return result;
}

inline agreement compare_integers(std::span<const std::int64_t> actual, std::span<const std::int64_t> expected) {
  agreement result;
  const auto [a, r] = std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
  if (r == expected.end()) return result;
  result.agrees = false;
  result.why = "it differs from the reference, and integers and booleans must be equal";
  result.worst_index = r - expected.begin();
  result.actual = static_cast<double>(*a);
  result.expected = static_cast<double>(*r);
  return result;
}

}  // namespace detail

/// Compares a tensor with the reference's. They agree if
///
/// - max|a - r| <= relative * max|r| + absolute over the elements where r is finite,
/// - NaN and infinities, with their signs, are in the same places,
/// - integers and booleans are equal.
///
/// A reference beyond the range of the tensor's element type counts as infinite. Errors: the tensor has another type or shape.
inline agreement compare(const const_tensor_view& actual, const oracle_value& expected, tolerance allowed) {
  if (!(actual.type == expected.type))
    throw error(error_kind::failure, "a tensor can only be compared with a reference of its own type and shape",
                "agreement");
  const oracle_value a = to_oracle(actual);
  return is_floating(actual.type.type) ? detail::compare_reals(actual.type.type, a.real, expected.real, allowed)
                                       : detail::compare_integers(a.integer, expected.integer);
}

/// The same with the tolerance of its element type.
inline agreement compare(const const_tensor_view& actual, const oracle_value& expected) {
  return compare(actual, expected, tolerance_of(actual.type.type));
}

}  // namespace collage::inline v0
