// All matches of one pattern in a static graph, found by the compiler.
//
// Each pattern is matched in constant evaluations of its own, of at most `slice` nodes each. Large graphs and large sets thus
// stay within the default limits of compilers. Most nodes whose kind the pattern's root does not take are not visited.
#pragma once

#include <collage/detail/indices.hpp>
#include <collage/graph/define.hpp>
#include <collage/set/candidate.hpp>
#include <collage/set/declared.hpp>
#include <collage/set/kinds.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// The number of nodes that one constant evaluation visits.
inline constexpr std::uint32_t slice = 128;
inline constexpr std::uint32_t no_node = match_record::nothing;

/// Nodes of one kind; each names the next.
struct node_chain {
  std::uint64_t bit = 0;
  std::uint64_t kind = 0;
  std::uint32_t first = no_node, last = no_node;
  std::uint32_t count = 0;
};

/// Pointers to the chains of a graph.
struct chains_view {
  const std::uint32_t* next_alike = nullptr;  ///< by node: the next of its kind, or no_node
  const std::uint32_t* next = nullptr;        ///< by node: the next of any kind
  const std::uint64_t* bit = nullptr;         ///< by node: the bit of its kind
  const node_chain* chain = nullptr;
  std::uint32_t chains = 0;
  std::uint32_t first = no_node;
  std::uint32_t most_operands = 0;

  /// The number of nodes that may be the root of a pattern.
  constexpr std::uint32_t count(const auto& pattern) const {
    std::uint32_t nodes = 0;
    for (std::uint32_t k = 0; k < chains; ++k)
      if ((pattern.root().kind_bits & chain[k].bit) != 0) nodes += chain[k].count;
    return nodes;
  }
};

/// The nodes of a graph that need a kernel, chained by kind.
template <std::size_t Nodes>
struct node_chains {
  std::uint32_t next_alike[Nodes + 1] = {};
  std::uint32_t next[Nodes + 1] = {};
  std::uint64_t bit[Nodes + 1] = {};
  node_chain chain[Nodes + 1] = {};
  std::uint32_t chains = 0;
  std::uint32_t first = no_node;
  std::uint32_t most_operands = 0;

  constexpr explicit node_chains(const graph_view& graph) {
    std::uint32_t before = no_node;
    for (std::uint32_t n = 0; n < Nodes; ++n) {
      next_alike[n] = next[n] = no_node;
      if (is_alias(graph, n) || is_control(graph, n)) continue;
      const node_record& node = graph.nodes[n];
      if (node.inputs > most_operands) most_operands = node.inputs;
      (before == no_node ? first : next[before]) = n;
      before = n;
      bit[n] = pattern_node::bit_of(*node.kind);
      std::uint32_t k = 0;
      while (k < chains && chain[k].kind != node.kind->id) ++k;
      if (k == chains) chain[chains++] = {bit[n], node.kind->id, n, n, 0};
      else next_alike[chain[k].last] = n;
      chain[k].last = n;
      ++chain[k].count;
    }
  }
  constexpr chains_view view() const { return {next_alike, next, bit, chain, chains, first, most_operands}; }
};

/// Visits the nodes that may be the root of a pattern, ascending.
template <class Chains>
class chain_walk {
 public:
  constexpr chain_walk(const Chains& chains, const auto& pattern)
      : chains_(chains), bits_(pattern.root().kind_bits), any_(chains.first) {
    for (std::uint32_t k = 0; k < chains.chains && count_ <= most; ++k)
      if ((bits_ & chains.chain[k].bit) != 0) {
        if (count_ < most) at_[count_] = chains.chain[k].first;
        ++count_;
      }
  }
  /// The next node; no_node at the end.
  constexpr std::uint32_t next() {
    if (count_ > most) {  // with this many kinds, most nodes fit
      while (any_ != no_node && (chains_.bit[any_] & bits_) == 0) any_ = chains_.next[any_];
      const std::uint32_t node = any_;
      if (node != no_node) any_ = chains_.next[node];
      return node;
    }
    std::uint32_t node = no_node, which = 0;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (at_[i] < node) {
        node = at_[i];
        which = i;
      }
    if (node != no_node) at_[which] = chains_.next_alike[node];
    return node;
  }

 private:
  static constexpr std::uint32_t most = 4;

  Chains chains_;
  std::uint64_t bits_;
  std::uint32_t any_;
  std::uint32_t at_[most] = {};
  std::uint32_t count_ = 0;
};

/// Matches as words: the root, the number of nodes, the number of arguments (or `refused_mark`), the nodes, the arguments.
inline constexpr std::uint32_t header_words = 3;
inline constexpr std::uint32_t refused_mark = 0xFFFFFFFF;

template <std::size_t Capacity>
struct match_words {
  std::uint32_t word[Capacity] = {};
  std::uint32_t used = 0;
  const char* rule[slice] = {};  ///< of refused matches, in order
};

