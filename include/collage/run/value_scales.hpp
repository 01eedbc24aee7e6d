// Scales of values: the integers of 8 bits that stand for the float32 numbers of a network.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <collage/detail/hash.hpp>
#include <collage/dtype.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// An integer n of 8 bits stands for the number scale * (n - zero_point).
struct integer_scale {
  float scale = 1;              ///< positive and finite
  std::int32_t zero_point = 0;  ///< a number of the integers' type
  friend bool operator==(const integer_scale&, const integer_scale&) = default;
};

/// The smallest and the largest integer that stand for numbers: 0 to 255 for uint8, and -127 to 127 for int8.
constexpr std::pair<std::int32_t, std::int32_t> integer_limits(dtype element) {
  return element == dtype::i8 ? std::pair(-127, 127) : std::pair(0, 255);
}

/// The scale of integers that stand for the numbers from `low` to `high`, after the interval was widened to contain zero. uint8 has a
/// zero point; int8 lies symmetrically. Both ends are finite. A scale of 1 if both are zero.
inline integer_scale scale_for(dtype element, double low, double high) {
  low = std::min(low, 0.0), high = std::max(high, 0.0);
  if (low == high) return {};
  if (element == dtype::i8) return {static_cast<float>(std::max(-low, high) / 127), 0};
  const auto scale = static_cast<float>((high - low) / 255);
  return {scale, static_cast<std::int32_t>(std::clamp(std::nearbyint(-low / scale), 0.0, 255.0))};
}

/// The integer that stands for x: x / scale in float32, rounded to nearest with ties to even, plus the zero point, and within the
/// limits. The zero point for NaN.
inline std::int32_t integer_for(float x, const integer_scale& how, dtype element) {
  const auto [low, high] = integer_limits(element);
  const float number = std::nearbyint(x / how.scale) + static_cast<float>(how.zero_point);
  if (!(number == number)) return how.zero_point;
  return static_cast<std::int32_t>(std::clamp(number, static_cast<float>(low), static_cast<float>(high)));
}
/// The number for which an integer stands.
constexpr float number_for(std::int32_t n, const integer_scale& how) {
  return how.scale * static_cast<float>(n - how.zero_point);
}

/// The scales of the values of a network, for each type of integers as which a value may be stored. Any two kernels agree on them.
class value_scales {
 public:
  struct entry {
    std::uint32_t value = 0;
    dtype element = dtype::u8;
    integer_scale how = {};
    friend bool operator==(const entry&, const entry&) = default;
  };

  value_scales() = default;
  /// The same scale for every value. For kernels that are built to see whether they can be.
  explicit value_scales(const integer_scale& of_all) : of_all_(of_all) {}

  void set(std::uint32_t value, dtype element, const integer_scale& how) { scales_[{value, element}] = how; }
  /// Nothing if a value has no scale for integers of this type.
  std::optional<integer_scale> of(std::uint32_t value, dtype element) const {
    const auto known = scales_.find({value, element});
    return known != scales_.end() ? std::optional(known->second) : of_all_;
  }
  /// All that were set, by value.
  std::vector<entry> list() const {
    std::vector<entry> all;
    for (const auto& [of, how] : scales_) all.push_back({of.first, of.second, how});
    return all;
  }
  bool empty() const { return scales_.empty() && !of_all_; }
  /// A hash of all that were set.
  std::uint64_t hash() const {
    std::uint64_t sum = 0xA4093822299F31D0;
    for (const auto& [of, how] : scales_) {
      sum = detail::combine(sum, std::uint64_t{of.first} << 8U | static_cast<std::uint64_t>(of.second));
      sum = detail::combine(sum, std::uint64_t{std::bit_cast<std::uint32_t>(how.scale)} << 32U |
                                     static_cast<std::uint32_t>(how.zero_point));
    }
    return sum;
  }

 private:
  std::map<std::pair<std::uint32_t, dtype>, integer_scale> scales_;
  std::optional<integer_scale> of_all_;
};

}  // namespace collage::inline v0
