// Matching: whether a pattern matches at a node of a graph, and what it binds there. One function over arrays serves constant
// evaluation, lowered static graphs and run-time graphs.
//
// Matching decides first and binds afterwards: a miss changes nothing. Among several possible matches, choices nearer to the
// root are made first, and from left to right. The first alternative comes before others, more iterations before fewer, and the
// operands' own order before the swapped order. If a choice fails, the earlier choices are undone.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/pattern/detail/matcher.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <collage/verdict.hpp>
#include <cstdint>

namespace collage::inline v0 {

namespace detail {

/// Whether the kinds of the operators under a node allow it to match a pattern node. Most nodes are rejected here without a
/// search, or even earlier by their own kind. It looks only `depth` operators deep, because operands that commute are tried
/// both ways at each level.
template <class Arrays, class Node>
constexpr bool may_match(const Arrays& graph, const Node* pattern, const Node& p, std::uint32_t node, unsigned depth) {
  if (p.role != pattern_role::apply || depth == 0) return true;
  const node_record& at = graph.nodes[node];
  const std::uint32_t* const operand = graph.operands + at.first_input;
  for (std::uint32_t i = 0; i < p.children && i < at.inputs; ++i) {
    const Node& child = pattern[p.child[i]];
    if (child.kind_bits == Node::all_kinds) continue;
    const std::int32_t own = graph.values[operand[i]].producer;
    if (own >= 0 && (child.kind_bits >> (graph.nodes[own].kind->id & 63) & 1) != 0 &&
        may_match(graph, pattern, child, static_cast<std::uint32_t>(own), depth - 1))
      continue;
    if (!p.may_commute || i > 1 || at.inputs < 2) return false;
    const std::int32_t other = graph.values[operand[i ^ 1]].producer;
    if (other < 0 || (child.kind_bits >> (graph.nodes[other].kind->id & 63) & 1) == 0 ||
        !may_match(graph, pattern, child, static_cast<std::uint32_t>(other), depth - 1))
      return false;
  }
  return true;
}

/// Whether the pattern matches at a node of a kind that its root allows.
template <class Arrays>
constexpr bool match_at(const Arrays& graph, const pattern_view& pattern, std::uint32_t node, match_record& out) {
  constexpr unsigned depth = 4;
  return may_match(graph, pattern.node, pattern.node[pattern.size - 1], node, depth) &&
         matcher(graph, pattern.node, pattern.size, false).run(node, out);
}

}  // namespace detail

/// Whether the pattern matches with its root at `node`. The pattern must be sound: `nodes_of` checks pattern types, but bare
/// expressions are not checked.
///
/// On success `out` is filled; on a miss it does not change. `why`, if given, then holds the most informative reason: the
/// broken rule, its pattern node and the place. The place is operand `operand` of `graph_node`, or `graph_node` itself if
/// `operand` is -1. A search of more than `max_match_steps` steps is given up: a miss with a rule of its own.
template <class Arrays = detail::graph_arrays>
constexpr bool match_at(const graph_view& graph, pattern_view pattern, std::uint32_t node, match_record& out,
                        verdict* why = nullptr) {
  if (why == nullptr && (pattern.node[pattern.size - 1].kind_bits >> (graph.nodes.data()[node].kind->id & 63) & 1) == 0)
    return false;
  const Arrays arrays(graph);
  if (why == nullptr) return detail::match_at(arrays, pattern, node, out);
  detail::matcher search(arrays, pattern.node, pattern.size, true);
  if (search.run(node, out)) return true;
  *why = search.why();
  return false;
}

/// The first node from `node` on where the pattern matches. If there is none, returns `end` or the number of nodes, whichever
/// is less. It finds all matches at less cost than `match_at` at each node.
template <class Arrays = detail::graph_arrays>
constexpr std::uint32_t next_match(const graph_view& graph, pattern_view pattern, std::uint32_t node, match_record& out,
                                   std::uint32_t end = match_record::nothing) {
  const Arrays arrays(graph);
  const node_record* const nodes = arrays.nodes;
  const std::uint64_t kinds = pattern.node[pattern.size - 1].kind_bits;
  const bool is_one_kind = (kinds & (kinds - 1)) == 0;  // then nodes of this kind are linked, and others are skipped
  if (const auto count = static_cast<std::uint32_t>(graph.node_count()); end > count) end = count;
  if (node >= end) return end;
  if (is_one_kind && node != 0 && (kinds >> (nodes[node - 1].kind->id & 63) & 1) != 0) {
    node = nodes[node - 1].next_alike;
    if (node == 0) return end;
  }
  while (node < end) {
    const bool may_be_root = (kinds >> (nodes[node].kind->id & 63) & 1) != 0;
    if (may_be_root && detail::match_at(arrays, pattern, node, out)) return node;
    node = may_be_root && is_one_kind ? nodes[node].next_alike : node + 1;
    if (node == 0) return end;
  }
  return end;
}

}  // namespace collage::inline v0
