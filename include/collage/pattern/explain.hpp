// Why a pattern does not match: one sentence, the same at run time and in a compile error.
//
//   explain_match(conv_bias_relu{}, lenet{}, 2).text           // why not at node 2
//   explain_match(conv_bias_relu{}, lenet{}).text              // where it comes nearest
//   static_assert(matches<conv_bias_relu, lenet, 2>);          // fails with the sentence
//
// For the run-time graph see graph/explain.hpp.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/graph/define.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

namespace detail {

/// Of a graph_view: it has no names.
struct no_names {};
template <class G>
struct static_names {
  static constexpr const char* node_name(std::uint32_t node) { return G::graph.node_name(node); }
  static constexpr const char* value_name(std::uint32_t value) { return G::graph.value_name(value); }
};

/// What a pattern is called in a sentence, and its nodes.
struct named_pattern {
  const char* name = "";  ///< "": it has none
  pattern_view nodes;
};
template <class P>
constexpr named_pattern name_pattern(const P& pattern) {
  if constexpr (pattern_type<P>) return {P::name, nodes_of<P>};
  else return {"", pattern};
}

/// Puts a match, or the miss of a pattern at a node, into a sentence.
template <class Names, class Graph, class Text = sentence>
class match_explainer {
 public:
  constexpr match_explainer(const named_pattern& pattern, const Graph& graph, const Names& names)
      : pattern_(pattern), graph_(graph), names_(names) {}

  /// Whether what was said last is a match, and which.
  constexpr bool matched() const { return matched_; }
  constexpr const match_record& record() const { return record_; }

  constexpr Text say(std::uint32_t node) {
    Text out;
    if (node >= graph_.nodes.size())
      return say_pattern(out) << " cannot match at node " << node << ": the graph has " << graph_.nodes.size()
                              << " nodes, counted from 0";
    if (try_at(node)) return say_match(out, node);
    say_pattern(out) << " does not match at ";
    say_node(out, node);
    out << ": ";
    say_reason(out);
    return out;
  }

  /// At the first node where it matches, or else where most of it is met.
  constexpr Text say_nearest() {
    Text out;
    std::uint32_t nearest = match_record::nothing, most = 0;
    verdict reason;
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if ((pattern_.nodes.root().kind_bits & pattern_node::bit_of(*graph_.nodes[n].kind)) == 0) continue;
      if (try_at(n)) return say_match(out, n);
      if (nearest != match_record::nothing && met_ <= most) continue;
      nearest = n, most = met_, reason = why_;
    }
    say_pattern(out) << " does not match anywhere";
    if (nearest == match_record::nothing) {
      out << ": the graph has no operator for its root, ";
      describe_node(pattern_.nodes, pattern_.nodes.size - 1, out);
      return out;
    }
    out << "; it comes nearest at ";
    say_node(out, nearest);
    out << ": ";
    why_ = reason;
    say_reason(out);
    return out;
  }

 private:
  /// Whether it matches; if not, why.
  constexpr bool try_at(std::uint32_t node) {
    const auto arrays = arrays_of(graph_);
    matcher search(arrays, pattern_.nodes.node, pattern_.nodes.size, true);
    matched_ = search.run(node, record_);
    why_ = search.why();
    met_ = search.met();
    return matched_;
  }

