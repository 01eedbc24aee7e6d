// The algorithms of a plan's kernels.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/planned_kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace collage::inline v0 {

/// How the kernel of a group computes: by the definition if a backend does not say otherwise.
inline kernel_algorithm algorithm_of(const graph& network, backend_table backends, const plan_group& g) {
  const std::optional<planned_kernel> k = planned_kernel::find(network, backends, g);
  if (!k || k->pattern->algorithm == nullptr) return {};
  return k->pattern->algorithm(network.view(), k->record, k->how);
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
