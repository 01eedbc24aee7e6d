// The declarations of a backend, lowered to plain records: from here on, patterns and backends are values, both for the
// compiler and at run time.
#pragma once

#include <collage/backend.hpp>
#include <collage/list_view.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// One pattern of one backend: its nodes, and the backend's verdict on a match. Usable in constant evaluation.
struct declared_pattern {
  const char* name = "";
  bool last_resort = false;  ///< a fallback kernel: only for nodes that nothing else in the set can run
  pattern_view nodes;
  verdict (*accepts)(const graph_view&, const match_record&) = nullptr;
};

namespace detail {

/// The verdict of a backend without `accepts`.
constexpr verdict accepts_anything(const graph_view&, const match_record&) { return {}; }
template <class B, class P>
constexpr verdict accepts_at(const graph_view& graph, const match_record& record) {
  return B::accepts(match<P>(graph, record));
}

template <class B, class P>
constexpr declared_pattern declare() {
  declared_pattern d;
  d.name = P::name;
  d.nodes = nodes_of<P>;
  if constexpr (requires { P::last_resort; }) d.last_resort = P::last_resort;
  if constexpr (requires(const match<P>& m) { B::accepts(m); }) d.accepts = accepts_at<B, P>;
  else d.accepts = accepts_anything;
  return d;
}

template <class T, std::size_t N>
struct listed {
  T at[N + 1];  // one more, because C++ has no arrays of length 0
};
template <class B, class... P>
consteval listed<declared_pattern, sizeof...(P)> declare_all(const patterns<P...>&) {
  return {{declare<B, P>()..., {}}};
}
template <class B>
inline constexpr auto declared_by = declare_all<B>(patterns_of<B>{});

template <class... P>
constexpr std::uint32_t count_patterns(const patterns<P...>&) {
  return sizeof...(P);
}

}  // namespace detail

/// One backend with its patterns, in the backend's order.
struct declared_backend {
  const char* name = "";
  list_view<const declared_pattern> patterns;
};

/// The declarations of a backend.
template <class B>
inline constexpr declared_backend declaration_of{B::name,
                                                 {detail::declared_by<B>.at, detail::count_patterns(patterns_of<B>{})}};

namespace detail {

/// Whether an operator of a pattern names the kind of this id.
constexpr bool names_kind(const auto& node, std::uint64_t kind) {
  for (std::size_t i = 0; i < node.kinds; ++i)
    if (node.kind[i]->id == kind) return true;
  return false;
}
/// Whether an operator of a pattern may be of this kind: it names the kind, or takes any.
constexpr bool takes_kind(const auto& node, std::uint64_t kind) {
  return node.role == pattern_role::apply && (node.kinds == 0 || names_kind(node, kind));
}
/// Whether some pattern names the kind of this id.
constexpr bool declares_kind(const declared_backend& backend, std::uint64_t kind) {
  for (std::size_t p = 0; p < backend.patterns.size(); ++p) {
    const pattern_view nodes = backend.patterns[p].nodes;
    for (std::size_t n = 0; n < nodes.size; ++n)
      if (names_kind(nodes[n], kind)) return true;
  }
  return false;
}

}  // namespace detail
}  // namespace collage::inline v0
