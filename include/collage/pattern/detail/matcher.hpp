// The search for a match: a backtracking machine over fixed arrays.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/pattern/detail/match_judge.hpp>
#include <collage/pattern/detail/match_state.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// A pattern node is *admitted* to a value if the value meets all its requirements. The operands of an operator are admitted
/// with it. A node with a choice waits as a goal until everything without a choice has been admitted. Choices are alternatives,
/// numbers of iterations, and orders of operands. Goals form lists that share their ends, so that going back to an earlier
/// choice copies nothing.
template <class Graph, class Node>
class matcher : public match_judge<Graph, Node> {
 public:
  using judge = match_judge<Graph, Node>;
  constexpr matcher(const Graph& graph, const Node* pattern, std::size_t size, bool explains)
      : judge(graph, pattern, size, explains) {}

  constexpr bool run(std::uint32_t node, match_record& out) {
    if (root_ >= room) return miss_at_node("the pattern has more than 64 nodes", root_, node);
    const auto& record = graph_.nodes[node];
    if (pattern_[root_].output >= record.outputs) return miss_at_node("it has fewer outputs", root_, node);
    if (!admit(root_, record.first_output + pattern_[root_].output)) return false;
    if (cells_ != 0) cell_[cells_ - 1].next = 0, head_ = 1;
    while (head_ != 0 || !finish()) {
      if (++steps_ > max_match_steps) return give_up(node);
      if (head_ != 0 && advance(cell_[head_ - 1].pattern, 0, {trail_size_, operators_, cells_, cell_[head_ - 1].next}))
        continue;
      if (!go_back()) return steps_ > max_match_steps && give_up(node);
    }
    for (std::size_t i = 0; i <= root_; ++i) --found_.bound[i];  // 0 becomes `nothing`
    out = found_;
    return true;
  }

 private:
  using judge::another_value, judge::is_close, judge::room;
  using judge::explains_, judge::found_, judge::graph_, judge::has_several_roots_, judge::is_tree_, judge::operator_,
      judge::operators_, judge::pattern_, judge::root_, judge::trail_, judge::trail_size_;
  using judge::find_captured, judge::finish, judge::is_bound, judge::is_same, judge::miss, judge::miss_at_node,
      judge::record_of, judge::tell, judge::value_of;

  // Cells are counted from 1; 0 ends a list.
  struct cell {
    std::uint16_t pattern, next;
  };
  struct mark {
    std::uint16_t trail, operators, cells, head;
  };
  struct choice {
    std::uint16_t pattern, next;
    mark before;
  };
  // Admitting -----------------------------------------------------------------------------------------------------------

  constexpr bool admit(std::uint16_t at, std::uint32_t value) {
    if (found_.bound[at] != 0) return found_.bound[at] == value + 1 || miss(another_value, at, value, is_close);
    const Node& p = pattern_[at];
    if (p.role == pattern_role::apply) return admit_operator(p, at, value);
    if ((p.role != pattern_role::any && !admit_value(p, at, value)) || (p.is_restricted && !meets(p, at, value)))
      return false;
    found_.bound[at] = value + 1, trail_[trail_size_++] = at;
    return p.children == 0 || add_goal(at);
  }
  constexpr bool add_goal(std::uint16_t at) {
    cell_[cells_] = {at, static_cast<std::uint16_t>(cells_ + 2)}, ++cells_;
    return true;
  }