  constexpr Text& say_pattern(Text& out) const {
    if (*pattern_.name == '\0') return out << "the pattern";
    return out << "pattern " << pattern_.name;
  }
  constexpr void say_node(Text& out, std::uint32_t node) const {
    out << "node " << node << " (" << graph_.nodes[node].kind->name;
    if constexpr (requires { names_.node_name(node); })
      if (!is_generated(names_.node_name(node), graph_.nodes[node].kind->name)) out << ", " << names_.node_name(node);
    out << ")";
  }
  /// Nodes that nobody named are called by their kind and a number, which says nothing new.
  static constexpr bool is_generated(const char* name, const char* kind) {
    while (*kind != '\0' && *kind == *name) ++kind, ++name;
    if (*kind != '\0' || *name++ != '_') return false;
    while (*name >= '0' && *name <= '9') ++name;
    return *name == '\0';
  }
  constexpr void say_value(Text& out, std::uint32_t value) const {
    const auto& v = graph_.values[value];
    if (v.producer >= 0) {
      const auto producer = static_cast<std::uint32_t>(v.producer);
      if (graph_.nodes[producer].outputs == 1) out << "the output of ";
      else out << "output " << value - graph_.nodes[producer].first_output << " of ";
      return say_node(out, producer);
    }
    const char* role = v.role == value_role::constant ? "constant" : "input";
    if constexpr (requires { names_.value_name(value); }) out << "the " << role << " " << names_.value_name(value);
    else out << (v.role == value_role::constant ? "a " : "an ") << role;
  }
  constexpr void say_reason(Text& out) const {
    const auto node = static_cast<std::uint32_t>(why_.graph_node);
    if (why_.operand >= 0) {
      const auto operand = static_cast<std::uint32_t>(why_.operand);
      out << "operand " << operand << " of ";
      say_node(out, node);
      out << " is ";
      say_value(out, graph_.operands[graph_.nodes[node].first_input + operand]);
    } else {
      out << "there is ";
      say_node(out, node);
    }
    out << " where the pattern has ";
    describe_node(pattern_.nodes, static_cast<std::size_t>(why_.pattern_node), out);
    out << ": " << why_.rule;
    if (why_.other_node < 0) return;
    out << ", by ";
    say_node(out, static_cast<std::uint32_t>(why_.other_node));
  }
  constexpr Text& say_match(Text& out, std::uint32_t node) const {
    say_pattern(out) << " matches at ";
    say_node(out, node);
    if (record_.nodes == 1) return out;
    out << ", of nodes ";
    for (std::uint32_t i = 0; i < record_.nodes; ++i)
      out << (i == 0 ? "" : i + 1 == record_.nodes ? " and " : ", ") << record_.node[i];
    return out;
  }

  named_pattern pattern_;
  const Graph& graph_;
  const Names& names_;
  match_record record_;
  verdict why_;
  std::uint32_t met_ = 0;
  bool matched_ = false;
};

}  // namespace detail

/// Why a pattern does not match at a node, or that it does: "pattern conv_relu does not match at node 7 (relu): operand 0
/// of node 7 (relu) is the output of node 6 (add) where the pattern has conv(any, constant): it is another operator".
template <pattern_operand P>
constexpr pattern_text explain_match(const P& pattern, const graph_view& graph, std::uint32_t node) {
  return detail::match_explainer(detail::name_pattern(pattern), graph, detail::no_names{}).say(node);
}
/// Where the pattern matches first, or else where it comes nearest and what is missing there.
template <pattern_operand P>
constexpr pattern_text explain_match(const P& pattern, const graph_view& graph) {
  return detail::match_explainer(detail::name_pattern(pattern), graph, detail::no_names{}).say_nearest();
}
template <pattern_operand P, static_graph G>
constexpr pattern_text explain_match(const P& pattern, const G&, std::uint32_t node) {
  const graph_view view = G::graph.view();
  return detail::match_explainer(detail::name_pattern(pattern), view, detail::static_names<G>{}).say(node);
}
template <pattern_operand P, static_graph G>
constexpr pattern_text explain_match(const P& pattern, const G&) {
  const graph_view view = G::graph.view();
  return detail::match_explainer(detail::name_pattern(pattern), view, detail::static_names<G>{}).say_nearest();
}

namespace detail {

template <class P, class G, std::uint32_t Node>
struct match_check {
  static constexpr sentence why() {
    const graph_view view = G::graph.view();
    const static_names<G> names;
    match_explainer explainer(name_pattern(P{}), view, names);
    const sentence out = explainer.say(Node);
    return explainer.matched() ? sentence{} : out;
  }
};
template <class P, class G>
struct occurrence_check {
  static constexpr sentence why() {
    const graph_view view = G::graph.view();
    const static_names<G> names;
    match_explainer explainer(name_pattern(P{}), view, names);
    const sentence out = explainer.say_nearest();
    return explainer.matched() ? sentence{} : out;
  }
};

}  // namespace detail

/// Whether a pattern matches a static graph at a node: `static_assert(matches<conv_bias_relu, lenet, 2>)` fails with the
/// sentence that says why not.
template <class P, class G, std::uint32_t Node>
concept matches =
    pattern_type<P> && static_graph<G> && detail::holds<detail::conclusion<detail::match_check<P, G, Node>>>;

/// Whether it matches anywhere; fails with where it comes nearest.
template <class P, class G>
concept occurs_in =
    pattern_type<P> && static_graph<G> && detail::holds<detail::conclusion<detail::occurrence_check<P, G>>>;

}  // namespace collage::inline v0
