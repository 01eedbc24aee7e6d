// An order of the nodes for the search, in which nodes lie close to their readers.
#pragma once

#include <collage/search/node_set.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// The producers of each node. The one behind the longest chain comes first; numbers decide between equal chains, so that the order of
/// edges does not matter.
inline neighbour_lists producers_by_depth(const problem& p) {
  neighbour_lists producers(p, false);
  std::vector<std::uint32_t> depth(p.nodes);  // how many nodes lie on the longest chain before it
  for (std::uint32_t node = 0; node < p.nodes; ++node) {
    for (const std::uint32_t by : producers.of(node)) depth[node] = std::max(depth[node], depth[by] + 1);
    const std::span<std::uint32_t> mine =
        std::span(producers.nodes).subspan(producers.begin[node], producers.of(node).size());
    std::ranges::sort(
        mine, [&](std::uint32_t a, std::uint32_t b) { return depth[a] != depth[b] ? depth[a] > depth[b] : a < b; });
  }
  return producers;
}

/// Which nodes can come right before their first reader.
inline std::vector<bool> waiting_nodes(const problem& p, const neighbour_lists& producers) {
  const neighbour_lists readers(p);
  // The longest chain to each end of the graph does not wait: it is the network itself.
  std::vector<bool> is_longest(p.nodes);
  for (auto node = static_cast<std::uint32_t>(p.nodes); node-- > 0;) {
    is_longest[node] = is_longest[node] || readers.of(node).empty();
    if (is_longest[node] && !producers.of(node).empty()) is_longest[producers.of(node).front()] = true;
  }
  std::vector<bool> can_wait(p.nodes);
  for (std::uint32_t node = 0; node < p.nodes; ++node) {
    const std::span<const std::uint32_t> its = readers.of(node), before = producers.of(node);
    const bool has_one = std::ranges::all_of(its, [&](std::uint32_t reader) { return reader == its.front(); });
    const auto waits = [&](std::uint32_t by) { return can_wait[by]; };
    can_wait[node] = !is_longest[node] && (before.empty() || (has_one && std::ranges::all_of(before, waits)));
  }
  return can_wait;
}

/// A topological order in which nodes without producers come right before their first reader. So do chains that begin with them, as
/// far as each node has one reader. The longest chain to each end of the graph keeps the order of the problem, and so does what it
/// feeds. So what files prepare first, such as dequantised weights, comes close to the nodes that it is fused with. Without that, a
/// state has a bit for each of these nodes, and the states are too many. Returns the nodes by position.
inline std::vector<std::uint32_t> close_order(const problem& p) {
  const neighbour_lists producers = producers_by_depth(p);
  const std::vector<bool> can_wait = waiting_nodes(p, producers);
  std::vector<bool> is_placed(p.nodes);
  std::vector<std::uint32_t> order, path, next(producers.begin);  // next: the producer to look at, by node
  order.reserve(p.nodes);
  for (std::uint32_t node = 0; node < p.nodes; ++node) {
    if (can_wait[node]) continue;
    path.push_back(node);
    while (!path.empty()) {  // depth first, without recursion: a chain may be as long as the graph
      const std::uint32_t at = path.back();
      // Long chains first, so that short ones lie next to the reader.
      while (next[at] < producers.begin[at + 1] && is_placed[producers.nodes[next[at]]]) ++next[at];
      if (next[at] < producers.begin[at + 1]) {
        path.push_back(producers.nodes[next[at]]);
        continue;
      }
      is_placed[at] = true;
      order.push_back(at);
      path.pop_back();
    }
  }
  return order;
}

/// The problem with its nodes in another topological order. Candidates, values and resources keep their numbers.
inline problem in_order(const problem& p, std::span<const std::uint32_t> order) {
  std::vector<std::uint32_t> position(p.nodes);
  for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  problem moved = p;
  moved.names.resize(p.nodes);
  for (std::uint32_t i = 0; i < order.size(); ++i) moved.names[i] = p.names.empty() ? order[i] : p.names[order[i]];
  for (auto& [producer, consumer] : moved.edges) {
    producer = position[producer];
    consumer = position[consumer];
  }
  for (std::uint32_t& node : moved.outputs) node = position[node];
  for (candidate& c : moved.candidates) {
    node_set nodes;
    for (const std::uint32_t node : c.nodes) nodes.insert(position[node]);
    c.nodes = std::move(nodes);
  }
  for (value& v : moved.values) {
    if (v.producer != node_set::none) v.producer = position[v.producer];
    for (std::uint32_t& reader : v.readers) reader = position[reader];
    std::ranges::sort(v.readers);
  }
  return moved;
}

/// Calls `solve(problem)` for the problem in its close order. Returns its plan, in the order of the problem's own nodes.
template <class Solve>
placement solve_in_close_order(const problem& p, const Solve& solve) {
  const std::vector<std::uint32_t> order = close_order(p);
  if (std::ranges::is_sorted(order)) return solve(p);
  placement plan = solve(in_order(p, order));
  std::ranges::sort(plan.chosen, {}, [&](std::uint32_t i) { return p.candidates[i].nodes.first(); });
  return plan;
}

}  // namespace collage::inline v0::search::detail
