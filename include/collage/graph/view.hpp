// Graphs as flat records: what the matcher and every algorithm sees, of static and run-time graphs alike.
#pragma once

#include <collage/layout.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// A value of a graph under construction: what builders hand out and take.
struct value {
  std::uint32_t index = 0;
  std::uint32_t output = 0;  ///< which output of its node was asked for

  /// Output `k` of the node whose first output this is. Builders refuse one that the node does not have.
  constexpr value operator[](std::uint32_t k) const { return {index + k, output + k}; }
  friend constexpr bool operator==(value a, value b) { return a.index == b.index; }
};

/// Where a value comes from.
enum class value_role : std::uint8_t { input, constant, computed };

/// How a constant's elements are made where they are not given: LOW + (HIGH - LOW) * u, u uniform in [0, 1) from
/// SplitMix64 seeded with the CRC-32 of the constant's name. LOW equal to HIGH is a constant.
struct uniform {
  float low = 0;
  float high = 0;
};

/// Where the contents of a constant come from.
enum class contents_source : std::uint8_t {
  unbound,  ///< its user gives them when the network is there: graph::bind
  rule,     ///< the generator: fill_constants
  given,    ///< they are part of the network
};

/// One node: its kind, and where its operands, outputs and attributes lie in the graph's lists.
struct node_record {
  const kind_info* kind = nullptr;
  std::uint32_t first_input = 0, inputs = 0;
  std::uint32_t first_output = 0, outputs = 0;  ///< outputs are values with consecutive indices
  std::uint32_t first_word = 0, words = 0;
  std::uint32_t first_body = 0, bodies = 0;  ///< sub-graphs it owns: branches, the body of a loop
  /// The next node whose kind's id is the same modulo 64; 0 if there is none. `next_match` goes by it: graphs that are put
  /// together by hand set it by `detail::link_alike`.
  std::uint32_t next_alike = 0;
};

/// One value.
struct value_record {
  tensor_type type;
  value_role role = value_role::computed;
  bool is_output = false;      ///< read by the graph's user
  bool has_scalar = false;     ///< a constant of one element whose value is known
  std::int32_t producer = -1;  ///< the node that computes it, or -1
  std::uint32_t first_use = 0, uses = 0;
  double scalar = 0;
};

/// One reading of a value.
struct use {
  std::uint32_t node = 0;
  std::uint32_t operand = 0;
};

/// A graph: nodes in a topological order (every operand is defined before its reader), over lists owned by someone
/// else.
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

/// Lists who reads each value: sets `first_use` and `uses` of the values, where `uses` are 0 before, and fills `to`, which
/// has an entry for each operand. A template, so that only who makes a graph pays for its body.
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

/// Sets `next_alike` of all nodes, so that a pattern need not be asked about nodes of other kinds than its root's.
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
