// Graphs as flat records: the matcher and every algorithm read static and run-time graphs in this form.
#pragma once

#include <collage/layout.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// A value of a graph under construction, as builders return and take it.
struct value {
  std::uint32_t index = 0;
  std::uint32_t output = 0;  ///< the index among the outputs of its node

  /// Output `k` of the node whose first output this is. Builders refuse an output that the node does not have.
  constexpr value operator[](std::uint32_t k) const { return {index + k, output + k}; }
  friend constexpr bool operator==(value a, value b) { return a.index == b.index; }
};

/// Where a value comes from.
enum class value_role : std::uint8_t { input, constant, computed };

/// The rule that generates a constant's elements: low + (high - low) * u, with u uniform in [0, 1). u comes from SplitMix64,
/// seeded with the CRC-32 of the constant's name. If `low` equals `high`, all elements are equal.
struct uniform {
  float low = 0;
  float high = 0;
};

/// The source of a constant's contents.
enum class contents_source : std::uint8_t {
  unbound,  ///< the user binds them to the finished network: graph::bind
  rule,     ///< generated: fill_constants
  given,    ///< they are part of the network
};

/// One node: its kind, and the positions of its operands, outputs and attributes in the graph's lists.
struct node_record {
  const kind_info* kind = nullptr;
  std::uint32_t first_input = 0, inputs = 0;
  std::uint32_t first_output = 0, outputs = 0;  ///< outputs are values with consecutive indices
  std::uint32_t first_word = 0, words = 0;
  std::uint32_t first_body = 0, bodies = 0;  ///< subgraphs: the sides of a branch, the body of a loop
  /// The next node whose kind has the same id modulo 64; 0 if there is none. `next_match` follows it. Graphs that are assembled
  /// by hand set it by `detail::link_alike`.
  std::uint32_t next_alike = 0;
};

/// One value.
struct value_record {
  tensor_type type;
  value_role role = value_role::computed;
  bool is_output = false;      ///< an output of the graph
  bool has_scalar = false;     ///< a constant of one element with a known value
  std::int32_t producer = -1;  ///< the node that computes it, or -1
  std::uint32_t first_use = 0, uses = 0;
  double scalar = 0;
};

/// One use of a value: the node that reads it, as one of its operands.
struct use {
  std::uint32_t node = 0;
  std::uint32_t operand = 0;
};

/// A graph whose lists another object owns. Nodes are in topological order: every operand is computed before its reader.
struct graph_view {
  list_view<const node_record> nodes;
  list_view<const value_record> values;
  list_view<const std::uint32_t> operands;
  list_view<const use> uses;
  list_view<const std::uint64_t> words;

  constexpr std::size_t node_count() const { return nodes.size(); }
  constexpr std::uint64_t kind_id_of(std::uint32_t node) const { return nodes[node].kind->id; }
  constexpr list_view<const std::uint32_t> inputs_of(std::uint32_t node) const {
    return {operands.data() + nodes[node].first_input, nodes[node].inputs};
  }
  constexpr std::uint32_t output_of(std::uint32_t node, std::uint32_t which = 0) const {
    return nodes[node].first_output + which;
  }
  constexpr list_view<const use> uses_of(std::uint32_t value) const {
    return {uses.data() + values[value].first_use, values[value].uses};
  }
  constexpr list_view<const std::uint64_t> words_of(std::uint32_t node) const {
    return {words.data() + nodes[node].first_word, nodes[node].words};
  }
  constexpr bool is_constant(std::uint32_t value) const { return values[value].role == value_role::constant; }
};

namespace detail {

/// Lists the readers of each value. It sets `first_use` and `uses` of the values, whose `uses` are 0 at first, and fills `to`,
/// which has an entry for each operand. A template, so that only includers that make a graph compile its body.
template <class Nodes, class Operands, class Values, class Uses>
constexpr void list_uses(const Nodes& nodes, const Operands& operands, Values&& values, Uses&& to) {
  for (std::size_t i = 0; i < operands.size(); ++i) ++values[operands[i]].uses;
  std::uint32_t at = 0;
  for (std::size_t v = 0; v < values.size(); ++v) {
    auto& record = values[v];
    record.first_use = at;
    at += record.uses;
    record.uses = 0;
  }
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    const auto& node = nodes[n];
    for (std::uint32_t i = 0; i < node.inputs; ++i) {
      auto& record = values[operands[node.first_input + i]];
      to[record.first_use + record.uses++] = {n, i};
    }
  }
}

/// Sets `next_alike` of all nodes, so that the matcher can skip nodes of other kinds than the root of its pattern.
template <class Nodes>
constexpr void link_alike(Nodes&& nodes) {
  std::uint32_t next[64] = {};
  for (std::uint32_t n = static_cast<std::uint32_t>(nodes.size()); n-- > 0;) {
    std::uint32_t& later = next[nodes[n].kind->id & 63];
    nodes[n].next_alike = later, later = n;
  }
}

}  // namespace detail
}  // namespace collage::inline v0
