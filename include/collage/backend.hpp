// Backends: types that declare patterns, accept or refuse matches, and build kernels.
#pragma once

#include <collage/fwd.hpp>
#include <collage/pattern/pattern.hpp>
#include <concepts>
#include <cstddef>

namespace collage::inline v0 {

/// The result of `probe`. The texts belong to the backend and live as long as the program.
struct probe_result {
  bool available = true;
  const char* version = "";  ///< of the library that is loaded now, not of its headers
  const char* details = "";  ///< the instruction sets it was compiled for, the kernels it chose for this processor
  const char* reason = "";   ///< if it is not available: one sentence with the remedy
};

/// The base of a backend type. A backend has
///
///   using patterns = collage::patterns<...>;                  // the patterns that it can run
///   static constexpr verdict accepts(const match<P>& m);      // optional, per pattern: a bool or a verdict
///   static kernel build(const match<P>& m, build_context&);   // per pattern
///
/// and may have
///
///   static probe_result probe();                // is the library here, which version; without it: always available
///   static std::size_t choices(const match<P>&);// the number of variants; build_context::choice() is the one to build
///   static void layouts(const match<P>&, std::size_t choice, value_forms&);  // the values that a variant reads or writes in
///                                               // other layouts than the plain one; without it: none
///
/// A backend that generates kernels has a space of configurations in place of numbered variants (run/configuration.hpp):
///
///   static void configurations(const match<P>&, configuration_list& to);  // proposes texts: to.add("tiles 7x2 unroll 4")
///   static verdict knows(const match<P>&, const configuration&);          // whether it can build one; without it: those
///                                                                         // that it proposes
///   static std::shared_ptr<const tune::any_space> search_space(const match<P>&, const configuration& like, int threads);
///                                               // the whole space of configurations that read and write values in the
///                                               // same forms (layouts and elements) as `like`, which the backend has;
///                                               // null if there is none to search (tune/any_space.hpp)
///   static void layouts(const match<P>&, const configuration&, value_forms&);
///   static kernel_algorithm algorithm(const match<P>&, const configuration&);  // for kernels that do not compute by the
///                                                         // operator's definition (run/algorithm.hpp); without it: all do
///
/// `build_context::configuration()` is the one to build. Any backend may also have
///
///   static kept_constants weights(const match<P>&, const configuration&);  // the constants that its kernel packs, and the
///                                               // bytes of the packed forms (run/weights.hpp); without it: none
///   static int enter(int threads);              // before its kernels run on a thread: sets the library's thread count
///   static void leave(int token);               // after its kernels ran, with the result of `enter`
///   static constexpr const memory_space* space = &cuda_space;  // where its kernels read and write; without it: the host
///
/// If a backend has a memory space of its own, its kernels are called with pointers into that space: values, constants and
/// workspaces. A library that works asynchronously must do its work in the order in which the calling thread requests it.
/// Conversions move values from one space to another. They are kernels of the pattern single<ops::convert_layout>; for these
/// `layouts` gives the whole forms, spaces included.
///
/// `accepts` depends only on the match. Refusals that depend on the library, its version or the processor belong in `probe`
/// and `build`.
///
/// Beside its patterns, or in place of them, a backend may have a fusion rule (collage/fuse/), which lists groups of any shape:
///
///   static constexpr auto rule = fuse::grown{...};                    // or another of docs/fusion.md
///   static verdict takes(const graph& network, std::uint32_t node);   // optional: the operators that the rule may use, as
///                                                                     // a bool or a verdict
///   static kernel build(const node_group& group, build_context&);
///
/// A backend whose library compiles whole networks works on the level of graphs. In place of a rule it has
///
///   static constexpr bool takes_regions = true;
///
/// with `takes` and `build` as above, and may have
///
///   static verdict joins(const graph& network, std::uint32_t node);   // whether a region may hold it with nodes that it reads
///
/// which is for faults of the library: it computes the node rightly in a region that begins there. If regions compute in a smaller
/// element type than the network's, it has
///
///   static constexpr dtype rounds_to = dtype::bf16;   // plans in lower precision alone have its regions
///   static std::vector<rounded_value> rounds(const graph&, const node_group&, const value_scales*);  // what a region rounds
///   using variant_of = other_backend;                 // optional: it is allowed where the other one is named
///
/// The scales may be null, and values without one are not rounded to integers. `build` finds them in build_context::scales.
///
/// Placing decides which regions it builds. A region is any set of nodes that the backend takes, with the views between them. No
/// node of a region depends on the region through a node outside.
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
concept has_rounding_regions = has_regions<B> && requires {
  { B::rounds_to } -> std::convertible_to<dtype>;
};
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

/// Only declared, for `requires`.
template <fixed_string Name>
void as_backend(const backend<Name>*);
template <class B> concept derives_from_backend = requires(const B* b) { as_backend(b); };

}  // namespace detail

/// Probes a backend. A backend without `probe` is always available.
template <class B>
probe_result probe_of() {
  if constexpr (requires { B::probe(); }) return B::probe();
  else return {};
}

/// Stands in plans in place of a pattern's name, for groups that a fusion rule listed and for regions.
inline constexpr const char* by_rule = "by rule";

/// The patterns of a backend; none if it only has a fusion rule or takes regions.
template <class B>
using patterns_of = typename detail::patterns_listed_by<B>::type;

/// A backend type. Whether it can build each of its patterns is checked when a set is composed.
template <class B>
concept backend_type = detail::derives_from_backend<B> && requires {
  { B::name } -> std::convertible_to<const char*>;
  requires detail::is_patterns<patterns_of<B>> &&
               (detail::has_patterns<B> || detail::has_rule<B> || detail::has_regions<B>);
};

}  // namespace collage::inline v0
