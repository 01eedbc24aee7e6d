// What makes a match a candidate: the one rule that the compiler and `place` share.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/op/movement.hpp>
#include <collage/pattern/match.hpp>
#include <collage/set/declared.hpp>
#include <cstdint>

namespace collage::inline v0 {

/// What became of a pattern at a node.
enum class candidate_state : std::uint8_t {
  missed,   ///< it does not match
  refused,  ///< it matches, and no kernel can be asked for
  found,
};

/// A reshape is a view of its operand, which costs nothing and needs no kernel.
constexpr bool is_alias(const graph_view& graph, std::uint32_t node) {
  return graph.kind_id_of(node) == kind_id<struct ops::reshape>;
}
/// Branches and loops are run by the engine; their sub-graphs are placed as networks of their own.
constexpr bool is_control(const graph_view& graph, std::uint32_t node) { return graph.nodes[node].bodies != 0; }

/// Whether a backend's kernel is wanted for a match with `node` at its root; where it is refused, `why` says the reason.
/// Depends on the graph alone: what the machine refuses is known when kernels are built.
template <class Graph>
constexpr candidate_state judge_match(const Graph& graph, const declared_pattern& pattern, std::uint32_t node,
                                      const match_record& record, verdict& why) {
  if (is_alias(graph, node) || is_control(graph, node)) return candidate_state::missed;
  why = pattern.accepts(graph, record);
  return why ? candidate_state::found : candidate_state::refused;
}
/// The same where it is not known whether the pattern matches. Where it is found or refused, `record` is the match.
///
/// A template, so that only who calls it pays for the matcher.
template <class Graph>
constexpr candidate_state candidate_at(const Graph& graph, const declared_pattern& pattern, std::uint32_t node,
                                       match_record& record, verdict& why) {
  if (!match_at(graph, pattern.nodes, node, record)) return candidate_state::missed;
  return judge_match(graph, pattern, node, record, why);
}

}  // namespace collage::inline v0
