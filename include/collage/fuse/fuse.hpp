// Fusion of a whole graph: forward, backward, with siblings, and the best of these.
#pragma once

#include <collage/fuse/backward.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/dominators.hpp>
#include <collage/fuse/forward.hpp>
#include <collage/fuse/group.hpp>
#include <collage/fuse/kernel.hpp>
#include <collage/fuse/merging.hpp>
#include <collage/fuse/quotient.hpp>
#include <collage/fuse/siblings.hpp>
#include <collage/search/node_set.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

/// The result of fusing a graph. The order of the groups is the certificate that they can be run: each group reads only
/// values that earlier groups compute (`order_violation`).
struct fused {
  std::vector<search::node_set> groups;  ///< in a topological order
  std::size_t kernels = 0;               ///< groups, without groups of a single view
  std::uint64_t bytes = 0;               ///< activations read and written by all groups
  std::size_t judged = 0;                ///< merges examined after forward fusion
};

inline fused result_of(const quotient& groups, std::size_t judged = 0) {
  fused result{.groups = {}, .judged = judged};
  surveyor survey(groups.flow());
  for (const std::uint32_t g : groups.groups()) {
    const auto members = groups.members(g);
    result.groups.emplace_back(members);
    result.bytes += survey.measure(members).bytes();
    result.kernels += members.size() > 1 || groups.flow().node(g).role != node_role::host ? 1U : 0U;
  }
  return result;
}

/// A group for each node.
inline fused unfused(const dataflow& flow) { return result_of(quotient(flow)); }

/// Fusion into post-dominators: groups with one exit.
inline fused fuse_forward(const dataflow& flow, const kernel_limits& most = {}) {
  return result_of(quotient(flow, forward_fuser(flow, most).run()));
}

/// Fusion only into pre-dominators: groups with one entry.
inline fused fuse_backward(const dataflow& flow, const kernel_limits& most = {}, sources from = {}) {
  quotient groups(flow);
  const merge_count count = fuse_backward(groups, most, from);
  return result_of(groups, count.judged);
}

/// Fuses existing groups backward and with siblings, in turn, while anything is gained. Returns the number of merges
/// that were judged; `log`: see merging.
inline std::size_t fuse_on(quotient& groups, const kernel_limits& most, sources from = {},
                           std::vector<search::node_set>* log = nullptr) {
  for (std::size_t judged = 0;;) {
    const merge_count backward = fuse_backward(groups, most, from, log);
    const merge_count siblings = fuse_siblings(groups, most, log);
    judged += backward.judged + siblings.judged;
    if (backward.merges + siblings.merges == 0) return judged;
  }
}

/// Fuses forward first. Then fuses the resulting groups backward and with siblings, in turn, while anything is gained.
/// Merges after the forward fusion must save bytes. Where they save nothing, the result of the forward fusion is kept.
inline fused fuse_all(const dataflow& flow, const kernel_limits& most = {}, sources from = {}) {
  quotient groups(flow, forward_fuser(flow, most).run());
  fused forward = result_of(groups);
  fused combined = result_of(groups, fuse_on(groups, most, from));
  if (combined.bytes < forward.bytes) return combined;
  forward.judged = combined.judged;
  return forward;
}

/// A candidate rule (combine.hpp). It lists single operators that `accepts` allows. It also lists every group that
/// fusing them forward, backward and with siblings makes on its way, or could have made there. For backends that write
/// several values; with `most.outputs` of 1, also for backends that write one.
struct by_fusion {
  bool (*accepts)(const dataflow& flow, std::uint32_t node);
  kernel_limits most = {};

  void collect(const dataflow& flow, group_list& to) const {
    const auto taken = [&](std::uint32_t n) { return flow.node(n).role == node_role::operation && accepts(flow, n); };
    for (std::uint32_t n = 0; n < flow.size(); ++n)
      if (taken(n)) to.add(flow, {n});
    const dataflow own = flow.restricted([&](const dataflow&, std::uint32_t n) { return taken(n); });
    quotient groups(own, forward_fuser(own, most).run());
    for (const std::uint32_t g : groups.groups())
      if (groups.members(g).size() > 1) to.add(flow, node_set(groups.members(g)));
    std::vector<node_set> proposed;
    fuse_on(groups, most, {}, &proposed);
    for (node_set& nodes : proposed)
      if (is_convex(flow, nodes)) to.add(flow, std::move(nodes));
  }
};

/// Checks a result only against the graph: every node is in one group, and no group reads from a later one. Returns
/// the fault, or an empty string where there is none.
inline std::string order_violation(const dataflow& flow, std::span<const search::node_set> groups) {
  std::vector<std::uint32_t> place(flow.size(), none);
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    for (const std::uint32_t n : groups[i]) {
      if (n >= flow.size())
        return "group " + std::to_string(i) + " holds node " + std::to_string(n) + ", which does not exist";
      if (place[n] != none) return "node " + std::to_string(n) + " is in two groups";
      place[n] = i;
    }
  }
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    if (place[n] == none) return "node " + std::to_string(n) + " is in no group";
    for (const std::uint32_t v : flow.operands(n)) {
      const std::uint32_t producer = flow.at(v).producer;
      if (producer != none && (place[producer] == none || place[producer] > place[n]))
        return "group " + std::to_string(place[n]) + " reads from a later group";
    }
  }
  return "";
}

}  // namespace collage::inline v0::fuse
