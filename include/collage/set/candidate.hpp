// The rule that makes a match a candidate, shared by the compiler and `place`.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/op/movement.hpp>
#include <collage/pattern/match.hpp>
#include <collage/set/declared.hpp>
#include <cstdint>

namespace collage::inline v0 {

/// The outcome of a pattern at a node.
enum class candidate_state : std::uint8_t {
  missed,   ///< it does not match
  refused,  ///< it matches, but the backend refuses it
  found,
};

/// Whether a node is a view that needs no kernel and costs nothing: a reshape, whose result is its operand.
constexpr bool is_alias(const graph_view& graph, std::uint32_t node) {
  return graph.kind_id_of(node) == kind_id<struct ops::reshape>;
}
/// Whether a node is control flow. The engine runs branches and loops, and their subgraphs are placed as networks of their own.
constexpr bool is_control(const graph_view& graph, std::uint32_t node) { return graph.nodes[node].bodies != 0; }

/// Whether a match with `node` at its root is a candidate of a backend. If it is refused, `why` holds the reason. The result
/// depends only on the graph: refusals of the machine are only known when kernels are built.
template <class Graph>
constexpr candidate_state judge_match(const Graph& graph, const declared_pattern& pattern, std::uint32_t node,
                                      const match_record& record, verdict& why) {
  if (is_alias(graph, node) || is_control(graph, node)) return candidate_state::missed;
  why = pattern.accepts(graph, record);
  return why ? candidate_state::found : candidate_state::refused;
}
/// Like judge_match, but first finds out whether the pattern matches. If it is found or refused, `record` is the match.
///
/// A template, so that only includers that call it compile the matcher.
template <class Graph>
constexpr candidate_state candidate_at(const Graph& graph, const declared_pattern& pattern, std::uint32_t node,
                                       match_record& record, verdict& why) {
  if (!match_at(graph, pattern.nodes, node, record)) return candidate_state::missed;
  return judge_match(graph, pattern, node, record, why);
}

}  // namespace collage::inline v0
