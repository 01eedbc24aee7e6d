// Backend sets: static composition of backends.
#pragma once

#include <collage/backend.hpp>
#include <collage/set/algebra.hpp>
#include <collage/set/check.hpp>
#include <collage/set/declared.hpp>
#include <cstddef>

namespace collage::inline v0 {

/// A set of backends, composed statically: `using backends = backend_set<eigen, onednn, my_library>;`. The order is the order
/// of preference where nothing was measured. A faulty list is a compile error of one sentence. A list is faulty if two
/// backends are the same, or if two backends or two operator kinds have the same name. It is also faulty if a backend does not
/// build a pattern that it declares.
///
///   backends::add<other>            at the end; an error if the set has it already
///   backends::remove<eigen>         an error if the set does not have it
///   backends::prefer<my_library>    moved to the front
///   backends::filter<has_probe>     the backends that have a property
///   set_union<a, b>, set_intersection<a, b>, set_difference<a, b>
template <class... B>
struct backend_set {
  static constexpr bool is_sound = detail::holds<detail::conclusion<detail::set_check<B...>>>;
  static_assert(detail::holds<detail::conclusion<detail::set_check<B...>>>);

  static constexpr std::size_t size = sizeof...(B);
  static constexpr const char* names[sizeof...(B) + 1] = {B::name..., nullptr};  ///< `size` names, then a null pointer

  template <class Backend>
  static constexpr bool contains = detail::is_in<Backend>(detail::backend_list<B...>{});
  /// The position of a backend; `size` if it is not in the set.
  template <class Backend>
  static constexpr std::size_t index_of = detail::index_in<Backend>(detail::backend_list<B...>{});

  template <class... Added>
  using add = typename detail::add_to<detail::backend_list<B...>, Added...>::type;
  template <class... Removed>
  using remove = typename detail::remove_from<detail::backend_list<B...>, Removed...>::type;
  template <class... Preferred>
  using prefer = typename detail::prefer_in<detail::backend_list<B...>, Preferred...>::type;
  template <class Property>
  using filter = typename detail::filter_of<detail::backend_list<B...>, Property>::type;
};

}  // namespace collage::inline v0
