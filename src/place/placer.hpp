// Definitions of place.hpp and place/monitor.hpp, for place.cpp. This header has the order of the steps of placing. The other
// headers of this folder have the steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/monitor.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/holdups.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include "comparison.hpp"
#include "configuration_candidates.hpp"
#include "conversions.hpp"
#include "cost_book.hpp"
#include "cost_measurer.hpp"
#include "coverage.hpp"
#include "explanation.hpp"
#include "fixed_work.hpp"
#include "kept_costs.hpp"
#include "modelled_kernels.hpp"
#include "place_rules.hpp"
#include "place_task.hpp"
#include "placement_search.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "recalled_plan.hpp"
#include "region_candidates.hpp"
#include "report_log.hpp"
#include "search_view.hpp"
#include "space_tuner.hpp"
#include "stack_check.hpp"
#include "sub_plans.hpp"
#include "unmeasured_placing.hpp"
#include "weight_limit.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// One call of `place`.
class placer {
 public:
  placer(const graph& network, backend_table backends, const place_options& options)
      : known_(place_task(network, backends, options)),
        task_(known_.task),
        regions_(known_),
        view_(known_),
        progress_{options} {
    report_.refusals = task_.missing;
  }

  placed_plan run() {
    require_cover(known_, [](const place_candidate&) { return true; });
    std::optional<plan> made = task_.measures() ? run_measured() : run_unmeasured();
    if (!made) return run_by_priority();
    if (const double nmse = known_.errors.nmse_of(made->chosen); known_.errors.is_needed())
      made->error = plan_error{.most = task_.options.precision.most_error, .predicted = std::sqrt(nmse)};
    finish_report();
    return {*std::move(made), std::move(report_)};
  }

 private:
  // ---- By measuring ----

  plan run_measured() {
    const holdup_watch watch;
    cost_measurer measurer(known_, progress_);
    placement_search search(known_, view_, measurer, progress_);
    const double start = now_ms();
    search_result last;
    std::optional<plan> begun;
    plan made;
    bool is_cancelled = false, is_reported = false;
    try {
      begun = begin(measurer, search, last);
      report_.measuring_s = (now_ms() - start) / 1e3;
      made = *begun;
      if (task_.options.improved) task_.options.improved(made);
      const bool may_compare = task_.options.comparing.seconds > 0 && !may_be_endless(task_.network);
      if (!may_compare || task_.until.is_over()) describe(made, last);
      else compare(made, last, measurer, search);
      measurer.replace_distrusted();
      // A plan that was compared is worth more than estimates, even if more could have been tried.
      if (task_.until.is_over() && measurer.kept()) measurer.kept()->put_unfinished(made);
      report_costs(measurer);
      is_reported = true;
      if (measurer.distrusts() != 0 && measurer.kept() && measurer.kept()->problem().empty()) begin_again(made);
    } catch (const cancellation&) {
      is_cancelled = true;
      if (!begun) made = best_of_measured(last);
      // The certificate holds for a search over all candidates.
      if (begun) describe(made, last);
      else explain_groups(known_, view_, made);
      if (!is_reported) report_costs(measurer);
    }
    report_.holdups = watch.report(task_.threads, measurer.held_up_ms());
    report_.states = last.found.states;
    report_.transitions = last.found.transitions;
    report_.searches = search.searches();
    report_.search_ms = search.took_ms();
    report_.interrupted = is_cancelled || search.was_interrupted();
    return made;
  }

  /// A plan of the kernels that were measured before placing was cancelled. Throws if they do not run every node.
  plan best_of_measured(search_result& last) {
    plan made = start_plan();
    const auto is_placed = [&](std::uint32_t n) {
      return known_.bodies.placements_of(n, "plan").size() == task_.network.bodies_of(n).size();
    };
    bool is_whole = true;
    for (std::uint32_t n = 0; n < task_.network.nodes().size(); ++n) is_whole = is_whole && is_placed(n);
    const auto covers = [](const search_result& r) { return search::uncovered(r.problem).empty(); };
    const auto is_known = [&](const search_result& r) {
      return std::ranges::all_of(view_.conversions_of(r), [&](const auto& needed) {
        return needed.second && known_.layouts.conversions()->is_measured(*needed.second);
      });
    };
    last = view_.problem({.not_measured = false});
    is_whole = is_whole && covers(last);
    if (is_whole) last.found = view_.solve(last);
    // A conversion that was not measured was not checked. Plain kernels need none.
    if (is_whole && !is_known(last)) {
      view_.leave_plain(last);
      is_whole = covers(last);
      if (is_whole) last.found = view_.solve(last);
    }
    if (!is_whole)
      throw error(
          error_kind::cancelled, "placing ended before every node had a measured kernel, so there is no plan",
          task_.options.network,
          task_.options.store.empty() ? "let it run longer" : "place it again: the store has what was measured");
    view_.require_bound(last);
    made.chosen = placement_writer(known_).write("plan", last);
    made.memory = known_.weights.memory_of(made.chosen);
    made.first_cost_ms = made.chosen.cost_ms;
    return made;
  }