/// The matches whose root is one of `slice` nodes, after the first `start` nodes.
template <std::size_t Capacity, class Graph, class Chains, class Pattern>
constexpr match_words<Capacity> find_matches(const Graph& graph, const Chains& chains, const Pattern& pattern,
                                             std::uint32_t start) {
  match_words<Capacity> found;
  std::uint32_t refused = 0;
  match_record record;
  chain_walk walk(chains, pattern.nodes);
  for (std::uint32_t i = 0; i < start; ++i) walk.next();
  for (std::uint32_t i = 0; i < slice; ++i) {
    const std::uint32_t node = walk.next();
    if (node == no_node) break;
    verdict why;
    const candidate_state state = candidate_at(graph, pattern, node, record, why);
    if (state == candidate_state::missed) continue;
    std::uint32_t* to = found.word + found.used;
    const std::uint32_t arguments = state == candidate_state::found ? record.arguments : 0;
    to[0] = node;
    to[1] = record.nodes;
    to[2] = state == candidate_state::found ? arguments : refused_mark;
    for (std::uint32_t n = 0; n < record.nodes; ++n) to[header_words + n] = record.node[n];
    for (std::uint32_t a = 0; a < arguments; ++a) to[header_words + record.nodes + a] = record.argument[a];
    found.used += header_words + record.nodes + arguments;
    if (state == candidate_state::refused) found.rule[refused++] = why.rule;
  }
  return found;
}

/// Room for the matches of one slice. It is a power of two, so that there are few types.
constexpr std::size_t capacity_for(const auto& chains, const auto& pattern, std::uint32_t start) {
  std::uint32_t nodes = 0;
  for (std::size_t i = 0; i < pattern.size; ++i) nodes += pattern[i].role == pattern_role::apply ? 1U : 0U;
  std::uint32_t arguments = nodes * chains.most_operands;
  if (arguments > match_record::max_arguments) arguments = match_record::max_arguments;
  std::uint32_t visits = chains.count(pattern) - start;
  if (visits > slice) visits = slice;
  std::size_t capacity = 16;
  while (capacity < std::size_t{visits} * (header_words + nodes + arguments)) capacity *= 2;
  return capacity;
}

template <class G>
inline constexpr std::size_t node_count = G::graph.view().nodes.size();
template <class G>
inline constexpr node_chains<node_count<G>> chains_of{G::graph.view()};
template <class G, class P>
inline constexpr std::uint32_t visits_of = chains_of<G>.view().count(nodes_of<P>);

template <class G, class B, class P, std::uint32_t Start>
inline constexpr auto matches_of =  // if not constant: B's `accepts` must be constexpr and depend only on the match
    find_matches<capacity_for(chains_of<G>.view(), nodes_of<P>, Start)>(G::graph.view(), chains_of<G>.view(),
                                                                        declare<B, P>(), Start);

/// One slice of one pattern's matches, of any capacity.
struct matches_view {
  const std::uint32_t* word = nullptr;
  std::uint32_t used = 0;
  const char* const* rule = nullptr;
};
/// All slices of one pattern; and all patterns of one backend.
struct pattern_matches {
  const matches_view* slice = nullptr;
  std::uint32_t slices = 0;
};
struct backend_matches {
  const pattern_matches* pattern = nullptr;
  std::uint32_t patterns = 0;
};

template <class G, class B, class P, std::size_t... Slice>
consteval listed<matches_view, sizeof...(Slice)> list_slices(const indices<Slice...>&) {
  return {{matches_view{matches_of<G, B, P, Slice * slice>.word, matches_of<G, B, P, Slice * slice>.used,
                        matches_of<G, B, P, Slice * slice>.rule}...,
           {}}};
}
template <class G, class B, class P>
inline constexpr std::uint32_t slices_of = (visits_of<G, P> + slice - 1) / slice;
template <class G, class B, class P>
inline constexpr auto slice_list = list_slices<G, B, P>(make_indices<slices_of<G, B, P>>{});

template <class G, class B, class... P>
consteval listed<pattern_matches, sizeof...(P)> list_patterns(const patterns<P...>&) {
  return {{pattern_matches{slice_list<G, B, P>.at, slices_of<G, B, P>}..., {}}};
}
/// By pattern, in the backend's order.
template <class G, class B>
inline constexpr auto pattern_list = list_patterns<G, B>(patterns_of<B>{});

/// Whether kinds of the same name are equal in a static graph and in the set's patterns.
template <class G, class... B>
struct kinds_check {
  static constexpr sentence why() { return tell_strangers<graph_view, B...>(G::graph.view()); }
};

/// By backend, in the set's order.
template <class G, class... B>
inline constexpr backend_matches matches_in[sizeof...(B) + 1] = {
    {pattern_list<G, B>.at, count_patterns(patterns_of<B>{})}..., {}};

/// Calls visit(backend, pattern, match as words, rule) for each match, by backend and pattern. The rule is null unless the
/// match was refused.
template <class Visit>
constexpr void for_each_match(const backend_matches* backends, std::size_t count, Visit visit) {
  for (std::uint32_t b = 0; b < count; ++b)
    for (std::uint32_t p = 0; p < backends[b].patterns; ++p) {
      const pattern_matches& all = backends[b].pattern[p];
      for (std::uint32_t s = 0; s < all.slices; ++s) {
        const matches_view& part = all.slice[s];
        std::uint32_t refused = 0;
        for (std::uint32_t at = 0; at < part.used;) {
          const std::uint32_t* match = part.word + at;
          const bool taken = match[2] != refused_mark;
          visit(b, p, match, taken ? nullptr : part.rule[refused]);
          refused += taken ? 0U : 1U;
          at += header_words + match[1] + (taken ? match[2] : 0);
        }
      }
    }
}

}  // namespace collage::inline v0::detail
