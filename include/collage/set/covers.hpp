// Whether a backend set can run a static graph, as a concept. If it fails, the compiler names every hole.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/detail/fixed_string.hpp>
#include <collage/detail/indices.hpp>
#include <collage/detail/sentence.hpp>
#include <collage/error.hpp>
#include <collage/list_view.hpp>
#include <collage/set/detail/enumerate.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// Nodes of one kind that no backend takes, for the same reason.
struct hole {
  const char* kind = "";
  std::uint32_t count = 0;
  std::uint32_t first = 0;  ///< the first of the nodes
  detail::sentence why;     ///< "no backend declares it", or why each backend that does cannot run it
};

/// The holes of a set in a graph.
struct hole_list {
  static constexpr std::size_t most = 8;

  hole list[most];
  std::size_t size = 0;
  std::uint32_t others = 0;  ///< nodes that are not in the list

  constexpr bool empty() const { return size == 0; }
  constexpr const hole& operator[](std::size_t index) const { return list[index]; }
};

namespace detail {

template <std::size_t Nodes>
struct node_list {
  std::uint32_t node[Nodes + 1] = {};
  std::uint32_t count = 0;
};

/// The nodes that need a kernel and are in no match.
template <std::size_t Nodes>
constexpr node_list<Nodes> find_uncovered(const graph_view& graph, const backend_matches* backends, std::size_t count) {
  bool covered[Nodes + 1] = {};
  for_each_match(backends, count, [&](std::uint32_t, std::uint32_t, const std::uint32_t* match, const char*) {
    for (std::uint32_t i = 0; i < match[1] && match[2] != refused_mark; ++i) covered[match[header_words + i]] = true;
  });
  node_list<Nodes> list;
  for (std::uint32_t n = 0; n < Nodes; ++n)
    if (!covered[n] && !is_alias(graph, n) && !is_control(graph, n)) list.node[list.count++] = n;
  return list;
}

/// Whether an operator of this kind may be the last of a match of the sub-pattern at `at`.
constexpr bool may_end_in(const auto& pattern, std::size_t at, std::uint64_t kind) {
  const auto& p = pattern[at];
  if (p.role == pattern_role::apply) return takes_kind(p, kind);
  if (p.role == pattern_role::repeat)
    return (p.least == 0 && may_end_in(pattern, p.child[0], kind)) || may_end_in(pattern, p.iteration(1), kind);
  if (p.role != pattern_role::either && p.role != pattern_role::outputs) return false;
  for (std::size_t c = 0; c < p.children; ++c)
    if (may_end_in(pattern, p.child[c], kind)) return true;
  return false;
}

/// Explains why one backend does not take a node; says nothing if the backend does not declare the node's kind.
template <class Text, class Graph, class Backend, class Matches>
constexpr void explain_backend(Text& out, const Graph& graph, const Backend& backend, const Matches& matches,
                               std::uint32_t node) {
  const auto begin = [&]() -> Text& { return out << (out.empty() ? "" : "; ") << backend.name; };
  bool told = false;
  for_each_match(&matches, 1, [&](std::uint32_t, std::uint32_t p, const std::uint32_t* match, const char* rule) {
    for (std::uint32_t i = 0; i < match[1] && match[2] == refused_mark && !told; ++i) {
      if (match[header_words + i] != node) continue;
      begin() << " refuses it";
      if (match[1] > 1) out << " in pattern (" << backend.patterns[p].name << ")";
      out << ": " << rule;
      told = true;
    }
  });
  const std::uint64_t kind = graph.kind_id_of(node);
  // A pattern that may end in the node has a more specific reason than a pattern with its kind further in.
  for (const bool at_root : {true, false})
    for (std::uint32_t p = 0; p < backend.patterns.size() && !told; ++p) {
      const auto& pattern = backend.patterns[p];
      bool taken = false;
      for (std::size_t i = 0; i < pattern.nodes.size; ++i) taken = taken || takes_kind(pattern.nodes[i], kind);
      if (!taken || may_end_in(pattern.nodes, pattern.nodes.size - 1, kind) != at_root) continue;
      match_record record;
      verdict why;
      begin() << " has it in pattern (" << pattern.name << "), which does not match here";
      if (at_root && !match_at(graph, pattern.nodes, node, record, &why)) out << ": " << why.rule;
      told = true;
    }
}

template <class Graph, class Backend, class Matches>
constexpr sentence explain_hole(const Graph& graph, const Backend* backends, const Matches* matches, std::size_t count,
                                std::uint32_t node) {
  sentence out;
  for (std::size_t b = 0; b < count; ++b) explain_backend(out, graph, backends[b], matches[b], node);
  if (out.empty()) out << "no backend declares it";
  return out;
}

template <class G, class... B>
inline constexpr auto uncovered_in = find_uncovered<node_count<G>>(G::graph.view(), matches_in<G, B...>, sizeof...(B));
/// The reason why the uncovered node of this number is uncovered; a constant evaluation for each.
template <std::size_t Index, class G, class... B>
inline constexpr sentence reason_of = explain_hole(G::graph.view(), backends_of<B...>, matches_in<G, B...>,
                                                   sizeof...(B), uncovered_in<G, B...>.node[Index]);

/// Only the first nodes are explained; later nodes are counted with those of their kind.
inline constexpr std::size_t most_explained = 64;
template <class G, class... B>
inline constexpr std::size_t explained_in =
    uncovered_in<G, B...>.count < most_explained ? uncovered_in<G, B...>.count : most_explained;

/// `why` is only read if the node is explained. A flag says so because under -fsanitize=undefined a comparison with null is no
/// constant expression (see kind_info::has_body).
template <class Holes, class Graph, class Text>
constexpr void add_hole(Holes& holes, const Graph& graph, std::uint32_t node, bool is_explained, const Text* why) {
  std::size_t h = 0;
  while (h < holes.size &&
         (graph.kind_id_of(holes[h].first) != graph.kind_id_of(node) || (is_explained && !(holes[h].why == why->text))))
    ++h;
  if (h == holes.size && h < hole_list::most && is_explained)
    holes.list[holes.size++] = {graph.nodes[node].kind->name, 0, node, *why};
  ++(h < holes.size ? holes.list[h].count : holes.others);
}
template <class G, class... B, std::size_t... Index>
constexpr hole_list list_holes(const indices<Index...>&) {
  hole_list holes;
  const sentence* const reasons[] = {&reason_of<Index, G, B...>..., nullptr};
  for (std::size_t i = 0; i < uncovered_in<G, B...>.count; ++i)
    add_hole(holes, G::graph.view(), uncovered_in<G, B...>.node[i], i < sizeof...(Index),
             reasons[i < sizeof...(Index) ? i : sizeof...(Index)]);
  return holes;
}
template <class G, class... B>
inline constexpr hole_list holes_found = list_holes<G, B...>(make_indices<explained_in<G, B...>>{});

template <class G, class... B>
consteval const hole_list& find_holes(const backend_list<B...>&) {
  static_assert(holds<conclusion<kinds_check<G, B...>>>);
  return holes_found<G, B...>;
}

}  // namespace detail