  /// A plan by costs measured alone: the best placement and the baselines. Sets `last` to the search result of the best one.
  plan begin(cost_measurer& measurer, placement_search& search, search_result& last) {
    if (measurer.kept()) configuration_candidates(known_).add_kept(*measurer.kept());
    // Kernels of single operators come first. They give a placement, which later measurements only improve, and lower bounds for
    // all other candidates.
    const auto is_wanted = [this](std::uint32_t s) {
      const place_candidates& all = known_.candidates.all();
      return all.groups[all.structures[s].example].nodes.size() == 1 && !task_.until.is_over_for_kernels();
    };
    const auto has_kernel = [&](std::uint32_t candidate) { return measurer.has_kernel(candidate); };
    bool has_regions = false;
    if (task_.options.budget_s >
        0) {  // the time may be up before all are measured, so those that matter most come first
      has_regions = regions_.expected_build_s() < thresholds.budget.for_regions * task_.options.budget_s;
      if (has_regions) regions_.try_largest(has_kernel);
      search.measure_promising();
      for (const std::uint32_t s : modelled_kernels(known_).heaviest_first())
        if (is_wanted(s)) measurer.measure_once(s);
    }
    measurer.measure_all(is_wanted);
    if (task_.until.is_over_for_kernels()) measurer.recall_all();
    const bool is_covered = task_.until.is_over_for_kernels() && modelled_kernels(known_).cover(report_);
    // Costs of a slow start were invalidated, also those of regions that came first.
    if (has_regions || !is_covered) regions_.try_largest(has_kernel);
    if (task_.options.measuring.complete)
      measurer.measure_all([this](std::uint32_t) { return !task_.until.is_over_for_kernels(); });
    place_bodies();
    require_cover(known_, [this](const place_candidate& c) { return view_.can_be_used(c); });

    plan made = start_plan();
    last = search.best_within_bound();
    if (task_.options.autotune.seconds > 0 && !task_.until.is_over_for_kernels()) {
      space_tuner(known_, view_, measurer, progress_).run(report_.tuning);
      last = search.best_within_bound();
    }
    made.chosen = placement_writer(known_).write("plan", last);
    made.memory = known_.weights.memory_of(made.chosen);
    made.first_cost_ms = made.chosen.cost_ms;
    for (std::uint32_t b = 0; b < task_.backends.size(); ++b)
      if (task_.use[b] && runs_operators(task_.backends[b]) && !task_.until.is_long_over())
        if (std::optional<placement> single = search.single(b)) made.singles.push_back(*std::move(single));
    return made;
  }

  /// Prepares the store for later placings, if a slow start made this one measure again. A later placing searches with the new
  /// costs, and may need costs of other kernels. So this function measures those kernels, too. It then stores `made` as the result
  /// for the placements with which a later placing begins.
  void begin_again(const plan& made) {
    for (int turn = 0; turn < thresholds.trial.most_restarts && !task_.until.is_over(); ++turn) {
      place_options how = task_.options;
      how.autotune = {};
      how.budget_s = task_.options.budget_s > 0 ? task_.until.left_s() : 0;
      placer later(task_.network, task_.backends, how);
      cost_measurer measurer(later.known_, later.progress_);
      placement_search search(later.known_, later.view_, measurer, later.progress_);
      search_result last;
      const plan begun = later.begin(measurer, search, last);
      measurer.replace_distrusted();
      later.report_costs(measurer);
      for (const auto& [key, cost] : later.known_.costs.table())
        if (!cost.from_store) measured_later_.emplace(key, cost);
      if (measurer.distrusts() != 0 || task_.until.is_over()) continue;
      if (std::optional<kept_costs>& kept = measurer.kept()) kept->put(begun, later.known_.views, made);
      return;
    }
  }

