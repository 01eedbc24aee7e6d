// Forward fusion: merges nodes into their post-dominators, in three phases, as TVM's fuser does.
//
// The rules, from TVM's fuse_ops (Chen and others, 2018). Groups have one exit, their root; kinds on the way are those
// of the groups that the nodes are in already.
//   phase 0  a convolution, product or pooling, where the edges to the post-dominator, and on to the root of the group
//            that has taken it already, keep its shape, over broadcasts and into one
//   0 and 1  elementwise and broadcast operators over movers, into those, a reduction, or a group with a convolution
//   phase 1  movers over and into movers
//   phase 2  anything of these into a tuple that a mover has taken already
// A commit takes all paths or none, so no limit leaves a value dangling.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/dominators.hpp>
#include <collage/fuse/generate.hpp>
#include <collage/fuse/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

class forward_fuser {
 public:
  forward_fuser(const dataflow& flow, const kernel_limits& most)
      : flow_(&flow),
        most_(most),
        tree_(post_dominators(flow)),
        between_(flow, tree_, most.nodes),
        survey_(flow),
        root_(flow.size()),
        last_alike_(flow.size()),
        members_(flow.size()) {
    std::iota(root_.begin(), root_.end(), 0u);
    for (std::uint32_t n = flow.size(); n-- > 0;) {
      const bool keeps = tree_.parent(n) != none && tree_.kind(n) == fusion_kind::elementwise;
      last_alike_[n] = keeps ? last_alike_[tree_.parent(n)] : n;
    }
    for (std::uint32_t n = 0; n < flow.size(); ++n) {
      kind_.push_back(flow.kind(n));
      members_[n] = {n};
    }
  }

  /// For each node the root of its group.
  std::vector<std::uint32_t> run() {
    for (int phase = 0; phase < 3; ++phase)
      for (std::uint32_t n = 0; n < flow_->size(); ++n)
        if (wants(n, phase)) fuse(n);
    std::vector<std::uint32_t> group_of(flow_->size());
    for (std::uint32_t n = 0; n < flow_->size(); ++n) group_of[n] = root(n);
    return group_of;
  }

 private:
  std::uint32_t root(std::uint32_t n) {
    while (root_[n] != n) n = root_[n] = root_[root_[n]];
    return n;
  }

  bool wants(std::uint32_t n, int phase) {
    const std::uint32_t sink = tree_.parent(n);
    if (sink == none || root(n) == root(sink)) return false;
    const fusion_kind kind = kind_[n];  // what its group was when it was the root
    const fusion_kind into = kind_[root(sink)];
    const auto way = [&](fusion_kind most) { return within(n, most); };
    if (phase == 2) {
      const bool taken = kind_[sink] == fusion_kind::tuple && into <= fusion_kind::injective;
      return taken && kind <= fusion_kind::injective && way(fusion_kind::injective);
    }
    if (kind_[sink] == fusion_kind::tuple) return false;
    switch (kind) {
      case fusion_kind::anchor:
        return phase == 0 && tree_.depth(root(sink)) >= tree_.depth(last_alike_[n]) && into <= fusion_kind::broadcast &&
               way(fusion_kind::broadcast);
      case fusion_kind::elementwise:
      case fusion_kind::broadcast:
        return tree_.kind(n) <= fusion_kind::reduction && into <= fusion_kind::anchor && way(fusion_kind::injective);
      case fusion_kind::injective:
      case fusion_kind::tuple: return phase == 1 && into <= fusion_kind::injective && way(fusion_kind::injective);
      default: return false;
    }
  }

  /// Whether the groups of all nodes before the post-dominator have at most this kind.
  bool within(std::uint32_t n, fusion_kind most) {
    const std::vector<std::uint32_t>* way = between_.behind(n);
    return way != nullptr && std::ranges::all_of(*way, [&](std::uint32_t p) { return kind_[root(p)] <= most; });
  }

  void fuse(std::uint32_t n) {
    const std::uint32_t sink = root(tree_.parent(n));
    std::vector<std::uint32_t> groups = {sink, root(n)};
    for (const std::uint32_t p : *between_.behind(n)) groups.push_back(root(p));
    std::ranges::sort(groups);
    groups.erase(std::ranges::unique(groups).begin(), groups.end());
    std::size_t count = 0;
    for (const std::uint32_t g : groups) count += members_[g].size();
    if (most_.nodes != 0 && count > most_.nodes) return;
    std::vector<std::uint32_t> all;
    for (const std::uint32_t g : groups) all.insert(all.end(), members_[g].begin(), members_[g].end());
    std::ranges::sort(all);
    if (most_.arguments != 0 && survey_.measure(all, most_.arguments).arguments > most_.arguments) return;
    for (const std::uint32_t g : groups) {
      if (g == sink) continue;
      root_[g] = sink;
      kind_[sink] = std::max(kind_[sink], kind_[g] == fusion_kind::tuple ? fusion_kind::injective : kind_[g]);
      members_[g] = {};
    }
    members_[sink] = std::move(all);
  }

  const dataflow* flow_;
  kernel_limits most_;
  dominator_tree tree_;
  segments between_;
  surveyor survey_;
  std::vector<std::uint32_t> root_;
  std::vector<std::uint32_t> last_alike_;  // of the post-dominators, to which all edges keep the shape; itself if none
  std::vector<fusion_kind> kind_;          // of the group that a node is, or was, the root of
  std::vector<std::vector<std::uint32_t>> members_;
};

}  // namespace collage::inline v0::fuse