  constexpr bool admit_operator(const Node& p, std::uint16_t at, std::uint32_t value) {
    const auto& v = graph_.values[value];
    if (v.producer < 0) return miss("an operator must compute this, and none does", at, value);
    const auto& node = graph_.nodes[static_cast<std::size_t>(v.producer)];
    if ((p.kinds != 0 && p.kind[0]->id != node.kind->id && !has_kind(p, node.kind->id, 1)) ||
        node.first_output + p.output != value || node.inputs < p.least_operands ||
        (node.inputs > p.children && !p.is_open))
      return miss_operator(p, node, at, value);
    // If a value is read once, the search reached it through its only reader, and cannot have matched it elsewhere.
    if ((v.uses != 1 || v.is_output || node.outputs != 1 || has_several_roots_) && !admit_shared(node, v.producer))
      return miss("the operator is matched elsewhere in the pattern already", at, value, is_close);
    if (p.is_restricted && !meets(p, at, value)) return false;
    found_.bound[at] = value + 1, trail_[trail_size_++] = at;
    operator_[operators_++] = {static_cast<std::uint32_t>(v.producer), at};
    return p.may_commute ? add_goal(at) : take_operands(p, node, 0);
  }
  constexpr bool miss_operator(const Node& p, const node_record& node, std::uint16_t at, std::uint32_t value) {
    if (p.kinds != 0 && !has_kind(p, node.kind->id)) return miss("it is another operator", at, value);
    if (node.first_output + p.output != value) return miss("it is another output of the operator", at, value, is_close);
    return miss("it has another number of operands", at, value, is_close);
  }
  /// Rejects an operator that another pattern node has matched: it would be computed twice.
  constexpr bool admit_shared(const node_record& node, std::int32_t producer) {
    is_tree_ = is_tree_ && operators_ == 0 && node.outputs == 1;  // the root may have any readers
    for (std::size_t i = 0; i < operators_; ++i)
      if (operator_[i].node == static_cast<std::uint32_t>(producer)) return false;
    return true;
  }

  /// Checks the role of a pattern node; for all roles except `any` and `apply`.
  constexpr bool admit_value(const Node& p, std::uint16_t at, std::uint32_t value) {
    const auto& v = graph_.values[value];
    switch (p.role) {
      case pattern_role::constant: return v.role == value_role::constant || miss("it must be a constant", at, value);
      case pattern_role::variable:
        return v.role != value_role::constant || miss("it must not be a constant", at, value);
      case pattern_role::input:
        return v.role == value_role::input || miss("it must be an input of the graph", at, value);
      case pattern_role::scalar: {
        if (!v.has_scalar) return miss("it must be a constant of one element with a known value", at, value);
        return is_near(v.scalar, p.scalar, p.tolerance) || miss("the constant has another value", at, value, is_close);
      }
      case pattern_role::same: {
        is_tree_ = false;
        const std::size_t captured = find_captured(p);  // if it is not bound yet, `finish` compares
        return captured == room || is_same(p, captured, value) || miss(another_value, at, value);
      }
      default: return true;
    }
  }

  /// Infinity is near only itself, and nothing is near NaN. Halves are compared, because the difference of two finite numbers
  /// may overflow. In constant evaluation overflow is an error, and so is infinity minus infinity.
  static constexpr bool is_near(double x, double wanted, double tolerance) {
    constexpr double largest = 1.7976931348623157e308;
    if (x == wanted) return true;
    if (!(x >= -largest && x <= largest && wanted >= -largest && wanted <= largest)) return false;
    const double difference = x < wanted ? wanted / 2 - x / 2 : x / 2 - wanted / 2;
    return difference <= tolerance * (wanted < 0 ? -wanted / 2 : wanted / 2);
  }

  /// Whether a value meets the requirements of a pattern node on its element type, its rank and by conditions.
  constexpr bool meets(const Node& p, std::uint16_t at, std::uint32_t value) {
    const auto& v = graph_.values[value];
    if (p.types != 0 && (p.types & pattern_node::bit_of(v.type.type)) == 0)
      return miss("it has another element type", at, value, is_close);
    if (p.rank >= 0 && v.type.dims.rank != static_cast<std::size_t>(p.rank))
      return miss("it has another number of dimensions", at, value, is_close);
    for (std::size_t i = 0; i < p.conditions; ++i)
      if (const verdict holds = p.condition[i].test(*graph_.view, value); !holds)
        return miss(p.condition[i].text != nullptr ? p.condition[i].text : holds.rule, at, value, is_close);
    return true;
  }

