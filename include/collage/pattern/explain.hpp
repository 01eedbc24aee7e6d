// Explains in one sentence why a pattern does not match, at run time and in compile errors alike.
//
//   explain_match(conv_bias_relu{}, lenet{}, 2).text           // why not at node 2
//   explain_match(conv_bias_relu{}, lenet{}).text              // where it comes nearest
//   static_assert(matches<conv_bias_relu, lenet, 2>);          // fails with the sentence
//
// graph/explain.hpp does the same for the run-time graph.
#pragma once

#include <collage/detail/indices.hpp>
#include <collage/detail/sentence.hpp>
#include <collage/graph/define.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

namespace detail {

/// The names of a graph_view, which has none.
struct no_names {};
template <class G>
struct static_names {
  static constexpr const char* node_name(std::uint32_t node) { return G::graph.node_name(node); }
  static constexpr const char* value_name(std::uint32_t value) { return G::graph.value_name(value); }
};

/// The name of a pattern in sentences, and its nodes.
struct named_pattern {
  const char* name = "";  ///< "": none
  pattern_view nodes;
};
template <class P>
constexpr named_pattern name_pattern(const P& pattern) {
  if constexpr (pattern_type<P>) return {P::name, nodes_of<P>};
  else return {"", pattern};
}

/// The node where most of a pattern is met, and why the rest is not; `nothing` if no node is of the root's kind.
struct nearest_miss {
  std::uint32_t node = match_record::nothing;
  std::uint32_t met = 0;
  verdict why;
};

/// Describes a match, or the miss of a pattern at a node, in a sentence.
template <class Names, class Graph, class Text = sentence>
class match_explainer {
 public:
  constexpr match_explainer(const named_pattern& pattern, const Graph& graph, const Names& names)
      : pattern_(pattern), graph_(graph), names_(names) {}

  /// Whether the last sentence describes a match, and that match.
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

  /// Describes the first node where the pattern matches, or else the node where most of it is met.
  constexpr Text say_nearest() {
    const auto nodes = static_cast<std::uint32_t>(graph_.nodes.size());
    const std::uint32_t node = next_match(graph_, pattern_.nodes, 0, record_);
    return node < nodes ? say(node) : say_nowhere(find_nearest(0, nodes));
  }
  /// The nearest miss among the nodes [begin, end), at none of which the pattern matches.
  constexpr nearest_miss find_nearest(std::uint32_t begin, std::uint32_t end) {
    nearest_miss nearest;
    for (std::uint32_t n = begin; n < end; ++n) {
      if ((pattern_.nodes.root().kind_bits & pattern_node::bit_of(*graph_.nodes[n].kind)) == 0) continue;
      try_at(n);
      if (nearest.node == match_record::nothing || met_ > nearest.met) nearest = {n, met_, why_};
    }
    return nearest;
  }
  constexpr Text say_nowhere(const nearest_miss& nearest) {
    Text out;
    say_pattern(out) << " does not match anywhere";
    if (nearest.node == match_record::nothing) {
      out << ": the graph has no operator for its root, ";
      describe_node(pattern_.nodes, pattern_.nodes.size - 1, out);
      return out;
    }
    out << "; it comes nearest at ";
    say_node(out, nearest.node);
    out << ": ";
    why_ = nearest.why;
    say_reason(out);
    return out;
  }

