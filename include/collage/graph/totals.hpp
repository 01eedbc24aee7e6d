// Sums over a graph: arithmetic, parameters, sizes.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace collage::inline v0 {

/// The arithmetic of one node, as its kind counts it. It is 0 for kinds that only move elements, and if an extent is unknown.
inline work work_of(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const kind_info& kind = *network.node(node).kind;
  if (kind.count == nullptr) return {};
  std::vector<tensor_type> in, out;
  for (const std::uint32_t value : view.inputs_of(node)) in.push_back(network.type_of(value));
  for (std::uint32_t i = 0; i < network.node(node).outputs; ++i)
    out.push_back(network.type_of(view.output_of(node, i)));
  for (const std::vector<tensor_type>* list : {&in, &out})
    for (const tensor_type& type : *list)
      if (!type.dims.is_concrete()) return {};
  return kind.count(view.words_of(node), inference{in, out});
}

/// The arithmetic of a whole graph.
inline work total_work(const graph& network) {
  work sum;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) sum.flops += work_of(network, n).flops;
  return sum;
}

/// Totals of a graph, subgraphs included. For a branch, `flops` counts the side with more arithmetic; for a loop, one
/// iteration.
struct graph_totals {
  std::size_t nodes = 0;
  std::size_t constants = 0;
  std::int64_t parameters = 0;  ///< elements of the floating-point constants
  std::size_t constant_bytes = 0;
  double flops = 0;      ///< a multiply-add counts as two
  bool concrete = true;  ///< every extent is known; otherwise `flops` is incomplete
};

inline graph_totals totals_of(const graph& network) {
  graph_totals sum;
  sum.nodes = network.nodes().size();
  sum.flops = total_work(network).flops;
  for (const value_record& v : network.values()) {
    sum.concrete = sum.concrete && v.type.dims.is_concrete();
    if (v.role != value_role::constant) continue;
    ++sum.constants;
    sum.constant_bytes += v.type.bytes();
    if (is_floating(v.type.type)) sum.parameters += v.type.dims.elements();
  }
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    double most = 0;
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n)) {
      const graph_totals inner = totals_of(*body);
      sum.nodes += inner.nodes;
      sum.constants += inner.constants;
      sum.parameters += inner.parameters;
      sum.constant_bytes += inner.constant_bytes;
      sum.concrete = sum.concrete && inner.concrete;
      most = std::max(most, inner.flops);
    }
    sum.flops += most;
  }
  return sum;
}

}  // namespace collage::inline v0