  /// Makes sure that the selected plan is never slower, by paired ratios, than the best baseline or the previous plan. Uses the
  /// store's result of the same comparison, if there is one.
  void compare(plan& made, search_result& last, cost_measurer& measurer, placement_search& search) {
    const double start = now_ms();
    const plan begun = made;
    std::optional<kept_costs>& kept = measurer.kept();
    const auto recalled = [&] {
      if (!kept || task_.options.comparing.recheck) return false;
      std::optional<plan> known = kept->find(begun, known_.views);
      if (!known || !is_current(*known, measurer)) return false;
      known->network = task_.options.network;
      made = *std::move(known);
      made.memory = known_.weights.memory_of(made.chosen);
      report_.compared_before = true;
      return true;
    };
    if (!recalled())
      measurer.in_turn([&] {
        if (recalled()) return;  // another process has stored it meanwhile
        comparison runs(known_, regions_, view_, measurer, search, progress_);
        last = runs.run(made);
        report_.regions = runs.regions();
        report_.rounds = runs.log().size();
        report_.rounds_apart = runs.log().count(cache_regime::split);
        describe(made, last);
        // The store does not know why the caller refused something.
        if (kept && !task_.until.is_over() && !runs.has_refused()) kept->put(begun, known_.views, made);
      });
    progress_.best_ms = made.chosen.cost_ms;
    report_.comparing_s = (now_ms() - start) / 1e3;
  }

  /// Whether a plan from the store can be selected. All its kernels, views and conversions must still be usable candidates, and its
  /// weights must keep the bound. The previous plan must have taken part in its comparison.
  bool is_current(const plan& kept, cost_measurer& measurer) {
    if (!can_be_selected(
            kept.chosen, known_, regions_, [&](std::uint32_t c) { return measurer.is_known_to_have_kernel(c); },
            [&](std::uint32_t c) { return measurer.is_known_to_convert(c); }) ||
        !known_.errors.keeps(kept.chosen) || !is_accepted(task_, kept.chosen))
      return false;
    const plan* const previous = task_.options.previous;
    if (previous == nullptr || previous->fingerprint != task_.network.fingerprint()) return true;
    return same_steps(previous->chosen, kept.chosen) ||
           std::ranges::any_of(kept.singles, [&](const placement& s) { return same_steps(previous->chosen, s); });
  }

  /// Adds the certificate of the last search to a plan, and the reason for the choice of each group.
  void describe(plan& made, const search_result& last) const {
    made.lower_bound_ms = std::min(last.found.lower_bound_ms, made.chosen.cost_ms);  // the two are rounded differently
    made.optimal = last.found.optimal;
    explain_groups(known_, view_, made);
  }

  // ---- Without measuring ----

  /// By rank or by estimates. Nothing if the store knows too little for estimates.
  std::optional<plan> run_unmeasured() {
    const bool estimates = task_.options.costs == placing_costs::estimated;
    if (estimates) open_index();
    place_bodies();
    plan made = start_plan();
    unmeasured_placing placing(known_, view_, regions_, report_);
    if (estimates && recall_tuned(made)) return made;
    if (!estimates) {
      placing.by_rank(made);
      return made;
    }
    const std::optional<search_result> last = placing.by_estimates(made, *index_, report_);
    if (!last) return {};
    describe(made, *last);
    return made;
  }

  /// Places by priority, and says why the store could not be read. A placing of its own: this one has estimates and refusals of them.
  placed_plan run_by_priority() const {
    place_options how = task_.options;
    how.costs = placing_costs::none;
    placed_plan made = placer(task_.network, task_.backends, how).run();
    if (made.report.unstored.empty()) made.report.unstored = report_.unstored;
    return made;
  }

  /// Takes the plan that end-to-end runs selected for this very network, if the store has it and nothing forbids it now.
  bool recall_tuned(plan& made) {
    std::optional<tuned_placing> known = tuned_plan_of(known_, *index_, regions_);
    if (!known) return false;
    made = std::move(known->found);
    report_.interrupted = !known->is_finished;
    made.network = task_.options.network;
    made.memory = known_.weights.memory_of(made.chosen);
    return report_.compared_before = true;
  }

  /// Takes the caller's index of costs, or reads the store.
  void open_index() {
    index_ = task_.options.index;
    if (index_ != nullptr) return;
    own_index_.emplace();
    index_ = &*own_index_;
    if (task_.options.store.empty()) return;
    try {
      *own_index_ = cost_index(task_.options.store);
    } catch (const error& e) {
      if (!task_.options.store_is_optional) throw;
      report_.unstored = e.what();
    }
  }

  // ---- Both ways ----

