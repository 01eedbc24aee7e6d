// Sets made from sets: backends added, removed, preferred, filtered; union, intersection, difference.
//
// Each operation says which of a list of backends stay, as an array of indices; they are picked at once.
#pragma once

#include <collage/detail/indices.hpp>
#include <collage/detail/sentence.hpp>
#include <collage/detail/type_name.hpp>
#include <collage/set/declared.hpp>
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace collage::inline v0 {

template <class... B>
struct backend_set;

namespace detail {

template <class... B>
struct backend_list {};
/// The backends of a set, or of a type derived from one.
template <class... B>
backend_list<B...> list_backends(const backend_set<B...>*);
template <class Set>
using backends_in = decltype(list_backends(static_cast<const Set*>(nullptr)));

template <class B, class... In>
constexpr bool is_in(const backend_list<In...>&) {
  return (std::is_same_v<B, In> || ...);
}

template <class B, class... In>
constexpr std::size_t index_in(const backend_list<In...>&) {
  const bool same[] = {std::is_same_v<B, In>..., false};
  std::size_t i = 0;
  while (i < sizeof...(In) && !same[i]) ++i;
  return i;
}

/// Indices of those that stay.
template <std::size_t N>
struct kept {
  std::size_t index[N + 1] = {};
  std::size_t count = 0;
  constexpr void add(std::size_t i) { index[count++] = i; }
};

// Which of B... stay, by operation. Lists end with one entry more, so that they may be empty.
template <class... B>
struct without_repeats {
  static constexpr kept<sizeof...(B)> which = [] {
    const std::size_t first[] = {index_in<B>(backend_list<B...>{})..., 0};
    kept<sizeof...(B)> k;
    for (std::size_t i = 0; i < sizeof...(B); ++i)
      if (first[i] == i) k.add(i);
    return k;
  }();
};
template <bool IsIn, class List, class... B>
struct compared_with {
  static constexpr kept<sizeof...(B)> which = [] {
    const bool in[] = {is_in<B>(List{})..., false};
    kept<sizeof...(B)> k;
    for (std::size_t i = 0; i < sizeof...(B); ++i)
      if (in[i] == IsIn) k.add(i);
    return k;
  }();
};
template <class Property, class... B>
struct with_property {
  static constexpr kept<sizeof...(B)> which = [] {
    const bool holds[] = {Property::template holds<B>..., false};
    kept<sizeof...(B)> k;
    for (std::size_t i = 0; i < sizeof...(B); ++i)
      if (holds[i]) k.add(i);
    return k;
  }();
};

template <std::size_t Index, class B>
struct indexed {
  using type = B;
};
template <class Indices, class... B>
struct indexed_list;
template <std::size_t... Index, class... B>
struct indexed_list<indices<Index...>, B...> : indexed<Index, B>... {};
template <std::size_t Index, class B>
indexed<Index, B> at(const indexed<Index, B>*);

template <class Which, class All, std::size_t... I>
backend_set<typename decltype(at<Which::which.index[I]>(static_cast<const All*>(nullptr)))::type...> pick(
    indices<I...>);
template <class Which, class... B>
using picked =
    decltype(pick<Which, indexed_list<make_indices<sizeof...(B)>, B...>>(make_indices<Which::which.count>{}));

template <class... B>
using unique = picked<without_repeats<B...>, B...>;

/// As errors name a backend, and what need not be one.
template <class B>
constexpr sentence name_in_errors() {
  if constexpr (requires { B::name_text; }) return sentence{} << B::name;
  else return type_name<B>();
}
template <class... B>
constexpr void list_names(sentence& out, const backend_list<B...>&) {
  bool first = true;
  ((out << (first ? "" : ", ") << name_in_errors<B>().text, first = false), ...);
}

/// Each of Named must be in List, or none may be.
template <class List, class... Named>
struct check_absent {
  static constexpr sentence why() {
    sentence out;
    const bool in[] = {is_in<Named>(List{})..., false};
    const sentence names[] = {name_in_errors<Named>()..., {}};
    const std::size_t first[] = {index_in<Named>(backend_list<Named...>{})..., 0};
    for (std::size_t i = 0; i < sizeof...(Named); ++i)
      if (first[i] != i && out.empty())
        out << "add: the backend (" << names[i].text << ") is named twice; name it once";
    for (std::size_t i = 0; i < sizeof...(Named); ++i)
      if (in[i] && out.empty())
        out << "add: the set already has the backend (" << names[i].text << "); remove it from the list to add";
    return out;
  }
};
template <fixed_string Operation, class List, class... Named>
struct check_present {
  static constexpr sentence why() {
    sentence out;
    const bool in[] = {is_in<Named>(List{})..., false};
    const sentence names[] = {name_in_errors<Named>()..., {}};
    for (std::size_t i = 0; i < sizeof...(Named); ++i) {
      if (in[i] || !out.empty()) continue;
      out << Operation.text << ": the set has no backend (" << names[i].text << ")";
      if constexpr (std::is_same_v<List, backend_list<>>) out << ", it is empty; add some first";
      else {
        out << ", it has ";
        list_names(out, List{});
        out << "; name one of those";
      }
    }
    return out;
  }
};

template <class Property, class B>
concept says_of = requires {
  { Property::template holds<B> } -> std::same_as<const bool&>;
};

template <class List, class... A>
struct add_to;
template <class... B, class... A>
struct add_to<backend_list<B...>, A...> {
  static_assert(holds<conclusion<check_absent<backend_list<B...>, A...>>>);
  using type = unique<B..., A...>;
};
template <class List, class... R>
struct remove_from;
template <class... B, class... R>
struct remove_from<backend_list<B...>, R...> {
  static_assert(holds<conclusion<check_present<"remove", backend_list<B...>, R...>>>);
  using type = picked<compared_with<false, backend_list<R...>, B...>, B...>;
};
template <class List, class... F>
struct prefer_in;
template <class... B, class... F>
struct prefer_in<backend_list<B...>, F...> {
  static_assert(holds<conclusion<check_present<"prefer", backend_list<B...>, F...>>>);
  using type = unique<F..., B...>;
};
template <class List, class Property>
struct filter_of;
template <class... B, class Property>
struct filter_of<backend_list<B...>, Property> {
  static constexpr bool is_property = (says_of<Property, B> && ...);
  static_assert(is_property,
                "filter takes a property, a struct with a value for each backend of the set: "
                "template <class B> static constexpr bool holds = ...;");
  using which = std::conditional_t<is_property, with_property<Property, B...>, without_repeats<B...>>;
  using type = picked<which, B...>;
};

template <class... A, class... B>
backend_list<A..., B...> operator+(const backend_list<A...>&, const backend_list<B...>&);
template <class List>
struct unique_in;
template <class... B>
struct unique_in<backend_list<B...>> {
  using type = unique<B...>;
};

template <bool IsIn, class List, class Other>
struct compare_lists;
template <bool IsIn, class... B, class Other>
struct compare_lists<IsIn, backend_list<B...>, Other> {
  using type = picked<compared_with<IsIn, Other, B...>, B...>;
};

}  // namespace detail

/// A type that is a backend_set, or derived from one.
template <class S> concept backend_set_type = requires { typename detail::backends_in<S>; };

/// All backends of the sets, each once, in the order in which they first stand.
template <backend_set_type... Sets>
using set_union =
    typename detail::unique_in<decltype((detail::backend_list<>{} + ... + detail::backends_in<Sets>{}))>::type;

/// The backends of the first set that the second has too, in the first one's order.
template <backend_set_type A, backend_set_type B>
using set_intersection = typename detail::compare_lists<true, detail::backends_in<A>, detail::backends_in<B>>::type;

/// The backends of the first set that the second has not.
template <backend_set_type A, backend_set_type B>
using set_difference = typename detail::compare_lists<false, detail::backends_in<A>, detail::backends_in<B>>::type;

// Properties to filter by. One of your own is a struct like these.

/// Looks for its library on the machine, and so may be missing there.
struct has_probe {
  template <class B>
  static constexpr bool holds = requires { B::probe(); };
};

/// Declares a pattern with this operator: `backends::filter<declares<op::conv>>`.
template <auto Kind>
struct declares {
  template <class B>
  static constexpr bool holds = detail::declares_kind(declaration_of<B>, detail::hash(decltype(Kind)::name));
};

/// Has not what a property says: `backends::filter<lacks<has_probe>>`.
template <class Property>
struct lacks {
  template <class B>
  static constexpr bool holds = !Property::template holds<B>;
};

}  // namespace collage::inline v0
