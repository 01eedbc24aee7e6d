#include <collage/error.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/objective.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "close_order.hpp"
#include "cycles.hpp"
#include "description.hpp"
#include "first_fit.hpp"
#include "solve.hpp"
#include "space.hpp"

namespace collage::inline v0::search {

namespace detail {
namespace {

/// Takes candidates in the order of `key(entry, first node)`, least first, wherever they fit and `can_use(candidate)` holds.
/// That can leave holes only if some nodes have no candidate of their own. Then it walks the nodes in order instead, least key
/// first, and steps back from dead ends. This walk does not call `can_use`.
template <class Key, class Usable>
placement greedy(const problem& p, Key key, Usable can_use) {
  const std::vector<bool> may_cycle = check(p);
  const std::vector<std::int64_t> costs = costs_of(p);
  const space s = make_space(p, costs, may_cycle, false);
  const neighbour_lists consumers(p);
  std::vector<std::uint32_t> first(s.entries.size());
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    std::fill(first.begin() + s.begin[node], first.begin() + s.end_of(node), node);
  }
  std::vector<std::uint32_t> order(s.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](std::uint32_t e) { return key(s.entries[e], first[e]); });

  std::vector<bool> taken(p.nodes);
  std::size_t holes = p.nodes;
  std::vector<std::uint32_t> chosen;
  std::vector<const node_set*> cyclic;  // taken groups that could wait for each other
  for (const std::uint32_t e : order) {
    bool fits = true;
    for_each_node(s, first[e], e, [&](std::uint32_t node) { fits = fits && !taken[node]; });
    if (!fits || !can_use(s.entries[e].index)) continue;
    if (s.entries[e].may_cycle) {
      cyclic.push_back(&p.candidates[s.entries[e].index].nodes);
      if (!find_cycle(consumers, cyclic).empty()) {
        cyclic.pop_back();
        continue;
      }
    }
    for_each_node(s, first[e], e, [&](std::uint32_t node) { taken[node] = true; });
    chosen.push_back(s.entries[e].index);
    holes -= s.entries[e].size;
  }
  if (holes == 0) return describe(p, s, std::move(chosen));

  const std::vector<std::uint32_t> by_node =
      preference(s, [&](const entry& a, const entry& b) { return key(a, 0) < key(b, 0); });
  const std::vector<std::uint64_t> nothing(s.words);
  std::size_t steps = std::numeric_limits<std::size_t>::max();
  chosen.clear();
  // This walk leaves out groups that might wait for each other.
  for (std::size_t i = 0; i + 1 < s.cuts.size();
       ++i) {  // by pieces: the walk never has to step back across a cut from a dead end
    const auto plan = first_fit(s, by_node, s.cuts[i], nothing, s.cuts[i + 1], steps, false);
    if (!plan) {
      throw error(error_kind::unsupported, "no set of candidates covers every node exactly once",
                  "search, " + range_of(p, s.cuts[i], s.cuts[i + 1]), "give every node a candidate of its own");
    }
    for (const std::uint32_t e : *plan) chosen.push_back(s.entries[e].index);
  }
  return describe(p, s, std::move(chosen));
}

void check_ranks(const problem& p, std::span<const std::uint32_t> rank) {
  if (rank.size() == p.candidates.size()) return;
  throw error(
      error_kind::invalid_argument,
      "there are " + std::to_string(rank.size()) + " ranks for " + std::to_string(p.candidates.size()) + " candidates",
      "search", "give one rank per candidate");
}

}  // namespace
}  // namespace detail

placement priority_list(const problem& p, std::span<const std::uint32_t> rank,
                        const std::function<bool(std::uint32_t)>& can_use) {
  detail::check_ranks(p, rank);
  return detail::greedy(
      p,
      [rank](const detail::entry& e, std::uint32_t first) {
        return std::tuple(rank[e.index], first, ~e.size, e.cost, e.index);
      },
      can_use);
}
placement priority_list(const problem& p, std::span<const std::uint32_t> rank) {
  return priority_list(p, rank, [](std::uint32_t) { return true; });
}

placement greedy_by_size(const problem& p) {
  return detail::greedy(
      p, [](const detail::entry& e, std::uint32_t first) { return std::tuple(~e.size, e.cost, first, e.index); },
      [](std::uint32_t) { return true; });
}

placement exact_by_rank(const problem& p, std::span<const std::uint32_t> rank, const limits& l) {
  detail::check_ranks(p, rank);
  const std::vector<bool> may_cycle = check(p);
  std::vector<std::int64_t> costs = detail::costs_of(p);
  // No plan costs more than the most expensive shares of all nodes. One node at a rank one higher must weigh more than that.
  std::vector<std::int64_t> dearest(p.nodes);
  std::uint32_t worst_rank = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const std::int64_t share = costs[i] / static_cast<std::int64_t>(p.candidates[i].nodes.size()) + 1;
    for (const std::uint32_t node : p.candidates[i].nodes) dearest[node] = std::max(dearest[node], share);
    worst_rank = std::max(worst_rank, rank[i]);
  }
  std::int64_t weight = std::accumulate(dearest.begin(), dearest.end(), std::int64_t{1});
  // Nor does a plan pay for more than one conversion into each form of each value, and one switch of each value to each runtime.
  weight += detail::dearest_borders(p);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  if (worst_rank != 0 && weight > most / worst_rank / static_cast<std::int64_t>(p.nodes)) {
    throw error(error_kind::invalid_argument, "ranks times costs are too large to be added exactly", "search",
                "number the ranks 0, 1, 2, ... and leave out candidates that take minutes");
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    costs[i] += weight * rank[i] * static_cast<std::int64_t>(p.candidates[i].nodes.size());
  }
  placement plan = detail::solve_in_close_order(
      p, [&](const problem& in_order) { return detail::solve(in_order, costs, may_cycle, l); });
  plan.cost_ms = milliseconds(cost_of(p, plan.chosen));
  plan.lower_bound_ms = plan.optimal ? plan.cost_ms : 0;
  return plan;
}

}  // namespace collage::inline v0::search
