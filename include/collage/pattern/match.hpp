// The matcher: decides whether a pattern matches at a node of a graph, then binds. One function over arrays, the same
// in constant evaluation and at run time.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/pattern/expression.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace collage::inline v0 {

/// What a pattern bound. Made whole by `match_at`, or left as it was.
struct match_record {
  static constexpr std::size_t max_pattern = 48;
  static constexpr std::size_t max_arguments = 72;
  static constexpr std::uint32_t nothing = 0xFFFFFFFF;

  std::uint32_t bound[max_pattern] = {};  ///< by pattern node: the value it matched, or `nothing`
  std::uint32_t node[max_pattern] = {};   ///< the operators of the match in pattern order, the root last
  std::uint32_t nodes = 0;
  std::uint32_t argument[max_arguments] = {};  ///< values read from outside, in order of first reading
  std::uint32_t arguments = 0;

  constexpr std::span<const std::uint32_t> node_list() const { return {node, nodes}; }
  constexpr std::span<const std::uint32_t> argument_list() const { return {argument, arguments}; }
  constexpr bool contains(std::uint32_t which) const {
    for (std::uint32_t i = 0; i < nodes; ++i)
      if (node[i] == which) return true;
    return false;
  }
};

namespace detail {

/// Backtracking search. Goals still to be met form a list on the call stack, so that a choice made early (which operand
/// of a commutative operator goes where) is undone when a later goal fails.
class matcher {
 public:
  constexpr matcher(const graph_view& graph, std::span<const pattern_node> pattern) : graph_(graph), pattern_(pattern) {
    for (std::size_t i = 0; i < pattern.size(); ++i) state_.bound[i] = match_record::nothing;
  }

  constexpr bool run(std::uint32_t root) {
    const goal first{static_cast<std::uint16_t>(pattern_.size() - 1), graph_.output_of(root), -1, -1, nullptr};
    return solve(&first);
  }
  constexpr const match_record& result() const { return state_; }
  constexpr const verdict& why() const { return why_; }

 private:
  struct goal {
    std::uint16_t pattern;
    std::uint32_t value;
    std::int32_t reader;  ///< the node that reads the value in this place, -1 for the root
    std::int32_t operand;
    const goal* next;
  };

  constexpr bool miss(const char* rule, const goal& g) {
    // The most telling miss is the one before which most was met; among equals the first.
    if (why_ || met_ > most_met_) {
      most_met_ = met_;
      why_.rule = rule;
      why_.pattern_node = static_cast<std::int32_t>(g.pattern);
      why_.graph_node = g.reader >= 0 ? g.reader : graph_.values[g.value].producer;
      why_.operand = g.operand;
    }
    return false;
  }

  /// Why a value cannot stand where the pattern wants a value and not an operator; null if it can.
  constexpr const char* refuse(const pattern_node& p, std::uint32_t value) const {
    const value_record& v = graph_.values[value];
    switch (p.role) {
      case pattern_role::constant: return v.role == value_role::constant ? nullptr : "a constant is wanted here";
      case pattern_role::variable:
        return v.role != value_role::constant ? nullptr : "a value that is not constant is wanted here";
      case pattern_role::scalar: {
        if (!v.has_scalar) return "a constant of one element with a known value is wanted here";
        const double difference = v.scalar < p.scalar ? p.scalar - v.scalar : v.scalar - p.scalar;
        const bool equal = difference <= p.tolerance * (p.scalar < 0 ? -p.scalar : p.scalar);
        return equal ? nullptr : "the constant has another value";
      }
      default: return nullptr;  // `same` is compared in `finish`, when what it must equal is surely bound
    }
  }

  constexpr void bind(const goal& g) {
    state_.bound[g.pattern] = g.value;
    ++met_;
  }
  constexpr bool unbind(const goal& g) {
    state_.bound[g.pattern] = match_record::nothing;
    --met_;
    return false;
  }

  constexpr bool solve(const goal* goals) {
    if (goals == nullptr) return finish();
    const goal& g = *goals;
    const pattern_node& p = pattern_[g.pattern];
    if (p.role == pattern_role::apply) return solve_operator(g, p);
    if (const char* rule = refuse(p, g.value); rule != nullptr) return miss(rule, g);
    bind(g);
    return solve(g.next) || unbind(g);
  }

