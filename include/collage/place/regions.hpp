// Regions: sets of nodes that a backend compiles as a whole, such that they can run one after the other.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/set/candidate.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0 {

/// Divides the units that are `inside` into as few regions as possible that can run one after the other. A unit is a group that
/// runs as a whole. Units are in an order in which they can run, and cover all nodes of the network. A unit that is `anew` does
/// not join a region that it reads from. Returns the regions in an order in which they can run, with ascending nodes. If each
/// region replaces its units, no group depends on itself.
///
/// A unit's level is the largest number of times that a path from the inputs to it enters a region. A region is all units that
/// are inside on one level. A unit outside then reads only regions up to its own level. A region reads only units outside whose
/// level is lower than its own.
inline std::vector<std::vector<std::uint32_t>> regions_of(const graph& network,
                                                          std::span<const std::vector<std::uint32_t>> units,
                                                          const std::vector<bool>& inside,
                                                          const std::vector<bool>& anew = {}) {
  const graph_view view = network.view();
  std::vector<std::size_t> unit_of(network.nodes().size()), level(units.size(), 0);
  for (std::size_t u = 0; u < units.size(); ++u)
    for (const std::uint32_t n : units[u]) unit_of[n] = u;
  std::vector<std::vector<std::uint32_t>> regions;
  for (std::size_t u = 0; u < units.size(); ++u) {
    // Level 0 comes before all regions.
    level[u] = inside[u] ? 1 : 0;
    for (const std::uint32_t n : units[u])
      for (const std::uint32_t v : view.inputs_of(n)) {
        if (network.at(v).producer < 0) continue;
        const std::size_t from = unit_of[static_cast<std::size_t>(network.at(v).producer)];
        if (from == u) continue;
        const bool enters = inside[u] && (!inside[from] || (!anew.empty() && anew[u]));
        level[u] = std::max(level[u], level[from] + (enters ? 1 : 0));
      }
    if (!inside[u]) continue;
    if (regions.size() < level[u]) regions.resize(level[u]);
    std::vector<std::uint32_t>& nodes = regions[level[u] - 1];
    nodes.insert(nodes.end(), units[u].begin(), units[u].end());
  }
  std::erase_if(regions, [](const auto& nodes) { return nodes.empty(); });
  for (std::vector<std::uint32_t>& nodes : regions) std::ranges::sort(nodes);
  return regions;
}

/// The regions of all nodes for which `taken` is true, as few as possible. Views between a region and the outside are left out:
/// as views they cost nothing. So no region consists only of views. A node that `begins` a region is in none with a node that it
/// reads.
inline std::vector<std::vector<std::uint32_t>> largest_regions(const graph& network, const std::vector<bool>& taken,
                                                               const std::vector<bool>& begins = {}) {
  const graph_view view = network.view();
  std::vector<std::vector<std::uint32_t>> units;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) units.push_back({n});
  std::vector<bool> inside = taken;
  for (std::uint32_t n = 0; n < inside.size(); ++n) {  // in order, so that a view's operand is decided before it
    if (!inside[n] || !is_alias(view, n)) continue;
    const std::int32_t producer = network.at(view.inputs_of(n)[0]).producer;
    inside[n] = producer >= 0 && inside[static_cast<std::size_t>(producer)];
  }
  for (std::uint32_t n = static_cast<std::uint32_t>(inside.size());
       n-- > 0;) {  // backwards, so that a view's readers are decided before it
    if (!inside[n] || !is_alias(view, n)) continue;
    const std::uint32_t made = view.output_of(n);
    const auto readers = view.uses_of(made);
    inside[n] = std::any_of(readers.begin(), readers.end(), [&](const use& u) { return inside[u.node]; });
  }
  return regions_of(network, units, inside, begins);
}

}  // namespace collage::inline v0
