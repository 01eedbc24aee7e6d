// Finds the fastest of the placements of a race.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/measure/statistics.hpp>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>
#include "policy.hpp"
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Decides by paired rounds. `Runs` is a placement_race, or another type with its `size`, `ratio`, `can_run`, `is_baseline` and
/// `main_regime`.
template <class Runs>
class fastest_of {
 public:
  explicit fastest_of(const Runs& runs) : runs_(runs) {}

  /// Finds the fastest placement; the incumbent stays if nothing is faster. Ratios of different pairs come from different rounds,
  /// and on a restless machine they may form a cycle. So the fastest is the placement with the smallest worst-case ratio among
  /// those that can run and are not significantly slower than another. By chance all good placements may be significantly
  /// slower than one of them. So a placement whose worst-case ratio is far above the smallest never replaces it for that reason.
  std::size_t find(std::size_t incumbent) const {
    std::vector<standing> all;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      all.push_back(standing_of(i));
      least = std::min(least, all.back().behind);
    }
    const auto rank = [&](std::size_t i) {
      return std::pair(all[i].is_significantly_slower || all[i].behind > thresholds.selection.far_behind * least,
                       all[i].behind);
    };
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (rank(i) < rank(incumbent) && may_replace(i, incumbent)) incumbent = i;
    return incumbent;
  }

  /// Never selects a placement that is slower than a baseline it ran against, such as a single backend or the previous plan.
  /// Returns that baseline instead. Other placements have no say in this: the promise is about baselines.
  std::size_t selected(std::size_t found) const {
    std::size_t ahead = found;
    double most = thresholds.selection.significant;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i == found || !runs_.is_baseline(i) || !runs_.can_run(i)) continue;
      const paired_ratio r = runs_.ratio(found, i);
      if (shows_something(r) && r.median > most) ahead = i, most = r.median;
    }
    return ahead;
  }

 private:
  /// Whether a placement ran often enough beside the incumbent to replace it. One round shows only a large difference: the time may
  /// have been up before there were more.
  bool may_replace(std::size_t i, std::size_t incumbent) const {
    const paired_ratio r = runs_.ratio(i, incumbent);
    if (r.rounds == 0 || r.rounds >= thresholds.selection.agreeing_rounds || !runs_.can_run(incumbent)) return true;
    return r.median * thresholds.race.beaten < 1;
  }
  /// Whether there are enough rounds. Few of them count if they all show a large difference: time may run out before there are
  /// more.
  static bool shows_something(const paired_ratio& r) {
    const selection_policy& least = thresholds.selection;
    return r.rounds >= least.least_rounds || (r.rounds >= least.agreeing_rounds && r.low > least.far_behind);
  }

  /// Calls `each` with the ratio of placement `i`, if it was not released, to each other placement that ran beside it. Released
  /// ones count as well: a placement that they beat would look good beside slower ones otherwise.
  template <class Each>
  void compare(std::size_t i, Each each) const {
    for (std::size_t j = 0; j < runs_.size() && runs_.can_run(i); ++j) {
      if (runs_.main_regime(j) == cache_regime::split && runs_.main_regime(i) == cache_regime::shared)
        continue;  // j ran to measure its kernels in split caches
      if (const paired_ratio r = runs_.ratio(i, j); j != i && r.rounds != 0) each(r);
    }
  }
  struct standing {
    double behind = std::numeric_limits<double>::infinity();
    bool is_significantly_slower = false;
  };
  /// How many times as long as the fastest beside it a placement takes; infinity if it ran beside no other. And whether it is
  /// significantly slower than another. Ratios of few rounds count in part.
  standing standing_of(std::size_t i) const {
    standing found;
    double most = 0;
    compare(i, [&](const paired_ratio& r) {
      constexpr auto enough = static_cast<double>(thresholds.selection.least_rounds);
      most = std::max(most, std::pow(r.median, std::min(1.0, static_cast<double>(r.rounds) / enough)));
      found.is_significantly_slower =
          found.is_significantly_slower || (r.rounds >= thresholds.selection.least_rounds && r.low > 1);
    });
    if (most > 0) found.behind = most;
    return found;
  }

  const Runs& runs_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
