// The pass that takes the rounding to integers of 8 bits out of a quantised network, and keeps the intervals that they covered.
#pragma once

#include <algorithm>
#include <array>
#include <collage/graph/graph.hpp>
#include <collage/op/activation.hpp>
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
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// The numbers for which the integers of a value stood.
struct quantised_interval {
  float low = 0, high = 0;
  friend bool operator==(const quantised_interval&, const quantised_interval&) = default;
};

/// A network without the rounding of its values, and the intervals of these by name.
struct unquantised_network {
  graph network;
  std::map<std::string, quantised_interval> intervals;
};

namespace detail {

/// Removes quantize_linear and dequantize_linear of one scale and zero point.
class quantisation_remover {
 public:
  explicit quantisation_remover(const graph& from) : from_(from) {}

  void node(rewriter& r, std::uint32_t node) {
    if (is_kind(from_, node, ops::quantize_linear)) quantise(r, node);
    else if (is_kind(from_, node, ops::dequantize_linear)) return dequantise(r, node);
    else if (is_moved(node)) move(r, node);
    r.copy_node(node);  // for those that read the integers; otherwise it is dead
  }
  std::map<std::string, quantised_interval> intervals() && { return std::move(intervals_); }

 private:
  /// A value in place of integers.
  struct number {
    value in_floats;
    quantisation how;
  };

  static quantised_interval interval_of(const quantisation& q) {
    const std::int64_t low = q.type == dtype::i8 ? -128 : 0;
    const auto number = [&](std::int64_t n) { return static_cast<float>(n - q.zero_point) * q.scale; };
    return {number(low), number(low + 255)};
  }

  void quantise(rewriter& r, std::uint32_t node) {
    const std::optional<quantisation> q = quantisation_of(from_, node);
    const std::uint32_t x = from_.view().inputs_of(node)[0];
    if (!q || from_.type_of(x).type != dtype::f32) return;
    value v = r.of(x);
    if (is_cut(x, *q)) v = cut(r, v, interval_of(*q), from_.node_name(node));
    else names_.try_emplace(v.index, from_.value_name(x));
    numbers_[from_.view().output_of(node)] = {v, *q};
    note(v, *q);
  }
  void dequantise(rewriter& r, std::uint32_t node) {
    const std::uint32_t y = from_.view().output_of(node);
    const auto known = numbers_.find(from_.view().inputs_of(node)[0]);
    const bool is_same = known != numbers_.end() && quantisation_of(from_, node) == known->second.how &&
                         from_.type_of(y).type == dtype::f32;
    if (is_same) r.put(y, known->second.in_floats);
    else r.copy_node(node);
  }
  /// Moves the floating-point numbers beside the integers.
  void move(rewriter& r, std::uint32_t node) {
    const std::size_t data = is_kind(from_, node, ops::concat) ? from_.node(node).inputs : 1;
    std::vector<value> operands = r.operands_of(node);
    std::optional<quantisation> q;
    for (std::size_t i = 0; i < data; ++i) {
      const auto known = numbers_.find(from_.view().inputs_of(node)[i]);
      if (known == numbers_.end() || (q && *q != known->second.how)) return;
      q = known->second.how;
      operands[i] = known->second.in_floats;
    }
    const std::string name = r.fresh_name(from_.node_name(node));
    const value v = r.to().add(*from_.node(node).kind, operands, r.words_of(node), name);
    names_.try_emplace(v.index, name);
    numbers_[from_.view().output_of(node)] = {v, *q};
    note(v, *q);
  }
  bool is_moved(std::uint32_t node) const {
    return from_.node(node).outputs == 1 && from_.node(node).inputs != 0 &&
           is_8_bit_integer(from_.type_of(from_.view().inputs_of(node)[0]).type) &&
           (is_kind(from_, node, ops::concat) || is_kind(from_, node, ops::reshape) ||
            is_kind(from_, node, ops::transpose) || is_kind(from_, node, ops::slice) ||
            is_kind(from_, node, ops::expand) || is_kind(from_, node, ops::max_pool));
  }

  /// Quantisers remove a relu or clip where integers end at its bound, so there the bounds of the integers do its work.
  bool is_cut(std::uint32_t x, const quantisation& q) const {
    const quantised_interval its = interval_of(q);
    return (its.low == 0 || its.high == 0) && from_.at(x).producer >= 0 && !(its.low == 0 && is_never_negative(x, 8));
  }
  value cut(rewriter& r, value v, const quantised_interval& to, const std::string& like) {
    const value operands[] = {v, r.to().add_scalar(r.fresh_name(like + ".low"), to.low, dtype::f32),
                              r.to().add_scalar(r.fresh_name(like + ".high"), to.high, dtype::f32)};
    const std::string name = r.fresh_name(like + ".clip");
    const value made = r.to().add(kind_of<decltype(ops::clip)>, operands, {}, name);
    names_.try_emplace(made.index, name);
    return made;
  }
  /// Whether an operator that is still there keeps a value at 0 or above.
  bool is_never_negative(std::uint32_t v, int depth) const {
    if (from_.at(v).producer < 0 || depth == 0) return false;
    const auto node = static_cast<std::uint32_t>(from_.at(v).producer);
    const std::span<const std::uint32_t> in = from_.view().inputs_of(node);
    if (is_kind(from_, node, ops::relu) || is_kind(from_, node, ops::sigmoid)) return true;
    if (is_kind(from_, node, ops::clip)) return from_.at(in[1]).has_scalar && from_.at(in[1]).scalar >= 0;
    if (is_kind(from_, node, ops::dequantize_linear)) {
      const std::optional<quantisation> q = quantisation_of(from_, node);
      return q && interval_of(*q).low == 0;
    }
    const bool moves = is_kind(from_, node, ops::reshape) || is_kind(from_, node, ops::transpose) ||
                       is_kind(from_, node, ops::slice) || is_kind(from_, node, ops::expand) ||
                       is_kind(from_, node, ops::max_pool) || is_kind(from_, node, ops::average_pool);
    return moves && is_never_negative(in[0], depth - 1);
  }

  /// A value that is quantised in several ways has an interval around all.
  void note(value v, const quantisation& q) {
    const quantised_interval its = interval_of(q);
    const auto [at, is_new] = intervals_.try_emplace(names_.at(v.index), its);
    if (!is_new) at->second = {std::min(at->second.low, its.low), std::max(at->second.high, its.high)};
  }

  const graph& from_;
  std::map<std::uint32_t, number> numbers_;     // by old value of integers
  std::map<std::uint32_t, std::string> names_;  // by new value
  std::map<std::string, quantised_interval> intervals_;
};

}  // namespace detail

/// Returns the network in floating point for which a quantised one stands. A quantize_linear of float32 to integers of 8 bits disappears,
/// and so do the dequantize_linear nodes that read them. Both must have the same scale and zero point for the whole tensor, in loaded
/// constants. Operators between them that only move or compare elements then do so in float32. Where the integers end at 0, a clip to
/// their interval stays, because quantisers remove relu and clip there. It is not needed where a value cannot be negative. Nodes that are
/// no longer read stay for `remove_dead`, and `fold_constants` makes float32 weights. Subgraphs stay as they are.
inline unquantised_network remove_quantisation(const graph& network) {
  detail::quantisation_remover remover(network);
  graph made =
      rewrite(network, {.constant = {}, .node = [&](rewriter& r, std::uint32_t n) { remover.node(r, n); }, .body = {}});
  return {std::move(made), std::move(remover).intervals()};
}

}  // namespace collage::inline v0
