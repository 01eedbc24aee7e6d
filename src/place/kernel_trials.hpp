// Trials: runs kernels within the network that may be faster there than their costs alone suggest.
#pragma once

#include <algorithm>
#include <collage/place.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "cost_book.hpp"
#include "placement_race.hpp"
#include "placement_search.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "round_log.hpp"
#include "round_quota.hpp"
#include "run_learner.hpp"
#include "search_view.hpp"
#include "whole_runs.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Until a kernel has run within the network, its time there is known to some per cent only. That error would decide between
/// kernels. So the search gets optimistic prices for such kernels (`outlook::hopeful`), and the placement that it finds runs. This
/// is repeated until all kernels that it finds are well known. The principle is optimism in the face of uncertainty, from bandit
/// problems (Lai and Robbins, Asymptotically efficient adaptive allocation rules, 1985).
class kernel_trials {
 public:
  kernel_trials(const placing_state& known, run_learner& learner, whole_runs& runs, const progress& listener)
      : known_(known), learner_(learner), runs_(runs), progress_(listener), writer_(known) {}

  void run(placement_search& search) {
    race_options how = runs_.options();
    how.seconds /= thresholds.trial.part_of_race;
    runs_.find_fastest();
    fastest_ = {runs_.incumbent()};
    const std::size_t most = most_turns(how);
    for (std::size_t turn = 0; turn < most && !known_.task.until.is_over(); ++turn) {
      tell("kernels that may be faster within the network than alone", turn, most, how);
      const std::optional<std::size_t> number = add_next(search, outlook::hopeful);
      if (!number) return;
      runs_.run(how);
      // A placement whose runs were cut short could only win by chance.
      if (runs_.race().rounds(*number) < how.least_rounds) return runs_.race().release(*number);
      runs_.find_fastest();
      if (runs_.incumbent() == *number) keep(*number);
      else runs_.race().release(*number);
    }
  }

  /// The same in split caches, if the processors come to that. Returns whether something ran then. The placements found join no
  /// comparison, because they have times of one cache regime only. The next search knows both.
  bool run_split(placement_search& search) {
    placement_race& race = runs_.race();
    race_options how = runs_.options();
    double splitting_s = 2 * how.seconds;
    tell("checking whether the processors stop sharing a cache under load", 0, 1, how);
    if (!race.split_caches(splitting_s, [this] { return known_.task.until.is_over(); })) return false;
    how.is_split_alone = true;
    how.splitting_s = how.seconds;
    how.seconds /= thresholds.trial.part_of_race;
    const auto rounds = [&race] { return race.log().count(cache_regime::split); };
    const auto before = rounds();
    runs_.run(how);  // so that the fastest placement has such times first
    if (rounds() == before) return false;
    runs_.find_fastest();
    const std::size_t most = most_turns(how);
    for (std::size_t turn = 0; turn < most && !known_.task.until.is_over(); ++turn) {
      tell("kernels that may be faster while processors share no cache", turn, most, how);
      const std::optional<std::size_t> number = add_next(search, outlook::hopeful_split);
      if (!number) break;
      runs_.run(how);
      const bool ran = race.rounds(*number) >= how.least_rounds;
      race.release(*number);
      if (!ran) break;  // the caches are no longer split
    }
    return true;
  }

 private:
  /// Adds the placement that a search with these prices finds; nothing if all of its kernels are well known.
  std::optional<std::size_t> add_next(placement_search& search, outlook hope) {
    learner_.learn(runs_.race(), runs_.incumbent());
    const search_result next = search.best_of_operators(hope);
    if (!search.keeps_bound(next) || are_well_known(next, hope) || known_.task.until.is_over())
      return {};  // the search may have taken the time that was left
    // If it ran before, a replica is added: another engine, whose memory lies elsewhere.
    return runs_.add_if_possible(writer_.write("plan", next), race_role::replica);
  }
  /// Keeps the last two placements that were the fastest running, so that chance does not decide between them. Earlier ones are
  /// released: they would take memory and time.
  void keep(std::size_t number) {
    fastest_.push_back(number);
    if (fastest_.size() <= 2) return;
    if (!runs_.race().is_baseline(fastest_.front())) runs_.race().release(fastest_.front());
    fastest_.erase(fastest_.begin());
  }
  /// How many placements may run: at least one, and all together for about four times as long as the comparison with the
  /// baselines. It is computed from the time of the fastest, not from a clock. So other load on the machine decides less of what
  /// is tried.
  std::size_t most_turns(const race_options& how) const {
    const double all_ms = known_.task.options.comparing.seconds * 1e3 * thresholds.trial.most_share,
                 one_ms = turn_ms(how), most = thresholds.trial.most_placements;
    return static_cast<std::size_t>(one_ms > 0 ? std::clamp(all_ms / one_ms, 1.0, most) : most);
  }
  /// About how long it takes to run one placement.
  double turn_ms(const race_options& how) const {
    const double round_ms = thresholds.trial.placements_beside * runs_.race().turn_ms(runs_.incumbent(), how);
    return std::max(how.seconds * 1e3, static_cast<double>(how.least_rounds) * round_ms);
  }
  bool are_well_known(const search_result& found, outlook how) const {
    return std::ranges::all_of(found.found.chosen, [&](std::uint32_t chosen) {
      const shown_step& what = found.who[chosen];
      return !what.is_candidate() || known_.costs.is_well_known(known_.candidates[what.number], how);
    });
  }
  void tell(const char* what, std::size_t turn, std::size_t most, const race_options& how) const {
    place_progress now;
    now.stage = "comparing";
    now.what = what;
    now.done = turn;
    now.remaining = most - turn;
    now.remaining_s =
        std::clamp(known_.task.until.left_s(), 0.0, static_cast<double>(now.remaining) * turn_ms(how) / 1e3);
    progress_.tell(std::move(now));
  }

  const placing_state& known_;
  run_learner& learner_;
  whole_runs& runs_;
  const progress& progress_;
  placement_writer writer_;
  std::vector<std::size_t> fastest_;  // numbers of placements that were the fastest, the latest last
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
