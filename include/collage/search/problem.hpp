// What the search is asked: nodes in a topological order, candidates that cover some of them, a cost each.
#pragma once

#include <collage/error.hpp>
#include <collage/search/node_set.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::search {

/// A group of nodes that one kernel computes, and what that costs.
struct candidate {
  node_set nodes;
  /// Milliseconds, launch included; finite and not negative.
  double cost_ms = 0;
  /// The caller's own number, carried along and named in errors; the search never looks at it.
  std::uint32_t tag = 0;
};

/// A placement problem. Nothing in it says what a node computes.
struct problem {
  /// Nodes are 0 .. nodes - 1, numbered in a topological order. A good order keeps what is fused together near each
  /// other (depth first rather than level by level): the number of states grows with the number of open groups.
  std::size_t nodes = 0;
  /// (producer, consumer), producer < consumer. Repeated edges do no harm.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<candidate> candidates;
  /// Nodes whose value leaves the graph although a node of the graph may read it, too: each is an exit of every group
  /// it is in. Nodes that nothing reads count as such without being listed.
  std::vector<std::uint32_t> outputs;
};

/// A cost as the search adds it: whole picoseconds, so that sums are exact and do not depend on their order. Two plans
/// cost the same if and only if these sums are equal.
inline std::int64_t picoseconds(double milliseconds) { return std::llround(milliseconds * 1e9); }
/// Back to milliseconds.
inline double milliseconds(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-9; }

namespace detail {

/// The consumers of each node, in one array.
struct consumer_lists {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> nodes;

