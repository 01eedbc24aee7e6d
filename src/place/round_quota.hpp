// Decides which rounds a race still wants. Only this header decides it.
#pragma once

#include <cstddef>
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {

/// How long placements run against each other.
struct race_options {
  double seconds = 3;  ///< of running; waiting for an undisturbed machine comes on top
  /// Calls within this time after another placement ran do not count (docs/measuring.md). After Eigen or OpenBLAS such calls take
  /// up to a fifth longer. The threads of a library's own pool busy-wait for about as long.
  double settling_ms = 15;
  std::size_t least_rounds = 5, most_rounds = 200;
  /// A placement stops running once it is slower than another by one of these factors: by `beaten` after two rounds, by `behind`
  /// after five. It has to be slower in all rounds, or later by the confidence interval. If rounds of one regime are still to come,
  /// the placements are presumed to be equal in them.
  double beaten = 1.5, behind = 1.03;
  /// At the end, the processors are kept busy for up to this many seconds to split the cache, if it did not split by itself. Hosts
  /// move busy virtual processors away from each other within some seconds, and back as soon as the processors rest.
  double splitting_s = 0;
  /// Only rounds with a split cache are wanted.
  bool is_split_alone = false;
};

/// Conditions under which a round begins.
struct planned_round {
  cache_regime regime = cache_regime::shared;
  /// The round counts for the quota of split rounds. If waiting cannot end a split, rounds in it count for the usual quota.
  bool is_for_split = false;
  bool is_undisturbed = true;
};

/// Counts rounds by their purpose, and decides which are still wanted. Time limits them, not a number of rounds that is fixed in
/// advance. Such a number would depend on the time of one call, which a busy machine makes many times longer.
class round_quota {
 public:
  explicit round_quota(const race_options& how) : how_(how) {}

  bool has_any() const { return usual_.rounds + split_.rounds > 0; }
  /// Whether another round in the usual state is due.
  bool is_due() const { return !how_.is_split_alone && is_wanted(usual_); }
  /// Whether to split the cache for a round, if no round in the usual state is due.
  bool wants_split() const { return how_.is_split_alone ? is_wanted(split_) : split_.rounds < how_.least_rounds; }
  /// Whether to take a round in a cache that split by itself. No more are taken once they have cost too much time.
  bool takes_split() const {
    constexpr double most_share = 3;
    return is_wanted(split_) && split_.took_ms < most_share * most_ms() && !gave_up_split_;
  }
  void count(const planned_round& what, double took_ms) {
    tally& t = what.is_for_split ? split_ : usual_;
    ++t.rounds;
    t.took_ms += took_ms;
  }
  /// Whether a round in which the machine became slow may be repeated. It may until the lost time equals the time of the race. A
  /// round during which a split ended never counts, so it is always repeated.
  bool may_repeat(const planned_round& what) const { return what.is_for_split || lost_ms_ < most_ms(); }
  /// Records that a round is repeated. Returns false if the race ends instead, because no other round is wanted.
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
