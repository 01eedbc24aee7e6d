// The backends of a set, one after the other, where their types are wanted at run time. Needs Boost.Hana.
#pragma once

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <collage/backend_set.hpp>
#include <collage/list_view.hpp>

namespace collage::inline v0 {

namespace detail {
template <class... B>
constexpr auto to_hana(const backend_list<B...>&) {
  return boost::hana::tuple_t<B...>;
}
}  // namespace detail

/// The backends of a set as a tuple of hana::type, for the algorithms of Boost.Hana.
template <backend_set_type Set>
inline constexpr auto backend_types = detail::to_hana(detail::backends_in<Set>{});

/// Calls a function with hana::type<B> for each backend B of a set, in its order:
/// `for_each_backend<backends>([](auto type) { using backend = typename decltype(type)::type; ... });`
template <backend_set_type Set, class Function>
constexpr void for_each_backend(Function&& function) {
  boost::hana::for_each(backend_types<Set>, static_cast<Function&&>(function));
}

}  // namespace collage::inline v0