  constexpr bool solve_operator(const goal& g, const pattern_node& p) {
    const value_record& v = graph_.values[g.value];
    if (v.producer < 0) return miss("an operator's output is wanted here", g);
    const auto node = static_cast<std::uint32_t>(v.producer);
    bool kind_fits = p.kinds == 0;
    for (std::size_t i = 0; i < p.kinds; ++i) kind_fits = kind_fits || p.kind[i]->id == graph_.kind_id_of(node);
    if (!kind_fits) return miss("it is another operator", g);
    const std::span<const std::uint32_t> operands = graph_.inputs_of(node);
    std::size_t least = 0;
    bool open = false;
    for (std::size_t c = 0; c < p.children; ++c) {
      least += pattern_[p.child[c]].count == pattern_count::once ? 1U : 0U;
      open = open || pattern_[p.child[c]].count == pattern_count::many;
    }
    if (operands.size() < least || (operands.size() > p.children && !open))
      return miss("it has another number of operands", g);
    // An operator matched twice under different pattern nodes would be computed twice.
    for (std::size_t i = 0; i < pattern_.size(); ++i)
      if (pattern_[i].role == pattern_role::apply && state_.bound[i] != match_record::nothing &&
          graph_.values[state_.bound[i]].producer == v.producer)
        return miss("the operator is matched elsewhere in the pattern already", g);
    bind(g);
    if (operand_goals(g, p, operands, 0, false, g.next)) return true;
    if (graph_.nodes[node].kind->commutative && operands.size() == 2 && operand_goals(g, p, operands, 0, true, g.next))
      return true;
    return unbind(g);
  }

  /// Puts one goal per operand before `rest` (the first operand's goal first), each in a stack frame of its own.
  constexpr bool operand_goals(const goal& g, const pattern_node& p, std::span<const std::uint32_t> operands,
                               std::size_t done, bool swapped, const goal* rest) {
    if (done == operands.size()) return solve(rest);
    const std::size_t from_end = operands.size() - 1 - done;  // built from the last to the first
    const std::size_t slot = from_end < p.children ? from_end : p.children - 1U;
    const std::size_t which = swapped ? operands.size() - 1 - from_end : from_end;
    const goal here{p.child[slot], operands[which], graph_.values[g.value].producer, static_cast<std::int32_t>(which),
                    rest};
    const pattern_node& child = pattern_[p.child[slot]];
    // Beyond the first, operands of `many` are checked here; the goal binds the first of them.
    if (child.count == pattern_count::many && from_end > slot) {
      if (const char* rule = refuse(child, here.value); rule != nullptr) return miss(rule, here);
      return operand_goals(g, p, operands, done + 1, swapped, rest);
    }
    return operand_goals(g, p, operands, done + 1, swapped, &here);
  }

  constexpr bool inside(const match_record& r, std::uint32_t value) const {
    const std::int32_t producer = graph_.values[value].producer;
    return producer >= 0 && r.contains(static_cast<std::uint32_t>(producer));
  }
  /// A miss at a bound pattern node, found when all are bound: of an operator at itself, of a value where it is read.
  constexpr bool miss(const char* rule, const match_record& r, std::size_t pattern) {
    goal at{static_cast<std::uint16_t>(pattern), r.bound[pattern], -1, -1, nullptr};
    for (std::size_t i = 0; i < pattern_.size() && pattern_[pattern].role != pattern_role::apply; ++i) {
      bool reads = false;
      for (std::size_t c = 0; c < pattern_[i].children; ++c) reads = reads || pattern_[i].child[c] == pattern;
      if (!reads) continue;
      at.reader = graph_.values[r.bound[i]].producer;
      const std::span<const std::uint32_t> operands = graph_.inputs_of(static_cast<std::uint32_t>(at.reader));
      for (std::size_t o = 0; o < operands.size(); ++o)
        if (operands[o] == at.value) at.operand = static_cast<std::int32_t>(o);
    }
    return miss(rule, at);
  }
  /// Whether all that a pattern node takes from outside the match does come from there.
  constexpr bool given_from_outside(const match_record& r, std::size_t pattern) const {
    const pattern_node& p = pattern_[pattern];
    if (r.bound[pattern] == match_record::nothing) return true;
    if (p.role == pattern_role::any || p.role == pattern_role::variable) return !inside(r, r.bound[pattern]);
    if (p.children == 0 || pattern_[p.child[p.children - 1U]].count != pattern_count::many) return true;
    const auto node = static_cast<std::uint32_t>(graph_.values[r.bound[pattern]].producer);
    for (const std::uint32_t value : graph_.inputs_of(node).subspan(p.children - 1U))
      if (inside(r, value)) return false;
    return true;
  }

