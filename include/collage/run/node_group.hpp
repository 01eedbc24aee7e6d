// The nodes that one kernel runs, what it reads and what it writes: plain lists, of any size.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace collage::inline v0 {

/// The group of nodes for which a backend with a rule builds a kernel. Values are numbers of the network's values.
struct node_group {
  std::vector<std::uint32_t> nodes;      ///< ascending, and so in an order in which they can be computed
  std::vector<std::uint32_t> arguments;  ///< read and not computed inside, in order of first reading: kernel_call::in
  std::vector<std::uint32_t> outputs;  ///< computed inside and read outside or by the user, ascending: kernel_call::out

  bool contains(std::uint32_t node) const { return std::binary_search(nodes.begin(), nodes.end(), node); }
};

/// The group of these nodes, in whatever order they come. A plan lists them as its engine runs them.
inline node_group group_of(const graph& network, std::span<const std::uint32_t> nodes) {
  node_group group;
  group.nodes.assign(nodes.begin(), nodes.end());
  std::ranges::sort(group.nodes);
  const graph_view view = network.view();
  std::unordered_set<std::uint32_t> known;  // the arguments; a region may have thousands
  for (const std::uint32_t n : group.nodes) {
    for (const std::uint32_t v : view.inputs_of(n)) {
      const std::int32_t producer = network.at(v).producer;
      const bool is_inside = producer >= 0 && group.contains(static_cast<std::uint32_t>(producer));
      if (!is_inside && known.insert(v).second) group.arguments.push_back(v);
    }
    for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) {
      const std::uint32_t v = view.output_of(n, i);
      const auto readers = view.uses_of(v);
      const bool is_read =
          std::any_of(readers.begin(), readers.end(), [&](const use& u) { return !group.contains(u.node); });
      // The only output of a node is written even if it is never read: every kernel has something to compute.
      const bool is_idle = readers.empty() && network.node(n).outputs == 1;
      if (is_read || network.at(v).is_output || is_idle) group.outputs.push_back(v);
    }
  }
  return group;
}

/// Whether a kernel has to write an output. The only output of a node is written whatever reads it.
inline bool is_wanted(const graph& network, std::uint32_t output) {
  const value_record& v = network.at(output);
  return v.uses != 0 || v.is_output || network.node(static_cast<std::uint32_t>(v.producer)).outputs == 1;
}

}  // namespace collage::inline v0
