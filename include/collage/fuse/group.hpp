// Groups of nodes that one kernel might run, their shape (entries, exits, depth, taps), and lists of them without
// duplicates.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/search/node_set.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

using search::node_set;

/// A part of a group that a rule gave a name: a composite operator inside a larger group.
struct named_part {
  std::string name;
  node_set nodes;
  friend bool operator==(const named_part&, const named_part&) = default;
};

struct group {
  node_set nodes;
  fusion_kind kind = fusion_kind::elementwise;  ///< the largest kind of its members
  std::vector<named_part> parts;
};

/// The kind with which a node counts in a group: tuples and their fields move elements, constants are copied.
inline fusion_kind kind_in_group(const dataflow& flow, std::uint32_t node) {
  switch (flow.node(node).role) {
    case node_role::tuple:
    case node_role::projection: return fusion_kind::injective;
    case node_role::constant: return fusion_kind::elementwise;
    default: return flow.kind(node);
  }
}
inline fusion_kind kind_of_group(const dataflow& flow, const node_set& nodes) {
  fusion_kind kind = fusion_kind::elementwise;
  for (const std::uint32_t n : nodes) kind = std::max(kind, kind_in_group(flow, n));
  return kind;
}

/// Whether the node reads a value that no member computes.
inline bool is_entry(const dataflow& flow, const node_set& group, std::uint32_t node) {
  return std::ranges::any_of(flow.operands(node), [&](std::uint32_t v) {
    return flow.at(v).producer == none || !group.contains(flow.at(v).producer);
  });
}
/// Whether a value of the node is read outside.
inline bool is_exit(const dataflow& flow, const node_set& group, std::uint32_t node) {
  bool found = flow.is_read_outside(node);
  flow.successors(node, [&](std::uint32_t reader, std::uint32_t) { found = found || !group.contains(reader); });
  return found;
}

/// Whether the group is convex: no path leaves it and comes back. The search stays below the group's last node.
inline bool is_convex(const dataflow& flow, const node_set& group) {
  if (group.empty()) return true;
  const std::uint32_t low = group.first(), high = group.last();
  std::vector<bool> seen(high - low + 1, false);
  std::vector<std::uint32_t> open;
  const auto leave = [&](std::uint32_t node) {
    flow.successors(node, [&](std::uint32_t reader, std::uint32_t) {
      if (reader > high || seen[reader - low] || group.contains(reader)) return;
      seen[reader - low] = true;
      open.push_back(reader);
    });
  };
  for (const std::uint32_t n : group) leave(n);
  while (!open.empty()) {
    const std::uint32_t n = open.back();
    open.pop_back();
    bool returns = false;
    flow.successors(n, [&](std::uint32_t reader, std::uint32_t) { returns = returns || group.contains(reader); });
    if (returns) return false;
    leave(n);
  }
  return true;
}

/// Nodes on the longest path inside from an entry to an exit; 0 if the group has no such path.
inline std::size_t depth(const dataflow& flow, const node_set& group) {
  std::unordered_map<std::uint32_t, std::size_t> length;  // looked up by node, never walked
  std::size_t longest = 0;
  for (const std::uint32_t n : group) {
    std::size_t here = is_entry(flow, group, n) ? 1 : 0;
    flow.predecessors(n, [&](std::uint32_t producer, std::uint32_t) {
      const auto before = length.find(producer);
      if (before != length.end() && before->second > 0) here = std::max(here, before->second + 1);
    });
    length[n] = here;
    if (is_exit(flow, group, n)) longest = std::max(longest, here);
  }
  return longest;
}

/// Distinct values that the group reads and does not compute, weights included.
inline std::size_t argument_count(const dataflow& flow, const node_set& group) {
  std::vector<std::uint32_t> read;
  for (const std::uint32_t n : group) {
    for (const std::uint32_t v : flow.operands(n))
      if (flow.at(v).producer == none || !group.contains(flow.at(v).producer)) read.push_back(v);
  }
  std::ranges::sort(read);
  return static_cast<std::size_t>(std::ranges::unique(read).begin() - read.begin());
}