  // Goals ---------------------------------------------------------------------------------------------------------------

  /// Takes the first way from `first` on that meets a goal, and remembers whether there are others.
  constexpr bool advance(std::uint16_t at, std::size_t first, const mark& before) {
    const Node& p = pattern_[at];
    if (p.role == pattern_role::apply && is_bound(at)) return advance_operator(p, at, first, before);
    if (!is_bound(at)) return advance_place(at, first != 0, before);
    const std::size_t ways = p.is_choice() ? p.alternatives() : 1;
    for (std::size_t way = first; way < ways; ++way) {
      if (take(p, at, way)) return arrive(at, way + 1, ways, before);
      undo(before);
    }
    return false;
  }
  constexpr bool advance_operator(const Node& p, std::uint16_t at, std::size_t first, const mark& before) {
    const auto& node = graph_.nodes[static_cast<std::size_t>(record_of(at).producer)];
    // Swaps the first two operands, unless they are the same value.
    const bool commutes = node.kind->commutative && node.inputs >= 2 &&
                          graph_.operands[node.first_input] != graph_.operands[node.first_input + 1];
    if (first == 0 && take_operands(p, node, 0)) return arrive(at, 1, commutes ? 2 : 1, before);
    undo(before);
    if (!commutes) return false;
    if (take_operands(p, node, 1)) return arrive(at, 2, 2, before);
    undo(before);
    return false;
  }
  /// A further output: at its first place in the graph, or with `again` at the next. Whether there are more is not known.
  constexpr bool advance_place(std::uint16_t at, bool again, const mark& before) {
    bool found_any = again;
    while (next_place(at, again)) {
      found_any = again = true;
      if (admit(at, place_)) return arrive(at, 1, 2, before);
      undo(before);
    }
    return !found_any && steps_ <= max_match_steps &&
           miss_at_node("nothing of this kind reads the value that the outputs share", at,
                        static_cast<std::uint32_t>(record_of(root_).producer));
  }
  constexpr bool arrive(std::uint16_t at, std::size_t next, std::size_t ways, const mark& before) {
    head_ = before.head;
    if (cells_ != before.cells)
      cell_[cells_ - 1].next = before.head, head_ = static_cast<std::uint16_t>(before.cells + 1);
    if (next < ways) choice_[choices_++] = {at, static_cast<std::uint16_t>(next), before};
    return true;
  }
  constexpr void undo(const mark& before) {
    while (trail_size_ > before.trail) found_.bound[trail_[--trail_size_]] = 0;
    operators_ = before.operators, cells_ = before.cells;
  }
  /// Goes back to the last choice that has another way. A search that is given up finds none.
  constexpr bool go_back() {
    while (choices_ != 0 && steps_ <= max_match_steps) {
      const choice last = choice_[--choices_];
      undo(last.before);
      if (advance(last.pattern, last.next, last.before)) return true;
    }
    return false;
  }

  constexpr bool take(const Node& p, std::uint16_t at, std::size_t way) {
    if (p.is_choice()) return admit(p.alternative(way), value_of(at));
    // Several outputs: admits the first now. The others are goals, so that the captures before each are bound when its turn
    // comes.
    if (!admit(p.child[0], value_of(at))) return false;
    for (std::size_t i = 1; i < p.children; ++i) add_goal(p.child[i]);
    return true;
  }

  /// Operand i is the graph's operand i. If `flip` is 1, the first two are swapped.
  constexpr bool take_operands(const Node& p, const auto& node, std::size_t flip) {
    for (std::size_t i = 0; i < node.inputs; ++i)
      if (!(i < p.children ? admit(p.child[i], graph_.operands[node.first_input + (i < 2 ? i ^ flip : i)])
                           : admit_further(p.child[p.children - 1U], graph_.operands[node.first_input + i])))
        return false;
    return true;
  }
  /// Admits a further operand of `many`, whose pattern node is bound to the first.
  constexpr bool admit_further(std::uint16_t at, std::uint32_t value) {
    const Node& p = pattern_[at];
    return (p.role == pattern_role::any || admit_value(p, at, value)) && (!p.is_restricted || meets(p, at, value));
  }

