// The generator: every node that a rule accepts, and the groups to which it grows, post-dominator by post-dominator.
//
// The group that begins at a node and ends at its k-th post-dominator holds every node on every path between the two.
// It is therefore convex and has one exit. All paths to the k-th post-dominator run through the earlier ones. The group
// is therefore the previous group and the nodes between the last two post-dominators. One search for each node finds
// these nodes, and stops at the post-dominator. Paths are never listed.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/dominators.hpp>
#include <collage/fuse/group.hpp>
#include <collage/fuse/rule.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::fuse {

/// Where generating stops. 0 is no limit.
struct generate_limits {
  std::size_t nodes = 256;
  std::size_t arguments = 0;  ///< distinct values read, weights included
  /// Groups of several nodes in the whole graph. A long chain has `nodes` of them for each node.
  std::size_t groups = 0;
};

/// The nodes between each node and its post-dominator, found when first requested.
class segments {
 public:
  segments(const dataflow& flow, const dominator_tree& tree, std::size_t most)
      : flow_(&flow), tree_(&tree), most_(most), found_(flow.size()), seen_(flow.size(), none) {}

  /// The nodes strictly between a node and its post-dominator, ascending. Null where there is no post-dominator, or
  /// more nodes than allowed.
  const std::vector<std::uint32_t>* behind(std::uint32_t node) {
    segment& s = found_[node];
    if (!s.searched) search(node, s);
    return s.usable ? &s.nodes : nullptr;
  }
  /// Edges looked at so far.
  std::uint64_t steps() const { return steps_; }

 private:
  struct segment {
    std::vector<std::uint32_t> nodes;
    bool searched = false, usable = false;
  };
  void search(std::uint32_t node, segment& s) {
    s.searched = true;
    const std::uint32_t sink = tree_->parent(node);
    if (sink == none) return;
    const auto visit = [&](std::uint32_t from) {
      flow_->successors(from, [&](std::uint32_t reader, std::uint32_t) {
        ++steps_;
        if (reader == sink || seen_[reader] == node) return;
        seen_[reader] = node;
        s.nodes.push_back(reader);
      });
    };
    visit(node);
    for (std::size_t i = 0; i < s.nodes.size(); ++i) {
      if (most_ != 0 && s.nodes.size() > most_) return s.nodes.clear();
      visit(s.nodes[i]);
    }
    std::ranges::sort(s.nodes);
    s.usable = true;
  }

  const dataflow* flow_;
  const dominator_tree* tree_;
  std::size_t most_;
  std::vector<segment> found_;
  std::vector<std::uint32_t> seen_;
  std::uint64_t steps_ = 0;
};

/// Adds to `to` every group that the rule grows; returns the number of edges and operands examined. If there are more groups than
/// `most.groups`, or `to.stop` returns true, the listing ends, and `to.complete` is false.
template <growth_rule Rule>
std::uint64_t generate(const dataflow& flow, const Rule& rule, group_list& to, const generate_limits& most = {}) {
  const dominator_tree tree = post_dominators(flow);
  segments between(flow, tree, most.nodes);
  std::uint64_t steps = 0;
  std::vector<std::uint32_t> read(flow.values().size(), none);  // the source whose group read a value last
  std::vector<std::uint32_t> way;
  std::size_t grown = 0;
  for (std::uint32_t source = 0; source < flow.size(); ++source) {
    if (source % 1024 == 1023 && to.is_over()) break;
    if (most.groups != 0 && grown > most.groups) {
      to.complete = false;
      break;
    }
    const node_role role = flow.node(source).role;
    if (role == node_role::constant || role == node_role::host || !rule.accepts(flow, source)) continue;
    group g;
    std::size_t count = 0, arguments = 0;
    const auto fits = [&] { return most.arguments == 0 || arguments <= most.arguments; };
    const auto take = [&](std::uint32_t node) {
      // Added nodes come after the nodes of the group, so an argument stays an argument.
      for (const std::uint32_t v : flow.operands(node)) {
        if (!fits()) return;  // a node may have thousands of operands
        ++steps;
        const std::uint32_t producer = flow.at(v).producer;
        if (read[v] == source || (producer != none && g.nodes.contains(producer))) continue;
        read[v] = source;
        ++arguments;
      }
      g.nodes.insert(node);
      g.kind = std::max(g.kind, kind_in_group(flow, node));
      ++count;
    };
    take(source);
    if (!fits()) continue;  // growing removes no argument
    if (role == node_role::operation) to.add(g);

    std::uint32_t from = source;
    fusion_kind edge = fusion_kind::elementwise;
    way.clear();
    for (;;) {
      const std::vector<std::uint32_t>* inner = between.behind(from);
      if (inner == nullptr) break;
      const std::uint32_t sink = tree.parent(from);
      way.insert(way.end(), inner->begin(), inner->end());
      edge = std::max(edge, tree.kind(from));
      // `way` begins with the last sink, which is in the group already; after the source it begins empty.
      const std::size_t more = way.size() + (count > 1 ? 0 : 1);
      if (most.nodes != 0 && count + more > most.nodes) break;
      if (flow.node(sink).role == node_role::tuple) {  // no group ends in a tuple, but one may pass through it
        way.push_back(sink);
        from = sink;
        continue;
      }
      if (!rule.grows({flow, g.kind, source, sink, edge, way})) break;
      for (const std::uint32_t n : way)
        if (!g.nodes.contains(n)) take(n);
      take(sink);
      if (!fits()) break;
      to.add(g);
      ++grown;
      way.assign(1, sink);
      from = sink;
      edge = fusion_kind::elementwise;
    }
  }
  return steps + between.steps();
}

}  // namespace collage::inline v0::fuse
