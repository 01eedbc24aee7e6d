// The limits of one kernel, and the bytes that it reads and writes.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::fuse {

/// The abilities of the code that a kernel runs. 0 is no limit.
struct kernel_limits {
  std::size_t nodes = 256;
  std::size_t arguments = 256;  ///< distinct values read, weights included
  std::size_t outputs = 8;      ///< values written; 1 for code that writes one
  /// Whether operators on rows (softmax, norms, reductions over trailing axes) may be anywhere in a kernel, and several
  /// of them. Code that holds a row in cache can do this. Otherwise a reduction is the end of its kernel.
  bool rows = false;
};

/// The traffic of a group. Bytes count only activations, because weights are read either way.
struct kernel_facts {
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::size_t arguments = 0, outputs = 0;
  std::uint64_t bytes() const { return read_bytes + written_bytes; }
};

/// Examines groups of nodes of one graph. Groups are ascending lists; every function is linear in their operands.
class surveyor {
 public:
  explicit surveyor(const dataflow& flow)
      : flow_(&flow), inside_(flow.size(), 0), read_(flow.values().size(), 0), state_(flow.size()) {}

  /// The traffic of a group. Counting ends at more than `most_arguments` arguments (0: no limit): a node may have thousands.
  kernel_facts measure(std::span<const std::uint32_t> nodes, std::size_t most_arguments = 0) {
    mark(nodes);
    kernel_facts facts;
    if (nodes.size() == 1 && flow_->node(nodes[0]).role == node_role::host) return facts;  // no kernel runs
    for (const std::uint32_t n : nodes) {
      for (const std::uint32_t v : flow_->operands(n)) {
        const flow_value& value = flow_->at(v);
        if (read_[v] == round_ || (value.producer != none && is_inside(value.producer))) continue;
        read_[v] = round_;
        if (++facts.arguments > most_arguments && most_arguments != 0) return facts;
        if (!value.is_weight) facts.read_bytes += value.bytes;
      }
      each_output(n, [&](std::uint32_t v) {
        if (!escapes(v)) return;
        ++facts.outputs;
        facts.written_bytes += flow_->at(v).bytes;
      });
    }
    return facts;
  }

  /// Why these nodes are not one kernel; empty if they are. `facts` are those of the nodes. A kernel
  /// - is a single operator, or holds no opaque operator;
  /// - has at most one convolution, product or pooling; nothing inside feeds it, and after it come elementwise
  ///   operators and broadcasts that keep its shape;
  /// - has at most one reduction, whose value is the only one that it writes (for `rows`, see kernel_limits);
  /// - writes values of one iteration space, and moves no elements after a node whose value it writes.
  const char* refusal(std::span<const std::uint32_t> nodes, const kernel_limits& most, const kernel_facts& facts) {
    if (nodes.size() <= 1) return "";
    const auto beyond = [](std::size_t count, std::size_t limit) { return limit != 0 && count > limit; };
    if (beyond(nodes.size(), most.nodes)) return "too many nodes";
    if (beyond(facts.arguments, most.arguments)) return "too many arguments";
    if (beyond(facts.outputs, most.outputs)) return "too many outputs";
    mark(nodes);
    if (const char* why = members(nodes, most); *why != '\0') return why;
    if (reductions_ > 0 && facts.outputs > 1) return "a reduction with other outputs";
    for (const std::uint32_t n : nodes)
      if (const char* why = edges_into(n); *why != '\0') return why;
    return spaces(nodes);
  }

 private:
  struct node_state {
    bool behind_anchor = false;  ///< it is an anchor, or depends on one
    bool below_exit = false;     ///< it writes a value, or depends on a node that does
    bool has_reader = false;     ///< inside the kernel
  };

  void mark(std::span<const std::uint32_t> nodes) {
    ++round_;
    for (const std::uint32_t n : nodes) inside_[n] = round_;
  }
  bool is_inside(std::uint32_t node) const { return inside_[node] == round_; }
  template <class Visit>
  void each_output(std::uint32_t n, Visit&& visit) const {
    const flow_node& node = flow_->node(n);
    for (std::uint32_t v = node.first_output; v < node.first_output + node.outputs; ++v) visit(v);
  }
  bool escapes(std::uint32_t v) const {
    return flow_->at(v).is_output ||
           std::ranges::any_of(flow_->readers(v), [&](std::uint32_t reader) { return !is_inside(reader); });
  }
  bool is_row(std::uint32_t n) const { return rows_ && flow_->node(n).row > 0; }

