// The last part of a search: checks whether the operators found are a match as a whole.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/pattern/detail/match_state.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

template <class Graph, class Node>
class match_judge : public match_state<Graph, Node> {
 public:
  using state = match_state<Graph, Node>;
  constexpr match_judge(const Graph& graph, const Node* pattern, std::size_t size, bool explains)
      : state(graph, pattern, size, explains) {}

 protected:
  using state::another_value, state::room;
  using state::find_captured, state::is_same, state::miss, state::miss_at_node, state::miss_at_operand,
      state::record_of, state::value_of;
  using state::found_, state::graph_, state::has_several_roots_, state::is_tree_, state::operator_, state::operators_,
      state::pattern_, state::root_, state::trail_, state::trail_size_;

  /// Checks the whole when all goals are met. No inner value may be needed outside, and no argument may be computed inside. The
  /// match must not need a value that is computed from the match.
  constexpr bool finish() {
    list_nodes();
    found_.output[0] = value_of(root_), found_.outputs = 1;
    if (!is_tree_ && !(list_outputs() && compare_same() && takes_from_outside() && shares_values() && is_convex()))
      return false;
    return list_arguments();
  }

  /// Sorts the nodes in ascending order, so that operands come before their readers. Goes backwards, because the search met the
  /// root first.
  constexpr void list_nodes() {
    std::uint32_t count = 0;
    for (std::size_t i = operators_; i-- > 0; ++count) {
      std::uint32_t at = count;
      for (; at > 0 && found_.node[at - 1] > operator_[i].node; --at)
        found_.node[at] = found_.node[at - 1], by_[at] = by_[at - 1];
      found_.node[at] = operator_[i].node, by_[at] = operator_[i].pattern;
    }
    found_.nodes = count;
  }
  constexpr bool contains(std::uint32_t node) const {
    std::uint32_t i = found_.nodes;
    while (i > 0 && found_.node[i - 1] > node) --i;
    return i > 0 && found_.node[i - 1] == node;
  }
  constexpr bool is_computed(const value_record& v) const {
    return v.producer >= 0 && contains(static_cast<std::uint32_t>(v.producer));
  }
  /// The reason why a value is needed outside the match, or null. `reader` becomes the node that reads it outside.
  constexpr const char* needed_outside(const value_record& v, std::int32_t& reader) const {
    if (v.is_output) return "it is an output of the graph and cannot be fused away";
    for (std::size_t i = 0; i < v.uses; ++i) {
      reader = static_cast<std::int32_t>(graph_.uses[v.first_use + i].node);
      if (!contains(static_cast<std::uint32_t>(reader))) return "it is also read outside the pattern";
    }
    return nullptr;
  }
  /// The root's operator may have any number of outputs. Outputs of other operators must fit into the list.
  constexpr bool add_output(std::uint32_t value, std::size_t at, bool is_root) {
    for (std::uint32_t i = 0; i < found_.outputs; ++i)
      if (found_.output[i] == value) return true;
    if (found_.outputs == match_record::max_outputs) {
      if (is_root) return ++found_.more_outputs, true;
      return miss_at_node("more values of the match are read outside than it can have outputs (16)", at,
                          static_cast<std::uint32_t>(graph_.values[value].producer));
    }
    found_.output[found_.outputs++] = value;
    return true;
  }

  constexpr bool list_outputs() {
    const auto root = static_cast<std::uint32_t>(record_of(root_).producer);
    found_.more_outputs = 0;
    if (!list_outputs_of(root, root_, true)) return false;
    for (std::uint32_t i = 0; i < found_.nodes; ++i)
      if (found_.node[i] != root && !list_outputs_of(found_.node[i], by_[i], false)) return false;
    return true;
  }
  constexpr bool list_outputs_of(std::uint32_t node, std::size_t at, bool is_root) {
    const auto& record = graph_.nodes[node];
    for (std::uint32_t v = record.first_output; v < record.first_output + record.outputs; ++v) {
      std::int32_t reader = -1;
      const char* rule = needed_outside(graph_.values[v], reader);
      if (rule == nullptr) continue;
      if (!is_root && !may_escape(at)) return miss_at_node(rule, at, node, reader);
      if (!add_output(v, at, is_root)) return false;
    }
    return true;
  }
  /// Whether values of an inner operator may be read outside. They may if a pattern node for one of them allows it, or if the
  /// operator computes an output of the pattern.
  constexpr bool may_escape(std::size_t at) const {
    for (std::size_t i = 0; i < trail_size_; ++i)
      if (pattern_[trail_[i]].may_escape && record_of(trail_[i]).producer == record_of(at).producer) return true;
    const Node& root = pattern_[root_];
    if (!has_several_roots_) return false;
    for (std::size_t i = 0; i < root.children; ++i)
      if (record_of(root.child[i]).producer == record_of(at).producer) return true;
    return false;
  }

