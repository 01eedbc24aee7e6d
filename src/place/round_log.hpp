// The log of a race: what interleaved rounds of whole runs took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// Whether the threads' processors share a cache. Those of virtual machines do at times and not at others, and each state suits
/// other placements (docs/measuring.md). A network may later run in either.
enum class cache_regime : std::uint8_t { shared, split };

inline constexpr cache_regime cache_regimes[] = {cache_regime::shared, cache_regime::split};

/// The time of a turn that was not taken. It is a NaN, so that comparisons with it are false.
inline constexpr double not_run = std::numeric_limits<double>::quiet_NaN();

/// True for the time of a turn that was taken.
inline bool has_run(double ms) { return ms == ms; }

/// One placement's part of a round.
struct round_turn {
  double ms = not_run;                       ///< of one call, in the median
  std::vector<std::vector<double>> step_ms;  ///< for each call whose steps were timed: milliseconds by step
};

/// One turn of all placements. The order of `turns` is that of the placements; those that joined later are missing at its end.
struct race_round {
  cache_regime regime = cache_regime::shared;
  bool is_undisturbed = true;
  std::vector<round_turn> turns;
};

/// The accepted rounds, in their order. A round that has to be repeated never enters the log.
class round_log {
 public:
  void append(race_round round) { rounds_.push_back(std::move(round)); }
  void clear() { rounds_.clear(); }
  /// From now on, others are not compared with this placement: it cannot become the plan. Its times stay known.
  void leave_out(std::size_t placement) {
    left_out_.resize(std::max(left_out_.size(), placement + 1));
    left_out_[placement] = true;
  }
  bool leaves_out(std::size_t placement) const { return placement < left_out_.size() && left_out_[placement]; }

  const std::vector<race_round>& rounds() const { return rounds_; }
  std::size_t size() const { return rounds_.size(); }
  std::size_t count(cache_regime regime) const {
    return static_cast<std::size_t>(std::ranges::count(rounds_, regime, &race_round::regime));
  }
  bool has(cache_regime regime) const {
    return std::ranges::find(rounds_, regime, &race_round::regime) != rounds_.end();
  }
  bool is_undisturbed() const { return std::ranges::all_of(rounds_, &race_round::is_undisturbed); }

  /// A placement's milliseconds by round, `not_run` where it took no turn.
  std::vector<double> times(std::size_t placement) const {
    std::vector<double> list;
    for (const race_round& r : rounds_) list.push_back(time_in(r, placement));
    return list;
  }
  /// The same, and `not_run` in rounds of the other regime.
  std::vector<double> times(std::size_t placement, cache_regime regime) const {
    std::vector<double> list;
    for (const race_round& r : rounds_) list.push_back(r.regime == regime ? time_in(r, placement) : not_run);
    return list;
  }
  /// How many turns of a regime a placement took.
  std::size_t turns(std::size_t placement, cache_regime regime) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        rounds_, [&](const race_round& r) { return r.regime == regime && has_run(time_in(r, placement)); }));
  }
  /// How many of a placement's calls were timed step by step in a regime.
  std::size_t traced_calls(std::size_t placement, cache_regime regime) const {
    std::size_t count = 0;
    for (const race_round& r : rounds_)
      if (r.regime == regime && placement < r.turns.size()) count += r.turns[placement].step_ms.size();
    return count;
  }

 private:
  static double time_in(const race_round& r, std::size_t placement) {
    return placement < r.turns.size() ? r.turns[placement].ms : not_run;
  }

  std::vector<race_round> rounds_;
  std::vector<bool> left_out_;  // by placement
};

}  // namespace detail
}  // namespace collage::inline v0