  const char* members(std::span<const std::uint32_t> nodes, const kernel_limits& most) {
    rows_ = most.rows;
    first_row_ = none;
    anchors_ = reductions_ = 0;
    for (const std::uint32_t n : nodes) {
      state_[n] = {};
      const fusion_kind kind = flow_->kind(n);
      if (is_row(n)) {
        if (first_row_ == none) first_row_ = n;
        const bool alike = flow_->node(n).row == flow_->node(first_row_).row && space_read(n) == space_read(first_row_);
        if (!alike) return "operators on different rows";
      } else if (kind == fusion_kind::opaque || flow_->node(n).outputs == 0) {
        return "an opaque operator";
      } else if (kind == fusion_kind::reduction) {
        ++reductions_;
      } else if (kind == fusion_kind::anchor) {
        ++anchors_;
      }
    }
    if (anchors_ + reductions_ > 1 || (anchors_ + reductions_ > 0 && first_row_ != none))
      return "two anchors or reductions, or one of them with rows";
    return "";
  }

  const char* edges_into(std::uint32_t n) {
    const fusion_kind kind = flow_->kind(n);
    const bool row = is_row(n);
    node_state& state = state_[n];
    const char* why = "";
    bool fed = false;
    flow_->predecessors(n, [&](std::uint32_t producer, std::uint32_t v) {
      if (!is_inside(producer)) return;
      fed = true;
      node_state& from = state_[producer];
      from.has_reader = true;
      state.behind_anchor = state.behind_anchor || from.behind_anchor;
      state.below_exit = state.below_exit || from.below_exit;
      if (from.behind_anchor && flow_->edge(v, n) != fusion_kind::elementwise)
        why = "an operator that is not elementwise after an anchor";
      if (flow_->kind(producer) == fusion_kind::reduction && !is_row(producer)) why = "an operator after a reduction";
    });
    const bool moves = !row && (kind == fusion_kind::injective || kind == fusion_kind::tuple);
    if (fed && kind == fusion_kind::anchor) why = "an operator before an anchor";
    if (fed && moves && (state.below_exit || first_row_ != none)) why = "elements moved after an output or a row";
    if (kind == fusion_kind::anchor) state.behind_anchor = true;
    each_output(n, [&](std::uint32_t v) { state.below_exit = state.below_exit || escapes(v); });
    return why;
  }

  /// All written values must have one space. With operators on rows, it is the space of the rows; values of reduced
  /// rows may be written as well.
  const char* spaces(std::span<const std::uint32_t> nodes) const {
    std::uint32_t space = first_row_ == none ? none : space_read(first_row_);
    const char* why = "";
    for (const std::uint32_t n : nodes) {
      bool writes = false;
      each_output(n, [&](std::uint32_t v) {
        if (!escapes(v)) return;
        writes = true;
        const std::uint32_t of = flow_->at(v).space;
        if (space == none) space = of;
        if (of != space && !(first_row_ != none && of == row_space(nodes))) why = "outputs of different shapes";
      });
      if (anchors_ > 0 && writes && !state_[n].behind_anchor && !state_[n].has_reader)
        why = "an output that does not depend on the anchor";
    }
    return why;
  }
  std::uint32_t space_read(std::uint32_t n) const { return flow_->at(flow_->operands(n)[0]).space; }
  std::uint32_t row_space(std::span<const std::uint32_t> nodes) const {
    for (const std::uint32_t n : nodes)
      if (is_row(n) && flow_->kind(n) == fusion_kind::reduction) return flow_->at(flow_->node(n).first_output).space;
    return none;
  }

  const dataflow* flow_;
  std::vector<std::uint64_t> inside_, read_;  // the round in which a node was inside, or a value was counted
  std::vector<node_state> state_;
  std::uint64_t round_ = 0;
  bool rows_ = false;
  std::uint32_t first_row_ = none;
  std::size_t anchors_ = 0, reductions_ = 0;
};

}  // namespace collage::inline v0::fuse
