// Searches for placements, and measures their kernels and conversions until every cost in the result is measured.
#pragma once

#include <algorithm>
#include <collage/measure/time_source.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/plan.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/problem.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "cost_measurer.hpp"
#include "coverage.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "search_view.hpp"
#include "text.hpp"
#include "weight_limit.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class placement_search {
 public:
  placement_search(const placing_state& known, const search_view& view, cost_measurer& measurer, progress& listener)
      : known_(known), view_(view), measurer_(measurer), progress_(listener) {}

  /// Measures kernels that are likely to be part of a good placement, for a budget that does not suffice for all. A search with
  /// expected costs says which: the groups of the placement that it finds are measured, and it is repeated until all are. Then those
  /// kernels of these groups come for which there was no time at first.
  void measure_promising() {
    cost_forecast forecast(known_);
    for (bool has_completed = false; !known_.task.until.is_over_for_kernels();) {
      forecast.learn();
      search_result result = view_.problem({.regions = false, .costs = outlook::as_known, .expected = &forecast});
      if (!search::uncovered(result.problem).empty()) return;
      const double start = now_ms();
      result.found = view_.solve(result);
      took_ms_ += now_ms() - start;
      ++searches_;
      if (!view_.keeps_bound(result)) return;
      if (measure_parts_of(result)) continue;
      if (std::exchange(has_completed, true)) return;
      std::vector<std::uint32_t> chosen;
      for (const std::uint32_t candidate : view_.candidates_in(result))
        chosen.push_back(known_.candidates.structure_of(candidate));
      measurer_.measure_unbuilt(std::move(chosen));
    }
  }

  /// The cheapest placement. If no placement keeps the bound on weights (`search_view::keeps_bound`), the one that comes closest.
  search_result best() {
    search_result result = search_exactly({});
    progress_.best_ms = result.found.cost_ms;
    return result;
  }
  /// The cheapest placement that keeps the bound on weights. If only fallback kernels keep it, these are measured, too. Error: no
  /// placement keeps it.
  search_result best_within_bound() {
    search_result result = best();
    if (!keeps_bound(result) && measurer_.measure_fallbacks()) result = best();
    view_.require_bound(result);
    return result;
  }
  /// The cheapest placement without regions. Regions are allowed if the other candidates do not cover the network.
  search_result best_of_operators(outlook costs = outlook::doubtful) {
    return search_exactly({.regions = !view_.is_covered_by_operators(), .costs = costs});
  }
  /// The cheapest placement that rounds nothing.
  search_result best_unrounded() { return search_exactly({.rounding = false}); }
  /// The baseline of a backend. Other backends run the nodes that it refuses (`search_view::ranks` says which), and the placement
  /// lists these fallback nodes. Where the weights would take too much memory, it does without its kernels with the largest ones.
  /// Nothing if that does not suffice. The baseline of a backend whose regions round values: nothing if it exceeds the bound on the
  /// error, or has none of these regions.
  std::optional<placement> single(std::uint32_t backend) {
    // Without need, no region of another backend takes part: for one missing operator, it could take the whole network.
    const bool operators_alone = !known_.task.backends[backend].takes_regions && view_.is_covered_by_operators();
    weight_caps caps;
    const bool may_round = known_.task.backends[backend].rounds_to.has_value();
    const shown_candidates shown{.regions = !operators_alone, .rounding = may_round, .caps = &caps};
    for (;;) {
      const search_result alone = search_and_measure(
          [&](search_result& r) { return search::exact_by_rank(r.problem, view_.ranks(r, backend), view_.limits()); },
          shown);
      if (may_round && (!view_.keeps_error(alone) || !takes_part(backend, alone))) return {};
      if (view_.keeps_bound(alone)) return write_single(backend, alone);
      if (!caps.lower(known_.weights, view_.candidates_in(alone)) ||
          !search::uncovered(view_.problem(shown).problem).empty())
        return {};
    }
  }

  /// Whether a placement that was found keeps the bound on weights. One that does not has unmeasured kernels.
  bool keeps_bound(const search_result& found) const { return view_.keeps_bound(found); }

  std::size_t searches() const { return searches_; }
  double took_ms() const { return took_ms_; }
  /// Whether the time was up before some search began.
  bool was_interrupted() const { return was_interrupted_; }

 private:
  static constexpr std::size_t least_told = 1000;  // searches over fewer nodes take less than a tenth of a second

  bool takes_part(std::uint32_t backend, const search_result& in) const {
    return std::ranges::any_of(view_.candidates_in(in),
                               [&](std::uint32_t c) { return known_.candidates[c].backend == backend; });
  }
  placement write_single(std::uint32_t backend, const search_result& alone) const {
    placement result = placement_writer(known_).write(known_.task.backends[backend].name, alone);
    for (const plan_group& g : result.groups)
      if (g.has_kernel() && g.backend() != result.name)
        for (const std::uint32_t n : g.nodes) result.borrowed.push_back(known_.task.network.node_name(n));
    return result;
  }

  search_result search_exactly(const shown_candidates& shown) {
    return search_and_measure([this](search_result& r) { return view_.solve(r); }, shown);
  }

  /// Searches, measures the unmeasured parts of the placement found, and repeats this until there are none. Unmeasured candidates
  /// count with a lower bound of their cost. So candidates that stay unmeasured cannot be part of a better placement. A placement
  /// that exceeds the bound on weights is not measured.
  template <class Search>
  search_result search_and_measure(Search search_over, shown_candidates shown) {
    for (;;) {
      const bool is_over = known_.task.until.is_over_for_kernels();
      shown.not_measured = !is_over;
      search_result result = view_.problem(shown);
      shown.not_measured = true;
      if (is_over && !search::uncovered(result.problem).empty()) result = view_.problem(shown);
      if (!search::uncovered(result.problem).empty()) {
        require_cover(known_, [this](const place_candidate& c) { return view_.can_be_used(c); });
        // Some node has no candidate left but regions, so they are shown. If they are shown already, the search throws an error
        // that names the uncovered nodes.
        if (!std::exchange(shown.regions, true)) continue;
      }
      place_progress now;
      now.stage = "searching";
      now.what = "the cheapest placement of " + count_of(result.problem.nodes, "node");
      if (result.problem.nodes >= least_told) progress_.tell(std::move(now));
      const double start = now_ms();
      result.found = search_over(result);
      took_ms_ += now_ms() - start;
      ++searches_;
      was_interrupted_ = was_interrupted_ || is_over;
      if (!view_.keeps_bound(result)) return result;
      if (!measure_parts_of(result)) return result;
    }
  }
  /// Measures the unmeasured kernels and conversions of a result. Returns whether there were any. Stops where the time for kernels is
  /// up meanwhile: the next search may do without the others.
  bool measure_parts_of(const search_result& result) {
    std::vector<std::uint32_t> wanted;
    for (const std::uint32_t chosen : result.found.chosen)
      if (result.who[chosen].is_candidate()) {
        const std::uint32_t who = result.who[chosen].number;
        const std::uint32_t s = known_.candidates.structure_of(who);
        if (known_.costs.find(known_.candidates[who]) == nullptr &&
            std::find(wanted.begin(), wanted.end(), s) == wanted.end())
          wanted.push_back(s);
      }
    std::set<std::uint32_t> converted;
    for (const auto& [c, candidate] : view_.conversions_of(result))
      if (candidate && !known_.layouts.conversions()->is_measured(*candidate)) converted.insert(*candidate);
    if (wanted.empty() && converted.empty()) return false;
    const bool was_over = known_.task.until.is_over_for_kernels();
    for (const std::uint32_t s : wanted) {
      if (!was_over && known_.task.until.is_over_for_kernels()) return true;
      measurer_.measure(s);
    }
    for (const std::uint32_t c : converted)
      if (known_.task.until.is_over_for_kernels())
        measurer_.model_conversion(c, thresholds.budget.conversions * known_.layouts.conversions()->cost_of(c));
      else measurer_.measure_conversion(c);
    return true;
  }

  const placing_state& known_;
  const search_view& view_;
  cost_measurer& measurer_;
  progress& progress_;
  std::size_t searches_ = 0;
  double took_ms_ = 0;
  bool was_interrupted_ = false;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
