// Backward fusion: merges a group into its pre-dominator, with all groups between them, over a graph of groups.
//
// The mirror of forward fusion. All nodes inside are reached through one entry. There may be several exits, which takes
// code that writes several values. A region holds every group on every path between the two, so it is convex. Other
// groups feed it only through its entry, so regions never close a cycle among themselves.
#pragma once

#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/dominators.hpp>
#include <collage/fuse/kernel.hpp>
#include <collage/fuse/merging.hpp>
#include <collage/fuse/quotient.hpp>
#include <collage/search/node_set.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::fuse {

/// Pre-dominators of groups, by their names.
inline dominator_tree pre_dominators(const quotient& groups, sources from = {}) {
  const dataflow& flow = groups.flow();
  dominator_tree tree(flow.size());
  for (const std::uint32_t g : groups.groups()) {
    dominator_tree::adder add(tree, g);
    bool under_root = false;
    for (const std::uint32_t n : groups.members(g)) {
      for (const std::uint32_t v : flow.operands(n)) {
        const flow_value& value = flow.at(v);
        if (value.producer == none) under_root = under_root || (value.is_weight ? from.weights : from.inputs);
        else if (groups.group_of(value.producer) != g) add.neighbour(groups.group_of(value.producer), flow.edge(v, n));
      }
    }
    if (under_root) add.under_root();
    add.finish();
  }
  return tree;
}

/// The groups on all paths from `entry` to `group`, both included; `entry` dominates `group`. Empty if they have more
/// than `most` nodes (0: no limit).
inline std::vector<std::uint32_t> region(const quotient& groups, std::uint32_t entry, std::uint32_t group,
                                         std::size_t most, std::vector<std::uint32_t>& seen) {
  std::vector<std::uint32_t> found = {entry, group};
  std::size_t nodes = groups.members(entry).size() + groups.members(group).size();
  seen[entry] = seen[group] = group;
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (most != 0 && nodes > most) return {};
    groups.predecessors(found[i], [&](std::uint32_t before, std::uint32_t, std::uint32_t) {
      if (seen[before] == group) return;
      seen[before] = group;
      found.push_back(before);
      nodes += groups.members(before).size();
    });
  }
  return most != 0 && nodes > most ? std::vector<std::uint32_t>{} : found;
}

/// Merges groups with their pre-dominators while this saves bytes, the largest savings first. `log`: see merging.
inline merge_count fuse_backward(quotient& groups, const kernel_limits& most, sources from = {},
                                 std::vector<search::node_set>* log = nullptr) {
  merging merges(groups, most, log);
  std::vector<std::uint32_t> seen(groups.flow().size());
  std::size_t total = 0;
  for (;;) {
    const dominator_tree tree = pre_dominators(groups, from);
    seen.assign(seen.size(), none);
    for (const std::uint32_t g : groups.groups()) {
      const std::uint32_t entry = tree.parent(g);
      if (entry == none) continue;
      std::vector<std::uint32_t> between = region(groups, entry, g, most.nodes, seen);
      if (!between.empty()) merges.propose(std::move(between));
    }
    const std::size_t committed = merges.commit();
    if (committed == 0) return {total, merges.judged()};
    total += committed;
  }
}

}  // namespace collage::inline v0::fuse
