// What a search for a match knows: what is bound so far, and the most telling reason why it went no further.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// Arrays are not filled in advance: a search costs what it looks at. A template, as its heirs are, so that only who
/// matches pays for its bodies.
template <class Graph, class Node>
class match_state {
 public:
  constexpr match_state(const Graph& graph, const Node* pattern, std::size_t size, bool explains)
      : graph_(graph),
        pattern_(pattern),
        root_(static_cast<std::uint16_t>(size - 1)),
        explains_(explains),
        has_several_roots_(pattern[size - 1].role == pattern_role::outputs),
        is_tree_(pattern[size - 1].role != pattern_role::outputs) {}

  constexpr const verdict& why() const { return why_; }
  /// How much of the pattern was met when the reason was found: twice the pattern nodes, and 1 for a near miss.
  constexpr std::uint32_t met() const { return most_met_; }

 protected:
  static constexpr std::size_t room = match_record::max_pattern;
  static constexpr const char* another_value = "the same value as elsewhere in the pattern is wanted here";

  struct matched_operator {
    std::uint32_t node;
    std::uint16_t pattern;
  };

  // While the search goes on, `found_.bound` holds values with 1 added, so that unbound is 0 and needs no filling.
  constexpr bool is_bound(std::size_t at) const { return found_.bound[at] != 0; }
  constexpr std::uint32_t value_of(std::size_t at) const { return found_.bound[at] - 1; }
  constexpr const value_record& record_of(std::size_t at) const { return graph_.values[found_.bound[at] - 1]; }

  /// The bound pattern node that captures what a `same` means; `room` if none is.
  constexpr std::size_t find_captured(const Node& p) const {
    for (std::size_t i = 0; i <= root_; ++i)
      if (found_.bound[i] != 0 && pattern_[i].capture == p.capture && pattern_[i].scope == p.scope &&
          pattern_[i].role != pattern_role::same)
        return i;
    return room;
  }
  constexpr bool is_same(const Node& p, std::size_t captured, std::uint32_t value) const {
    if (!p.says_output) return value_of(captured) == value;
    const std::int32_t producer = record_of(captured).producer;
    return producer >= 0 && graph_.values[value].producer == producer &&
           graph_.nodes[static_cast<std::size_t>(producer)].first_output + p.output == value;
  }

  // Misses ----------------------------------------------------------------------------------------------------------------

  /// The most telling miss is the one before which most was met; among equals the first. What is the right kind of
  /// value or operator and fails in something else is closer than what is another.
  static constexpr std::uint32_t is_close = 1;
  constexpr bool tells_more(std::uint32_t closer = 0) const {
    return explains_ && (why_.rule == nullptr || 2U * trail_size_ + closer > most_met_);
  }
  constexpr bool tell(const char* rule, std::size_t at, std::uint32_t node, std::int32_t operand,
                      std::int32_t other = -1, std::uint32_t closer = 0) {
    most_met_ = 2U * trail_size_ + closer;
    why_.other_node = other;
    why_.rule = rule;
    why_.pattern_node = static_cast<std::int32_t>(at);
    why_.graph_node = static_cast<std::int32_t>(node);
    why_.operand = operand;
    return false;
  }
  constexpr bool miss_at_node(const char* rule, std::size_t at, std::uint32_t node, std::int32_t other = -1) {
    return tells_more() && tell(rule, at, node, -1, other);
  }
  constexpr bool miss_at_operand(const char* rule, std::size_t at, std::uint32_t node, std::uint32_t operand) {
    return tells_more() && tell(rule, at, node, static_cast<std::int32_t>(operand));
  }
  /// Of a value: told as an operand of the operator through which the pattern came to it.
  constexpr bool miss(const char* rule, std::size_t at, std::uint32_t value, std::uint32_t closer = 0) {
    return tells_more(closer) && !tell_at_reader(rule, at, at, value, closer) &&
           tell(rule, at, static_cast<std::uint32_t>(graph_.values[value].producer), -1, -1, closer);
  }
  /// Looks for the reader among all bound operators over `below`, through choices: the iteration before stands wherever
  /// the step says `previous`. None reads the value of a root.
  constexpr bool tell_at_reader(const char* rule, std::size_t at, std::size_t below, std::uint32_t value,
                                std::uint32_t closer) {
    for (std::size_t i = below + 1; i <= root_; ++i) {
      const Node& p = pattern_[i];
      if (found_.bound[i] == 0 || !stands_over(p, below)) continue;
      if (p.is_choice()) {
        if (tell_at_reader(rule, at, i, value, closer)) return true;
        continue;
      }
      const auto reader = static_cast<std::uint32_t>(record_of(i).producer);
      const auto& node = graph_.nodes[reader];
      for (std::uint32_t o = 0; o < node.inputs; ++o)
        if (graph_.operands[node.first_input + o] == value) {
          tell(rule, at, reader, static_cast<std::int32_t>(o), -1, closer);
          return true;
        }
    }
    return false;
  }
  /// Whether the search may come to a pattern node through this one.
  static constexpr bool stands_over(const Node& p, std::size_t at) {
    const std::size_t count = p.is_choice() ? p.alternatives() : p.role == pattern_role::apply ? p.children : 0;
    for (std::size_t c = 0; c < count; ++c)
      if ((p.is_choice() ? p.alternative(c) : p.child[c]) == at) return true;
    return false;
  }
  const Graph& graph_;
  const Node* pattern_;
  std::uint16_t root_;
  bool explains_;
  bool has_several_roots_;
  bool is_tree_;  // no value is shared and none compared, so that little is left to check. Never true again
  std::uint16_t operators_ = 0, trail_size_ = 0;
  std::uint32_t most_met_ = 0;
  verdict why_;
  match_record found_;
  std::uint16_t trail_[room];        // bound pattern nodes
  matched_operator operator_[room];  // of these the operators
};

}  // namespace collage::inline v0::detail
