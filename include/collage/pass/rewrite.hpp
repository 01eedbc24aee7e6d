// How passes make a new graph from an old one: value by value, in the old order, so that a pass which changes nothing
// gives an equal graph.
#pragma once

#include <collage/graph/graph.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// A graph on its way into a new one. Names, and the contents of constants, pass over unchanged and shared.
class rewriter {
 public:
  explicit rewriter(const graph& from) : from_(from), new_of_(from.values().size(), nothing) {}

  const graph& from() const { return from_; }
  /// The graph under construction: types and int64 contents of new values can be asked, new nodes added.
  graph_builder& to() { return to_; }

  /// Whether an old value has a successor yet.
  bool has(std::uint32_t old) const { return new_of_[old] != nothing; }
  /// The new value that stands for an old one. An error where there is none: it was dropped, and yet is read.
  value of(std::uint32_t old) const {
    if (!has(old)) throw error(error_kind::failure, "was dropped and is still read", "value " + from_.value_name(old));
    return {new_of_[old]};
  }
  /// From here on, what reads the old value reads the new one.
  void put(std::uint32_t old, value by) { new_of_[old] = by.index; }

  /// The new values of a node's operands.
  std::vector<value> operands_of(std::uint32_t node) const {
    std::vector<value> list;
    for (const std::uint32_t old : from_.view().inputs_of(node)) list.push_back(of(old));
    return list;
  }
  /// Adds a node in the place of an old one: the name and all outputs of that.
  void replace(std::uint32_t node, const kind_info& kind, std::span<const value> operands,
               const attribute_words& words) {
    const value first = to_.add(kind, operands, words, from_.node_name(node));
    for (std::uint32_t i = 0; i < from_.node(node).outputs; ++i)
      put(from_.view().output_of(node, i), {first.index + i});
  }
  /// The same node once more, over the new operands; its shapes are inferred anew.
  void copy_node(std::uint32_t node) {
    attribute_words words;
    for (const std::uint64_t w : from_.view().words_of(node)) words.word[words.size++] = w;
    replace(node, *from_.node(node).kind, operands_of(node), words);
  }
  void copy_constant(std::uint32_t old) { put(old, to_.constant(from_, old)); }

  /// A name for something new that nobody in the old graph has, nor anything named this way before.
  std::string fresh_name(const std::string& like) {
    if (names_.empty())
      for (std::uint32_t v = 0; v < from_.values().size(); ++v) names_.insert(from_.value_name(v));
    std::string name = like;
    for (std::size_t number = 1; !names_.insert(name).second; ++number) name = like + "_" + std::to_string(number);
    return name;
  }

  graph finish() {
    for (std::size_t i = 0; i < from_.outputs().size(); ++i) to_.output(from_.output_name(i), of(from_.outputs()[i]));
    return to_.finish();
  }

 private:
  static constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
  const graph& from_;
  graph_builder to_;
  std::vector<std::uint32_t> new_of_;
  std::unordered_set<std::string> names_;
};

/// What a pass does with constants and nodes; graph inputs and outputs always stay.
struct rewrite_rules {
  /// Called with each constant; copies it, puts something else, or drops it. Unset: it is copied.
  std::function<void(rewriter&, std::uint32_t value)> constant = {};
  /// Called with each node, after all that it reads. Unset: it is copied.
  std::function<void(rewriter&, std::uint32_t node)> node = {};
};

/// Rebuilds a graph by rules.
inline graph rewrite(const graph& from, const rewrite_rules& rules) {
  rewriter state(from);
  for (std::uint32_t v = 0; v < from.values().size(); ++v) {
    const value_record& old = from.at(v);
    if (old.role == value_role::input) {
      state.put(v, state.to().input(from.value_name(v), old.type));
    } else if (old.role == value_role::constant) {
      if (rules.constant) rules.constant(state, v);
      else state.copy_constant(v);
    } else if (const auto node = static_cast<std::uint32_t>(old.producer); from.node(node).first_output == v) {
      if (rules.node) rules.node(state, node);
      else state.copy_node(node);
    }
  }
  return state.finish();
}

}  // namespace collage::inline v0
