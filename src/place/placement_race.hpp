// A race end to end: several placements of one network run in interleaved rounds.
#pragma once

#include <algorithm>
#include <collage/measure/drift.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include "placement_runner.hpp"
#include "policy.hpp"
#include "round_estimates.hpp"
#include "round_log.hpp"
#include "round_quota.hpp"

namespace collage::inline v0 {

namespace detail {

/// Placements of one network that run end to end against each other. Placements may join later; a round in which one did not
/// run counts for no pair with it. Times come from rounds with a shared cache. Ratios come from rounds of both regimes, once
/// there are some of each.
class placement_race {
 public:
  using stop_function = std::function<bool()>;
  using poll_function = placement_runner::poll_function;

  /// Refers to the network, the table and the monitor, which may be null.
  placement_race(const graph& network, backend_table backends, int threads, std::uint64_t seed,
                 std::shared_ptr<packed_weights> packed, drift_monitor* monitor = nullptr, time_source time = {})
      : setting_{&network, backends, threads, std::move(packed), std::move(time)}, monitor_(monitor), memory_(network) {
    memory_.randomise(seed);
  }

  /// Returns the placement's number. Placements with the same steps share one, unless a replica is wanted; if that was released,
  /// it runs again.
  std::size_t add(const placement& p, race_role role = race_role::contender) {
    const bool is_baseline = role == race_role::baseline;
    for (std::size_t i = 0; i < runners_.size() && role != race_role::replica; ++i)
      if (placement_runner& r = runners_[i]; same_steps(r.which(), p)) {
        if (is_baseline) r.make_baseline();
        if (!r.can_run()) r.build(setting_);
        return i;
      }
    runners_.emplace_back(setting_, p, is_baseline);
    return runners_.size() - 1;
  }

  /// Runs all placements in turns. `stop` ends it after the current round; it is called from the second round on. `poll` is called
  /// before each call of a placement. It may throw to end the race at once; rounds that are complete then stay.
  void run(const race_options& how = {}, const stop_function& stop = {}, const poll_function& poll = {}) {
    for (placement_runner& r : runners_) r.warm_up(memory_, poll);
    round_quota quota(how);
    double splitting_s = how.splitting_s;
    expects_split_ = met_split() || (how.splitting_s > 0 && setting_.threads > 1 && monitor_ != nullptr);
    for (;;) {
      const bool is_stopped = stop && stop();
      if (is_stopped && quota.has_any()) break;
      const std::optional<planned_round> next = plan_round(quota, splitting_s, stop);
      if (!next) break;
      const double start_ms = running_ms();
      auto [round, lost_patience] = take_round(how, stop, poll, next->regime);
      const double took_ms = running_ms() - start_ms;
      const bool is_steady = round.is_undisturbed && is_still(next->regime);
      if (next->is_undisturbed && !is_steady && !is_stopped && quota.may_repeat(*next)) {
        if (!quota.repeat(*next, took_ms)) break;
        continue;
      }
      round.is_undisturbed = next->is_undisturbed && is_steady && !lost_patience;
      quota.count(*next, took_ms);
      log_.append(std::move(round));
    }
  }

  /// Keeps the processors busy until they share no cache, and returns whether it succeeded. Takes at most `most_s`, and
  /// subtracts the time it took from it. `stop` ends it.
  bool split_caches(double& most_s, const stop_function& stop = {}) {
    const auto at_work = std::ranges::find_if(runners_, &placement_runner::can_run);
    if (most_s <= 0 || setting_.threads == 1 || monitor_ == nullptr || at_work == runners_.end()) return false;
    double last_ms = setting_.time.now_ms();
    for (int call = 0; !caches_are_split(); ++call) {
      if (most_s <= 0 || call == thresholds.race.most_splitting_calls || (stop && stop())) return false;
      at_work->call(memory_);
      const double now_ms = setting_.time.now_ms();
      most_s -= (now_ms - std::exchange(last_ms, now_ms)) / 1e3;
    }
    return true;
  }

