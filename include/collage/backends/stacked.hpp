// Stacked: elementwise operators, broadcasts, movers and operators on rows, computed in one pass, tile by tile in the
// cache. Any group of them may be one kernel, so the backend has a fusion rule instead of patterns.
//
// Declarations. The definitions are in collage/backends/impl/stacked.hpp, compiled in exactly one file (by default the
// target collage::stacked).
#pragma once

#include <collage/backend.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/fuse/generate.hpp>
#include <collage/fuse/group.hpp>
#include <collage/fuse/kernel.hpp>
#include <collage/fuse/rule.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/inference.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0 {

namespace stacked_groups {

inline constexpr fuse::kernel_limits most{.nodes = 64, .arguments = 32, .outputs = 8, .rows = true};
/// Groups grown to post-dominators, in the whole network. A network of more than 2,000 operators in one chain has more. It then
/// has the smaller of these groups, and the large groups that forward fusion makes.
inline constexpr std::size_t most_grown = std::size_t{1} << 17;

/// Whether fusion may take a node of a dataflow. Nodes that `stacked::takes` rejects are already opaque there.
inline bool accepts(const fuse::dataflow& flow, std::uint32_t node) {
  return flow.kind(node) <= fusion_kind::reduction || flow.node(node).row > 0;
}

/// Those groups of a rule that one kernel can compute. Growing to post-dominators looks at one step at a time, so a
/// group may join rows of different lengths.
template <fuse::candidate_rule Rule>
struct one_kernel {
  Rule rule;
  fuse::kernel_limits allowed;
  void collect(const fuse::dataflow& flow, fuse::group_list& to) const {
    fuse::group_list all;
    all.stop = to.stop;
    rule.collect(flow, all);
    to.complete = to.complete && all.complete;
    fuse::surveyor survey(flow);
    std::vector<std::uint32_t> nodes;
    for (const fuse::group& g : all) {
      nodes.assign(g.nodes.begin(), g.nodes.end());
      if (*survey.refusal(nodes, allowed, survey.measure(nodes)) == '\0') to.add(g);
    }
  }
};
template <class Rule>
one_kernel(Rule, fuse::kernel_limits) -> one_kernel<Rule>;

}  // namespace stacked_groups

/// collage's own code on Highway. It uses the best of SSE4, AVX2 and AVX-512 that the processor has, if any. The
/// program chooses at run time, so the backend is always available.
struct stacked : backend<"stacked"> {
  using patterns = collage::patterns<>;

  /// Single operators; groups grown to post-dominators; groups that forward, backward and sibling fusion propose.
  static constexpr auto rule =
      fuse::either{fuse::by_fusion{stacked_groups::accepts, stacked_groups::most},
                   stacked_groups::one_kernel{
                       fuse::grown{fuse::row_rule{}, fuse::generate_limits{.nodes = stacked_groups::most.nodes,
                                                                           .arguments = stacked_groups::most.arguments,
                                                                           .groups = stacked_groups::most_grown}},
                       stacked_groups::most}};

  /// Whether the backend computes an operator at all, for float32 and booleans of known shapes. It computes elementwise
  /// operators, transpose, slice, expand, concat, pad, tile and trilu. It also computes softmax and log_softmax over
  /// the last dimension, layer norm, and sums, means, maxima, minima and log-sum-exps. Other operators must be opaque
  /// in the dataflow that the rule gets.
  static bool takes(const graph& network, std::uint32_t node);

  /// Error (unsupported): the rule does not list the group, or the kernel would compute values many times over.
  static kernel build(const node_group& group, build_context& context);

  static probe_result probe();
};

}  // namespace collage::inline v0
