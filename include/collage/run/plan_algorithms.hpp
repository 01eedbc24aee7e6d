// The algorithms of a plan's kernels.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace collage::inline v0 {

/// How the kernel of a group computes: by the definition if a backend does not say otherwise.
inline kernel_algorithm algorithm_of(const graph& network, backend_table backends, const plan_group& g) {
  const auto* const step = std::get_if<kernel_step>(&g.step);
  if (step == nullptr || g.nodes.empty()) return {};
  for (const backend_entry& b : backends) {
    if (step->backend != b.name) continue;
    const pattern_entry* const pattern = b.find(step->pattern);
    const std::optional<configuration> how = configuration::of(step->configuration);
    match_record record;
    if (pattern == nullptr || pattern->algorithm == nullptr || !how ||
        !match_at(network.view(), pattern->nodes, g.nodes.back(), record))
      return {};
    return pattern->algorithm(network.view(), record, *how);
  }
  return {};
}

/// The first kernel of a placement that is not direct, subgraphs included; an empty name if all are.
inline kernel_algorithm first_algorithm_of(const graph& network, backend_table backends, const placement& p) {
  for (const plan_group& g : p.groups) {
    if (const kernel_algorithm a = algorithm_of(network, backends, g); !a.is_direct()) return a;
    if (g.bodies().empty()) continue;
    const auto bodies = network.bodies_of(g.nodes.back());
    for (std::size_t i = 0; i < g.bodies().size() && i < bodies.size(); ++i)
      if (const kernel_algorithm a = first_algorithm_of(*bodies[i], backends, g.bodies()[i]); !a.is_direct()) return a;
  }
  return {};
}

/// The first kernel of a plan that it may not have where only these algorithms are wanted; an empty name if it has none. How accurate
/// kernels are was measured at placing, unless it did not matter.
inline kernel_algorithm unwanted_algorithm_of(const plan& made, const graph& network, backend_table backends,
                                              algorithms wanted) {
  if (wanted != algorithms::direct && made.algorithms <= wanted) return {};
  return first_algorithm_of(network, backends, made.chosen);
}

}  // namespace collage::inline v0
