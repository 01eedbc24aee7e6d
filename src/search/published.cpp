#include <collage/error.hpp>
#include <collage/search/objective.hpp>
#include <collage/search/published.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "description.hpp"
#include "space.hpp"

namespace collage::inline v0::search {

namespace detail {
namespace {

/// The cheapest plan known for a covered set.
struct covering {
  std::int64_t cost = 0;
  std::uint32_t before = 0;  ///< the covering that this plan continues
  std::uint32_t by = 0;      ///< with this candidate
};

[[noreturn]] void throw_limit(const char* what, std::size_t states) {
  throw error(error_kind::failure,
              std::string(what) + " was ended by the limit of " + std::to_string(states) + " states before any plan",
              "search", "raise the limit, or take another search");
}
[[noreturn]] void throw_no_cover() {
  throw error(error_kind::unsupported, "no set of candidates covers every node exactly once", "search",
              "give every node a candidate of its own");
}

placement describe_path(const problem& p, const space& s, const std::vector<covering>& plans, std::uint32_t last,
                        std::size_t transitions) {
  std::vector<std::uint32_t> chosen;
  for (; last != 0; last = plans[last].before) chosen.push_back(plans[last].by);
  placement plan = describe(p, s, std::move(chosen));
  plan.states = plans.size();
  plan.transitions = transitions;
  return plan;
}

/// The longest distance of each node from the graph's inputs.
std::vector<std::uint32_t> depths_of(const problem& p) {
  std::vector<std::uint32_t> depth(p.nodes);
  const neighbour_lists consumers(p);
  for (std::uint32_t node = 0; node < p.nodes; ++node)
    for (const std::uint32_t reader : consumers.of(node)) depth[reader] = std::max(depth[reader], depth[node] + 1);
  return depth;
}

}  // namespace
}  // namespace detail

placement algorithm_one(const problem& p, double epsilon_ms, const limits& l) {
  const std::vector<bool> may_cycle = check(p);
  const std::vector<std::int64_t> costs = detail::costs_of(p);
  const std::int64_t epsilon = picoseconds(epsilon_ms);
  const std::vector<std::uint32_t> depth = detail::depths_of(p);
  std::vector<std::uint32_t> order(p.nodes);
  for (std::uint32_t node = 0; node < p.nodes; ++node) order[node] = node;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t node) { return depth[node]; });
  std::vector<std::uint32_t> turn(p.nodes);
  for (std::uint32_t i = 0; i < order.size(); ++i) turn[order[i]] = i;
  std::vector<std::vector<std::uint32_t>> begins(p.nodes);  // candidates by the node that is taken first
  for (std::uint32_t i = 0; i < p.candidates.size(); ++i) {
    if (may_cycle[i]) continue;
    std::uint32_t first = p.candidates[i].nodes.first();
    for (const std::uint32_t node : p.candidates[i].nodes)
      if (turn[node] < turn[first]) first = node;
    begins[first].push_back(i);
  }

  std::vector<detail::covering> plans(1);
  std::vector<node_set> covered(1);
  std::unordered_map<node_set, std::uint32_t> known{{node_set(), 0}};
  std::vector<std::uint32_t> whole{0};  // plans that cover all lower depths
  std::size_t transitions = 0;
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t begin = i;
    while (i < order.size() && depth[order[i]] == depth[order[begin]]) ++i;
    for (std::size_t n = begin; n < i; ++n)
      for (const std::uint32_t c : begins[order[n]]) {
        const node_set& nodes = p.candidates[c].nodes;
        for (std::size_t w = 0; w < whole.size(); ++w) {  // `whole` grows
          const std::uint32_t from = whole[w];
          if (!(covered[from] & nodes).empty()) continue;
          ++transitions;
          const std::int64_t cost = plans[from].cost + costs[c] + epsilon;
          const auto [at, fresh] = known.emplace(covered[from] | nodes, static_cast<std::uint32_t>(plans.size()));
          if (fresh) {
            if (plans.size() > l.states) detail::throw_limit("Algorithm 1", l.states);
            plans.push_back({cost, from, c});
            covered.push_back(at->first);
            whole.push_back(at->second);
          } else if (cost < plans[at->second].cost) {
            plans[at->second] = {cost, from, c};
          }
        }
      }
    // A plan that skipped a node of this depth can never cover it.
    std::erase_if(whole, [&](std::uint32_t plan) {
      return std::any_of(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(i),
                         [&](std::uint32_t node) { return !covered[plan].contains(node); });
    });
  }
  if (whole.empty()) detail::throw_no_cover();
  return detail::describe_path(p, detail::make_space(p, costs, may_cycle, false), plans, whole.front(), transitions);
}

placement shortest_path(const problem& p, const limits& l) {
  const std::vector<bool> may_cycle = check(p);
  const std::vector<std::int64_t> costs = detail::costs_of(p);
  std::vector<std::vector<std::uint32_t>> begins(p.nodes);
  for (std::uint32_t i = 0; i < p.candidates.size(); ++i)
    if (!may_cycle[i]) begins[p.candidates[i].nodes.first()].push_back(i);

  std::vector<detail::covering> plans(1);
  std::vector<node_set> covered(1);
  std::vector<bool> done(1);
  std::unordered_map<node_set, std::uint32_t> known{{node_set(), 0}};
  using waiting = std::pair<std::int64_t, std::uint32_t>;  // cost, plan
  const auto later = [&covered](const waiting& a, const waiting& b) {
    if (a.first != b.first) return a.first > b.first;
    const node_set &first = covered[b.second], &second = covered[a.second];
    return std::lexicographical_compare(first.begin(), first.end(), second.begin(), second.end());
  };
  std::priority_queue<waiting, std::vector<waiting>, decltype(later)> open(later);
  open.emplace(0, 0);
  std::size_t transitions = 0;
  while (!open.empty()) {
    const std::uint32_t from = open.top().second;
    open.pop();
    if (done[from]) continue;
    done[from] = true;
    std::uint32_t first = 0;
    for (const std::uint32_t node : covered[from]) {
      if (node != first) break;
      ++first;
    }
    if (first == p.nodes)
      return detail::describe_path(p, detail::make_space(p, costs, may_cycle, false), plans, from, transitions);
    for (const std::uint32_t c : begins[first]) {
      if (!(covered[from] & p.candidates[c].nodes).empty()) continue;
      ++transitions;
      const std::int64_t cost = plans[from].cost + costs[c];
      const auto [at, fresh] =
          known.emplace(covered[from] | p.candidates[c].nodes, static_cast<std::uint32_t>(plans.size()));
      if (fresh) {
        if (plans.size() > l.states) detail::throw_limit("the shortest path", l.states);
        plans.push_back({cost, from, c});
        covered.push_back(at->first);
        done.push_back(false);
      } else if (cost < plans[at->second].cost) {
        plans[at->second] = {cost, from, c};
      } else {
        continue;
      }
      open.emplace(cost, at->second);
    }
  }
  detail::throw_no_cover();
}

}  // namespace collage::inline v0::search