  /// Forgets all rounds so far: they are not comparable with later ones.
  void forget_rounds() {
    log_.clear();
    stays_split_ = false;
  }

  /// Stops a placement and releases its kernels and memory. Its rounds stay known.
  void release(std::size_t i) { runners_[i].release(); }
  /// The same for one that cannot become the plan. Those that it beat run again.
  void refuse(std::size_t i) {
    release(i);
    log_.leave_out(i);
  }

  bool can_run(std::size_t i) const { return runners_[i].can_run(); }
  bool is_baseline(std::size_t i) const { return runners_[i].is_baseline(); }
  std::size_t size() const { return runners_.size(); }
  const placement& which(std::size_t i) const { return runners_[i].which(); }
  /// The accepted rounds since the last `forget_rounds`.
  const round_log& log() const { return log_; }
  /// Whether some rounds ran in split caches.
  bool met_split() const { return log_.has(cache_regime::split); }

  /// In how many rounds of its main regime a placement ran.
  std::size_t rounds(std::size_t i) const { return log_.turns(i, main_regime(i)); }
  cache_regime main_regime(std::size_t i) const { return detail::main_regime(log_, i); }
  timing time_of(std::size_t i) const { return detail::time_of(log_, i); }
  paired_ratio ratio(std::size_t i, std::size_t to) const { return ratio_of(log_, i, to); }
  /// About how long a placement's turn takes.
  double turn_ms(std::size_t i, const race_options& how) const {
    return turn_shape{time_of(i).median_ms}.turn_ms(how.settling_ms);
  }

  /// The times of a placement's groups within whole runs, without views, in the order of the engine's steps (steps_in).
  std::vector<timing> steps_of(std::size_t i, std::size_t beside, cache_regime regime) const {
    return steps_in_order(i, beside, regime, false);
  }
  /// Those of its conversions, in the order of `conversions_in`.
  std::vector<timing> conversion_steps_of(std::size_t i, std::size_t beside, cache_regime regime) const {
    return steps_in_order(i, beside, regime, true);
  }
  /// The conversions of a placement in the order in which the engine runs them: positions in its list.
  const std::vector<std::size_t>& conversions_in(std::size_t i) const { return runners_[i].conversions(); }

 private:
  std::vector<timing> steps_in_order(std::size_t i, std::size_t beside, cache_regime regime, bool conversions) const {
    const std::vector<bool>& is_conversion = runners_[i].is_conversion();
    const std::vector<timing> all = steps_in(log_, i, is_conversion.size(), beside, regime);
    std::vector<timing> list;
    for (std::size_t s = 0; s < all.size(); ++s)
      if (is_conversion[s] == conversions) list.push_back(all[s]);
    return list;
  }

  /// The clock without the time spent waiting.
  double running_ms() const { return setting_.time.now_ms() - (monitor_ != nullptr ? monitor_->waited_ms() : 0); }
  bool caches_are_split() const { return setting_.threads > 1 && monitor_ != nullptr && monitor_->is_apart(); }
  /// Whether the machine is as it was when a round began.
  bool is_still(cache_regime regime) const {
    if (monitor_ == nullptr) return true;
    return regime == cache_regime::split ? caches_are_split() : monitor_->is_calm();
  }

  /// Brings the machine into a state for the next round; nothing if no round is wanted any more.
  std::optional<planned_round> plan_round(const round_quota& quota, double& splitting_s, const stop_function& stop) {
    const planned_round split{cache_regime::split, true, true};
    if (!quota.is_due()) {
      if (!quota.wants_split() || !split_caches(splitting_s, stop)) return {};
      return split;
    }
    const bool is_split = caches_are_split();
    if (is_split && quota.takes_split() && !stays_split_) return split;
    planned_round next;
    if (monitor_ == nullptr) return next;
    next.is_undisturbed = monitor_->wait(stop);  // resting also ends a split
    if (!next.is_undisturbed && caches_are_split()) next.regime = cache_regime::split;
    if (is_split) stays_split_ = next.regime == cache_regime::split;
    return next;
  }

