// The time of one kernel as a function of the size of what it computes, from the sizes at which it was measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace collage::inline v0::detail {

/// A size of a workload. Sizes of one family have equally many extents.
struct workload_size {
  std::vector<double> log_extents;  ///< natural logarithms; 0 for an extent of 0
  double work = 1;                  ///< flops, or bytes moved for workloads without arithmetic; above 0
  double model_ms = 0;              ///< the time by the model
};

/// The distance of two sizes in the logarithms of their extents.
inline double distance(const workload_size& a, const workload_size& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.log_extents.size() && i < b.log_extents.size(); ++i) {
    const double d = a.log_extents[i] - b.log_extents[i];
    sum += d * d;
  }
  return std::sqrt(sum);
}

/// A size at which a kernel was measured.
struct measured_size {
  workload_size size;
  double ms = 0;  ///< above 0
};

/// A time between or beyond measured sizes.
struct curve_value {
  double ms = 0;
  std::size_t low = 0, high = 0;  ///< the measured sizes that it comes from; equal if there is only one
  bool is_between = false;        ///< one has at most as much work, and one at least as much
};

/// Between two sizes, the logarithm of the time is linear in the logarithm of the work. Among the sizes with less work, and among
/// those with more, the one whose extents are closest counts.
///
/// If the larger size took less than 0.8 times as long, its time is taken to be wrong. If the time grew by more than the square of
/// the work, that of the smaller size is. Then the time of the other size counts, in proportion to the work.
///
/// Beyond all sizes, the time is linear in the work, by the two closest sizes: a constant part and a proportional one. Below the
/// smallest, it is at least in proportion to the work and at least a launch. With one size alone, it is scaled by the model.
class size_curve {
 public:
  /// `launch_ms` is the least time of a call.
  explicit size_curve(std::span<const measured_size> known, double launch_ms) : known_(known), launch_ms_(launch_ms) {}

  /// The time at a size; nothing if no size is known. Leaves out the known size `without`.
  std::optional<curve_value> at(const workload_size& asked, std::size_t without = none) const {
    neighbour low, high, closest, other;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (i == without) continue;
      const double apart = distance(known_[i].size, asked);
      if (known_[i].size.work <= asked.work) low.offer(i, apart);
      if (known_[i].size.work >= asked.work) high.offer(i, apart);
      closest.offer(i, apart);
    }
    if (closest.which == none) return {};
    if (low.which != none && high.which != none) return between(asked, low, high);
    const workload_size& at = known_[closest.which].size;
    for (std::size_t i = 0; i < known_.size(); ++i)
      if (i != without && !is_as_much(known_[i].size.work, at.work)) other.offer(i, distance(known_[i].size, at));
    return other.which == none ? scaled(asked, closest.which) : beyond(asked, closest.which, other.which);
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

 private:
  struct neighbour {
    std::size_t which = none;
    double apart = 0;
    void offer(std::size_t other, double its_apart) {
      if (which == none || its_apart < apart) *this = {other, its_apart};
    }
  };

  static constexpr double least_growth = 0.8;

  /// Sizes whose work differs by less than 2 % say nothing about how time grows with work.
  static bool is_as_much(double a, double b) { return std::abs(std::log(a / b)) < 0.02; }

  curve_value between(const workload_size& asked, const neighbour& low, const neighbour& high) const {
    const measured_size &a = known_[low.which], &b = known_[high.which];
    double part = 0.5;
    // Times of a busy machine can be far off. A kernel that seems to be too fast at one size would be taken for it.
    const double growth = b.ms / a.ms, more_work = b.size.work / a.size.work;
    if (growth < least_growth) return {a.ms * asked.work / a.size.work, low.which, high.which, true};
    if (more_work > 1.02 && growth > more_work * more_work)
      return {b.ms * asked.work / b.size.work, low.which, high.which, true};
    if (!is_as_much(a.size.work, b.size.work))
      part = std::log(asked.work / a.size.work) / std::log(b.size.work / a.size.work);
    else if (low.apart + high.apart > 0) part = low.apart / (low.apart + high.apart);
    return {a.ms * std::pow(b.ms / a.ms, part), low.which, high.which, true};
  }
  curve_value beyond(const workload_size& asked, std::size_t closest, std::size_t other) const {
    const measured_size &a = known_[closest], &b = known_[other];
    const double slope = std::max((b.ms - a.ms) / (b.size.work - a.size.work), 0.0);
    double ms = a.ms + slope * (asked.work - a.size.work);
    if (asked.work < a.size.work) ms = std::max(ms, a.ms * asked.work / a.size.work);
    return {std::max(ms, launch_ms_), closest, other, false};
  }
  curve_value scaled(const workload_size& asked, std::size_t only) const {
    const measured_size& a = known_[only];
    return {std::max(a.ms * asked.model_ms / a.size.model_ms, launch_ms_), only, only, false};
  }

  std::span<const measured_size> known_;
  double launch_ms_;
};

/// The usual relative error of a curve: each of at most `most_left_out` sizes is left out and estimated from the others. Counted are
/// those with sizes on both sides, or all if there are none. Nothing for fewer than three sizes.
inline std::optional<double> leave_one_out_error(std::span<const measured_size> known, double launch_ms) {
  constexpr std::size_t most_left_out = 32;
  if (known.size() < 3) return {};
  double sum[2] = {}, count[2] = {};  // beyond, between
  const std::size_t step = (known.size() + most_left_out - 1) / most_left_out;
  const size_curve curve(known, launch_ms);
  for (std::size_t i = 0; i < known.size(); i += step) {
    const std::optional<curve_value> guess = curve.at(known[i].size, i);
    if (!guess) continue;
    const int which = guess->is_between ? 1 : 0;
    sum[which] += std::abs(std::log(guess->ms / known[i].ms));
    count[which] += 1;
  }
  const int which = count[1] > 0 ? 1 : 0;
  return count[which] > 0 ? std::optional<double>(std::expm1(sum[which] / count[which])) : std::nullopt;
}

}  // namespace collage::inline v0::detail
