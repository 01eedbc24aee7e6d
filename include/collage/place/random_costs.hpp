// Random costs, for tests that need costs but not their meaning.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/place/cost_source.hpp>

#include <cmath>
#include <cstdint>

namespace collage::inline v0 {

/// Costs that are uniform in [low_ms, high_ms). They depend only on the seed, the backend and the workload: equal workloads
/// cost the same at every place, and in any order of queries.
class random_costs {
 public:
  /// Throws `error` unless 0 <= low_ms <= high_ms, both finite.
  explicit random_costs(std::uint64_t seed, double low_ms = 0, double high_ms = 1)
      : seed_(seed), low_ms_(low_ms), high_ms_(high_ms) {
    if (!(std::isfinite(high_ms) && low_ms >= 0 && low_ms <= high_ms))
      throw error(error_kind::invalid_argument, "the range must be finite, not negative and not empty", "random costs");
  }

  cost_answer cost_of(const cost_question& question) const {
    std::uint64_t key = detail::combine(seed_, detail::hash(question.backend.data(), question.backend.size()));
    for (const std::uint64_t word : question.computes) key = detail::combine(key, word);
    const double unit = static_cast<double>(key >> 11) * 0x1p-53;  // 53 bits: [0, 1)
    return {low_ms_ + (high_ms_ - low_ms_) * unit, {}};
  }

 private:
  std::uint64_t seed_;
  double low_ms_, high_ms_;
};
static_assert(cost_source<random_costs>);

}  // namespace collage::inline v0