  explicit consumer_lists(const problem& p) : begin(p.nodes + 1), nodes(p.edges.size()) {
    for (const auto& [producer, consumer] : p.edges) ++begin[producer + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<std::uint32_t> at(begin.begin(), begin.end());
    for (const auto& [producer, consumer] : p.edges) nodes[at[producer]++] = consumer;
  }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

inline std::string name_of(const problem& p, std::size_t index) {
  return "candidate " + std::to_string(index) + " (tag " + std::to_string(p.candidates[index].tag) + ")";
}

/// "node 2" or "nodes 2, 5, 9".
inline std::string list_of(std::span<const std::uint32_t> nodes) {
  std::string text = nodes.size() == 1 ? "node " : "nodes ";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(nodes[i]);
  return text;
}

/// Collects the members whose value is needed outside the group. `exits` is the caller's, to spare an allocation.
inline void find_exits(const node_set& group, const consumer_lists& consumers, const std::vector<bool>& is_output,
                       std::vector<std::uint32_t>& exits) {
  exits.clear();
  for (const std::uint32_t node : group) {
    bool leaves = is_output[node] || consumers.of(node).empty();
    for (const std::uint32_t reader : consumers.of(node)) leaves = leaves || !group.contains(reader);
    if (leaves) exits.push_back(node);
  }
}

/// A node outside the group that lies on a path from one member to another, if there is one.
inline std::optional<std::uint32_t> node_between(const node_set& group, const consumer_lists& consumers) {
  const std::uint32_t first = group.first();
  const std::uint32_t last = group.last();
  std::vector<std::uint32_t> through(last - first + 1, node_set::none);  // by which outside node one gets here
  for (std::uint32_t node = first; node <= last; ++node) {
    const bool inside = group.contains(node);
    const std::uint32_t by = through[node - first];
    if (inside && by != node_set::none) return by;
    if (!inside && by == node_set::none) continue;
    for (const std::uint32_t reader : consumers.of(node)) {
      if (reader > last || (inside && group.contains(reader))) continue;
      through[reader - first] = inside ? reader : by;
    }
  }
  return std::nullopt;
}

inline void check_graph(const problem& p) {
  using enum error_kind;
  if (p.nodes >= 0xffff'ffc0u) throw error(invalid_argument, "a graph may have at most 2^32 - 65 nodes", "search");
  for (const auto& [producer, consumer] : p.edges) {
    const std::string edge = "edge " + std::to_string(producer) + " -> " + std::to_string(consumer);
    if (producer >= p.nodes || consumer >= p.nodes) {
      throw error(invalid_argument, "the graph has only " + std::to_string(p.nodes) + " nodes", edge);
    }
    if (producer >= consumer) {
      throw error(invalid_argument, "the graph is cyclic or its nodes are not in topological order", edge,
                  "number every producer below its consumers");
    }
  }
  for (const std::uint32_t node : p.outputs) {
    if (node < p.nodes) continue;
    throw error(invalid_argument, "the graph has only " + std::to_string(p.nodes) + " nodes",
                "output " + std::to_string(node));
  }
}

}  // namespace detail

/// The nodes that no candidate covers, ascending. Members that the graph does not have are ignored here.
inline std::vector<std::uint32_t> uncovered(const problem& p) {
  std::vector<bool> covered(p.nodes);
  for (const candidate& c : p.candidates) {
    for (const std::uint32_t node : c.nodes) {
      if (node < p.nodes) covered[node] = true;
    }
  }
  std::vector<std::uint32_t> holes;
  for (std::size_t node = 0; node < p.nodes; ++node) {
    if (!covered[node]) holes.push_back(static_cast<std::uint32_t>(node));
  }
  return holes;
}

/// Throws `error` unless the searches can answer: edges ascend; every candidate has nodes, all of them the graph's, is
/// convex, has one exit and a cost that is finite, not negative and small enough to add; every node has a candidate
/// (else `error_kind::unsupported`, naming all such nodes at once).
///
/// Groups with one exit are all that is taken in this version. Every member of such a group reaches the exit inside
/// the group, so whatever enters one reaches whatever leaves it, and groups of one exit can never form a cycle
/// together. That is why the searches need no check of the quotient graph.
inline void check(const problem& p) {
  using enum error_kind;
  detail::check_graph(p);
  const detail::consumer_lists consumers(p);
  std::vector<bool> is_output(p.nodes);
  for (const std::uint32_t node : p.outputs) is_output[node] = true;
  // A plan has at most one candidate per node, so no sum can overflow below this.
  const double most_ms =
      static_cast<double>(std::numeric_limits<std::int64_t>::max() / 4) * 1e-9 / static_cast<double>(p.nodes + 1);
  std::vector<std::uint32_t> exits;
  for (std::size_t i = 0; i < p.candidates.size(); ++i) {
    const candidate& c = p.candidates[i];
    if (c.nodes.empty()) throw error(invalid_argument, "it covers no node", detail::name_of(p, i));
    if (c.nodes.last() >= p.nodes) {
      throw error(invalid_argument,
                  "it covers node " + std::to_string(c.nodes.last()) + " but the graph has only " +
                      std::to_string(p.nodes) + " nodes",
                  detail::name_of(p, i));
    }
    if (!(c.cost_ms >= 0 && c.cost_ms <= most_ms)) {
      throw error(invalid_argument,
                  std::isnan(c.cost_ms)   ? "its cost is not a number"
                  : std::isinf(c.cost_ms) ? "its cost is infinite"
                  : c.cost_ms < 0         ? "its cost is negative"
                                          : "its cost is too large to be added exactly",
                  detail::name_of(p, i), "leave out candidates that could not be measured");
    }
    detail::find_exits(c.nodes, consumers, is_output, exits);
    if (exits.size() == 1) continue;  // one exit implies convex: a path that leaves from elsewhere is another exit
    if (const auto between = detail::node_between(c.nodes, consumers)) {
      throw error(invalid_argument,
                  "it is not convex: a path between two of its nodes " + to_string(c.nodes) +
                      " leaves it through node " + std::to_string(*between),
                  detail::name_of(p, i));
    }
    throw error(invalid_argument,
                "it has " + std::to_string(exits.size()) + " exits (" + detail::list_of(exits) +
                    ") but only groups with one exit are supported",
                detail::name_of(p, i));
  }
  if (const std::vector<std::uint32_t> holes = uncovered(p); !holes.empty()) {
    throw error(unsupported, "no candidate covers " + detail::list_of(holes), "search",
                "add a backend that takes " + std::string(holes.size() == 1 ? "it" : "them"));
  }
}

}  // namespace collage::inline v0::search