  /// By placement, whether it runs in the next round.
  std::vector<bool> still_running(const race_options& how, cache_regime regime) const {
    const expected_regimes expected{met_split() && (regime == cache_regime::shared || log_.has(cache_regime::shared)),
                                    expects_split_};
    std::size_t best = size();
    for (std::size_t i = 0; i < size(); ++i)
      if (is_baseline(i) && can_run(i) && (best == size() || time_of(i).median_ms < time_of(best).median_ms)) best = i;
    const auto is_beaten = [&](std::size_t i, std::size_t rounds, double factor) {
      return is_slower(log_, i, size(), rounds, factor, expected);
    };
    std::vector<bool> runs(size());
    for (std::size_t i = 0; i < size(); ++i)
      runs[i] = can_run(i) && !is_beaten(i, thresholds.race.rounds_to_beat, how.beaten) &&
                (i == best || !is_beaten(i, thresholds.race.rounds_to_leave, how.behind));
    return runs;
  }

  struct taken_round {
    race_round round;
    bool lost_patience = false;  ///< a turn counts although another machine was at work on the same cores
  };
  taken_round take_round(const race_options& how, const stop_function& stop, const poll_function& poll,
                         cache_regime regime) {
    taken_round made{{regime, true, std::vector<round_turn>(size())}};
    const std::vector<bool> runs = still_running(how, regime);
    // Another order each time: a placement that always ran after the same one would always find the same things in the caches.
    std::vector<std::size_t> order(size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(log_.size()));
    for (const std::size_t i : order) {
      if (!runs[i]) continue;
      placement_runner::taken_turn taken = take_turn(i, how, poll, regime);
      // Another machine on the same cores comes and goes within tenths of a second: the turn is repeated, not the whole round.
      // Once patience is used up, times far from those of other rounds are left out in the end. In split caches there is no
      // waiting: it would end them.
      if (regime == cache_regime::shared && monitor_ != nullptr && !monitor_->is_calm(drift_sign::walk) &&
          !(stop && stop())) {
        if (monitor_->wait(stop)) taken = take_turn(i, how, poll, regime);
        else made.lost_patience = true;
      }
      made.round.is_undisturbed = made.round.is_undisturbed && taken.is_undisturbed;
      made.round.turns[i] = std::move(taken.turn);
    }
    return made;
  }
  placement_runner::taken_turn take_turn(std::size_t i, const race_options& how, const poll_function& poll,
                                         cache_regime regime) {
    return runners_[i].take_turn(memory_, setting_.time, how.settling_ms,
                                 log_.traced_calls(i, regime) < thresholds.race.most_traced, poll);
  }

  race_setting setting_;
  drift_monitor* monitor_;
  run_buffers memory_;
  std::deque<placement_runner> runners_;  // whose contexts refer to their engines
  round_log log_;
  bool expects_split_ = false;  // rounds in split caches are there, or are to come
  bool stays_split_ = false;    // waiting does not end a split
};

/// An end-to-end figure of placement `i`, compared with placement `to`. If the two never ran in the same round, the ratio comes
/// from their medians, and its interval from the medians' confidence intervals.
inline plan_run run_of(const placement_race& race, std::size_t i, std::size_t to, const std::string& name) {
  const timing time = race.time_of(i), other = race.time_of(to);
  paired_ratio r = race.ratio(i, to);
  if (r.rounds == 0 && other.median_ms > 0)
    r = {time.median_ms / other.median_ms, time.sure_low_ms / other.sure_high_ms, time.sure_high_ms / other.sure_low_ms,
         0};
  return {name, time.median_ms, time.low_ms, time.high_ms, time.samples, r.median, r.low, r.high};
}

}  // namespace detail
}  // namespace collage::inline v0
