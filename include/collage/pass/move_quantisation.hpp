// The passes that let operators work on integers of 8 bits. Movers of elements need no dequantised copies of them. Each
// reader that fuses with a dequantize_linear needs one of its own.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/quantise.hpp>
#include <collage/op/slice.hpp>
#include <collage/pass/detail/quantised_values.hpp>
#include <collage/pass/rewrite.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// Moves quantize_linear nodes of one graph in front of the operators whose results they quantise.
class quantisation_mover {
 public:
  explicit quantisation_mover(const graph& from) : from_(from) {}

  void node(rewriter& r, std::uint32_t node) {
    if (!is_kind(from_, node, ops::quantize_linear)) return r.copy_node(node);
    const std::optional<quantisation> wanted = quantisation_of(from_, node);
    const std::uint32_t x = from_.view().inputs_of(node)[0];
    if (!wanted) return r.copy_node(node);
    if (has_integers(x, *wanted)) return r.put(from_.view().output_of(node), integers_of(r, x));
    const std::int32_t producer = from_.at(x).producer;
    if (producer < 0 || from_.at(x).uses != 1 || from_.at(x).is_output) return r.copy_node(node);
    const auto mover = static_cast<std::uint32_t>(producer);
    const std::size_t data = moved_operands(mover);
    const std::span<const std::uint32_t> in = from_.view().inputs_of(mover);
    // A reshape costs nothing, so the quantisation comes before it in any case.
    for (std::size_t i = 0; i < data && !is_kind(from_, mover, ops::reshape); ++i) {
      const std::optional<std::uint32_t> by = dequantised_by(from_, in[i]);
      if (!by || !quantisation_of(from_, *by)) return r.copy_node(node);
    }
    if (data == 0) return r.copy_node(node);
    std::vector<value> operands = r.operands_of(mover);
    for (std::size_t i = 0; i < data; ++i) operands[i] = requantised(r, node, in[i], *wanted);
    r.replace(node, *from_.node(mover).kind, operands, r.words_of(mover));
  }

 private:
  /// How many operands of a node are moved into its result unchanged, or compared with each other; 0 for other kinds.
  std::size_t moved_operands(std::uint32_t node) const {
    if (is_kind(from_, node, ops::concat)) return from_.node(node).inputs;
    const bool moves = is_kind(from_, node, ops::reshape) || is_kind(from_, node, ops::transpose) ||
                       is_kind(from_, node, ops::slice) || is_kind(from_, node, ops::max_pool) ||
                       is_kind(from_, node, ops::expand);
    return moves ? 1 : 0;
  }
  /// Whether a value is dequantised from integers of just this scale and zero point, so that quantising returns them.
  bool has_integers(std::uint32_t v, const quantisation& wanted) const {
    const std::optional<std::uint32_t> by = dequantised_by(from_, v);
    return by && quantisation_of(from_, *by) == wanted;
  }
  value integers_of(const rewriter& r, std::uint32_t v) const {
    return r.of(from_.view().inputs_of(*dequantised_by(from_, v))[0]);
  }
  /// A dequantised value as integers of the scale and zero point of node `like`.
  value requantised(rewriter& r, std::uint32_t like, std::uint32_t v, const quantisation& wanted) {
    if (has_integers(v, wanted)) return integers_of(r, v);
    std::vector<value> operands = r.operands_of(like);
    operands[0] = r.of(v);
    return r.to().add(*from_.node(like).kind, operands, r.words_of(like), r.fresh_name(from_.node_name(like)));
  }

  const graph& from_;
};

/// Gives readers of shared dequantize_linear nodes copies of their own.
class dequantisation_splitter {
 public:
  explicit dequantisation_splitter(const graph& from) : from_(from) {}