  /// All goals are met: no inner value may be needed outside, no argument computed inside, and the arguments are
  /// listed.
  constexpr bool finish() {
    match_record r = state_;
    r.nodes = 0;
    for (std::size_t i = 0; i < pattern_.size(); ++i)
      if (pattern_[i].role == pattern_role::apply && r.bound[i] != match_record::nothing)
        r.node[r.nodes++] = static_cast<std::uint32_t>(graph_.values[r.bound[i]].producer);
    for (std::size_t i = 0; i + 1 < pattern_.size(); ++i) {
      if (pattern_[i].role != pattern_role::apply || r.bound[i] == match_record::nothing || pattern_[i].may_escape)
        continue;
      const node_record& inner = graph_.nodes[static_cast<std::size_t>(graph_.values[r.bound[i]].producer)];
      for (std::uint32_t v = inner.first_output; v < inner.first_output + inner.outputs; ++v) {
        if (graph_.values[v].is_output) return miss("it is an output of the graph and cannot be fused away", r, i);
        for (const use& u : graph_.uses_of(v))
          if (!r.contains(u.node)) return miss("it is also read outside the pattern", r, i);
      }
    }
    for (std::size_t i = 0; i < pattern_.size(); ++i) {
      if (pattern_[i].role != pattern_role::same || r.bound[i] == match_record::nothing) continue;
      for (std::size_t j = 0; j < pattern_.size(); ++j)
        if (pattern_[j].capture == pattern_[i].capture && r.bound[j] != r.bound[i])
          return miss("the same value as elsewhere in the pattern is wanted here", r, i);
    }
    // What the pattern does not compute, a kernel must be given.
    for (std::size_t i = 0; i < pattern_.size(); ++i)
      if (!given_from_outside(r, i)) return miss("a value from outside the match is wanted here", r, i);
    r.arguments = 0;
    for (std::uint32_t n = 0; n < r.nodes; ++n)
      for (const std::uint32_t operand : graph_.inputs_of(r.node[n])) {
        if (inside(r, operand)) continue;
        bool listed = false;
        for (std::uint32_t i = 0; i < r.arguments; ++i) listed = listed || r.argument[i] == operand;
        if (listed) continue;
        if (r.arguments == match_record::max_arguments)
          return miss("it has more operands than a kernel can take (72)", r, pattern_.size() - 1);
        r.argument[r.arguments++] = operand;
      }
    state_ = r;
    return true;
  }

  graph_view graph_;
  std::span<const pattern_node> pattern_;
  match_record state_;
  verdict why_;
  std::size_t met_ = 0;       ///< how many pattern nodes are bound
  std::size_t most_met_ = 0;  ///< how many were when `why_` was found
};

}  // namespace detail

/// Whether the pattern matches with its root at `node`. On success `out` is filled; on a miss `out` is untouched and
/// `why`, if given, says the most telling reason: the rule, the pattern node that it belongs to, and where it was
/// broken, as operand `operand` of `graph_node`, or at `graph_node` itself where `operand` is -1.
constexpr bool match_at(const graph_view& graph, std::span<const pattern_node> pattern, std::uint32_t node,
                        match_record& out, verdict* why = nullptr) {
  const pattern_node& root = pattern.back();
  // Most nodes are rejected here, without a search.
  bool possible = root.role != pattern_role::apply || root.kinds == 0;
  for (std::size_t i = 0; i < root.kinds; ++i) possible = possible || root.kind[i]->id == graph.kind_id_of(node);
  if (!possible && why == nullptr) return false;
  detail::matcher search(graph, pattern);
  if (!search.run(node)) {
    if (why != nullptr) *why = search.why();
    return false;
  }
  out = search.result();
  return true;
}

}  // namespace collage::inline v0