/// The limits of a backend. 0 is no limit.
struct limits {
  std::size_t exits = 1;  ///< nodes whose values are read outside
  std::size_t depth = 0;  ///< nodes on the longest path from an entry to an exit
  std::size_t nodes = 0;
  std::size_t arguments = 0;  ///< distinct values read, weights included
  bool taps = false;          ///< whether a value that is read outside may also be read inside
};

/// Why the group is not allowed; empty if it is. Its named parts must lie inside it and be convex. Two parts must be
/// disjoint, or one must hold the other.
inline std::string why_invalid(const dataflow& flow, const group& g, const limits& allowed) {
  std::size_t exits = 0;
  bool tapped = false;
  for (const std::uint32_t n : g.nodes) {
    if (!is_exit(flow, g.nodes, n)) continue;
    ++exits;
    flow.successors(n, [&](std::uint32_t reader, std::uint32_t) { tapped = tapped || g.nodes.contains(reader); });
  }
  const auto beyond = [](std::size_t count, std::size_t limit) { return limit != 0 && count > limit; };
  const auto too_many = [](const std::string& what, std::size_t count, const char* noun, std::size_t limit) {
    return what + std::to_string(count) + noun + ", and the limit is " + std::to_string(limit);
  };
  if (beyond(exits, allowed.exits)) return too_many("has ", exits, " exits", allowed.exits);
  if (tapped && !allowed.taps) return "returns a value that it also reads itself";
  if (beyond(g.nodes.size(), allowed.nodes)) return too_many("has ", g.nodes.size(), " nodes", allowed.nodes);
  const std::size_t longest = allowed.depth != 0 ? depth(flow, g.nodes) : 0;
  if (beyond(longest, allowed.depth)) return too_many("has a path of ", longest, " nodes", allowed.depth);
  const std::size_t arguments = allowed.arguments != 0 ? argument_count(flow, g.nodes) : 0;
  if (beyond(arguments, allowed.arguments)) return too_many("reads ", arguments, " values", allowed.arguments);
  if (!is_convex(flow, g.nodes)) return "is not convex: a path leaves it and comes back";
  for (std::size_t i = 0; i < g.parts.size(); ++i) {
    if (!g.nodes.contains(g.parts[i].nodes)) return "does not contain its part " + g.parts[i].name;
    for (std::size_t j = 0; j < i; ++j) {
      // A part that is wrapped again has the same nodes, or holds the inner part: only crossing parts are wrong.
      const node_set &a = g.parts[i].nodes, &b = g.parts[j].nodes;
      if (a.intersects(b) && !a.contains(b) && !b.contains(a)) return "has parts that overlap";
    }
    if (!is_convex(flow, g.parts[i].nodes))
      return "has a part that is not convex: a path leaves the part and comes back";
  }
  return "";
}

/// Groups in the order in which they were found. A group with the same nodes as an earlier one is not added.
class group_list {
 public:
  /// Adds a group; returns whether it is new. Computes the group's kind where none is given.
  bool add(const dataflow& flow, node_set nodes, std::vector<named_part> parts = {}) {
    const fusion_kind kind = kind_of_group(flow, nodes);
    return add({std::move(nodes), kind, std::move(parts)});
  }
  bool add(group g) {
    if (g.nodes.empty() || !known_.emplace(g.nodes, groups_.size()).second) return false;
    groups_.push_back(std::move(g));
    return true;
  }
  bool contains(const node_set& nodes) const { return known_.contains(nodes); }
  const group& operator[](std::size_t index) const { return groups_[index]; }
  std::size_t size() const { return groups_.size(); }
  auto begin() const { return groups_.begin(); }
  auto end() const { return groups_.end(); }

  /// False where a limit on the number of groups, or `stop`, ended the listing before it was complete.
  bool complete = true;
  /// Rules call it while they list: true ends the listing.
  std::function<bool()> stop = {};
  /// Whether to end the listing now; notes that it is not complete then.
  bool is_over() {
    if (!stop || !stop()) return false;
    complete = false;
    return true;
  }

 private:
  std::vector<group> groups_;
  std::unordered_map<node_set, std::size_t> known_;  // looked up, never walked
};

}  // namespace collage::inline v0::fuse