  // The places of further outputs -----------------------------------------------------------------------------------------

  /// Finds a place for a further output: a value that the output's root can compute. Walks from each value that the outputs
  /// share, along the readers that the pattern names, up to the root. Stores the first place in `place_`, or with `again` the
  /// place after the last.
  constexpr bool next_place(std::uint16_t root, bool again) {
    resumes_ = again;
    for (std::uint16_t at = again ? path_[root].to : pattern_[root].first; at < root; ++at) {
      const Node& p = pattern_[at];
      if (p.role != pattern_role::same) continue;
      const std::size_t captured = find_captured(p);
      if (captured >= pattern_[root].first) continue;  // captured by this output itself, or nowhere
      std::uint32_t value = value_of(captured);
      if (p.says_output) {
        const std::int32_t producer = record_of(captured).producer;
        if (producer < 0 || p.output >= graph_.nodes[static_cast<std::size_t>(producer)].outputs) continue;
        value = graph_.nodes[static_cast<std::size_t>(producer)].first_output + p.output;
      }
      path_[root].to = at;
      if (climb(root, at, value)) return steps_ <= max_match_steps;
    }
    return false;
  }
  /// Returns true if it found a place, or if the search has taken too many steps. To resume, it first follows the stored path
  /// to the last place.
  constexpr bool climb(std::uint16_t root, std::uint16_t from, std::uint32_t value) {
    if (from == root) {
      const bool is_last = resumes_;
      resumes_ = false, place_ = value;
      return !is_last;
    }
    if (++steps_ > max_match_steps) return true;
    for (std::uint16_t at = resumes_ ? path_[from].to : static_cast<std::uint16_t>(from + 1); at <= root; ++at) {
      const Node& p = pattern_[at];
      bool leads = false;
      for (std::size_t i = 0; p.is_choice() && i < p.alternatives(); ++i) leads = leads || p.alternative(i) == from;
      if (leads) path_[from].to = at;
      if (leads && climb(root, at, value)) return true;
      bool reads = false;
      for (std::size_t c = 0; !p.is_choice() && c < p.children; ++c) reads = reads || p.child[c] == from;
      if (reads && climb_to_readers(root, from, at, value)) return true;
    }
    return false;
  }
  constexpr bool climb_to_readers(std::uint16_t root, std::uint16_t from, std::uint16_t at, std::uint32_t value) {
    const Node& p = pattern_[at];
    const auto& v = graph_.values[value];
    for (std::uint32_t i = resumes_ ? path_[from].reader : 0; i < v.uses; ++i) {
      const auto& node = graph_.nodes[graph_.uses[v.first_use + i].node];
      if ((p.kind_bits & pattern_node::bit_of(*node.kind)) == 0 || p.output >= node.outputs) continue;
      path_[from] = {i, at};
      if (climb(root, at, node.first_output + p.output)) return true;
    }
    return false;
  }

  constexpr bool give_up(std::uint32_t node) {
    if (explains_) tell("the match was given up: too many combinations would have to be tried", root_, node, -1);
    return false;
  }

  /// A step of the path to the last place, for each pattern node: the reader of its value, and the reader's pattern node.
  /// For the root of a further output, `to` is where the path began. Every further output has its own pattern nodes,
  /// and so its own path.
  struct path_part {
    std::uint32_t reader;
    std::uint16_t to;
  };

  std::uint16_t cells_ = 0, head_ = 0, choices_ = 0;
  std::uint32_t steps_ = 0, place_ = 0;
  bool resumes_ = false;  // climbing to the last place, to continue from there
  cell cell_[room + pattern_node::max_children];
  choice choice_[room];
  path_part path_[room];
};

}  // namespace collage::inline v0::detail
