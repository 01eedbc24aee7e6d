// Runs placements end to end against each other, and keeps track of the fastest so far.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <new>
#include <optional>
#include "cost_measurer.hpp"
#include "error_limit.hpp"
#include "fastest.hpp"
#include "place_task.hpp"
#include "placement_race.hpp"
#include "policy.hpp"
#include "round_estimates.hpp"
#include "round_log.hpp"
#include "round_quota.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class whole_runs {
 public:
  whole_runs(const place_task& task, cost_measurer& measurer)
      : task_(task),
        measurer_(measurer),
        distrusts_(measurer.distrusts()),
        race_(task.network, task.backends, task.threads, task.options.seed, task.packed, &measurer.monitor(),
              task.options.measuring.clock) {}

  placement_race& race() { return race_; }
  const placement_race& race() const { return race_; }

  /// The number of the placement that was last found or set as the fastest.
  std::size_t incumbent() const { return incumbent_; }
  void set_incumbent(std::size_t number) { incumbent_ = number; }

  /// How placements are compared in the time that the task gives. A short time also shortens the waiting before calls count.
  race_options options() const {
    race_options how;
    how.seconds = task_.options.comparing.seconds;
    how.settling_ms = std::min(how.settling_ms, how.seconds * 1e3 / 20);
    return how;
  }

  /// Adds a placement to the race (placement_race::add). Returns its number, or nothing if it cannot be built, for example for lack
  /// of memory.
  std::optional<std::size_t> add_if_possible(const placement& p, race_role role = race_role::contender) {
    try {
      return race_.add(p, role);
    } catch (const error&) { return {}; } catch (const std::bad_alloc&) {
      return {};
    }
  }

  /// Runs rounds. If the machine turns out to be faster than at the start, all kernels and placements are timed again.
  void run(const race_options& how) {
    const auto is_over = [this] { return task_.until.is_over(); };
    const auto check = [this] { require_time(); };
    for (;;) {
      if (measurer_.distrusts() != distrusts_ && !is_over()) {  // by this function, or while kernels were measured
        measurer_.replace_distrusted();
        distrusts_ = measurer_.distrusts();
        race_.forget_rounds();
      }
      race_.run(how, is_over, check);
      if (is_over() || !measurer_.distrust_slow_start()) return;
    }
  }

  /// Throws `no_round` if the time is long over and no round is complete: building engines and the first calls may take longer than the
  /// budget. Throws `cancellation`, too.
  void require_time() const {
    task_.until.check();
    if (race_.log().size() == 0 && task_.until.is_long_over()) throw no_round();
  }

  /// Whether a placement may become the plan.
  bool may_be_selected(const placement& p) {
    const bool may = is_accepted(task_, p);
    has_refused_ = has_refused_ || !may;
    return may;
  }
  /// Whether it was false for some placement.
  bool has_refused() const { return has_refused_; }

  /// Finds the fastest of the placements that ran and may become the plan. The last one stays even if it may not.
  void find_fastest() {
    for (;;) {
      incumbent_ = fastest_of(race_).find(incumbent_);
      if (allowed_ == incumbent_ && race_.can_run(incumbent_)) return;
      if (may_be_selected(race_.which(incumbent_))) break;
      race_.refuse(incumbent_);
      const std::size_t refused = incumbent_;
      // If none of the others ran, the one with the smallest cost is next.
      for (std::size_t i = 0; i < race_.size(); ++i)
        if (race_.can_run(i) && (incumbent_ == refused || race_.which(i).cost_ms < race_.which(incumbent_).cost_ms))
          incumbent_ = i;
      if (incumbent_ == refused) break;
    }
    allowed_ = incumbent_;
  }

  /// Selects a placement. First runs more rounds if the fastest placement has too few undisturbed ones, because it joined late or
  /// was often disturbed.
  void find_selected() {
    race_options how = options();
    how.seconds /= 2;
    how.splitting_s = race_.met_split() ? how.seconds : 0;
    constexpr std::size_t enough = thresholds.selection.enough_rounds;
    find_fastest();
    for (int more = 0; more < thresholds.selection.most_races && !task_.until.is_over(); ++more) {
      const std::size_t ran = race_.rounds(incumbent_), calm = race_.time_of(incumbent_).samples;
      const bool lacks_split = race_.met_split() &&
                               race_.log().turns(incumbent_, cache_regime::split) < enough_of_a_regime &&
                               more < thresholds.selection.most_split_races;
      how.is_split_alone = calm >= enough || (more >= thresholds.selection.most_split_races && 3 * calm > 2 * ran);
      if (how.is_split_alone && !lacks_split) break;
      how.most_rounds = std::max(enough, calm + how.least_rounds) - calm;
      run(how);
      find_fastest();
    }
    incumbent_ = fastest_of(race_).selected(incumbent_);
  }
  /// The placement to select by the rounds so far. One that `accepts` does not know yet is not selected.
  std::size_t selected() const {
    const fastest_of all(race_);
    return all.selected(task_.options.accepts ? incumbent_ : all.find(incumbent_));
  }

 private:
  const place_task& task_;
  cost_measurer& measurer_;
  std::size_t distrusts_;  // the measurer's count when the race's rounds began
  placement_race race_;
  std::size_t incumbent_ = 0;
  std::optional<std::size_t> allowed_;  // it may become the plan
  bool has_refused_ = false;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
