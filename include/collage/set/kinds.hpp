// The operator kinds that a set's patterns name.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/set/declared.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// Kinds, each once, in the order in which they are first named.
template <std::size_t Capacity>
struct named_kinds {
  const kind_info* kind[Capacity] = {};
  std::uint16_t by_id[Capacity] = {};  ///< indices of `kind`, ascending by id
  std::uint32_t count = 0;
  bool any_operator = false;  ///< some pattern takes operators of whichever kind
  bool has_twin = false;
  const kind_info* twin = nullptr;  ///< another kind with the id of `twin_of`, where there is one
  const kind_info* twin_of = nullptr;

  /// Where in `by_id` a kind stands, or would stand.
  constexpr std::uint32_t place_of(std::uint64_t id) const {
    std::uint32_t low = 0, high = count;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (kind[by_id[middle]]->id < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  /// Which of the kinds has this id; `count` if none.
  constexpr std::uint32_t find(std::uint64_t id) const {
    const std::uint32_t at = place_of(id);
    return at < count && kind[by_id[at]]->id == id ? by_id[at] : count;
  }
  constexpr void add(const kind_info* k) {
    const std::uint32_t at = place_of(k->id);
    if (at < count && kind[by_id[at]]->id == k->id) {
      // One kind has one shape rule; its description may exist twice, for the type and for the constant.
      const kind_info* known = kind[by_id[at]];
      if (!has_twin && !is_same_kind(*known, *k)) has_twin = true, twin = k, twin_of = known;
      return;
    }
    for (std::uint32_t i = count; i > at; --i) by_id[i] = by_id[i - 1];
    by_id[at] = static_cast<std::uint16_t>(count);
    kind[count++] = k;
  }
};

template <class Backend>
constexpr std::size_t count_mentions(const Backend* backends, std::size_t count) {
  std::size_t mentions = 1;
  for (std::size_t b = 0; b < count; ++b)
    for (std::uint32_t p = 0; p < backends[b].patterns.size(); ++p)
      for (std::size_t n = 0; n < backends[b].patterns[p].nodes.size; ++n)
        mentions += backends[b].patterns[p].nodes[n].kinds;
  return mentions;
}
template <std::size_t Capacity, class Backend>
constexpr named_kinds<Capacity> list_kinds(const Backend* backends, std::size_t count) {
  named_kinds<Capacity> list;
  for (std::size_t b = 0; b < count; ++b)
    for (std::uint32_t p = 0; p < backends[b].patterns.size(); ++p)
      for (std::size_t n = 0; n < backends[b].patterns[p].nodes.size; ++n) {
        const auto& node = backends[b].patterns[p].nodes[n];
        for (std::size_t i = 0; i < node.kinds; ++i) list.add(node.kind[i]);
        list.any_operator = list.any_operator || (node.role == pattern_role::apply && node.kinds == 0);
      }
  return list;
}

/// The backends of a set as records, and the kinds that their patterns name.
template <class... B>
inline constexpr declared_backend backends_of[sizeof...(B) + 1] = {declaration_of<B>..., {}};
template <class... B>
inline constexpr auto kinds_named_by =
    list_kinds<count_mentions(backends_of<B...>, sizeof...(B))>(backends_of<B...>, sizeof...(B));

/// The first pattern that names a kind, as "pattern (p) of backend (b)".
template <class Text>
constexpr void tell_mention(Text& out, const declared_backend* backends, std::size_t count, const kind_info* kind) {
  for (std::size_t b = 0; b < count; ++b)
    for (std::uint32_t p = 0; p < backends[b].patterns.size(); ++p) {
      const declared_pattern& pattern = backends[b].patterns[p];
      for (std::size_t n = 0; n < pattern.nodes.size; ++n)
        for (std::size_t i = 0; i < pattern.nodes[n].kinds; ++i)
          if (pattern.nodes[n].kind[i] == kind) {
            out << "pattern (" << pattern.name << ") of backend (" << backends[b].name << ")";
            return;
          }
    }
}
/// Why the kinds of a graph and those that the patterns name do not go together; empty if they do.
template <class Graph, class... B>
constexpr sentence tell_strangers(const Graph& graph) {
  constexpr const auto& kinds = kinds_named_by<B...>;
  sentence out;
  for (std::size_t n = 0; n < graph.nodes.size() && out.empty(); ++n) {
    const kind_info* kind = graph.nodes[n].kind;
    const std::uint32_t at = kinds.find(kind->id);
    if (at == kinds.count || is_same_kind(*kinds.kind[at], *kind)) continue;
    out << "the graph has another operator kind called (" << kind->name << ") than ";
    tell_mention(out, backends_of<B...>, sizeof...(B), kinds.kind[at]);
    out << ", and kinds are identified by name; rename one of them";
  }
  return out;
}

/// Two kinds of one id would be taken for each other in graphs.
template <class... B, class Text>
constexpr void tell_twins(Text& out) {
  constexpr const auto& kinds = kinds_named_by<B...>;
  out << "two operator kinds are both called (" << kinds.twin_of->name << "), that of ";
  tell_mention(out, backends_of<B...>, sizeof...(B), kinds.twin_of);
  out << " and that of ";
  tell_mention(out, backends_of<B...>, sizeof...(B), kinds.twin);
  out << ", and kinds are identified by name; rename one of them";
}

}  // namespace collage::inline v0::detail
