// The state of a search for a match: the bindings so far, and the most informative reason for a miss.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// Arrays are not filled in advance, so a search only pays for the entries that it uses. This class and those derived from it
/// are templates, so that only includers that match compile the bodies.
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
  /// The progress at the reported miss: twice the number of pattern nodes that were met, plus 1 for a near miss.
  constexpr std::uint32_t met() const { return most_met_; }

 protected:
  static constexpr std::size_t room = match_record::max_pattern;
  static constexpr const char* another_value = "it must be the same value as elsewhere in the pattern";

  struct matched_operator {
    std::uint32_t node;
    std::uint16_t pattern;
  };

  // During the search `found_.bound` holds values plus 1. Unbound is then 0, and needs no filling.
  constexpr bool is_bound(std::size_t at) const { return found_.bound[at] != 0; }
  constexpr std::uint32_t value_of(std::size_t at) const { return found_.bound[at] - 1; }
  constexpr const value_record& record_of(std::size_t at) const { return graph_.values[found_.bound[at] - 1]; }

  /// The bound pattern node that captures the value of a `same`; `room` if there is none.
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

  /// The miss with the most progress is reported; among equals, the first. A value or operator of the right kind that fails for
  /// another reason is closer than one of another kind.
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
  /// Reports the miss of a value as an operand of the operator through which the pattern reached the value.
  constexpr bool miss(const char* rule, std::size_t at, std::uint32_t value, std::uint32_t closer = 0) {
    return tells_more(closer) && !tell_at_reader(rule, at, at, value, closer) &&
           tell(rule, at, static_cast<std::uint32_t>(graph_.values[value].producer), -1, -1, closer);
  }
  /// Looks for the reader among all bound operators over `below`, through choices too: the previous iteration may stand
  /// anywhere in a step. No operator of the pattern reads the value of a root.
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
  /// Whether the search may reach a pattern node through this one.
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
  bool is_tree_;  // no value is shared or compared, so little is left to check; never true again
  std::uint16_t operators_ = 0, trail_size_ = 0;
  std::uint32_t most_met_ = 0;
  verdict why_;
  match_record found_;
  std::uint16_t trail_[room];        // bound pattern nodes
  matched_operator operator_[room];  // the operators among them
};

}  // namespace collage::inline v0::detail
