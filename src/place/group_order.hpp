// The order in which the groups of a placement can run, and which backends wrote the values that they read.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/op/movement.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

/// Puts groups into an order in which they can run. Among groups whose operands are there, the group with the lowest root comes
/// first. If each group has one exit, that is the order of their roots.
inline void order_groups(const graph& network, placement& p) {
  std::vector<std::size_t> group_of(network.nodes().size());
  for (std::size_t g = 0; g < p.groups.size(); ++g)
    for (const std::uint32_t n : p.groups[g].nodes) group_of[n] = g;
  std::vector<std::vector<std::size_t>> readers(p.groups.size());
  std::vector<std::size_t> missing(p.groups.size());
  for (std::uint32_t n = 0; n < group_of.size(); ++n)
    for (const std::uint32_t v : network.view().inputs_of(n)) {
      if (network.at(v).producer < 0) continue;
      const std::size_t from = group_of[static_cast<std::size_t>(network.at(v).producer)];
      if (from == group_of[n]) continue;
      readers[from].push_back(group_of[n]);
      ++missing[group_of[n]];
    }
  const auto later = [&p](std::size_t a, std::size_t b) { return p.groups[a].nodes.back() > p.groups[b].nodes.back(); };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
  for (std::size_t g = 0; g < missing.size(); ++g)
    if (missing[g] == 0) ready.push(g);
  std::vector<plan_group> ordered;
  while (!ready.empty()) {
    const std::size_t g = ready.top();
    ready.pop();
    for (const std::size_t reader : readers[g])
      if (--missing[reader] == 0) ready.push(reader);
    ordered.push_back(std::move(p.groups[g]));
  }
  p.groups = std::move(ordered);
}

/// Stands for a backend's number where there is no backend: for control flow, and as the writer of the network's inputs.
constexpr std::uint32_t no_backend = match_record::nothing;

inline std::uint32_t backend_number(backend_table backends, const std::string& name) {
  for (std::uint32_t b = 0; b < backends.size(); ++b)
    if (name == backends[b].name) return b;
  return no_backend;
}

/// For each group of a placement that is no view: which other backends wrote the values that it reads, one entry for each value.
/// A value counts only for the first group of a backend that reads it.
inline std::vector<std::vector<std::uint32_t>> other_writers(const graph& network, backend_table backends,
                                                             const placement& p) {
  std::vector<std::uint32_t> writer(network.values().size(), no_backend);
  std::vector<std::vector<std::uint32_t>> written(writer.size());  // by value: the values that kernels wrote for it
  for (std::uint32_t v = 0; v < written.size(); ++v) written[v] = {v};
  std::set<std::pair<std::uint32_t, std::uint32_t>> read;  // value and reader's backend
  std::vector<std::vector<std::uint32_t>> list;
  for (const plan_group& g : p.groups) {
    if (g.is_view()) {
      // All operands of a concat lie in its result. The result of another view lies in its first operand.
      const std::uint32_t node = g.nodes.back();
      std::span<const std::uint32_t> parts = network.view().inputs_of(node);
      if (network.node(node).kind->id != kind_id<struct ops::concat>) parts = parts.first(1);
      std::vector<std::uint32_t> seen;
      for (const std::uint32_t v : parts) seen.insert(seen.end(), written[v].begin(), written[v].end());
      written[network.view().output_of(node)] = std::move(seen);
      continue;
    }
    std::vector<std::uint32_t>& from = list.emplace_back();
    const std::uint32_t self = backend_number(backends, g.backend());
    for (const std::uint32_t n : g.nodes)
      for (const std::uint32_t seen : network.view().inputs_of(n))
        for (const std::uint32_t v : written[seen])
          if (writer[v] != no_backend && self != no_backend && writer[v] != self && read.emplace(v, self).second)
            from.push_back(writer[v]);
    for (const std::uint32_t n : g.nodes)
      for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) writer[network.view().output_of(n, i)] = self;
  }
  return list;
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
