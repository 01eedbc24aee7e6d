// Groups that wait for each other.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// The shortest cycle among disjoint groups that wait for each other, as positions in `groups`; empty if there is none.
///
/// Whatever covers the nodes between them, a path from one group to another is a path of the quotient graph. So whether
/// groups wait for each other depends on them alone. Groups with one entry or one exit pass on to their exits whatever
/// enters them, and need not be given.
inline std::vector<std::size_t> find_cycle_among(const neighbour_lists& consumers,
                                                 std::span<const node_set* const> groups) {
  constexpr std::size_t nothing = ~std::size_t{0};
  std::uint32_t low = node_set::none, high = 0;
  for (const node_set* group : groups) {
    low = std::min(low, group->first());
    high = std::max(high, group->last());
  }
  std::vector<std::size_t> owner(high - low + 1, nothing);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::uint32_t node : *groups[g]) owner[node - low] = g;

  std::vector<std::vector<std::size_t>> reaches(groups.size());
  std::vector<bool> reached(owner.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::fill(reached.begin(), reached.end(), false);
    for (std::uint32_t node = groups[g]->first(); node <= high; ++node) {
      const std::size_t at = node - low;
      if (owner[at] == g) reached[at] = true;
      if (!reached[at]) continue;
      if (owner[at] != g && owner[at] != nothing) reaches[g].push_back(owner[at]);
      for (const std::uint32_t reader : consumers.of(node))
        if (reader <= high) reached[reader - low] = true;
    }
    std::ranges::sort(reaches[g]);
    const auto twins = std::ranges::unique(reaches[g]);
    reaches[g].erase(twins.begin(), twins.end());
  }

  std::vector<std::size_t> shortest;
  for (std::size_t start = 0; start < groups.size(); ++start) {
    std::vector<std::size_t> from(groups.size(), nothing), queue{start};
    for (std::size_t i = 0; i < queue.size() && from[start] == nothing; ++i)
      for (const std::size_t next : reaches[queue[i]])
        if (from[next] == nothing) {
          from[next] = queue[i];
          if (next == start) break;
          queue.push_back(next);
        }
    if (from[start] == nothing) continue;
    std::vector<std::size_t> cycle{start};
    for (std::size_t g = from[start]; g != start; g = from[g]) cycle.push_back(g);
    if (shortest.empty() || cycle.size() < shortest.size()) shortest = std::move(cycle);
  }
  return shortest;
}

/// The same, but looks only among groups whose ranges of nodes overlap. Edges ascend, so no cycle leads back across a
/// position that divides the groups.
inline std::vector<std::size_t> find_cycle(const neighbour_lists& consumers, std::span<const node_set* const> groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t g) { return groups[g]->first(); });
  std::vector<const node_set*> some;
  std::vector<std::size_t> shortest;
  for (std::size_t i = 0, begin = 0; i < order.size();) {
    std::uint32_t last = 0;
    for (; i < order.size() && (i == begin || groups[order[i]]->first() <= last); ++i)
      last = std::max(last, groups[order[i]]->last());
    if (i - begin > 1) {
      some.clear();
      for (std::size_t k = begin; k < i; ++k) some.push_back(groups[order[k]]);
      std::vector<std::size_t> cycle = find_cycle_among(consumers, some);
      for (std::size_t& g : cycle) g = order[begin + g];
      if (!cycle.empty() && (shortest.empty() || cycle.size() < shortest.size())) shortest = std::move(cycle);
    }
    begin = i;
  }
  return shortest;
}

}  // namespace collage::inline v0::search::detail
