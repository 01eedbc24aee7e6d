// Placing without timing anything: by a priority list, or by estimated costs.
#pragma once

#include <algorithm>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/plan.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/exact.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include "conversions.hpp"
#include "coverage.hpp"
#include "estimator.hpp"
#include "kernel_check.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "region_candidates.hpp"
#include "search_view.hpp"
#include "weight_limit.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Both ways build the kernels that they choose and compare them with the reference. If some cannot be used, they choose again
/// without them.
class unmeasured_placing {
 public:
  unmeasured_placing(placing_state& known, const search_view& view, region_candidates& regions, place_report& report)
      : known_(known), view_(view), regions_(regions), check_(known.task, report) {}

  /// Chooses by the order of the set. A region that cannot be used is divided. If the weights take too much memory, chooses again
  /// without the largest ones, and by the exact search if that does not suffice.
  void by_rank(plan& made) {
    add_entries();
    made.origin = "priority";
    bool has_divided = false, is_exact = false;
    weight_caps caps;
    for (bool settled = false; !settled;) {
      settled = true;
      require_cover(known_, [this](const place_candidate& c) { return view_.can_be_used(c); });
      search_result by_rank = view_.problem({.caps = &caps});
      // Kernels are built when their turn comes: a network may have thousands of groups that a backend lists and then refuses.
      bool has_lost_region = false;
      const auto can_use = [&](std::uint32_t chosen) {
        if (!by_rank.who[chosen].is_candidate()) return true;
        const std::uint32_t candidate = by_rank.who[chosen].number;
        const bool can = can_be_used(candidate);
        has_lost_region = has_lost_region || (!can && known_.candidates.is_region(candidate));
        return can;
      };
      by_rank.found =
          is_exact ? view_.solve(by_rank) : search::priority_list(by_rank.problem, view_.ranks(by_rank, 0), can_use);
      for (const std::uint32_t chosen : by_rank.found.chosen) settled = can_use(chosen) && settled;
      if (has_lost_region && !std::exchange(has_divided, true)) {
        settled = false;
        regions_.try_largest([this](std::uint32_t candidate) { return can_be_used(candidate); });
        add_entries();
      }
      settled = can_convert_all(by_rank) && settled;
      settled = settled && view_.may_be_chosen(by_rank, caps, is_exact);
      if (settled) made.chosen = placement_writer(known_).write("plan", by_rank);
    }
    made.chosen.cost_ms = 0;
    made.memory = known_.weights.memory_of(made.chosen);
  }

  /// Chooses by the exact search. Kernels that the store knows at these sizes were compared already, and are not built. Kernels that
  /// share packed weights with engines are preferred. Returns the last search, whose time and number `report` gets. Nothing if the
  /// store knows kernels of too little of the network: then the order of the backends is the better guess.
  std::optional<search_result> by_estimates(plan& made, const cost_index& index, place_report& report) {
    estimator estimates(known_, index);
    estimates.price();
    if (!estimates.knows_enough()) return {};
    made.origin = by_estimates_run;
    search_result last;
    for (bool settled = false; !settled;) {
      require_cover(known_, [this](const place_candidate& c) { return view_.can_be_used(c); });
      last = view_.problem({.not_measured = false, .packing = true});
      const double start = now_ms();
      last.found = view_.solve(last);
      report.search_ms += now_ms() - start;
      ++report.searches;
      if (!view_.keeps_bound(last) && estimates.allow_fallbacks()) continue;
      view_.require_bound(last);
      settled = true;
      for (const std::uint32_t candidate : view_.candidates_in(last)) {
        if (can_be_used(candidate)) continue;
        estimates.settle_fallbacks(candidate);
        settled = false;
      }
      settled = can_convert_all(last) && settled;
    }
    made.chosen = placement_writer(known_).write("plan", last);
    made.first_cost_ms = made.chosen.cost_ms;
    made.memory = known_.weights.memory_of(made.chosen);
    if (known_.weights.has_forms()) {
      last.found.lower_bound_ms = bound_without_packing(report);
      last.found.optimal = last.found.optimal && made.chosen.cost_ms <= last.found.lower_bound_ms * (1 + 1e-9);
    }
    report.states = last.found.states;
    report.transitions = last.found.transitions;
    return last;
  }

 private:
  /// The lower bound of plans' costs: those of kernels alone. The search that chose counted forms of weights, too.
  double bound_without_packing(place_report& report) const {
    search_result free = view_.problem({.not_measured = false});
    const double start = now_ms();
    free.found = view_.solve(free);
    report.search_ms += now_ms() - start;
    ++report.searches;
    return free.found.lower_bound_ms;
  }
  void add_entries() {
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) known_.costs.entry_of(known_.candidates[i]);
  }
  bool can_be_used(std::uint32_t candidate) {
    const place_candidate& c = known_.candidates[candidate];
    const auto [at, is_new] = tried_.try_emplace(key_of(known_.candidates.all(), c));
    if (is_new)
      at->second = is_usable(known_.task.network, known_.candidates.all(), candidate, known_.costs.entry_of(c));
    return at->second;
  }
  /// Whether all conversions of a result can be made.
  bool can_convert_all(const search_result& of) {
    bool can = true;
    for (const auto& [needed, how] : view_.conversions_of(of)) {
      conversion_book& conversions = *known_.layouts.conversions();
      const place_candidate& c = conversions.candidates().list[*how];
      const auto [at, is_new] = converted_.try_emplace(key_of(conversions.candidates(), c));
      if (is_new)
        at->second = is_usable(conversions.network(), conversions.candidates(), *how, conversions.book().entry_of(c));
      can = at->second && can;
    }
    return can;
  }
  bool is_usable(const graph& network, const place_candidates& all, std::uint32_t which, measured_cost& cost) {
    if (cost.from_store) return cost.refusal.empty();
    return check_.can_be_used(network, all, which, cost);
  }

  placing_state& known_;
  const search_view& view_;
  region_candidates& regions_;
  kernel_check check_;
  std::map<cost_key, bool> tried_, converted_;  // whether it can be used
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
