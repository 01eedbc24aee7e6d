// Scales of values from their ranges, and the change of values that are stored as such integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/calibrate/ranges.hpp>
#include <collage/calibrate/rounding.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <collage/run/value_scales.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace collage::inline v0 {

namespace detail {
namespace {

/// Scales of uint8 for all values of the top graph that have a range. The schema by which the ranges were made does not matter.
inline std::shared_ptr<const value_scales> scales_of(const graph& network, const network_ranges& ranges) {
  auto made = std::make_shared<value_scales>();
  for (const value_range& r : ranges.top.values) {
    if (!r.has_numbers() || network.at(r.value).role == value_role::constant) continue;
    // Quotients by smaller scales are not exact enough. Such a value is as good as zero.
    constexpr float least = 1e-30F;
    if (std::max(-r.kept.low, r.kept.high) < 255 * least) continue;
    made->set(r.value, dtype::u8, scale_for(dtype::u8, r.kept.low, r.kept.high));
  }
  return made;
}

/// Whether integers of 8 bits are allowed.
inline bool allows_integers(precisions which) { return allows(which, dtype::u8); }

/// The contents of a constant of float32.
inline std::span<const float> contents_of(const graph& network, std::uint32_t value) {
  const std::span<const std::byte> bytes = network.bytes_of(value);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

/// Whether a value may be rounded as far as its contents go: constants must be finite, because no integer stands for NaN or infinity.
inline bool is_roundable(const graph& network, const rounded_value& one) {
  if (!is_8_bit_integer(one.element) || network.at(one.value).role != value_role::constant) return true;
  return std::ranges::all_of(contents_of(network, one.value), [](float x) { return std::isfinite(x); });
}

/// The change of a value or constant that is stored in another element type. Errors: no scale; weights that are not finite.
inline rounding rounding_of_value(const graph& network, const rounded_value& one, const value_scales* scales) {
  if (!is_8_bit_integer(one.element)) return rounding_to(one.element);
  if (network.at(one.value).role == value_role::constant) {
    return rounding_to(weight_quantisation(contents_of(network, one.value), network.type_of(one.value).dims,
                                           weight_axis(network, one.value)));
  }
  const std::optional<integer_scale> how = scales != nullptr ? scales->of(one.value, one.element) : std::nullopt;
  if (!how) throw error(error_kind::invalid_argument, "has no scale", "value " + network.value_name(one.value));
  return rounding_to(collage::quantisation{one.element, -1, {how->scale}, {how->zero_point}});
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
