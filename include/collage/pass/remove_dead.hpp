// The pass that removes what no output depends on.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/pass/rewrite.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0 {

/// The graph without nodes and constants that reach no output. Graph inputs stay: they are what its users give. A node
/// with one living output stays whole. Sub-graphs are cleaned in the same way.
inline graph remove_dead(const graph& network) {
  std::vector<bool> alive(network.values().size());
  for (const std::uint32_t v : network.outputs()) alive[v] = true;
  const auto lives = [&](std::uint32_t node) {
    const node_record& n = network.node(node);
    for (std::uint32_t v = n.first_output; v < n.first_output + n.outputs; ++v)
      if (alive[v]) return true;
    return false;
  };
  // Backwards: what a node reads stands before it.
  for (std::size_t n = network.nodes().size(); n > 0; --n) {
    const auto node = static_cast<std::uint32_t>(n - 1);
    if (!lives(node)) continue;
    for (const std::uint32_t v : network.view().inputs_of(node)) alive[v] = true;
  }
  return rewrite(network, {.constant =
                               [&](rewriter& r, std::uint32_t v) {
                                 if (alive[v]) r.copy_constant(v);
                               },
                           .node =
                               [&](rewriter& r, std::uint32_t node) {
                                 if (lives(node)) r.copy_node(node);
                               },
                           .body = [](const graph& body) { return remove_dead(body); }});
}

}  // namespace collage::inline v0