/// The holes of a set in a static graph (named by its tag type), as values.
template <backend_set_type Set, static_graph G>
inline constexpr const hole_list& holes_of = detail::find_holes<G>(detail::backends_in<Set>{});

// The same as types, for error messages.

/// `Count` nodes of one kind without a backend.
template <fixed_string Operator, std::uint32_t Count, fixed_string Why>
struct uncovered {};
/// `Count` further nodes, of kinds that are not listed.
template <std::uint32_t Count>
struct and_others {};
template <class... Uncovered>
struct operators_no_backend_takes {
  static constexpr bool none = sizeof...(Uncovered) == 0;
};

namespace detail {

template <class Set, class G, std::size_t Index>
consteval auto name_hole() {
  constexpr const hole& h = holes_of<Set, G>[Index];
  constexpr auto kind = exact_text<text_ref(h.kind).size>(h.kind);
  constexpr auto why = exact_text<h.why.size>(h.why.text);
  return uncovered<kind, h.count, why>{};
}
template <class Set, class G, std::size_t... Index>
consteval auto list_names(const indices<Index...>&) {
  if constexpr (holes_of<Set, G>.others == 0)
    return operators_no_backend_takes<decltype(name_hole<Set, G, Index>())...>{};
  else
    return operators_no_backend_takes<decltype(name_hole<Set, G, Index>())..., and_others<holes_of<Set, G>.others>>{};
}
template <class Set, class G>
consteval auto name_holes() {
  if constexpr (!Set::is_sound) return operators_no_backend_takes<>{};  // its own error is enough
  else return list_names<Set, G>(make_indices<holes_of<Set, G>.size>{});
}

/// The result of the check of a set, computed without the set. If the check fails, the error then stands at the user's line.
template <class Set>
struct set_conclusion {
  using type = accepted;  // a type that derives from a set reports the error where it derives
};
template <class... B>
struct set_conclusion<backend_set<B...>> {
  using type = conclusion<set_check<B...>>;
};

}  // namespace detail

/// operators_no_backend_takes<uncovered<"conv", 2, "library refuses it: groups must be 1">, ...>
template <backend_set_type Set, static_graph G>
using holes = decltype(detail::name_holes<Set, G>());

template <class Holes> concept no_holes = Holes::none;

/// Satisfied if a backend of the set declares and accepts a match for each operator of a static graph (named by its tag type):
/// `static_assert(covers<backends, lenet>);`. Otherwise the compiler prints the operators that are left over. Reshapes and
/// control flow need no backend.
///
/// Two things are not checked here. A probe finds at run time that the machine lacks a library. `place` reports matches that do
/// not fit together, where operators are only taken in groups.
template <class Set, class G>
concept covers = detail::holds<typename detail::set_conclusion<Set>::type> && backend_set_type<Set> &&
                 static_graph<G> && no_holes<holes<Set, G>>;

}  // namespace collage::inline v0