 private:
  /// Whether the pattern matches at a node; stores the reason if it does not.
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
  /// Whether a name is generated. Nodes without a name are called by their kind and a number, which says nothing new.
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
    } else if (why_.graph_node >= 0) {
      out << "there is ";
      say_node(out, node);
    } else {
      out << "there is a value that no operator computes";
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

/// Says that a pattern matches at a node, or why it does not:
///
///   pattern conv_relu does not match at node 7 (relu): operand 0 of node 7 (relu) is the output of node 6 (add) where the
///   pattern has conv(any, constant): it is another operator
template <pattern_operand P>
constexpr pattern_text explain_match(const P& pattern, const graph_view& graph, std::uint32_t node) {
  return detail::match_explainer(detail::name_pattern(pattern), graph, detail::no_names{}).say(node);
}
/// Says where the pattern matches first, or else where it comes nearest and what is missing there.
template <pattern_operand P>
constexpr pattern_text explain_match(const P& pattern, const graph_view& graph) {
  return detail::match_explainer(detail::name_pattern(pattern), graph, detail::no_names{}).say_nearest();
}
template <pattern_operand P, static_graph G>
constexpr pattern_text explain_match(const P& pattern, const G&, std::uint32_t node) {
  const graph_view view = G::graph.view();
  return detail::match_explainer(detail::name_pattern(pattern), view, detail::static_names<G>{}).say(node);
}

namespace detail {

// A whole static graph is searched in many evaluations of a few nodes each, so that large graphs stay within the default limits
// of compilers. Reasons cost more, and are only searched for if there is no match.
inline constexpr std::uint32_t nodes_asked = 128, nodes_explained = 16;

template <class G>
inline constexpr auto nodes_in = static_cast<std::uint32_t>(G::graph.view().node_count());
template <class P, class G>
consteval std::uint32_t find_match_from(std::uint32_t start) {
  match_record record;
  return next_match(G::graph.view(), nodes_of<P>, start, record, start + nodes_asked);
}
template <class P, class G, std::uint32_t Start>
inline constexpr std::uint32_t match_from = find_match_from<P, G>(Start);
/// The first node where the pattern matches, or the number of nodes.
template <class P, class G, std::uint32_t Start = 0>
consteval std::uint32_t find_match() {
  if constexpr (match_from<P, G, Start> < Start + nodes_asked) return match_from<P, G, Start>;
  else return find_match<P, G, Start + nodes_asked>();
}

template <class P, class G>
consteval nearest_miss find_nearest_from(std::uint32_t start) {
  const graph_view view = G::graph.view();
  const std::uint32_t end = start + nodes_explained;
  return match_explainer(name_pattern(P{}), view, no_names{})
      .find_nearest(start, end < nodes_in<G> ? end : nodes_in<G>);
}
template <class P, class G, std::uint32_t Start>
inline constexpr nearest_miss nearest_from = find_nearest_from<P, G>(Start);
template <class P, class G, std::size_t... Slice>
consteval nearest_miss find_nearest(const indices<Slice...>&) {
  const nearest_miss found[] = {nearest_from<P, G, Slice * nodes_explained>..., {}};
  std::size_t most = 0;
  for (std::size_t i = 1; i < sizeof...(Slice); ++i)
    if (found[most].node == match_record::nothing || found[i].met > found[most].met) most = i;
  return found[most];
}
template <class P, class G>
inline constexpr nearest_miss nearest_in =
    find_nearest<P, G>(make_indices<(nodes_in<G> + nodes_explained - 1) / nodes_explained>{});

}  // namespace detail

/// In a static graph, a bare expression is searched for in one evaluation. It may exceed the compiler's limits for a large
/// graph; a pattern type does not.
template <pattern_operand P, static_graph G>
constexpr pattern_text explain_match(const P& pattern, const G&) {
  const graph_view view = G::graph.view();
  const detail::static_names<G> names;
  detail::match_explainer explainer(detail::name_pattern(pattern), view, names);
  if constexpr (!pattern_type<P>) return explainer.say_nearest();  // its nodes are not constants
  else if constexpr (constexpr std::uint32_t node = detail::find_match<P, G>(); node < detail::nodes_in<G>)
    return explainer.say(node);
  else return explainer.say_nowhere(detail::nearest_in<P, G>);
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
    if constexpr (find_match<P, G>() < nodes_in<G>) return {};
    else return explain_match(P{}, G{});
  }
};

}  // namespace detail

/// Whether a pattern matches a static graph at a node. `static_assert(matches<conv_bias_relu, lenet, 2>)` fails with a sentence
/// that says why not.
template <class P, class G, std::uint32_t Node>
concept matches =
    pattern_type<P> && static_graph<G> && detail::holds<detail::conclusion<detail::match_check<P, G, Node>>>;

/// Whether a pattern matches a static graph anywhere. A failed assertion says where it comes nearest.
template <class P, class G>
concept occurs_in =
    pattern_type<P> && static_graph<G> && detail::holds<detail::conclusion<detail::occurrence_check<P, G>>>;

}  // namespace collage::inline v0
