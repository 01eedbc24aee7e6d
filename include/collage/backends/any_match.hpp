// A match of any pattern, for backends that treat all their patterns alike.
#pragma once

#include <collage/list_view.hpp>
#include <collage/op/kind.hpp>
#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// The part of a match that does not depend on its pattern. Every match<P> converts to it, so that a backend can declare one
/// `accepts` and one `build` that are not templates:
///
///   static constexpr verdict accepts(const any_match& m);
///   static kernel build(const any_match& m, build_context& context);
///
/// Refers to the graph and the record of the match.
class any_match {
 public:
  template <class P>
  constexpr any_match(const match<P>& m) : graph_(&m.graph()), record_(&m.record()), pattern_(P::name) {}

  /// The name of the pattern.
  constexpr const char* pattern() const { return pattern_; }
  constexpr const graph_view& graph() const { return *graph_; }
  /// Indices of the graph's nodes, in topological order. The root is last, unless the pattern has several outputs.
  constexpr list_view<const std::uint32_t> nodes() const { return record_->node_list(); }
  constexpr bool contains(std::uint32_t node) const { return record_->contains(node); }
  /// The values that a kernel reads, in the order of its arguments.
  constexpr list_view<const std::uint32_t> arguments() const { return record_->argument_list(); }
  /// The position of a value among the kernel's arguments; match_record::nothing for a value that the kernel does not read.
  constexpr std::size_t index_of(std::uint32_t value) const { return record_->index_of(value); }
  /// The kernel's operands with their element type: `in` for a value that it reads, `out` for one of `outputs`. See match::in.
  template <class T>
  constexpr kernel_input<T> in(std::uint32_t value) const {
    return detail::input_of<T>(pattern_, "an operand", *graph_, *record_, value);
  }
  template <class T>
  constexpr kernel_output<T> out(std::size_t index = 0) const {
    return detail::output_of<T>(pattern_, *graph_, *record_, record_->output[index]);
  }
  /// The value that the root computes. `outputs` lists all values that are read outside the match, the root's first.
  constexpr std::uint32_t output() const { return record_->output[0]; }
  constexpr list_view<const std::uint32_t> outputs() const { return record_->output_list(); }

  constexpr const kind_info& kind_of(std::uint32_t node) const { return *graph_->nodes[node].kind; }
  template <operator_kind K>
  constexpr bool is(std::uint32_t node, const K&) const {
    return kind_of(node).id == kind_id<K>;
  }
  /// The attributes of a node, which must be of kind K.
  template <operator_kind K>
  constexpr typename K::attributes attributes(std::uint32_t node, const K&) const {
    return from_words<typename K::attributes>(graph_->words_of(node));
  }
  constexpr list_view<const std::uint32_t> inputs_of(std::uint32_t node) const { return graph_->inputs_of(node); }
  constexpr std::uint32_t output_of(std::uint32_t node) const { return graph_->output_of(node); }
  constexpr const value_record& at(std::uint32_t value) const { return graph_->values[value]; }
  constexpr const tensor_type& type_of(std::uint32_t value) const { return graph_->values[value].type; }

 private:
  const graph_view* graph_;
  const match_record* record_;
  const char* pattern_;
};

}  // namespace collage::inline v0