  constexpr bool compare_same() {
    for (std::size_t i = 0; i < trail_size_; ++i) {
      const std::uint16_t at = trail_[i];
      if (pattern_[at].role != pattern_role::same) continue;
      const std::size_t captured = find_captured(pattern_[at]);
      if (captured == room) return miss("the value that it must equal was left out of the match", at, value_of(at));
      if (!is_same(pattern_[at], captured, value_of(at))) return miss(another_value, at, value_of(at));
    }
    return true;
  }

  /// A kernel receives the values that the pattern does not compute, so they must come from outside.
  constexpr bool takes_from_outside() {
    for (std::size_t i = 0; i < trail_size_; ++i) {
      const std::uint16_t at = trail_[i];
      const Node& p = pattern_[at];
      if (p.role == pattern_role::any || p.role == pattern_role::variable) {
        if (is_computed(record_of(at))) return miss(from_outside, at, value_of(at));
      } else if (p.is_open) {
        const auto& node = graph_.nodes[static_cast<std::size_t>(record_of(at).producer)];
        for (std::size_t o = p.children; o < node.inputs; ++o)
          if (is_computed(graph_.values[graph_.operands[node.first_input + o]]))
            return miss(from_outside, p.child[p.children - 1U], graph_.operands[node.first_input + o]);
      }
    }
    return true;
  }

  constexpr bool shares_values() {
    const Node& root = pattern_[root_];
    if (!has_several_roots_) return true;
    for (std::size_t c = 1; c < root.children; ++c) {
      const std::uint16_t other = root.child[c], first = pattern_[other].first;
      bool shares = false;
      for (std::size_t i = first; i < other && !shares; ++i)
        shares = found_.bound[i] != 0 && pattern_[i].role == pattern_role::same && find_captured(pattern_[i]) < first;
      if (!shares)
        return miss_at_node("it shares no value with the outputs before it", other,
                            static_cast<std::uint32_t>(record_of(other).producer));
    }
    return true;
  }

  /// Whether no path leaves the match and comes back. Such a path only has nodes between the first and the last operator. It is
  /// only possible if a value besides the root's is read outside. The check visits all nodes between the two operators. Its
  /// time is therefore linear in the length of skip connections with values that escape.
  constexpr bool is_convex() {
    const std::uint32_t first = found_.node[0], last = found_.node[found_.nodes - 1];
    const std::uint32_t count = last - first + 1;
    if ((found_.outputs == 1 && !has_several_roots_) || count == found_.nodes) return true;
    bool* const depends = new bool[count]();  // outside nodes that depend on the match
    std::uint32_t reader = 0, operand = 0;    // the place where the match depends on such a node
    for (std::uint32_t n = first, next = 0; n <= last && reader == 0; ++n) {
      const bool is_inside = n == found_.node[next];
      next += is_inside ? 1U : 0U;
      const auto& node = graph_.nodes[n];
      for (std::uint32_t i = 0; i < node.inputs; ++i) {
        const std::int32_t from = graph_.values[graph_.operands[node.first_input + i]].producer;
        if (from < static_cast<std::int32_t>(first)) continue;
        const bool is_taken_outside = depends[static_cast<std::uint32_t>(from) - first];
        if (is_inside && is_taken_outside && reader == 0) reader = n, operand = i;
        if (!is_inside && (is_taken_outside || contains(static_cast<std::uint32_t>(from)))) depends[n - first] = true;
      }
    }
    delete[] depends;
    if (reader == 0) return true;
    std::uint32_t i = 0;
    while (found_.node[i] != reader) ++i;
    return miss_at_operand(
        "it is computed outside from a value of the match, so a fused kernel would depend on its own result", by_[i],
        reader, operand);
  }

  constexpr bool list_arguments() {
    const auto first = static_cast<std::int32_t>(found_.node[0]);
    found_.arguments = 0;
    for (std::uint32_t n = 0; n < found_.nodes; ++n) {
      const auto& node = graph_.nodes[found_.node[n]];
      for (std::uint32_t o = node.first_input; o < node.first_input + node.inputs; ++o) {
        const std::int32_t from = graph_.values[graph_.operands[o]].producer;
        if ((from < first || !contains(static_cast<std::uint32_t>(from))) && !add_argument(graph_.operands[o]))
          return false;
      }
    }
    return true;
  }
  constexpr bool add_argument(std::uint32_t value) {
    for (std::uint32_t i = 0; i < found_.arguments; ++i)
      if (found_.argument[i] == value) return true;
    if (found_.arguments == match_record::max_arguments)
      return miss_at_node("it has more operands than a kernel can take (72)", root_, found_.node[found_.nodes - 1]);
    found_.argument[found_.arguments++] = value;
    return true;
  }

  static constexpr const char* from_outside = "this operand must come from outside the match";

  std::uint16_t by_[room];  // for each of found_.node, the pattern node that matched it
};

}  // namespace collage::inline v0::detail