  void node(rewriter& r, std::uint32_t node) {
    if (!works_on_integers(node)) return r.copy_node(node);
    std::vector<value> operands = r.operands_of(node);
    const std::span<const std::uint32_t> in = from_.view().inputs_of(node);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::optional<std::uint32_t> by = dequantised_for(node, i);
      if (!by || keeps(node, in[i])) continue;
      const auto [own, is_new] = copies_.try_emplace({node, in[i]});
      if (is_new)
        own->second =
            r.to().add(*from_.node(*by).kind, r.operands_of(*by), r.words_of(*by), r.fresh_name(from_.node_name(*by)));
      operands[i] = own->second;
    }
    r.replace(node, *from_.node(node).kind, operands, r.words_of(node), r.bodies_of(node));
  }

 private:
  /// Whether a reader takes the node that computes a dequantised value. The first one does, unless others still need the value: a
  /// reader that works on floating-point numbers, or the caller.
  bool keeps(std::uint32_t node, std::uint32_t dequantised) const {
    if (from_.at(dequantised).is_output || from_.view().uses_of(dequantised)[0].node != node) return false;
    for (const use& reader : from_.view().uses_of(dequantised))
      if (!works_on_integers(reader.node)) return false;
    return true;
  }
  /// The dequantize_linear of an operand that a kernel takes in.
  std::optional<std::uint32_t> dequantised_for(std::uint32_t node, std::size_t operand) const {
    const std::uint32_t v = from_.view().inputs_of(node)[operand];
    if (operand == 1 && is_bound_by_weights(from_, node)) return static_cast<std::uint32_t>(from_.at(v).producer);
    return dequantised_by(from_, v);
  }
  /// Whether kernels compute a node from integers: because it multiplies them, or because its result is quantised again. In
  /// between there may be elementwise operators that no one else reads.
  bool works_on_integers(std::uint32_t node) const {
    if (multiplies_integers(from_, node) || is_bound_by_weights(from_, node) ||
        is_kind(from_, node, ops::quantize_linear))
      return true;
    std::uint32_t at = node;
    for (int step = 0; step < 3; ++step) {
      const std::uint32_t result = from_.view().output_of(at);
      if (from_.node(at).outputs != 1 || from_.at(result).uses != 1 || from_.at(result).is_output) return false;
      at = from_.view().uses_of(result)[0].node;
      if (is_kind(from_, at, ops::quantize_linear)) return true;
      if (from_.node(at).kind->body == nullptr) return false;
    }
    return false;
  }

  const graph& from_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, value> copies_;  // by reader and old value
};

}  // namespace detail

/// Returns the graph in which operators that only move or compare elements do so on integers of 8 bits:
///
/// - quantize_linear of a dequantize_linear with the same scale and zero point is the integers themselves;
/// - quantize_linear of a reshape, transpose, slice, expand, concat or max_pool of dequantised values becomes that operator on
///   the integers. Integers of another scale or zero point are quantised anew before.
///
/// - quantize_linear of any other reshape comes before it, where it fuses with what computes the value.
///
/// All hold exactly, because one positive scale keeps the order of numbers. Only float32 scales of whole tensors count, which
/// are loaded. Nodes that are no longer read stay for `remove_dead`.
inline graph move_quantisation(const graph& network) {
  detail::quantisation_mover mover(network);
  return rewrite(network, {.constant = {},
                           .node = [&](rewriter& r, std::uint32_t n) { mover.node(r, n); },
                           .body = [](const graph& body) { return move_quantisation(body); }});
}

/// Returns the graph in which each node that kernels compute from integers of 8 bits has dequantize_linear nodes of its own. A
/// kernel can take in a dequantize_linear only if nothing else reads it. `remove_duplicates` undoes this, so it comes last.
inline graph split_dequantisation(const graph& network) {
  detail::dequantisation_splitter splitter(network);
  return rewrite(network, {.constant = {},
                           .node = [&](rewriter& r, std::uint32_t n) { splitter.node(r, n); },
                           .body = [](const graph& body) { return split_dequantisation(body); }});
}

}  // namespace collage::inline v0
