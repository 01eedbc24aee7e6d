// Workloads: which groups of nodes are one computation, so that they can share kernels and their costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/detail/hash.hpp>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/op/kind.hpp>
#include <collage/op/quantise.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// A hash of a list of words.
struct word_hash {
  template <class Word>
  std::size_t operator()(const std::vector<Word>& words) const {
    std::uint64_t hash = words.size();
    for (const Word word : words) hash = combine(hash, word);
    return static_cast<std::size_t>(hash);
  }
};

/// The number for which a known scalar stands in a structure key. Kernels do not depend on the numbers of scales and zero points,
/// unless they are 1 or 0. So products and convolutions of one shape can share a cost, though each is quantised by its own scale.
inline double scalar_in_key(const graph& network, std::uint32_t v) {
  const double number = network.at(v).scalar;
  for (const use& reader : network.view().uses_of(v)) {
    const std::uint64_t kind = network.view().kind_id_of(reader.node);
    const bool quantises =
        kind == kind_id<struct ops::quantize_linear> || kind == kind_id<struct ops::dequantize_linear>;
    if (!quantises || reader.operand == 0) return number;
  }
  const bool is_usual = number != 0 && number != 1 && std::abs(number) > 1e-30 && std::abs(number) < 1e30;
  return is_usual ? (number < 0 ? -2 : 2) : number;
}

/// The words of a value's type and known contents in a structure key. `is_read_outside`: something outside the group reads it.
inline void add_value_words(const graph& network, std::uint32_t v, bool is_read_outside,
                            std::vector<std::uint64_t>& key) {
  const value_record& r = network.at(v);
  key.push_back(static_cast<std::uint64_t>(r.type.type) << 8 |
                static_cast<std::uint64_t>(r.role == value_role::constant) << 2 |
                static_cast<std::uint64_t>(is_read_outside) << 1 | static_cast<std::uint64_t>(r.has_scalar));
  key.push_back(plain.id);  // always the same: keys in existing stores have this word
  key.push_back(r.type.dims.rank);
  for (const std::int64_t extent : r.type.dims) key.push_back(static_cast<std::uint64_t>(extent));
  if (r.has_scalar) key.push_back(__builtin_bit_cast(std::uint64_t, scalar_in_key(network, v)));
}

/// Everything that a kernel for this group can depend on, as 64-bit words: groups with equal keys can share kernels. `nodes` are
/// ascending.
inline std::vector<std::uint64_t> structure_key(const graph& network, std::span<const std::uint32_t> nodes) {
  std::vector<std::uint64_t> key;
  const graph_view view = network.view();
  std::unordered_map<std::uint32_t, std::uint64_t> seen;  // numbers in the order of first appearance
  const auto is_read_outside = [&](std::uint32_t v) {
    if (network.at(v).is_output) return true;
    for (const use& reader : view.uses_of(v))
      if (!std::binary_search(nodes.begin(), nodes.end(), reader.node)) return true;
    return false;
  };
  const auto add_value = [&](std::uint32_t v) {
    const auto [at, is_new] = seen.try_emplace(v, seen.size());
    key.push_back(at->second);
    if (is_new) add_value_words(network, v, is_read_outside(v), key);
  };
  for (const std::uint32_t n : nodes) {
    key.push_back(network.node(n).kind->id);
    key.push_back(network.node(n).inputs);
    for (const std::uint32_t v : view.inputs_of(n)) add_value(v);
    const auto words = view.words_of(n);
    key.push_back(words.size());
    key.insert(key.end(), words.begin(), words.end());
    for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) add_value(view.output_of(n, i));
  }
  return key;
}

/// Numbers groups: two groups have equal numbers if and only if their structure keys are equal. A network of long chains has
/// hundreds of thousands of groups, and their keys together would have gigabytes. So each node's share of the key becomes a number
/// first. These numbers, and how the nodes are connected, describe a group.
class workload_numbers {
 public:
  explicit workload_numbers(const graph& network)
      : network_(network),
        node_number_(network.nodes().size()),
        inside_(network.nodes().size(), 0),
        met_(network.values().size(), 0),
        position_(network.values().size(), 0) {
    std::unordered_map<std::vector<std::uint64_t>, std::uint32_t, word_hash> numbers;
    std::vector<std::uint64_t> words;
    for (std::uint32_t n = 0; n < node_number_.size(); ++n) {
      describe_node(n, words);
      node_number_[n] = numbers.try_emplace(words, static_cast<std::uint32_t>(numbers.size())).first->second;
    }
  }

  /// The number of a group, whose nodes are ascending. Numbers begin with 0, in the order of first appearance.
  std::uint32_t operator()(std::span<const std::uint32_t> nodes) {
    describe_group(nodes);
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    return numbers_.try_emplace(words_, next).first->second;
  }
  std::size_t count() const { return numbers_.size(); }
  /// How many words all groups together were described by: a measure of the work.
  std::size_t work() const { return work_; }

 private:
  void describe_node(std::uint32_t n, std::vector<std::uint64_t>& words) const {
    const graph_view view = network_.view();
    words.assign({network_.node(n).kind->id, network_.node(n).inputs, network_.node(n).outputs});
    for (const std::uint32_t v : view.inputs_of(n)) add_value_words(network_, v, false, words);
    const auto attributes = view.words_of(n);
    words.push_back(attributes.size());
    words.insert(words.end(), attributes.begin(), attributes.end());
    for (std::uint32_t i = 0; i < network_.node(n).outputs; ++i)
      add_value_words(network_, view.output_of(n, i), false, words);
  }

  void describe_group(std::span<const std::uint32_t> nodes) {
    const graph_view view = network_.view();
    ++round_;
    for (const std::uint32_t n : nodes) inside_[n] = round_;
    words_.clear();
    std::uint32_t values = 0;
    const auto add_value = [&](std::uint32_t v) {
      const bool is_new = std::exchange(met_[v], round_) != round_;
      if (is_new) position_[v] = values++;
      words_.push_back(position_[v] << 1 | static_cast<std::uint32_t>(is_new && is_read_outside(v)));
    };
    for (const std::uint32_t n : nodes) {
      words_.push_back(node_number_[n]);
      for (const std::uint32_t v : view.inputs_of(n)) add_value(v);
      for (std::uint32_t i = 0; i < network_.node(n).outputs; ++i) add_value(view.output_of(n, i));
    }
    work_ += words_.size();
  }
  bool is_read_outside(std::uint32_t v) const {
    if (network_.at(v).is_output) return true;
    for (const use& reader : network_.view().uses_of(v))
      if (inside_[reader.node] != round_) return true;
    return false;
  }

  const graph& network_;
  std::vector<std::uint32_t> node_number_;     // by node: equal for equal operators over equal types
  std::vector<std::uint32_t> inside_;          // by node: the round in which it was in the group
  std::vector<std::uint32_t> met_, position_;  // by value: the round in which it was met, and as which one
  std::vector<std::uint32_t> words_;           // of the current group
  std::uint32_t round_ = 0;
  std::size_t work_ = 0;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, word_hash> numbers_;  // looked up, never walked
};

inline std::string structure_label(const graph& network, std::span<const std::uint32_t> nodes) {
  constexpr std::size_t named = 16;
  std::string label;
  for (const std::uint32_t n : nodes.first(std::min(nodes.size(), named)))
    label += (label.empty() ? "" : "+") + std::string(network.node(n).kind->name);
  if (nodes.size() > named) label += "+... (" + std::to_string(nodes.size()) + " operators)";
  return label + " " + to_string(network.type_of(network.view().output_of(nodes.back())).dims);
}

}  // namespace detail
}  // namespace collage::inline v0
