// The pass that removes movements of elements that do nothing or undo each other.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/cast.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>
#include <collage/pass/rewrite.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

inline shape permutation_of(const graph& network, std::uint32_t node) {
  return from_words<ops::transpose_attributes>(network.view().words_of(node)).permutation;
}

/// Elementwise nodes between transposes that undo each other. On untransposed operands, these nodes give the
/// untransposed result.
class turned_regions {
 public:
  explicit turned_regions(const graph& network) : network_(network), turned_(network.nodes().size()) {
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
      if (is_kind(network, n, ops::transpose)) look_before(n);
  }

  /// Whether a node is computed on untransposed operands. For the transpose after a region: whether it disappears.
  bool turns(std::uint32_t node) const { return turned_[node]; }

  /// The operand of a turned node that takes the place of `old`.
  value operand(rewriter& r, std::uint32_t node, std::uint32_t old) const {
    const value_record& v = network_.at(old);
    if (v.role == value_role::constant) return constant(r, old, back_.at(node));
    const auto producer = static_cast<std::uint32_t>(v.producer);
    return r.of(turned_[producer] ? old : network_.view().inputs_of(producer)[0]);
  }

 private:
  /// Walks up from a transpose over elementwise nodes that only nodes of the region read. Later nodes come first, so
  /// the walk knows all readings inside the region when it meets a node. A node with other readers ends the walk.
  void look_before(std::uint32_t last) {
    const shape back = permutation_of(network_, last);
    std::vector<std::uint32_t> region;
    std::map<std::uint32_t, std::uint32_t, std::greater<>> readings = {{last, 0}};  // of nodes still to be met
    bool undoes = false;
    while (!readings.empty()) {
      const auto [node, count] = *readings.begin();
      readings.erase(readings.begin());
      if (node != last && !is_inside(node, count, back.size())) return;
      region.push_back(node);
      for (const std::uint32_t v : network_.view().inputs_of(node)) {
        const std::int32_t producer = network_.at(v).producer;
        if (node != last && is_transposed(v, back)) undoes = true;
        else if (producer >= 0) ++readings[static_cast<std::uint32_t>(producer)];
        else if (node == last || !is_line(v)) return;
      }
    }
    if (!undoes) return;
    for (const std::uint32_t n : region) {
      turned_[n] = true;
      back_.emplace(n, back);
    }
  }
  /// Whether the node is elementwise, and its result has this rank and exactly this number of readings.
  bool is_inside(std::uint32_t node, std::uint32_t readings, std::size_t rank) const {
    const value_record& result = network_.at(network_.view().output_of(node));
    return network_.node(node).kind->body != nullptr && result.uses == readings && !result.is_output &&
           result.type.rank() == rank;
  }
  bool is_transposed(std::uint32_t v, const shape& back) const {
    if (network_.at(v).producer < 0) return false;
    const auto producer = static_cast<std::uint32_t>(network_.at(v).producer);
    if (!is_kind(network_, producer, ops::transpose) || turned_[producer]) return false;
    const shape there = permutation_of(network_, producer);
    if (there.size() != back.size()) return false;
    for (std::size_t i = 0; i < back.size(); ++i)
      if (there[static_cast<std::size_t>(back[i])] != static_cast<std::int64_t>(i)) return false;
    return true;
  }
  /// Whether a value is a loaded constant with at most one extent above 1: transposing does not move its elements.
  bool is_line(std::uint32_t v) const {
    const value_record& record = network_.at(v);
    if (record.role != value_role::constant || network_.constant(v).bytes == nullptr) return false;
    return std::count_if(record.type.dims.begin(), record.type.dims.end(), [](auto e) { return e != 1; }) <= 1;
  }
  value constant(rewriter& r, std::uint32_t old, const shape& back) const {
    const tensor_type& type = network_.type_of(old);
    if (type.dims.elements() == 1) return r.of(old);
    shape dims;
    for (const std::int64_t from : back) {
      const std::size_t missing = back.size() - type.rank();
      const auto d = static_cast<std::size_t>(from);
      dims.push_back(d < missing ? 1 : type.dims[d - missing]);
    }
    return r.to().constant(r.fresh_name(network_.value_name(old)), {type.type, dims}, network_.constant(old).bytes);
  }

  const graph& network_;
  std::vector<bool> turned_;
  std::unordered_map<std::uint32_t, shape> back_;  // by turned node: the permutation of the transpose after its region
};

/// Cancels the movements in one graph.
class movement_canceller {
 public:
  explicit movement_canceller(const graph& from) : from_(from), regions_(from) {}

  void node(rewriter& r, std::uint32_t node) {
    if (is_kind(from_, node, ops::transpose)) return transpose(r, node);
    if (is_kind(from_, node, ops::reshape)) return reshape(r, node);
    const bool turns = regions_.turns(node), stays = !keeps_everything(node);
    if (!turns && stays) return r.copy_node(node);
    std::vector<value> operands;
    for (const std::uint32_t old : from_.view().inputs_of(node))
      operands.push_back(turns ? regions_.operand(r, node, old) : r.of(old));
    if (stays) r.replace(node, *from_.node(node).kind, operands, r.words_of(node));
    else r.put(from_.view().output_of(node), operands[0]);
  }

