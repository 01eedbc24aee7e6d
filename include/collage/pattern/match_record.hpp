// The bindings of a match, as plain numbers.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/list_view.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// The most steps of a search for one match. Ordinary patterns take about as many steps as they have operators. Only
/// alternatives that multiply come near the limit. Examples are long chains of operators whose operands commute, and several
/// outputs that share a value with thousands of readers.
inline constexpr std::uint32_t max_match_steps = 1U << 12;

/// The bindings of a pattern.
struct match_record {
  static constexpr std::size_t max_pattern = 64;
  static constexpr std::size_t max_arguments = 72;
  static constexpr std::size_t max_outputs = 16;
  static constexpr std::uint32_t nothing = 0xFFFFFFFF;

  std::uint32_t bound[max_pattern] = {};  ///< for each pattern node, the value it matched, or `nothing`
  /// The operators of the match in an order in which they can be computed. The root is the last, unless the pattern has
  /// several outputs.
  std::uint32_t node[max_pattern] = {};
  std::uint32_t argument[max_arguments] = {};  ///< values read from outside, in the order of their first use
  /// Values that are read outside or are outputs of the graph. The root's value is the first, even if nothing reads it; other
  /// values of the root's operator follow.
  std::uint32_t output[max_outputs] = {};
  std::uint32_t nodes = 0, arguments = 0, outputs = 0;
  /// The number of outputs of the root's operator that are read outside but do not fit into `output`. They follow the listed
  /// ones in the operator's order, and `match::output` returns them too.
  std::uint32_t more_outputs = 0;

  constexpr list_view<const std::uint32_t> node_list() const { return {node, nodes}; }
  constexpr list_view<const std::uint32_t> argument_list() const { return {argument, arguments}; }
  constexpr list_view<const std::uint32_t> output_list() const { return {output, outputs}; }
  /// The index of a value among the arguments; `nothing` if it is not an argument.
  constexpr std::uint32_t index_of(std::uint32_t value) const {
    for (std::uint32_t i = 0; i < arguments; ++i)
      if (argument[i] == value) return i;
    return nothing;
  }
  constexpr bool contains(std::uint32_t which) const {
    for (std::uint32_t i = 0; i < nodes; ++i)
      if (node[i] == which) return true;
    return false;
  }
};

/// Whether the root's operator computes every value that is read outside a match.
constexpr bool has_one_exit(const graph_view& graph, const match_record& record) {
  for (std::uint32_t i = 1; i < record.outputs; ++i)
    if (graph.values[record.output[i]].producer != graph.values[record.output[0]].producer) return false;
  return true;
}

namespace detail {

/// The lists of a graph as bare pointers. To index a list_view is a call, which counts in constant evaluation.
struct graph_arrays {
  const node_record* nodes;
  const value_record* values;
  const std::uint32_t* operands;
  const use* uses;
  const graph_view* view;  // must outlive this

  constexpr explicit graph_arrays(const graph_view& graph)
      : nodes(graph.nodes.data()),
        values(graph.values.data()),
        operands(graph.operands.data()),
        uses(graph.uses.data()),
        view(&graph) {}
};
template <class Graph>
constexpr graph_arrays arrays_of(const Graph& graph) {
  return graph_arrays(graph);
}

}  // namespace detail
}  // namespace collage::inline v0
