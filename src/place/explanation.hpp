// Says why each group of a plan was chosen: which candidates would run its nodes otherwise, and what that would cost.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/plan.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/problem.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include "placing_state.hpp"
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
/// If searches take long, only as many groups get this as a count of transitions allows.
inline void explain_groups(const placing_state& known, const search_view& view, plan& made) {
  if (made.origin != "search") {
    for (plan_group& g : made.chosen.groups)
      if (!g.is_view()) g.why = "it belongs to the placement that was fastest end to end";
    return;
  }
  search_result best = view.problem({.not_measured = false, .costs = outlook::as_known});
  best.found = view.solve(best);
  if (!best.problem.resources.empty()) {  // what another kernel would cost depends on the memory that all others leave
    for (plan_group& g : made.chosen.groups)
      if (!g.is_view()) g.why = "it belongs to the cheapest placement whose weights keep the bound on memory";
    return;
  }
  std::vector<bool> is_best(known.candidates.size());
  for (const std::uint32_t chosen : best.found.chosen)
    if (best.who[chosen].is_candidate()) is_best[best.who[chosen].number] = true;
  const auto who = known.candidates.in(made.chosen);
  std::size_t at = 0, tried = 0;
  for (plan_group& g : made.chosen.groups) {
    if (g.is_view()) continue;
    const auto candidate = who[at++];
    if (!candidate) continue;
    constexpr std::size_t most_transitions =
        500'000;  // a count, not a time, so that equal plans have equal explanations
    if (!is_best[*candidate]) {
      tell_instead(known, g, *candidate, best);
      g.regret_ms = 0;
      g.why = "by its costs, " + g.instead + " is faster, but by too little to show end to end";
      continue;
    }
    if (tried < most_transitions && best.found.optimal) tried += find_instead(known, g, *candidate, best);
    g.why = why_chosen(g, best.found.optimal);
  }
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
