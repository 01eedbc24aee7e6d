// How passes make a new graph from an old one: value by value, in the old order. A pass that changes nothing gives an
// equal graph.
#pragma once

#include <collage/graph/graph.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// Whether a node is of this kind: `is_kind(network, node, ops::conv)`.
template <operator_kind K>
bool is_kind(const graph& network, std::uint32_t node, const K&) {
  return network.view().kind_id_of(node) == kind_id<K>;
}

/// Rewrites an old graph into a new one. Names and the contents of constants pass over unchanged; contents are shared.
class rewriter {
 public:
  /// Makes a new subgraph from an old one.
  using body_rule = std::function<graph(const graph&)>;

  explicit rewriter(const graph& from, body_rule body = {})
      : from_(from), body_(std::move(body)), new_of_(from.values().size(), nothing) {}

  const graph& from() const { return from_; }
  /// The graph under construction. It knows types and int64 contents of new values, and takes new nodes.
  graph_builder& to() { return to_; }

  /// Whether there is a new value for an old one yet.
  bool has(std::uint32_t old) const { return new_of_[old] != nothing; }
  /// The new value that stands for an old one. Error: the old value was dropped, and yet is read.
  value of(std::uint32_t old) const {
    if (!has(old)) throw error(error_kind::failure, "was dropped and is still read", "value " + from_.value_name(old));
    return {new_of_[old]};
  }
  /// From here on, readers of the old value read the new one.
  void put(std::uint32_t old, value by) { new_of_[old] = by.index; }

  /// The new values of a node's operands.
  std::vector<value> operands_of(std::uint32_t node) const {
    std::vector<value> list;
    for (const std::uint32_t old : from_.view().inputs_of(node)) list.push_back(of(old));
    return list;
  }
  /// Adds a node in the place of an old one, with the name and all outputs of the old node.
  void replace(std::uint32_t node, const kind_info& kind, std::span<const value> operands, const attribute_words& words,
               std::span<const std::shared_ptr<const graph>> bodies = {}) {
    const value first = to_.add(kind, operands, words, from_.node_name(node), bodies);
    for (std::uint32_t i = 0; i < from_.node(node).outputs; ++i)
      put(from_.view().output_of(node, i), {first.index + i});
  }
  /// The new subgraphs of a node; nodes that shared a subgraph still do. A subgraph stays as it was if its outputs
  /// would have other types, because the pass learned an extent. A node's subgraphs must agree with each other.
  std::vector<std::shared_ptr<const graph>> bodies_of(std::uint32_t node) {
    std::vector<std::shared_ptr<const graph>> list;
    for (const std::shared_ptr<const graph>& old : from_.bodies_of(node)) {
      std::shared_ptr<const graph>& made = new_bodies_[old.get()];
      if (made == nullptr) {
        made = body_ ? std::make_shared<const graph>(body_(*old)) : old;
        for (std::size_t i = 0; i < old->outputs().size(); ++i)
          if (made->type_of(made->outputs()[i]) != old->type_of(old->outputs()[i])) made = old;
      }
      list.push_back(made);
    }
    return list;
  }
  /// Copies a node with its new operands and subgraphs; its shapes are inferred anew.
  void copy_node(std::uint32_t node) {
    replace(node, *from_.node(node).kind, operands_of(node), words_of(node), bodies_of(node));
  }
  /// The attributes of an old node, for a new node.
  attribute_words words_of(std::uint32_t node) const {
    attribute_words words;
    for (const std::uint64_t w : from_.view().words_of(node)) words.word[words.size++] = w;
    return words;
  }
  void copy_constant(std::uint32_t old) { put(old, to_.constant(from_, old)); }

  /// A name that no value of the old graph has, and that was not returned here before.
  std::string fresh_name(const std::string& like) {
    if (names_.empty())
      for (std::uint32_t v = 0; v < from_.values().size(); ++v) names_.insert(from_.value_name(v));
    std::string name = like;
    for (std::size_t& number = numbered_[like]; !names_.insert(name).second;)
      name = like + "_" + std::to_string(++number);
    return name;
  }

  graph finish() {
    for (std::size_t i = 0; i < from_.outputs().size(); ++i) to_.output(from_.output_name(i), of(from_.outputs()[i]));
    return to_.finish();
  }

 private:
  static constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
  const graph& from_;
  body_rule body_;
  graph_builder to_;
  std::vector<std::uint32_t> new_of_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, std::size_t> numbered_;  // by name: the last number appended to it
  std::unordered_map<const graph*, std::shared_ptr<const graph>> new_bodies_;
};

/// How a pass treats constants and nodes; graph inputs and outputs always stay.
struct rewrite_rules {
  /// Called with each constant: copies it, puts another value in its place, or drops it. Unset: it is copied.
  std::function<void(rewriter&, std::uint32_t value)> constant = {};
  /// Called with each node, after the nodes from which it reads. Unset: it is copied.
  std::function<void(rewriter&, std::uint32_t node)> node = {};
  /// Makes a new subgraph from each subgraph that a node owns. Unset: it stays, and is shared.
  rewriter::body_rule body = {};
};

/// Rebuilds a graph by rules.
inline graph rewrite(const graph& from, const rewrite_rules& rules) {
  rewriter state(from, rules.body);
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
