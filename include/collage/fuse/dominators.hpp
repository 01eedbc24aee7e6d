// Dominator trees of acyclic graphs. The post-dominator of a node is the first later node through which all paths from it go. Its
// pre-dominator is the last earlier node through which all paths to it go.
//
// In a graph without cycles, the nodes are taken in a topological order. The parent of a node is then the lowest common
// ancestor of its neighbours in the tree made so far. One pass makes the tree. The pass also finds the kinds of the
// edges between a node and its parent, which Lengauer and Tarjan's algorithm does not. Ancestors are found over jump
// pointers (Myers, "An applicative random-access stack", 1983): a pass takes O(edges * log depth).
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <cstdint>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

/// The values that count as sources of the graph for pre-dominators. A node that reads a source is reached from
/// outside, so no other node dominates it. If weights were sources, nothing would dominate a node with a bias; the
/// switch is there to show it. A value that the graph is given has no producer, so a group that reads it late closes no
/// cycle. Neither inputs nor weights need therefore be sources.
struct sources {
  bool inputs = false;
  bool weights = false;
};

/// A tree over nodes 0 .. n-1 and a virtual root above them.
class dominator_tree {
 public:
  explicit dominator_tree(std::uint32_t nodes)
      : root_(nodes),
        parent_(nodes + 1, nodes),
        depth_(nodes + 1, 0),
        jump_(nodes + 1, nodes),
        kind_(nodes + 1, fusion_kind::elementwise),
        jump_kind_(nodes + 1, fusion_kind::elementwise) {}

  std::uint32_t size() const { return root_; }
  /// The immediate dominator; `none` where it is the virtual root.
  std::uint32_t parent(std::uint32_t node) const { return parent_[node] == root_ ? none : parent_[node]; }
  /// The number of ancestors up to the virtual root, whose depth is 0.
  std::uint32_t depth(std::uint32_t node) const { return depth_[node]; }
  /// The largest kind of an edge on any path between the node and its parent. Meaningless under the root.
  fusion_kind kind(std::uint32_t node) const { return kind_[node]; }
  /// Whether `above` is `node` or one of its ancestors.
  bool dominates(std::uint32_t above, std::uint32_t node) const {
    while (depth_[node] > depth_[above]) node = depth_[jump_[node]] >= depth_[above] ? jump_[node] : parent_[node];
    return node == above;
  }

  /// Adds nodes one by one, each after its neighbours. `under_root`: a path ends here.
  class adder {
   public:
    adder(dominator_tree& tree, std::uint32_t node) : tree_(tree), node_(node) {}
    void neighbour(std::uint32_t other, fusion_kind edge) {
      kind_ = std::max(kind_, edge);
      meet_ = meet_ == none ? other : tree_.common(meet_, other, kind_);
    }
    void under_root() { meet_ = tree_.root_; }
    void finish() { tree_.hang(node_, meet_ == none ? tree_.root_ : meet_, kind_); }

   private:
    dominator_tree& tree_;
    std::uint32_t node_;
    std::uint32_t meet_ = none;
    fusion_kind kind_ = fusion_kind::elementwise;
  };

 private:
  /// The lowest common ancestor; raises `kind` to the largest kind on the ways to it.
  std::uint32_t common(std::uint32_t a, std::uint32_t b, fusion_kind& kind) const {
    const auto up = [&](std::uint32_t& node) {
      kind = std::max(kind, kind_[node]);
      node = parent_[node];
    };
    const auto leap = [&](std::uint32_t& node) {
      kind = std::max(kind, jump_kind_[node]);
      node = jump_[node];
    };
    if (depth_[a] < depth_[b]) std::swap(a, b);
    while (depth_[a] > depth_[b]) depth_[jump_[a]] >= depth_[b] ? leap(a) : up(a);
    while (a != b) {
      if (jump_[a] != jump_[b]) leap(a), leap(b);
      else up(a), up(b);
    }
    return a;
  }
  void hang(std::uint32_t node, std::uint32_t parent, fusion_kind kind) {
    parent_[node] = parent;
    depth_[node] = depth_[parent] + 1;
    kind_[node] = kind;
    const std::uint32_t far = jump_[parent];
    const bool equal = parent != root_ && depth_[parent] - depth_[far] == depth_[far] - depth_[jump_[far]];
    jump_[node] = equal ? jump_[far] : parent;
    jump_kind_[node] = equal ? std::max({kind, jump_kind_[parent], jump_kind_[far]}) : kind;
  }

  std::uint32_t root_;
  std::vector<std::uint32_t> parent_, depth_, jump_;
  std::vector<fusion_kind> kind_, jump_kind_;
};

/// Post-dominators: the parent of a node is the first node on every path from it to the graph's outputs. A node that is
/// never read is an end as well.
inline dominator_tree post_dominators(const dataflow& flow) {
  dominator_tree tree(flow.size());
  for (std::uint32_t n = flow.size(); n-- > 0;) {
    dominator_tree::adder add(tree, n);
    flow.successors(n, [&](std::uint32_t reader, std::uint32_t v) { add.neighbour(reader, flow.edge(v, reader)); });
    if (flow.is_read_outside(n)) add.under_root();
    add.finish();
  }
  return tree;
}

/// Pre-dominators: the parent of a node is the last node on every path from a source to it.
inline dominator_tree pre_dominators(const dataflow& flow, sources from = {}) {
  dominator_tree tree(flow.size());
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    dominator_tree::adder add(tree, n);
    bool under_root = false;
    for (const std::uint32_t v : flow.operands(n)) {
      const flow_value& value = flow.at(v);
      if (value.producer != none) add.neighbour(value.producer, flow.edge(v, n));
      else under_root = under_root || (value.is_weight ? from.weights : from.inputs);
    }
    if (under_root) add.under_root();
    add.finish();
  }
  return tree;
}

}  // namespace collage::inline v0::fuse
