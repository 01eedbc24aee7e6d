// What a backend is: a type that names its patterns, says which matches it takes, and builds their kernels.
#pragma once

#include <collage/fwd.hpp>
#include <collage/pattern/pattern.hpp>
#include <concepts>
#include <cstddef>

namespace collage::inline v0 {

/// What `probe` found on this machine. The texts belong to the backend and live as long as the program.
struct probe_result {
  bool available = true;
  const char* version = "";  ///< of the library that is loaded now, not of its headers
  const char* details = "";  ///< what it was compiled for, which kernels it chose for this processor
  const char* reason = "";   ///< where it is not available: one sentence with the remedy
};

/// The base of a backend type. A backend has
///
///   using patterns = collage::patterns<...>;                  // what it can run
///   static constexpr verdict accepts(const match<P>& m);      // optional, per pattern: a bool or a verdict
///   static kernel build(const match<P>& m, build_context&);   // per pattern
///
/// and may have
///
///   static probe_result probe();                // is the library here, which version; without it: always available
///   static std::size_t choices(const match<P>&);// how many ways there are to build it; build_context::choice() says which
///   static void layouts(const match<P>&, std::size_t choice, value_forms&);  // which values a choice reads or writes in
///                                               // other layouts than the plain one; without it: none
///   static int enter(int threads);              // before its kernels run on a thread: sets the library's thread count
///   static void leave(int token);               // afterwards, with what `enter` answered
///   static constexpr const memory_space* space = &cuda_space;  // where its kernels read and write; without it: the host
///
/// A kernel of a backend with another memory space is called with pointers of that space, workspace included; constants that
/// it reads are there as well. What its library does later than it is asked for, it does in the order in which the calling
/// thread asks. What crosses from one space to another is a conversion: the backend's pattern single<ops::convert_layout>, of
/// which `layouts` says all, spaces included (form).
///
/// `accepts` depends on the match alone; what the library, its version or the processor refuses, `probe` and `build`
/// say.
///
/// Beside its patterns, or in place of them, it may have a rule (collage/fuse/), which lists groups of any form:
///
///   static constexpr auto rule = fuse::grown{...};                    // or another of docs/fusion.md
///   static bool takes(const graph& network, std::uint32_t node);      // optional: which operators the rule is asked about
///   static kernel build(const node_group& group, build_context&);
///
/// A backend whose library compiles whole networks works on the level of graphs. In place of a rule it says
///
///   static constexpr bool takes_regions = true;
///
/// and has `takes` and `build` as above. Which regions it is asked to build, placing finds out: any set of nodes that it
/// takes, views between them included, of which none depends on itself through a node outside.
template <fixed_string Name>
struct backend {
  static constexpr auto name_text = Name;
  static constexpr const char* name = name_text.text;
};

namespace detail {

template <class P>
inline constexpr bool is_patterns = false;
template <class... P>
inline constexpr bool is_patterns<patterns<P...>> = true;

template <class B> concept has_patterns = requires { typename B::patterns; };
template <class B> concept has_rule = requires { B::rule; };
template <class B> concept has_regions = requires { requires B::takes_regions; };
template <class B>
concept has_space = requires {
  { B::space } -> std::convertible_to<const memory_space*>;
};
template <class B>
struct patterns_listed_by {
  using type = patterns<>;
};
template <has_patterns B>
struct patterns_listed_by<B> {
  using type = typename B::patterns;
};

/// Declared for `requires` alone.
template <fixed_string Name>
void as_backend(const backend<Name>*);
template <class B> concept derives_from_backend = requires(const B* b) { as_backend(b); };

}  // namespace detail

/// What a backend finds on this machine; one without a probe is always available.
template <class B>
probe_result probe_of() {
  if constexpr (requires { B::probe(); }) return B::probe();
  else return {};
}

/// What plans say in place of a pattern's name where a rule found the group, or the group is a region.
inline constexpr const char* by_rule = "by rule";

/// The patterns of a backend; of one that has a rule alone or takes regions, none.
template <class B>
using patterns_of = typename detail::patterns_listed_by<B>::type;

/// A type that is a backend. Whether it builds each of its patterns is checked where sets are composed.
template <class B>
concept backend_type = detail::derives_from_backend<B> && requires {
  { B::name } -> std::convertible_to<const char*>;
  requires detail::is_patterns<patterns_of<B>> &&
               (detail::has_patterns<B> || detail::has_rule<B> || detail::has_regions<B>);
};

}  // namespace collage::inline v0
