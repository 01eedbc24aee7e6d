// The members by which a backend says how many ways there are to build a kernel: `choices` or `configurations`, `knows`, `search_space`,
// `layouts`.
#pragma once

#include <collage/backend.hpp>
#include <collage/detail/named_member.hpp>
#include <collage/fwd.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::detail {

/// The state of one member function of a backend.
enum class member : std::uint8_t { fine, missing, other_arguments, not_static, other_result, not_constant };

/// A result of a member that judges.
template <class T>
concept judgement = std::is_same_v<std::remove_cvref_t<T>, verdict> || std::is_same_v<std::remove_cvref_t<T>, bool>;

template <class B, class Match> concept has_choices = requires(Match m) { B::choices(m); };
template <class B, class Match>
concept has_configurations = requires(Match m, configuration_list& to) { B::configurations(m, to); };
template <class B, class Match> concept has_knows = requires(Match m, const configuration& how) { B::knows(m, how); };

/// A backend whose space of configurations can be searched as a whole.
template <class B, class Match>
concept has_search_space = requires(Match m, const configuration& like) { B::search_space(m, like, 1); };
/// A pointer that owns such a space. <memory>, which would name it, is too heavy for includers.
template <class T>
concept owner_of_space = requires(const T& owner) {
  { owner.get() } -> std::convertible_to<const tune::any_space*>;
  requires !std::is_pointer_v<T> && !std::is_reference_v<T>;
};

/// A backend whose kernels do not all compute by the operator's definition.
template <class B, class Match> concept has_algorithm =
    requires(Match m, const configuration& how) { B::algorithm(m, how); };

/// A backend whose kernels keep constants in another form.
template <class B, class Match> concept has_weights =
    requires(Match m, const configuration& how) { B::weights(m, how); };

template <class B, class Match, class Which, class To>
concept has_layouts_of = requires(Match m, Which which, To to) { B::layouts(m, which, to); };
/// `layouts` gets the number of a variant, or the configuration if the backend proposes configurations for the pattern.
template <class B, class Match>
using which_layouts = std::conditional_t<has_configurations<B, Match>, const configuration&, std::size_t>;
template <class B, class Match> concept has_layouts = has_layouts_of<B, Match, which_layouts<B, Match>, value_forms&>;

template <class B, class P>
consteval member check_choices() {
  using m = const match<P>&;
  if constexpr (has_choices<B, m>) {
    constexpr bool counts =
        requires(m x) { requires std::is_same_v<std::remove_cvref_t<decltype(B::choices(x))>, std::size_t>; };
    return counts ? member::fine : member::other_result;
  } else if constexpr (requires(B& b, m x) { b.choices(x); }) {
    return member::not_static;
  } else if constexpr (has_choices<B, match<P>&> || requires(m x, build_context& c) { B::choices(x, c); }) {
    return member::other_arguments;
  } else {
    return member::missing;
  }
}

template <class B, class P>
consteval member check_configurations() {
  using m = const match<P>&;
  if constexpr (has_configurations<B, m>) {
    constexpr bool returns_nothing =
        requires(m x, configuration_list& to) { requires std::is_void_v<decltype(B::configurations(x, to))>; };
    return returns_nothing ? member::fine : member::other_result;
  } else if constexpr (requires(B& b, m x, configuration_list& to) { b.configurations(x, to); }) {
    return member::not_static;
  } else if constexpr (has_configurations<B, match<P>&> ||
                       requires(m x) { typename std::void_t<decltype(B::configurations(x))>; }) {
    return member::other_arguments;
  } else {
    return member::missing;
  }
}

template <class B, class P>
consteval member check_knows() {
  using m = const match<P>&;
  if constexpr (has_knows<B, m>) {
    constexpr bool judges = requires(m x, const configuration& how) { requires judgement<decltype(B::knows(x, how))>; };
    return judges ? member::fine : member::other_result;
  } else if constexpr (requires(B& b, m x, const configuration& how) { b.knows(x, how); }) {
    return member::not_static;
  } else if constexpr (
      has_knows<B, match<P>&> || requires(m x, configuration& how) { B::knows(x, how); } ||
      requires(m x) { B::knows(x); } || requires(m x) { B::knows(x, std::size_t{}); }) {
    return member::other_arguments;
  } else {
    return member::missing;
  }
}

template <class B, class P>
consteval member check_search_space() {
  using m = const match<P>&;
  if constexpr (has_search_space<B, m>) {
    constexpr bool owns =
        requires(m x, const configuration& like) { requires owner_of_space<decltype(B::search_space(x, like, 1))>; };
    return owns ? member::fine : member::other_result;
  } else if constexpr (requires(B& b, m x, const configuration& like) { b.search_space(x, like, 1); }) {
    return member::not_static;
  } else if constexpr (
      has_search_space<B, match<P>&> || requires(m x, configuration& like) { B::search_space(x, like, 1); } ||
      requires(m x, const configuration& like) { B::search_space(x, like); } || requires(m x) { B::search_space(x); } ||
      requires(m x) { B::search_space(x, std::size_t{}, 1); }) {
    return member::other_arguments;
  } else {
    return member::missing;
  }
}

template <class B, class P>
consteval member check_layouts() {
  using m = const match<P>&;
  using which = which_layouts<B, m>;
  using other = std::conditional_t<has_configurations<B, m>, std::size_t, const configuration&>;
  if constexpr (has_layouts<B, m>) {
    constexpr bool returns_nothing =
        requires(m x, which w, value_forms& to) { requires std::is_void_v<decltype(B::layouts(x, w, to))>; };
    return returns_nothing ? member::fine : member::other_result;
  } else if constexpr (requires(B& b, m x, which w, value_forms& to) { b.layouts(x, w, to); }) {
    return member::not_static;
  } else if constexpr (
      has_layouts_of<B, match<P>&, which, value_forms&> || has_layouts_of<B, m, other, value_forms&> ||
      requires(m x, value_forms& to) { B::layouts(x, to); } || requires(m x, which w) { B::layouts(x, w); } ||
      requires(m x) { B::layouts(x); }) {
    return member::other_arguments;
  } else {
    return member::missing;
  }
}

struct named_choices {
  int choices;
};
struct named_configurations {
  int configurations;
};
struct named_knows {
  int knows;
};
struct named_search_space {
  int search_space;
};
struct named_layouts {
  int layouts;
};
template <class B>
consteval bool names_choices() {
  if constexpr (std::is_final_v<B>) return requires { &B::choices; };
  else return !requires { &beside<B, named_choices>::choices; };
}
template <class B>
consteval bool names_configurations() {
  if constexpr (std::is_final_v<B>) return requires { &B::configurations; };
  else return !requires { &beside<B, named_configurations>::configurations; };
}
template <class B>
consteval bool names_knows() {
  if constexpr (std::is_final_v<B>) return requires { &B::knows; };
  else return !requires { &beside<B, named_knows>::knows; };
}
template <class B>
consteval bool names_search_space() {
  if constexpr (std::is_final_v<B>) return requires { &B::search_space; };
  else return !requires { &beside<B, named_search_space>::search_space; };
}
template <class B>
consteval bool names_layouts() {
  if constexpr (std::is_final_v<B>) return requires { &B::layouts; };
  else return !requires { &beside<B, named_layouts>::layouts; };
}

}  // namespace collage::inline v0::detail
