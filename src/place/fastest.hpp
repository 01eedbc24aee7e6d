// Who is the fastest of placements that ran beside each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/measure/statistics.hpp>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

/// Decides by paired rounds. `Runs` is an end_to_end, or whatever else answers `size`, `ratio`, `can_run`, `stays` and
/// `counts_apart` as that does.
template <class Runs>
class fastest_of {
 public:
  explicit fastest_of(const Runs& runs) : runs_(runs) {}

  /// Finds the fastest; the incumbent stays where nothing is faster. Ratios of different pairs come from different rounds, and
  /// on a restless machine they may go round in a circle: it is the one that loses least to whoever it loses most to, among
  /// those that can go on running and are not surely slower than another. By chance all good ones may be that, so that nobody
  /// is taken for it who is far behind.
  std::size_t find(std::size_t incumbent) const {
    constexpr double far = 1.03;
    std::vector<standing> all;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      all.push_back(standing_of(i));
      least = std::min(least, all.back().behind);
    }
    const auto rank = [&](std::size_t i) {
      return std::pair(all[i].is_surely_slower || all[i].behind > far * least, all[i].behind);
    };
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (rank(i) < rank(incumbent)) incumbent = i;
    return incumbent;
  }

  /// Nobody is handed out who is behind one that was added to stay, as single backends and the previous plan are, whatever third
  /// ones had said of it: the promise is about these. Answers who is, instead of the one that was found.
  std::size_t handed_out(std::size_t found) const {
    constexpr double telling = 1.003;  // less is chance
    std::size_t ahead = found;
    double most = telling;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i == found || !runs_.stays(i) || !runs_.can_run(i)) continue;
      const paired_ratio r = runs_.ratio(found, i);
      if (r.rounds >= enough_rounds && r.median > most) ahead = i, most = r.median;
    }
    return ahead;
  }

 private:
  static constexpr std::size_t enough_rounds = 5;  // for a ratio to be believed

  /// Tells `each` how placement `i` compares with each other one that ran beside it, unless it was released. Those that were
  /// count as well: what they beat and runs no more would look good beside what is slower still.
  template <class Each>
  void compare(std::size_t i, Each each) const {
    for (std::size_t j = 0; j < runs_.size() && runs_.can_run(i); ++j) {
      if (runs_.counts_apart(j) && !runs_.counts_apart(i)) continue;  // it was there to show what kernels take then
      if (const paired_ratio r = runs_.ratio(i, j); j != i && r.rounds != 0) each(r);
    }
  }
  struct standing {
    double behind = std::numeric_limits<double>::infinity();
    bool is_surely_slower = false;
  };
  /// How many times as long as the fastest beside it a placement takes, infinity where it ran beside nobody, and whether it is
  /// surely slower than another. Few rounds say little, so that what they say counts for part.
  standing standing_of(std::size_t i) const {
    standing found;
    double most = 0;
    compare(i, [&](const paired_ratio& r) {
      constexpr auto enough = static_cast<double>(enough_rounds);
      most = std::max(most, std::pow(r.median, std::min(1.0, static_cast<double>(r.rounds) / enough)));
      found.is_surely_slower = found.is_surely_slower || (r.rounds >= enough_rounds && r.low > 1);
    });
    if (most > 0) found.behind = most;
    return found;
  }

  const Runs& runs_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
