// Graphs defined at compile time: counted, written, checked and inferred by the compiler, kept in flat arrays.
//
//   struct lenet {
//     static constexpr auto graph = collage::define([](auto& g) {
//       auto x = g.input("x", {1, 1, 28, 28});
//       auto w = g.constant("w", {6, 1, 5, 5});             // its contents are bound at run time
//       g.output(g(collage::ops::relu, g(collage::ops::conv, x, w, {.groups = 1})));
//     });
//   };
//   static_assert(lenet::graph.view().node_count() == 2);
//
// The rest of the library takes `lenet`, the empty tag type. The function is called twice: first to count, then to write. The
// steps are counting, writing, checking, inferring and finishing. Each is a constant evaluation of its own, so that networks of
// 2,000 nodes stay within the default limits of compilers.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/graph/build.hpp>
#include <collage/graph/detail/static_check.hpp>
#include <collage/graph/detail/static_lists.hpp>
#include <collage/graph/view.hpp>
#include <collage/list_view.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0 {

namespace detail {

/// The base of all static graphs, which identifies them.
struct defined {};

}  // namespace detail

/// A static graph. `define` makes it, and an empty tag type holds it as its static member `graph`.
template <detail::graph_sizes Sizes, std::uint32_t Words>
class defined_graph : public detail::defined {
 public:
  /// The flat records that all algorithms read. They are views of this object.
  constexpr graph_view view() const {
    return {{lists_.nodes, Sizes.nodes},
            {lists_.values, Sizes.values},
            {lists_.operands, Sizes.operands},
            {uses_, Sizes.operands},
            {words_, Words}};
  }
  /// Values that the user passes in and reads, in order of declaration.
  constexpr list_view<const std::uint32_t> inputs() const { return {lists_.inputs, Sizes.inputs}; }
  constexpr list_view<const std::uint32_t> outputs() const { return {lists_.outputs, Sizes.outputs}; }

  /// Names, equal to those that graph_builder gives. Indices must be in range.
  constexpr const char* node_name(std::uint32_t node) const { return value_name(lists_.nodes[node].first_output); }
  constexpr const char* value_name(std::uint32_t value) const { return lists_.characters + lists_.value_names[value]; }
  constexpr const char* output_name(std::uint32_t which) const {
    return lists_.characters + lists_.output_names[which];
  }
  /// The source of a constant's contents, and the rule if that is the source. Other values return the same as a constant
  /// without contents.
  constexpr contents_source source_of(std::uint32_t which) const { return record_of(which).source; }
  constexpr uniform fill_of(std::uint32_t which) const { return record_of(which).fill; }
  /// The contents of a constant made by `integers`; empty for others.
  constexpr list_view<const std::int64_t> integers_of(std::uint32_t which) const {
    const detail::constant_record record = record_of(which);
    if (!record.is_list) return {};
    return {lists_.integers + record.first_integer, static_cast<std::size_t>(lists_.values[which].type.dims[0])};
  }

  /// The lists without their lengths in the type, for the run-time graph.
  constexpr detail::lists_view lists() const {
    detail::lists_view all = {.sizes = Sizes,
                              .nodes = lists_.nodes,
                              .values = lists_.values,
                              .operands = lists_.operands,
                              .inputs = lists_.inputs,
                              .outputs = lists_.outputs,
                              .value_names = lists_.value_names,
                              .output_names = lists_.output_names,
                              .characters = lists_.characters,
                              .constants = lists_.constants,
                              .integers = lists_.integers,
                              .words = words_,
                              .uses = uses_};
    all.sizes.words = Words;
    return all;
  }

  constexpr defined_graph() = default;
  /// From a checked draft and the types inferred for it.
  constexpr defined_graph(const detail::graph_draft<Sizes>& draft, const tensor_type* types) : lists_(draft) {
    normalise(draft.words, types);
    for (std::uint32_t v = 0; v < Sizes.values; ++v) lists_.values[v].type = types[v];
    detail::link_alike(list_view<node_record>(lists_.nodes, Sizes.nodes));
    detail::list_uses(list_view<const node_record>(lists_.nodes, Sizes.nodes),
                      list_view<const std::uint32_t>(lists_.operands, Sizes.operands),
                      list_view<value_record>(lists_.values, Sizes.values), uses_);
  }

