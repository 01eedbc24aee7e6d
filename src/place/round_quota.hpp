// Which rounds a race still wants: the one place that decides it.
#pragma once

#include <cstddef>
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {

/// How long placements run against each other.
struct race_options {
  double seconds = 3;  ///< of running; waiting for an undisturbed machine comes on top
  /// Calls in the first so many milliseconds after another placement do not count (docs/measuring.md). After Eigen or OpenBLAS
  /// they take up to a fifth longer. Threads of a library's own pool look for work for about as long.
  double settling_ms = 15;
  std::size_t least_rounds = 5, most_rounds = 200;
  /// A placement stops running once it is slower than another by one of these factors: by `beaten` after two rounds, by `behind`
  /// after five. It has to be that in all rounds, or later by the confidence interval. Where rounds of one regime are still to
  /// come, the placements are presumed to be equal in them.
  double beaten = 1.5, behind = 1.03;
  /// Seconds in which the processors are kept at work until their caches are split, at the end, if this did not happen by itself.
  /// Hosts move busy virtual processors away from each other within some seconds, and back as soon as they rest.
  double splitting_s = 0;
  /// Only rounds with split caches are wanted.
  bool is_split_alone = false;
};

/// Conditions under which a round begins.
struct planned_round {
  cache_regime regime = cache_regime::shared;
  /// It counts for the quota of split rounds. A round in split caches that waiting could not end counts for the usual quota.
  bool is_for_split = false;
  bool is_undisturbed = true;
};

/// Counts rounds by what they are for, and decides which are still wanted. The clock decides, not a number of rounds that is fixed
/// before: that would depend on one call, which a busy machine makes many times longer.
class round_quota {
 public:
  explicit round_quota(const race_options& how) : how_(how) {}

  bool has_any() const { return usual_.rounds + split_.rounds > 0; }
  /// Whether another round in the usual state is due.
  bool is_due() const { return !how_.is_split_alone && is_wanted(usual_); }
  /// Whether the processors' caches are to be split for a round, when none is due.
  bool wants_split() const { return how_.is_split_alone ? is_wanted(split_) : split_.rounds < how_.least_rounds; }
  /// Whether a round is taken in caches that are split by themselves. Rounds that are so long that they cost too much are not.
  bool takes_split() const {
    constexpr double most_share = 3;
    return is_wanted(split_) && split_.took_ms < most_share * most_ms() && !gave_up_split_;
  }
  void count(const planned_round& what, double took_ms) {
    tally& t = what.is_for_split ? split_ : usual_;
    ++t.rounds;
    t.took_ms += took_ms;
  }
  /// Whether a round in which the machine became slow may be repeated: until as much time was lost as the race has. A round in
  /// which split caches came together never counts.
  bool may_repeat(const planned_round& what) const { return what.is_for_split || lost_ms_ < most_ms(); }
  /// Notes that a round is repeated. Returns false if the race ends instead, as nothing else is wanted.
  bool repeat(const planned_round& what, double took_ms) {
    lost_ms_ += took_ms;
    if (!what.is_for_split || lost_ms_ < most_ms()) return true;
    gave_up_split_ = true;
    return is_due();
  }

 private:
  struct tally {
    std::size_t rounds = 0;
    double took_ms = 0;
  };
  double most_ms() const { return how_.seconds * 1e3; }
  bool is_wanted(const tally& t) const {
    return t.rounds < how_.least_rounds || (t.rounds < how_.most_rounds && t.took_ms < most_ms());
  }

  race_options how_;
  tally usual_, split_;
  double lost_ms_ = 0;
  bool gave_up_split_ = false;
};

}  // namespace detail
}  // namespace collage::inline v0
