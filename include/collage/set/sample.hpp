// A small graph in which a pattern matches, made from the pattern itself. The compiler tries a backend's `accepts` on it.
#pragma once

#include <collage/pattern/match.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// The operators of a pattern over tensors of one element. It has the first alternatives and the most iterations; optional
/// operands are left out. Attributes have their defaults, and values the first element type and the rank that the pattern
/// allows.
///
/// There is no sample if the shape rules refuse these operators, or tensors of one rank throughout. Nor is there one if the
/// pattern requires particular attributes or extents, or has more operators than fit. A template, so that only includers that
/// make a sample compile it.
template <class Graph>
struct sample_types {
  using node = node_record;
  using value = value_record;
  using kind = kind_info;
  using io = inference;
  using words = attribute_words;
};
template <class Graph, class Types = sample_types<Graph>>
class sample_graph {
 public:
  constexpr bool make(const auto& pattern, auto& found) {
    constexpr std::size_t ranks[] = {4, 2, 3, 1};
    for (const std::size_t rank : ranks)
      if (write(pattern, rank) && match_at(view(), pattern, root_, found)) return true;
    return false;
  }
  constexpr Graph view() const {
    return {
        {nodes_, node_count_}, {values_, value_count_}, {operands_, operand_count_}, {uses_, operand_count_}, words_};
  }

 private:
  static constexpr std::size_t most_nodes = 16, most_values = 64, most_operands = 64, most_words = 512;
  static constexpr std::size_t most_outputs = 4;
  /// Stands for an operator of any kind.
  static constexpr typename Types::kind some_kind = [] {
    typename Types::kind info;
    info.name = "operator";
    return info;
  }();

  constexpr bool write(const auto& pattern, std::size_t rank) {
    node_count_ = value_count_ = operand_count_ = word_count_ = 0;
    std::uint32_t value_of[match_record::max_pattern] = {};
    for (std::size_t i = 0; i < pattern.size; ++i) {
      const auto& p = pattern[i];
      if (value_count_ + most_outputs > most_values) return false;
      if (p.role == pattern_role::apply) {
        if (!add_node(pattern, p, value_of)) return false;
        value_of[i] = static_cast<std::uint32_t>(value_count_) - nodes_[node_count_ - 1].outputs + p.output;
      } else if (p.is_choice()) {
        value_of[i] = value_of[p.alternative(0)];
      } else if (p.role == pattern_role::outputs) {
        value_of[i] = value_of[p.child[0]];
      } else if (p.role == pattern_role::same) {
        // In a sound pattern, a node before or after this one captures the name. Only nodes before it are tried.
        std::size_t j = 0;
        while (j < i && (pattern[j].capture != p.capture || pattern[j].role == pattern_role::same)) ++j;
        if (j == i || p.says_output) return false;
        value_of[i] = value_of[j];
      } else {
        value_of[i] = add_value(p, rank);
      }
    }
    const std::int32_t producer = values_[value_of[pattern.size - 1]].producer;
    if (producer < 0) return false;
    root_ = static_cast<std::uint32_t>(producer);
    list_uses(list_view<const typename Types::node>(nodes_, node_count_),
              list_view<const std::uint32_t>(operands_, operand_count_),
              list_view<typename Types::value>(values_, value_count_), uses_);
    return true;
  }

  constexpr std::uint32_t add_value(const auto& p, std::size_t rank) {
    const bool is_scalar = p.role == pattern_role::scalar;
    typename Types::value v;
    v.type.dims = shape::filled(is_scalar ? 0 : p.rank >= 0 ? static_cast<std::size_t>(p.rank) : rank, 1);
    if (p.types != 0) {
      std::uint32_t type = 0;
      while ((p.types >> type & 1U) == 0) ++type;
      v.type.type = static_cast<dtype>(type);
    }
    v.role = is_scalar || p.role == pattern_role::constant ? value_role::constant : value_role::input;
    v.has_scalar = is_scalar;
    v.scalar = p.scalar;
    values_[value_count_] = v;
    return static_cast<std::uint32_t>(value_count_++);
  }

  constexpr bool add_node(const auto& pattern, const auto& p, const std::uint32_t* value_of) {
    const bool is_some = p.kinds == 0;  // it has no rules
    const auto& kind = is_some ? some_kind : *p.kind[0];
    if (node_count_ == most_nodes || kind.bodies != 0) return false;
    tensor_type in[most_operands], out[most_outputs];
    std::uint32_t inputs = 0;
    for (std::size_t c = 0; c < p.children; ++c) {
      if (pattern[p.child[c]].count == pattern_count::maybe) continue;
      if (operand_count_ == most_operands) return false;
      in[inputs++] = values_[value_of[p.child[c]]].type;
      operands_[operand_count_++] = value_of[p.child[c]];
    }
    typename Types::words words;
    if (!is_some) words = kind.defaults();
    if (kind.has_normalise) kind.normalise(words, {in, inputs});
    const std::size_t outputs = kind.output_count(words.list());
    if (word_count_ + words.size > most_words || outputs > most_outputs || p.output >= outputs) return false;
    typename Types::io io{.in = {in, inputs}, .out = {out, outputs}};
    out[0] = in[0];
    if (!is_some && !kind.infer(words.list(), io)) return false;

    typename Types::node node;
    node.kind = &kind;
    node.first_input = static_cast<std::uint32_t>(operand_count_) - inputs;
    node.inputs = inputs;
    node.first_output = static_cast<std::uint32_t>(value_count_);
    node.outputs = static_cast<std::uint32_t>(outputs);
    node.first_word = static_cast<std::uint32_t>(word_count_);
    node.words = static_cast<std::uint32_t>(words.size);
    for (std::size_t i = 0; i < words.size; ++i) words_[word_count_++] = words.word[i];
    for (std::size_t i = 0; i < outputs; ++i) {
      typename Types::value v;
      v.type = out[i];
      v.producer = static_cast<std::int32_t>(node_count_);
      values_[value_count_++] = v;
    }
    nodes_[node_count_++] = node;
    return true;
  }

  typename Types::node nodes_[most_nodes] = {};
  typename Types::value values_[most_values] = {};
  std::uint32_t operands_[most_operands] = {};
  use uses_[most_operands] = {};
  std::uint64_t words_[most_words] = {};
  std::size_t node_count_ = 0, value_count_ = 0, operand_count_ = 0, word_count_ = 0;
  std::uint32_t root_ = 0;
};

}  // namespace collage::inline v0::detail
