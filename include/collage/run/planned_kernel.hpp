// The kernel of a group of a plan, as a backend's pattern matches the group.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/plan.hpp>
#include <optional>
#include <variant>

namespace collage::inline v0 {

/// A match of a pattern, with the configuration that a plan has for it.
struct planned_kernel {
  const backend_entry* backend = nullptr;
  const pattern_entry* pattern = nullptr;
  match_record record;
  configuration how;

  /// Nothing for groups without a pattern, and where this table cannot build the kernel.
  static std::optional<planned_kernel> find(const graph& network, backend_table backends, const plan_group& g) {
    const auto* const step = std::get_if<kernel_step>(&g.step);
    planned_kernel k;
    if (step == nullptr || g.nodes.empty() || (k.backend = find_backend(backends, step->backend)) == nullptr) return {};
    k.pattern = k.backend->find(step->pattern);
    const std::optional<configuration> how = configuration::of(step->configuration);
    if (k.pattern == nullptr || !how || !match_at(network.view(), k.pattern->nodes, g.nodes.back(), k.record))
      return {};
    k.how = *how;
    return k;
  }
};

}  // namespace collage::inline v0
