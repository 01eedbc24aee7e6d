// The nodes of patterns: each states the requirements on one value of a graph.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/op/kind.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// The role of a pattern node: which values it matches.
enum class pattern_role : std::uint8_t {
  any,       ///< any value
  constant,  ///< a constant
  variable,  ///< a value that is not a constant
  input,     ///< an input of the graph
  scalar,    ///< a constant of one element with a given value
  same,      ///< the value captured under the same name elsewhere
  apply,     ///< an output of an operator
  either,    ///< the first of its children that leads to a match
  repeat,    ///< a step applied to itself between `least` and `most` times
  outputs,   ///< several values at once: the root of a pattern with several outputs
  previous,  ///< within a step: the previous iteration. Not in a finished pattern
};

/// How often an operand may occur.
enum class pattern_count : std::uint8_t { once, maybe, many };

/// A user's condition on a value, or on the operator that computes it.
struct pattern_condition {
  verdict (*test)(const graph_view& graph, std::uint32_t value) = nullptr;
  const char* text = nullptr;            ///< the condition in words: "groups must be 1"; null if not given
  bool reads_attributes = false;         ///< true: the operator's attributes; false: the value
  const char* attributes_tag = nullptr;  ///< identifies the type of the attributes
};

/// One node of a pattern. All nodes under it stand before it, from `first` on. Only in a repetition can a child stand before
/// `first`: it is the previous iteration.
struct pattern_node {
  static constexpr std::size_t max_children = 6;
  static constexpr std::size_t max_conditions = 2;
  static constexpr std::uint64_t all_kinds = ~std::uint64_t{0};

  pattern_role role = pattern_role::any;
  pattern_count count = pattern_count::once;
  bool may_escape = false;     ///< its value may also be read outside the match
  bool is_open = false;        ///< `apply`: the last child stands for all further operands
  bool may_commute = false;    ///< `apply`: operands commute, and the order in which they are tried has an effect
  bool is_restricted = false;  ///< it has requirements on the element type or rank, or conditions
  bool says_output = false;    ///< `same`: another output of the operator that computes the captured value
  std::uint8_t output = 0;     ///< `apply`, `same`: which output of the operator
  std::uint8_t children = 0;
  std::uint8_t least_operands = 0;
  std::uint8_t least = 0, most = 0;  ///< `repeat`: how many iterations
  std::uint8_t conditions = 0;
  std::int8_t rank = -1;    ///< of the value; -1: any
  std::uint16_t kinds = 0;  ///< `apply`: how many kinds are allowed, with the same operands each; none: any kind
  std::uint16_t first = 0;
  std::uint16_t stride = 0;                ///< `repeat`: the distance from one iteration to the next
  std::uint16_t child[max_children] = {};  ///< `repeat`: the start, and iteration 1
  std::uint32_t types = 0;                 ///< a bit for each element type allowed; 0: any
  const kind_info* const* kind = nullptr;
  std::uint64_t kind_bits = all_kinds;  ///< `bit_of` all kinds that may compute the value
  std::uint64_t capture = 0;            ///< hash of the capture's name, 0 without one
  std::uint64_t scope = 0;              ///< distinguishes captures in different iterations
  const char* capture_name = "";
  double scalar = 0;
  double tolerance = 0;  ///< relative
  pattern_condition condition[max_conditions] = {};
  const char* defect = nullptr;  ///< the fault of this node, reported when the whole pattern is checked

  /// The bit of a kind. Kinds can share a bit, but most different kinds are distinguished without a closer look.
  static constexpr std::uint64_t bit_of(const kind_info& kind) { return std::uint64_t{1} << (kind.id & 63); }
  static constexpr std::uint32_t bit_of(dtype type) { return std::uint32_t{1} << static_cast<unsigned>(type); }
  constexpr bool is_choice() const { return role == pattern_role::either || role == pattern_role::repeat; }
  /// `either`, `repeat`: the number of alternatives, and the root of one. A repetition's alternatives begin with the longest.
  constexpr std::size_t alternatives() const { return role == pattern_role::either ? children : most - least + 1U; }
  constexpr std::uint16_t alternative(std::size_t which) const {
    return role == pattern_role::either ? child[which] : iteration(most - which);
  }
  /// `repeat`: the root of iteration k, counted from 1; iteration 0 is the start.
  constexpr std::uint16_t iteration(std::size_t k) const {
    return k == 0 ? child[0] : static_cast<std::uint16_t>(child[1] + (k - 1) * stride);
  }
};

/// The nodes of a whole pattern, the root last. It does not own them.
struct pattern_view {
  const pattern_node* node = nullptr;
  std::size_t size = 0;

  constexpr pattern_view() = default;
  constexpr pattern_view(const pattern_node* first, std::size_t count) : node(first), size(count) {}
  template <class List>
    requires requires(const List& list) { static_cast<const pattern_node*>(list.data()); }
  constexpr pattern_view(const List& list) : node(list.data()), size(list.size()) {}
  template <std::size_t N>
  constexpr pattern_view(const pattern_node (&list)[N]) : node(list), size(N) {}

  constexpr const pattern_node& operator[](std::size_t index) const { return node[index]; }
  constexpr const pattern_node& root() const { return node[size - 1]; }
};

namespace detail {
/// Whether an operator of this kind may stand there. It compares the kinds from `first` on.
template <class Node>
constexpr bool has_kind(const Node& p, std::uint64_t id, std::size_t first = 0) {
  for (std::size_t i = first; i < p.kinds; ++i)
    if (p.kind[i]->id == id) return true;
  return false;
}
/// Whether one of the first `count` nodes captures this name in this scope.
template <class Node>
constexpr bool captures(const Node* nodes, std::size_t count, std::uint64_t name, std::uint64_t scope) {
  for (std::size_t i = 0; i < count; ++i)
    if (nodes[i].capture == name && nodes[i].scope == scope && nodes[i].role != pattern_role::same) return true;
  return false;
}
/// Makes a view by a call that depends on a template parameter. Its result is only evaluated when that template is used.
template <class Expression>
constexpr pattern_view view_of(const Expression& e) {
  return e;
}
}  // namespace detail

}  // namespace collage::inline v0
