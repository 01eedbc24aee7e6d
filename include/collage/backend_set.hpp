// Backend sets: static composition of backends.
#pragma once

#include <collage/backend.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace collage::inline v0 {

namespace detail {

/// True when no two names are equal. Names, not types: the name is what plans and costs are keyed by.
constexpr bool distinct(std::span<const std::uint64_t> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = i + 1; j < ids.size(); ++j)
      if (ids[i] == ids[j]) return false;
  return true;
}

/// Asked of the type alone: a set can be composed, and covered, where kernels are only declared.
template <class B, class P>
concept builds = requires(const match<P>& m, build_context& context) {
  requires std::is_same_v<decltype(B::build(m, context)), kernel>;
};

template <class B, class P>
constexpr void check_pattern() {
  static_assert(check_expression<P>());
  static_assert(
      builds<B, P>,
      "a backend must build every pattern it declares: static kernel build(const match<pattern>&, build_context&)");
}
template <class B, class... P>
constexpr bool check_backend(const patterns<P...>&) {
  (check_pattern<B, P>(), ...);
  constexpr std::uint64_t ids[] = {hash(P::name)..., 0};
  static_assert(distinct(ids), "a backend declares the same pattern twice");
  return true;
}

}  // namespace detail

/// A set of backends, composed statically: `using backends = backend_set<eigen, onednn, my_library>;`. The order is
/// that of preference where nothing was measured.
template <class... B>
struct backend_set {
  static_assert((backend_type<B> && ...),
                "a backend_set holds backends: types derived from collage::backend<\"name\"> with a list of patterns");
  static constexpr std::size_t size = sizeof...(B);

  static constexpr std::uint64_t ids[] = {detail::hash(B::name)..., 0};
  static_assert(detail::distinct(ids), "a backend_set names the same backend twice");
  static_assert((detail::check_backend<B>(typename B::patterns{}) && ...));
};

}  // namespace collage::inline v0
