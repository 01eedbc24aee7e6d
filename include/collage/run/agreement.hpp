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
    // One step of the format: numbers that a cast rounds may lie on both sides of a tie.
    case dtype::f8e4m3fn:
    case dtype::f8e4m3fnuz: return {0.125, 0x1p-9};
    case dtype::f8e5m2:
    case dtype::f8e5m2fnuz: return {0.25, 0x1p-16};
    case dtype::f8e8m0: return {1.0, 0x1p-127};
    case dtype::f4e2m1: return {0.5, 0.5};
    default: return {};
  }
}

/// By how much the results of a kernel may differ from the reference that reads the same rounded values. `computed` is the type in
/// which the kernel multiplies. Besides the results, it rounds constants, and values between fused operators. Each is rounded by half
/// a unit in the last place, which is 2^-9 for bfloat16. Integers of 8 bits have 127 steps on each side of zero, and the result has half a
/// step. Many such errors add up to much less than their sum.
constexpr tolerance tolerance_of_rounding(dtype computed) {
  if (is_8_bit_integer(computed)) return {0x1p-5, 1e-5};
  return computed == dtype::bf16 ? tolerance{0x1p-6, 1e-5} : tolerance_of(computed);
}

/// The same for a region whose library rounds many values inside, one after the other. How far its results may err for that, only
/// samples of the network's inputs show. This distinguishes errors of rounding from wrong results.
constexpr tolerance tolerance_of_rounded_region(dtype computed) {
  return is_8_bit_integer(computed) ? tolerance{0.5, 1e-5} : tolerance{0x1p-3, 1e-5};
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
  if (type == dtype::f8e5m2) limit = 61440.0;
  return std::abs(r) >= limit ? std::copysign(infinity, r) : r;
}

/// The largest magnitude of the reference and the largest distance from it, of some elements.
struct distances {
  double largest = 0, farthest = 0;
  bool are_finite = true;  ///< all elements of both; the other members are only set then
};

template <class T>
distances distances_of(std::span<const T> actual, std::span<const double> expected, dtype type) {
  // Separate numbers for neighbours let the compiler use vectors.
  constexpr std::size_t lanes = 8;
  double largest[lanes] = {}, farthest[lanes] = {}, never[lanes] = {};
  const auto note = [&](std::size_t i, std::size_t lane) {
    const double a = actual[i], r = expected[i], size = std::abs(r), distance = std::abs(a - r);
    largest[lane] = largest[lane] < size ? size : largest[lane];
    farthest[lane] = farthest[lane] < distance ? distance : farthest[lane];
    never[lane] += (a - a) + (r - r);  // NaN as soon as one is not finite
  };
  const std::size_t whole = expected.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) note(i + lane, lane);
  for (std::size_t i = whole; i < expected.size(); ++i) note(i, 0);
  distances all;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    all.largest = std::max(all.largest, largest[lane]);
    all.farthest = std::max(all.farthest, farthest[lane]);
    all.are_finite = all.are_finite && never[lane] == 0;
  }
  all.are_finite = all.are_finite && std::isfinite(finiteness_of(type, all.largest));
  return all;
}

template <class T>
agreement compare_reals(dtype type, std::span<const T> actual, std::span<const double> expected, tolerance allowed) {
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
  const auto look_at = [&](std::size_t i) {
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
  };
  // A block is looked at element by element only if it has the farthest one so far, or NaN or infinity.
  constexpr std::size_t block = 1024;
  for (std::size_t begin = 0; begin < expected.size(); begin += block) {
    const std::size_t end = std::min(begin + block, expected.size());
    const distances all = distances_of(actual.subspan(begin, end - begin), expected.subspan(begin, end - begin), type);
    if (all.are_finite && all.farthest <= farthest) largest = std::max(largest, all.largest);
    else
      for (std::size_t i = begin; i < end; ++i) look_at(i);
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
  const std::span<const double> real = expected.real;
  if (actual.type.type == dtype::f32 && actual.stored == form())  // by far the most frequent
    return detail::compare_reals(dtype::f32, std::span(static_cast<const float*>(actual.data), real.size()), real,
                                 allowed);
  const oracle_value a = to_oracle(actual);
  return is_floating(actual.type.type)
             ? detail::compare_reals(actual.type.type, std::span<const double>(a.real), real, allowed)
             : detail::compare_integers(a.integer, expected.integer);
}

/// The same with the tolerance of its element type.
inline agreement compare(const const_tensor_view& actual, const oracle_value& expected) {
  return compare(actual, expected, tolerance_of(actual.type.type));
}

}  // namespace collage::inline v0
