// The comparison end to end. Placements run, which gives the times of their kernels within the network, and the search goes on
// with these times. This ends when the search finds nothing that has not run. Then the fastest placement is selected.
#pragma once

#include <algorithm>
#include <collage/measure/statistics.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "configuration_candidates.hpp"
#include "cost_measurer.hpp"
#include "kernel_trials.hpp"
#include "placement_race.hpp"
#include "placement_search.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "region_candidates.hpp"
#include "region_trials.hpp"
#include "round_log.hpp"
#include "round_quota.hpp"
#include "run_learner.hpp"
#include "search_view.hpp"
#include "whole_runs.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class comparison {
 public:
  comparison(placing_state& known, region_candidates& regions, search_view& view, cost_measurer& measurer,
             placement_search& search, const progress& listener)
      : known_(known),
        regions_(regions),
        view_(view),
        measurer_(measurer),
        search_(search),
        progress_(listener),
        writer_(known),
        learner_(known),
        runs_(known.task, measurer),
        kernels_(known, learner_, runs_, listener),
        trials_(known, regions, measurer, runs_) {}

  /// Compares a plan's placement with its baselines, and makes it the fastest placement that ran. Returns the last search. If the
  /// caller cancels this, the plan is the fastest of the complete rounds, and the cancellation is passed on. If the time is up before
  /// one is complete, the plan stays as it is.
  search_result run(plan& made) {
    try {
      return run_all(made);
    } catch (const cancellation&) {
      made = so_far(std::move(made));
      throw;
    } catch (const no_round&) { return search_.best(); }
  }

  /// The report of the search over regions.
  const region_report& regions() const { return report_; }
  /// Whether the caller refused a placement.
  bool has_refused() const { return runs_.has_refused(); }
  /// The rounds of the race.
  const round_log& log() const { return runs_.race().log(); }

 private:
  search_result run_all(plan& made) {
    placement_race& race = runs_.race();
    runs_.set_incumbent(race.add(made.chosen));
    std::erase_if(made.singles, [this](const placement& s) { return !runs_.may_be_selected(s); });
    for (const placement& s : made.singles) {
      runs_.require_time();
      singles_.push_back(race.add(s, race_role::baseline));
    }
    const place_options& options = known_.task.options;
    if (known_.errors.is_needed()) add_unrounded();
    if (options.previous != nullptr) previous_ = add_previous(*options.previous);
    const bool may_split = known_.task.may_split();
    const double seconds = options.comparing.seconds;
    run_for(seconds, "the plan with every single backend, end to end", may_split ? seconds : 0);
    show(made);
    kernels_.run(search_);
    show(made);
    bool knows_split = (may_split || race.met_split()) && kernels_.run_split(search_);
    search_on();
    show(made);
    trials_.run(search_);
    show(made);
    // Caches are split at times only. Split caches that were not met before may be met now.
    if (may_split && !knows_split && kernels_.run_split(search_)) search_on();
    return decide(made);
  }

  /// Adds the best placement that rounds nothing: a plan of lower precision is never slower.
  void add_unrounded() {
    const search_result exact = search_.best_unrounded();
    if (view_.keeps_bound(exact))
      unrounded_ = runs_.race().add(writer_.write(unrounded_run, exact), race_role::baseline);
  }

  /// The plan with the fastest placement of the complete rounds, by what is known now.
  plan so_far(plan made) const {
    const placement_race& race = runs_.race();
    const std::size_t winner = runs_.selected();
    if (race.rounds(winner) == 0) return made;
    made.origin = origin_of(winner, made);
    made.chosen = writer_.refreshed(race.which(winner));
    made.chosen.name = "plan";
    made.chosen.borrowed.clear();
    made.memory = known_.weights.memory_of(made.chosen);
    list_runs(made, winner);
    return made;
  }
  /// Passes on the best plan so far.
  void show(const plan& made) const {
    if (known_.task.options.improved) known_.task.options.improved(so_far(made));
  }

  /// Searches and runs the placements that it finds, until it finds no new one.
  void search_on() {
    placement_race& race = runs_.race();
    const double seconds = known_.task.options.comparing.seconds;
    for (int turn = 0; turn < thresholds.trial.most_searches && !known_.task.until.is_over(); ++turn) {
      runs_.find_fastest();
      learner_.learn(race, runs_.incumbent());
      const search_result last = search_.best();
      if (!view_.keeps_bound(last)) break;
      // A placement does not run if its expected gain is too small for runs to show.
      const placement& fastest = race.which(runs_.incumbent());
      const auto& conversions = known_.layouts.conversions();
      const double to_beat = writer_.refreshed(fastest).cost_ms + (conversions ? conversions->presumed_ms(fastest) : 0);
      if (last.found.cost_ms > thresholds.trial.telling * to_beat) break;
      const std::size_t before = race.size();
      // A placement does not run again, unless its rounds were forgotten since.
      if (const std::size_t number = race.add(writer_.write("plan", last)); number < before && race.rounds(number) != 0)
        break;
      run_for(seconds / 2, "a placement found with costs measured within the network", race.met_split() ? seconds : 0);
    }
  }

  void run_for(double seconds, const std::string& what, double splitting_s) {
    race_options how = runs_.options();
    how.seconds = std::min(seconds, std::max(0.0, known_.task.until.left_s()));
    how.splitting_s = splitting_s;
    place_progress now;
    now.stage = "comparing";
    now.what = what;
    now.remaining = 1;
    now.remaining_s = how.seconds;
    progress_.tell(std::move(now));
    runs_.run(how);
  }

  /// Adds the previous plan to the race and returns its number; nothing if it does not fit or cannot be built any more.
  /// The same if it exceeds the bound on weights: all placements of the race keep it.
  std::optional<std::size_t> add_previous(const plan& previous) {
    if (previous.fingerprint != known_.task.network.fingerprint() || !is_over_our_backends(previous.chosen) ||
        !serves(previous.precision, known_.task.plan_precision))
      return {};
    if (!unwanted_algorithm_of(previous, known_.task.network, known_.task.backends,
                               wanted_algorithms(known_.task.options))
             .is_direct())
      return {};
    if (!known_.weights.keeps(previous.chosen) || !known_.errors.keeps(previous.chosen) ||
        !runs_.may_be_selected(previous.chosen))
      return {};
    // Its kernels need costs, too.
    regions_.add_those_of(previous.chosen);
    configuration_candidates(known_).add_those_of(previous.chosen);
    (void)measurer_.measure_conversions([&] { return writer_.conversions_of(previous.chosen); });
    for (const auto& who : known_.candidates.in(previous.chosen))
      if (who && !measurer_.has_kernel(*who)) return {};  // accepted then, refused now
    return runs_.add_if_possible(previous.chosen, race_role::baseline);
  }

  /// Whether all kernels and conversions of a placement are of backends that may be used now.
  bool is_over_our_backends(const placement& p) const {
    const auto is_ours = [this](const std::string& name) {
      for (std::uint32_t b = 0; b < known_.task.backends.size(); ++b)
        if (name == known_.task.backends[b].name) return bool{known_.task.use[b]};
      return false;
    };
    return std::ranges::all_of(p.groups,
                               [&](const plan_group& g) {
                                 return (!g.has_kernel() || is_ours(g.backend())) &&
                                        std::ranges::all_of(g.bodies(), [&](const placement& body) {
                                          return is_over_our_backends(body);
                                        });
                               }) &&
           std::ranges::all_of(p.conversions, [&](const plan_conversion& c) { return is_ours(c.step.backend); });
  }

  /// Makes the plan the fastest placement that ran, with costs, runners-up and certificate by what is known now.
  search_result decide(plan& made) {
    placement_race& race = runs_.race();
    runs_.find_selected();
    const std::size_t winner = runs_.incumbent();
    report_ = trials_.report();
    if (trials_.before() && winner != *trials_.before())
      if (const paired_ratio r = race.ratio(winner, *trials_.before()); r.rounds != 0) report_.ratio = r.median;
    hide_regions_that_lost();
    learner_.learn(race, winner);
    search_result last = search_.best();
    std::optional<placement> found;
    if (view_.keeps_bound(last)) found = writer_.write("plan", last);
    std::vector<placement> ran;
    for (std::size_t i = 0; i < race.size(); ++i) ran.push_back(writer_.refreshed(race.which(i)));
    for (std::size_t s = 0; s < singles_.size(); ++s) {
      placement& single = made.singles[s];
      single.groups = ran[singles_[s]].groups;
      single.conversions = ran[singles_[s]].conversions;
      single.cost_ms = ran[singles_[s]].cost_ms;
    }
    if (found && same_steps(*found, race.which(winner))) {
      made.origin = "search";
      made.chosen = *std::move(found);
    } else {
      made.origin = origin_of(winner, made);
      made.chosen = ran[winner];
      made.chosen.name = "plan";
      made.chosen.borrowed.clear();
    }
    made.memory = known_.weights.memory_of(made.chosen);
    list_runs(made, winner);
    return last;
  }
  /// Hides regions that were tried and no longer run, so that the last searches do not use them.
  void hide_regions_that_lost() {
    const placement_race& race = runs_.race();
    std::vector<bool> runs(known_.candidates.size(), false);
    for (std::size_t r = 0; r < race.size(); ++r)
      if (race.can_run(r) || r == runs_.incumbent())
        for (const auto& who : known_.candidates.in(race.which(r)))
          if (who) runs[*who] = true;
    view_.hide_regions(regions_.first_tried(), runs);
  }
  /// The origin of a winner that is not the placement that the search finds.
  std::string origin_of(std::size_t winner, const plan& made) const {
    const auto single = std::find(singles_.begin(), singles_.end(), winner);
    if (single != singles_.end()) return made.singles[static_cast<std::size_t>(single - singles_.begin())].name;
    if (previous_ == winner) return previous_run;
    if (trials_.operators() == winner) return operators_run;
    if (unrounded_ == winner) return unrounded_run;
    return runs_.race().which(winner).name == regions_run ? regions_run : "search";
  }
  void list_runs(plan& made, std::size_t winner) const {
    const placement_race& race = runs_.race();
    const auto add = [&](std::size_t i, const std::string& name) {
      if (race.rounds(i) == 0) return;  // it joined, and placing was cancelled
      made.runs.push_back(run_of(race, i, winner, name));
    };
    made.runs.clear();
    add(winner, "plan");
    for (std::size_t i = 0; i < singles_.size(); ++i) add(singles_[i], made.singles[i].name);
    if (trials_.operators()) add(*trials_.operators(), operators_run);
    if (unrounded_) add(*unrounded_, unrounded_run);
    if (previous_) add(*previous_, previous_run);
  }

  placing_state& known_;
  region_candidates& regions_;
  search_view& view_;
  cost_measurer& measurer_;
  placement_search& search_;
  const progress& progress_;
  placement_writer writer_;
  run_learner learner_;
  whole_runs runs_;
  kernel_trials kernels_;
  region_trials trials_;
  std::vector<std::size_t> singles_;  // the baselines' numbers in the race
  std::optional<std::size_t> previous_, unrounded_;
  region_report report_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