 private:
  /// How a new value was made from another: by a reshape, or by a transpose.
  struct movement {
    value source;
    std::optional<shape> permutation;  // of a transpose
  };

  const movement* movement_of(value v) const {
    return v.index < made_.size() && made_[v.index] ? &*made_[v.index] : nullptr;
  }
  void remember(value v, movement m) {
    if (made_.size() <= v.index) made_.resize(v.index + 1);
    made_[v.index] = std::move(m);
  }

  /// Whether a node of one of the other kinds returns its first operand unchanged.
  bool keeps_everything(std::uint32_t node) const {
    const graph_view view = from_.view();
    if (is_kind(from_, node, ops::concat)) return from_.node(node).inputs == 1;
    const bool is_pad = is_kind(from_, node, ops::pad), is_slice = is_kind(from_, node, ops::slice);
    if (!is_pad && !is_slice && !is_kind(from_, node, ops::expand) && !is_kind(from_, node, ops::tile) &&
        !is_kind(from_, node, ops::cast))
      return false;
    const tensor_type& type = from_.type_of(view.output_of(node));
    if (!type.dims.is_concrete() || type != from_.type_of(view.inputs_of(node)[0])) return false;
    const auto all = [](const shape& list, std::int64_t number) {
      return std::all_of(list.begin(), list.end(), [number](std::int64_t entry) { return entry == number; });
    };
    if (is_slice) return all(from_words<ops::slice_attributes>(view.words_of(node)).steps, 1);
    if (!is_pad) return true;
    const auto a = from_words<ops::pad_attributes>(view.words_of(node));
    return all(a.pads_begin, 0) && all(a.pads_end, 0);
  }

  void reshape(rewriter& r, std::uint32_t node) {
    const value x = r.operands_of(node)[0];
    const tensor_type& to = from_.type_of(from_.view().output_of(node));
    if (!to.dims.is_concrete()) return r.copy_node(node);
    reshape(r, node, x, to.dims);
  }
  /// Replaces a node by a reshape of x, or of the value that was reshaped to x; by no node where the shapes are equal.
  void reshape(rewriter& r, std::uint32_t node, value x, const shape& dims) {
    const std::uint32_t output = from_.view().output_of(node);
    if (const movement* m = movement_of(x); m != nullptr && !m->permutation) x = m->source;
    if (r.to().type_of(x).dims == dims) return r.put(output, x);
    // A node that need not change keeps its target as it was written.
    if (is_kind(from_, node, ops::reshape) && x == r.operands_of(node)[0]) r.copy_node(node);
    else
      r.replace(node, kind_of<decltype(ops::reshape)>, {&x, 1},
                to_words(ops::reshape_attributes{.dims = dims, .allow_zero = true}));
    remember(r.of(output), {x, {}});
  }

  void transpose(rewriter& r, std::uint32_t node) {
    const std::uint32_t output = from_.view().output_of(node);
    value x = r.operands_of(node)[0];
    if (regions_.turns(node)) return r.put(output, x);
    shape permutation = permutation_of(from_, node);
    const movement* const before = movement_of(x);
    const bool joined = before != nullptr && before->permutation;
    if (joined) {
      for (std::size_t i = 0; i < permutation.size(); ++i)
        permutation[i] = (*before->permutation)[static_cast<std::size_t>(permutation[i])];
      x = before->source;
    }
    const shape& dims = from_.type_of(output).dims;
    if (keeps_order(permutation, r.to().type_of(x).dims) && dims.is_concrete()) return reshape(r, node, x, dims);
    if (joined)
      r.replace(node, kind_of<decltype(ops::transpose)>, {&x, 1},
                to_words(ops::transpose_attributes{.permutation = permutation}));
    else r.copy_node(node);
    remember(r.of(output), {x, permutation});
  }
  /// Whether a transpose keeps the elements in their order: it moves only dimensions of one element.
  static bool keeps_order(const shape& permutation, const shape& dims) {
    std::int64_t last = -1;
    for (const std::int64_t from : permutation) {
      if (dims[static_cast<std::size_t>(from)] == 1) continue;
      if (from < last) return false;
      last = from;
    }
    return true;
  }

  const graph& from_;
  turned_regions regions_;
  std::vector<std::optional<movement>> made_;  // by new value
};

}  // namespace detail

/// Returns the graph without superfluous movements:
/// - a reshape of a reshape becomes one reshape, and a transpose of a transpose becomes one transpose;
/// - a transpose that moves only dimensions of one element becomes a reshape;
/// - transposes that undo each other disappear, also with elementwise nodes between them;
/// - so do nodes that change nothing: reshapes, expansions and tilings to the same shape, slices of everything, casts
///   to the same type, concatenations of one operand, paddings by nothing.
///
/// A graph output can then be an input or a constant. Nodes that are no longer read stay for `remove_dead`. Each
/// subgraph is treated in the same way, by itself.
inline graph cancel_movement(const graph& network) {
  detail::movement_canceller canceller(network);
  return rewrite(network, {.constant = {},
                           .node = [&](rewriter& r, std::uint32_t n) { canceller.node(r, n); },
                           .body = [](const graph& body) { return cancel_movement(body); }});
}

}  // namespace collage::inline v0
