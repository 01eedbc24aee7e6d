// Says why each group of a plan was chosen: which candidates would run its nodes otherwise, and what that would cost.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/plan.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/problem.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "placing_state.hpp"
#include "policy.hpp"
#include "search_view.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Adds to `g.instead` what runs the group's nodes in another placement.
inline void tell_instead(const placing_state& known, plan_group& g, std::uint32_t candidate,
                         const search_result& other) {
  const search::node_set mine(known.candidates.nodes_of(candidate));
  for (const std::uint32_t chosen : other.found.chosen) {
    const shown_step& what = other.who[chosen];
    if (!other.problem.candidates[chosen].nodes.intersects(mine) || what.is(shown_step::kind::control)) continue;
    if (what.is(shown_step::kind::view)) {
      const std::uint32_t n = other.problem.candidates[chosen].nodes.first();
      const std::string how =
          what.number == 0 ? "a view for " : "a " + to_text(known.task.forms[what.number]) + " view for ";
      g.instead += (g.instead.empty() ? "" : ", ") + how + known.task.network.node(n).kind->name;
      continue;
    }
    const std::vector<std::uint32_t>& nodes = known.candidates.nodes_of(what.number);
    constexpr std::size_t named = 16;
    std::string kinds;
    for (const std::uint32_t n : std::span(nodes).first(std::min(nodes.size(), named)))
      kinds += (kinds.empty() ? "" : "+") + std::string(known.task.network.node(n).kind->name);
    if (nodes.size() > named) kinds += "+... (" + std::to_string(nodes.size()) + " operators)";
    const std::string backend = known.task.backends[known.candidates[what.number].backend].name;
    g.instead += (g.instead.empty() ? "" : ", ") + backend + " " + kinds;
  }
}

/// Searches without a candidate and notes the runner-up and regret of its group. Returns the number of transitions it took.
inline std::size_t find_instead(const placing_state& known, plan_group& g, std::uint32_t candidate,
                                const search_result& best) {
  search_result without;
  without.problem = best.problem;
  without.problem.candidates.clear();
  for (std::size_t i = 0; i < best.who.size(); ++i) {
    if (best.who[i] == shown_step::of(candidate)) continue;
    without.problem.candidates.push_back(best.problem.candidates[i]);
    without.who.push_back(best.who[i]);
  }
  if (!search::uncovered(without.problem).empty()) return 0;
  without.found = search::exact(without.problem, {.states = 20000});
  if (!without.found.optimal) return without.found.transitions;
  g.regret_ms = std::max(0.0, without.found.cost_ms - best.found.cost_ms);
  tell_instead(known, g, candidate, without);
  return without.found.transitions;
}

inline std::string why_chosen(const plan_group& g, bool is_known) {
  if (g.regret_ms < 0)
    return is_known ? "no other kernel runs these nodes"
                    : "the search stopped before it knew the cost without this kernel";
  if (g.regret_ms == 0) return g.instead + " costs the same, and this backend is first in the backend set";
  return "the best placement without it costs more; it uses " + g.instead;
}

/// Explains each group of the plan: the cost of the best placement without it, what would run its nodes, and why it was chosen.
/// If searches take long, only as many groups get this as a limit on their work allows.
///
/// By estimated costs the limit is low, and the most expensive groups come first. The same kernels of layers that are alike get
/// the same explanation.
inline void explain_groups(const placing_state& known, const search_view& view, plan& made) {
  const bool is_estimated = made.origin == by_estimates_run;
  if (made.origin != "search" && !is_estimated) {
    for (plan_group& g : made.chosen.groups)
      if (!g.is_view()) g.why = "it belongs to the placement that was fastest end to end";
    return;
  }
  search_result best = view.problem({.not_measured = false, .costs = outlook::as_known, .packing = is_estimated});
  best.found = view.solve(best);
  if (!best.problem.resources.empty()) {  // what another kernel would cost depends on the memory that all others leave
    for (plan_group& g : made.chosen.groups)
      if (!g.is_view()) g.why = "it belongs to the cheapest placement whose weights keep the bound on memory";
    return;
  }
  std::vector<bool> is_best(known.candidates.size());
  for (const std::uint32_t chosen : best.found.chosen)
    if (best.who[chosen].is_candidate()) is_best[best.who[chosen].number] = true;
  std::vector<std::pair<plan_group*, std::uint32_t>> groups;  // with their candidates
  const auto who = known.candidates.in(made.chosen);
  std::size_t at = 0;
  for (plan_group& g : made.chosen.groups)
    if (!g.is_view())
      if (const auto candidate = who[at++]) groups.emplace_back(&g, *candidate);
  if (is_estimated) std::ranges::stable_sort(groups, std::greater(), [](const auto& g) { return g.first->cost_ms; });
  // Counts, not times, so that equal plans have equal explanations.
  const std::size_t most = is_estimated ? thresholds.estimate.most_explaining : 500'000;
  const std::size_t each = is_estimated ? best.problem.candidates.size() : 0;
  struct explained {
    const plan_group* group = nullptr;
    bool is_known = false;
  };
  std::map<cost_key, explained> alike;
  std::size_t tried = 0;
  for (const auto& [g, candidate] : groups) {
    if (!is_best[candidate]) {
      tell_instead(known, *g, candidate, best);
      g->regret_ms = 0;
      g->why = "by its costs, " + g->instead + " is faster, but by too little to show end to end";
      continue;
    }
    explained& same = alike[key_of(known.candidates.all(), known.candidates[candidate])];
    if (is_estimated && same.group != nullptr) {
      g->regret_ms = same.group->regret_ms;
      g->instead = same.group->instead;
    } else if (tried < most && best.found.optimal) {
      tried += find_instead(known, *g, candidate, best) + each;
      same = {g, true};
    } else {
      same = {g, false};
    }
    g->why = why_chosen(*g, same.is_known);
  }
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
