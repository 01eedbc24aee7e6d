// Which of many samples are used for the errors of lower precision.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace collage::inline v0::detail {

/// Samples spread evenly over all. The first are for errors of single values, and the others are held back. In the order of all samples,
/// those that are held back lie between the others, because samples are often sorted. For the same reason, any few of them lie apart.
class sample_spread {
 public:
  static constexpr std::size_t most_measured = 8, most_held_back = 120;

  /// Over `all` samples.
  explicit sample_spread(std::uint64_t all)
      : all_(all),
        count_(static_cast<std::size_t>(std::min<std::uint64_t>(all, most_measured + most_held_back))),
        measured_(std::min(most_measured, count_ / 2)) {}

  std::size_t count() const { return count_; }                  ///< that are used
  std::size_t measured() const { return measured_; }            ///< for errors of single values
  std::size_t held_back() const { return count_ - measured_; }  ///< after those

  /// The place of a used sample among all; `which` is below count().
  std::uint64_t place_of(std::size_t which) const {
    // The measured ones are every few samples, and the others lie between.
    const std::uint64_t step = count_ / std::max<std::size_t>(measured_, 1);
    std::uint64_t at = which * step;
    if (which >= measured_ && step > 1) {
      const std::uint64_t other = (which - measured_) * stride() % held_back();  // among those that are not measured
      const std::uint64_t before = other / (step - 1);
      at = before < measured_ ? before * step + 1 + other % (step - 1) : other + measured_;
    }
    return at * (all_ / count_) + at * (all_ % count_) / count_;  // at * all_ / count_, without overflow
  }

 private:
  /// A number without a common divisor with `held_back()`, near the golden ratio's part of it. So any first few are far apart.
  std::uint64_t stride() const {
    std::uint64_t s = std::max<std::uint64_t>(held_back() * 618 / 1000, 1);
    while (std::gcd(s, std::uint64_t{held_back()}) != 1) ++s;
    return s;
  }

  std::uint64_t all_;
  std::size_t count_, measured_;
};

}  // namespace collage::inline v0::detail