  plan start_plan() const {
    plan made;
    made.network = task_.options.network;
    made.fingerprint = task_.network.fingerprint();
    made.threads = task_.threads;
    made.precision = task_.plan_precision;
    made.algorithms = task_.options.algorithms;
    made.processor = processor_name();
    made.waiting = waiting_policy();
    for (std::uint32_t b = 0; b < task_.backends.size(); ++b) {
      if (!task_.use[b]) continue;
      const probe_result found = task_.backends[b].probe();
      made.backends.push_back({task_.backends[b].name, found.version, found.details});
    }
    return made;
  }

  /// Places the subgraphs of control flow, each as a network of its own.
  void place_bodies() {
    for (std::uint32_t n = 0; n < task_.network.nodes().size(); ++n)
      for (const std::shared_ptr<const graph>& body : task_.network.bodies_of(n)) {
        place_options inner = task_.options;
        inner.threads = task_.threads;
        inner.index = index_;
        if (inner.budget_s > 0) inner.budget_s = std::max(task_.until.left_s(), 1e-3);
        inner.previous = nullptr;
        inner.improved = {};
        inner.measuring.splits_caches = false;
        inner.autotune = {};
        inner.memory = known_.weights.of_subgraphs();
        inner.precision = {};
        inner.rules = rules_in(*body, task_.backends, task_.options.rules);
        inner.network = task_.options.network + ", subgraph of " + task_.network.node_name(n);
        placed_plan made = placer(*body, task_.backends, inner).run();
        add_refusals_of_subgraph(task_, made.report.refusals, report_.refusals);
        known_.bodies.add(n, std::move(made));
      }
  }

  // ---- The report ----

  /// Reports where measurements ran and how long they waited. Stores the machine's usual times.
  void report_costs(cost_measurer& measurer) {
    std::optional<kept_costs>& kept = measurer.kept();
    for (std::size_t i = 0; i < drift_signs && kept && has_measured(); ++i)
      kept->put_usual(static_cast<drift_sign>(i), measurer.monitor().known_ms()[i]);
    report_.unstored = measurer.unstored();
    report_.where = measurer.where();
    report_.waited_s = measurer.waited_ms() / 1e3;
  }

  /// Whether any cost was measured now.
  bool has_measured() const {
    const auto has_fresh = [](const cost_book& book) {
      return std::ranges::any_of(book.table(), [](const auto& entry) {
        return entry.second.refusal.empty() && !entry.second.from_store && !entry.second.is_modelled;
      });
    };
    const auto& conversions = known_.layouts.conversions();
    return has_fresh(known_.costs) || (conversions && has_fresh(conversions->book()));
  }

  /// Counts each distinct candidate once, as measured, from the store, refused or skipped.
  void count_candidates() {
    report_.candidates = known_.candidates.size();
    std::set<cost_key> distinct;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i)
      distinct.insert(key_of(known_.candidates.all(), known_.candidates[i]));
    report_.distinct = distinct.size();
    for (const cost_key& key : distinct) {
      const cost_table& known = known_.costs.table().count(key) != 0 ? known_.costs.table() : measured_later_;
      const auto found = known.find(key);
      if (found != known.end() && !found->second.refusal.empty()) ++report_.refused;
      else if (found != known.end() && found->second.estimate) ++count_of(*found->second.estimate);
      else if (found == known.end() || found->second.is_modelled || !task_.has_costs()) ++report_.skipped;
      else ++(found->second.from_store ? report_.from_store : report_.measured);
    }
    if (const auto& conversions = known_.layouts.conversions(); conversions && task_.has_costs())
      report_.conversions = conversions->book().table().size();
  }

  std::size_t& count_of(const cost_estimate& estimate) {
    return estimate.basis == cost_basis::modelled ? report_.modelled : report_.interpolated;
  }

  void finish_report() {
    list_refusals(known_, report_.refusals);
    count_candidates();
    for (std::uint32_t from = 0; from < task_.backends.size(); ++from)
      for (std::uint32_t to = 0; to < task_.backends.size(); ++to)
        if (known_.neighbours.of(from, to) > 0)
          report_.switches.push_back({task_.backends[from].name, task_.backends[to].name,
                                      known_.neighbours.of(from, to), known_.neighbours.kernels(from, to)});
  }

  placing_state known_;
  const place_task& task_;
  region_candidates regions_;
  search_view view_;
  progress progress_;
  place_report report_;
  std::optional<cost_index> own_index_;
  const cost_index* index_ = nullptr;  // of estimated costs
  cost_table measured_later_;          // measured for a later placing, after a slow start
};

}  // namespace
}  // namespace detail

}  // namespace collage::inline v0