 private:
  constexpr detail::constant_record record_of(std::uint32_t which) const {
    if (Sizes.constants == 0) return {};
    const detail::constant_record& nearest = detail::constant_of(lists_.constants, Sizes.constants, which);
    return nearest.value == which ? nearest : detail::constant_record{};
  }
  constexpr void normalise(const std::uint64_t* written, const tensor_type* types) {
    detail::operand_room<Sizes.most_operands> room;
    attribute_words words;
    std::uint32_t at = 0;
    for (std::uint32_t n = 0; n < Sizes.nodes; ++n) {
      node_record& node = lists_.nodes[n];
      const std::uint64_t* from = written + node.first_word;
      if (node.kind->has_normalise) {
        for (std::uint32_t i = 0; i < node.inputs; ++i) room.in[i] = types[lists_.operands[node.first_input + i]];
        words.size = node.words;
        for (std::uint32_t i = 0; i < node.words; ++i) words.word[i] = from[i];
        node.kind->normalise(words, list_view<const tensor_type>(room.in, node.inputs));
        from = words.word;
        node.words = static_cast<std::uint32_t>(words.size);
      }
      node.first_word = at;
      for (std::uint32_t i = 0; i < node.words; ++i) words_[at + i] = from[i];
      at += node.words;
    }
  }

  detail::graph_lists<Sizes> lists_;
  use uses_[Sizes.operands == 0 ? 1 : Sizes.operands] = {};
  std::uint64_t words_[Words == 0 ? 1 : Words] = {};
};

namespace detail {

template <class Function>
consteval graph_sizes count_graph() {
  graph_writer counter;
  Function{}(counter);
  return counter.sizes();
}

template <class Function, graph_sizes Sizes>
consteval graph_draft<Sizes> write_graph() {
  graph_draft<Sizes> draft;
  graph_writer writer(room_of(draft));
  Function{}(writer);
  return draft;
}

/// The result of counting. It is empty if counting cannot be evaluated, so that later steps do not repeat its errors.
template <graph_sizes Sizes>
struct counted {
  static constexpr graph_sizes sizes = Sizes;
};
struct uncounted {};
template <class Function, graph_sizes Sizes = count_graph<Function>()>
counted<Sizes> try_count(int);
template <class Function>
uncounted try_count(...);
template <class Function>
inline constexpr graph_sizes not_counted = count_graph<Function>();  // makes the compiler report the reason

// Each step of a definition is a constant of its own, and so a constant evaluation of its own.
template <class Function>
inline constexpr graph_sizes sizes_of = decltype(try_count<Function>(0))::sizes;

template <class Function>
inline constexpr graph_draft<sizes_of<Function>> draft_of = write_graph<Function, sizes_of<Function>>();

template <class Function>
inline constexpr sentence mistake_of = check_draft<sizes_of<Function>>(view_of(draft_of<Function>));

template <class Function>
inline constexpr auto types_of = infer_types<sizes_of<Function>>(view_of(draft_of<Function>));

template <class Function>
inline constexpr sentence misfit_of =
    types_of<Function>.fits ? sentence{}
                            : say_misfit(view_of(draft_of<Function>), types_of<Function>.types, types_of<Function>.node,
                                         types_of<Function>.why);

template <class Function>
inline constexpr defined_graph<sizes_of<Function>, types_of<Function>.words> graph_of{draft_of<Function>,
                                                                                      types_of<Function>.types};

/// The reason why a definition is refused; empty if it is accepted.
template <class Function>
consteval const sentence& refusal_of() {
  if constexpr (!mistake_of<Function>.empty()) return mistake_of<Function>;
  else return misfit_of<Function>;
}

using empty_graph = defined_graph<graph_sizes{}, 0>;

}  // namespace detail

/// Makes a graph from a function that writes it with the calls of graph/build.hpp: a lambda `[](auto& g) {...}` without
/// captures. A mistake (arity, shapes, attributes, names, cycles) is a compile error of one sentence.
template <class Function>
consteval auto define(Function) {
  constexpr bool is_captureless = std::is_empty_v<Function> && std::is_default_constructible_v<Function>;
  static_assert(
      is_captureless,
      "collage::define takes a lambda without captures, [](auto& g) {...}: what it needs must be constants or "
      "be made inside");
  if constexpr (is_captureless) {
    // Compiles the function on its own first, so that C++ errors in it are reported without the steps below.
    constexpr bool is_writer = requires(const Function& write, detail::graph_writer& g) { write(g); };
    static_assert(
        is_writer,
        "collage::define takes a lambda [](auto& g) {...}, which is called with a builder that is not copied; "
        "if this is such a lambda, an error above shows the fault inside it");
    if constexpr (!is_writer) {
      return detail::empty_graph{};
    } else if constexpr (std::is_same_v<decltype(detail::try_count<Function>(0)), detail::uncounted>) {
      static_cast<void>(detail::not_counted<Function>);
      return detail::empty_graph{};
    } else {
      using conclusion = decltype(detail::conclude_sentence<detail::refusal_of<Function>()>());
      static_assert(detail::holds<conclusion>);
      if constexpr (conclusion::is_accepted) return detail::graph_of<Function>;
      else return detail::empty_graph{};
    }
  } else {
    return detail::empty_graph{};
  }
}

/// A tag type whose static member `graph` is made by `define`.
template <class G>
concept static_graph =
    requires { G::graph; } && std::derived_from<std::remove_cv_t<decltype(G::graph)>, detail::defined>;

}  // namespace collage::inline v0
