// A graph as fusion sees it: kinds, bytes and iteration spaces, and which node reads which value. It knows no operators
// and no libraries.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/op/inference.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

/// Means that there is no such node, value or group.
inline constexpr std::uint32_t none = 0xffff'ffffu;

/// The role of a node, beside its kind. Graphs of `collage::graph` have operations and views. The other roles are for
/// descriptions in which tuples, their fields and constants are nodes of their own.
enum class node_role : std::uint8_t {
  operation,
  tuple,
  projection,
  constant,
  host,  ///< no kernel runs for it: a view, a call
};

/// The facts about a value that fusion needs.
struct value_facts {
  std::uint64_t bytes = 0;
  /// A number for its shape: values of one space have the same extents. An elementwise loop over one of them is also a
  /// loop over the others.
  std::uint32_t space = 0;
};

struct flow_value : value_facts {
  std::uint32_t producer = none;  ///< a node; `none` for a value that the graph is given
  bool is_weight = false;         ///< given, and the same at every run
  bool is_output = false;         ///< read by the graph's user
  std::uint32_t first_reader = 0, readers = 0;
};

struct flow_node {
  fusion_kind kind = fusion_kind::opaque;
  node_role role = node_role::operation;
  /// Elements of each row of a node that works on rows one by one (a softmax over the last axis, a sum over trailing
  /// axes). 0 for any other node.
  std::uint32_t row = 0;
  std::uint32_t first_operand = 0, operands = 0;
  std::uint32_t first_output = 0, outputs = 0;
};

/// Nodes in a topological order, read by index, and the values between them. Made by `flow_builder`.
class dataflow {
 public:
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::span<const flow_node> nodes() const { return nodes_; }
  std::span<const flow_value> values() const { return values_; }
  const flow_node& node(std::uint32_t index) const { return nodes_[index]; }
  const flow_value& at(std::uint32_t value) const { return values_[value]; }
  fusion_kind kind(std::uint32_t node) const { return nodes_[node].kind; }

  /// The values that a node reads; a value that it reads twice is listed twice.
  std::span<const std::uint32_t> operands(std::uint32_t node) const {
    return std::span(operands_).subspan(nodes_[node].first_operand, nodes_[node].operands);
  }
  /// The nodes that read a value, ascending, each once.
  std::span<const std::uint32_t> readers(std::uint32_t value) const {
    return std::span(readers_).subspan(values_[value].first_reader, values_[value].readers);
  }

  /// The kind of the edge on which `reader` reads `value`: the kind of the reader. A broadcast that does not enlarge
  /// the value counts as elementwise.
  fusion_kind edge(std::uint32_t value, std::uint32_t reader) const {
    const flow_node& n = nodes_[reader];
    const bool same = n.outputs > 0 && values_[value].space == values_[n.first_output].space;
    return n.kind == fusion_kind::broadcast && same ? fusion_kind::elementwise : n.kind;
  }

  /// Calls visit(reader, value) for every value of the node and each of its readers.
  template <class Visit>
  void successors(std::uint32_t node, Visit&& visit) const {
    const flow_node& n = nodes_[node];
    for (std::uint32_t v = n.first_output; v < n.first_output + n.outputs; ++v)
      for (const std::uint32_t reader : readers(v)) visit(reader, v);
  }
  /// Calls visit(producer, value) for every operand that a node computes.
  template <class Visit>
  void predecessors(std::uint32_t node, Visit&& visit) const {
    for (const std::uint32_t v : operands(node))
      if (values_[v].producer != none) visit(values_[v].producer, v);
  }

  /// Whether the graph's user reads a value of the node.
  bool is_read_outside(std::uint32_t node) const {
    const flow_node& n = nodes_[node];
    for (std::uint32_t v = n.first_output; v < n.first_output + n.outputs; ++v)
      if (values_[v].is_output) return true;
    return false;
  }

  /// The same graph, in which the nodes that `check` refuses are opaque, so that fusion leaves them alone.
  template <class Check>
  dataflow restricted(Check&& check) const {
    dataflow copy = *this;
    for (std::uint32_t n = 0; n < size(); ++n) {
      if (check(*this, n)) continue;
      copy.nodes_[n].kind = fusion_kind::opaque;
      copy.nodes_[n].row = 0;
    }
    return copy;
  }

  /// Pairs (producer, reader), one for each value and reader, ascending. Boost.Graph makes its graphs from them.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> list;
    for (std::uint32_t n = 0; n < size(); ++n)
      successors(n, [&](std::uint32_t reader, std::uint32_t) { list.emplace_back(n, reader); });
    std::ranges::sort(list);
    return list;
  }

 private:
  friend class flow_builder;
  std::vector<flow_node> nodes_;
  std::vector<flow_value> values_;
  std::vector<std::uint32_t> operands_, readers_;
};

/// Makes a dataflow, node by node. A node's operands come before it, so no cycle can be made.
class flow_builder {
 public:
  /// Adds a value that the graph is given; returns its number.
  std::uint32_t given(const value_facts& facts, bool is_weight = false) {
    flow_value v{facts};
    v.is_weight = is_weight;
    flow_.values_.push_back(v);
    return static_cast<std::uint32_t>(flow_.values_.size() - 1);
  }

  /// Adds a node; returns the number of its first output, after which the other outputs follow. Errors: an operand that
  /// does not exist yet; a node that works on rows but has no operand.
  std::uint32_t node(fusion_kind kind, std::span<const std::uint32_t> operands, std::span<const value_facts> outputs,
                     node_role role = node_role::operation, std::uint32_t row = 0) {
    const auto first = static_cast<std::uint32_t>(flow_.values_.size());
    for (const std::uint32_t v : operands) {
      if (v >= first)
        throw error(error_kind::invalid_argument,
                    "reads value " + std::to_string(v) + ", which no earlier node computes",
                    "node " + std::to_string(flow_.nodes_.size()), "list nodes in a topological order, without cycles");
    }
    if (row > 0 && operands.empty())
      throw error(error_kind::invalid_argument, "works on rows, but reads nothing",
                  "node " + std::to_string(flow_.nodes_.size()));
    flow_node n{.kind = kind, .role = role, .row = row};
    n.first_operand = static_cast<std::uint32_t>(flow_.operands_.size());
    n.operands = static_cast<std::uint32_t>(operands.size());
    n.first_output = first;
    n.outputs = static_cast<std::uint32_t>(outputs.size());
    flow_.operands_.insert(flow_.operands_.end(), operands.begin(), operands.end());
    for (const value_facts& facts : outputs) {
      flow_value v{facts};
      v.producer = static_cast<std::uint32_t>(flow_.nodes_.size());
      flow_.values_.push_back(v);
    }
    flow_.nodes_.push_back(n);
    return first;
  }
  /// The same with one output.
  std::uint32_t node(fusion_kind kind, std::initializer_list<std::uint32_t> operands, const value_facts& output,
                     node_role role = node_role::operation, std::uint32_t row = 0) {
    return node(kind, std::span(operands.begin(), operands.size()), std::span(&output, 1), role, row);
  }

  /// Says that the graph's user reads the value. Error: there is no such value.
  void output(std::uint32_t value) {
    if (value >= flow_.values_.size())
      throw error(error_kind::invalid_argument, "there is no value " + std::to_string(value) + " to be an output",
                  "dataflow");
    flow_.values_[value].is_output = true;
  }

  const flow_value& at(std::uint32_t value) const { return flow_.values_[value]; }
  std::uint32_t node_count() const { return flow_.size(); }

  /// Returns the finished description; the builder is then empty.
  dataflow finish() {
    dataflow& f = flow_;
    std::vector<std::uint32_t> last(f.values_.size(), none);  // the last reader counted, so each counts once
    const auto each_reading = [&](auto&& visit) {
      std::ranges::fill(last, none);
      for (std::uint32_t n = 0; n < f.size(); ++n) {
        for (const std::uint32_t v : f.operands(n)) {
          if (std::exchange(last[v], n) != n) visit(f.values_[v], n);
        }
      }
    };
    each_reading([](flow_value& v, std::uint32_t) { ++v.readers; });
    std::uint32_t at = 0;
    for (flow_value& v : f.values_) {
      v.first_reader = at;
      at += std::exchange(v.readers, 0);
    }
    f.readers_.resize(at);
    each_reading([&](flow_value& v, std::uint32_t n) { f.readers_[v.first_reader + v.readers++] = n; });
    return std::exchange(flow_, {});
  }

 private:
  dataflow flow_;
};

}  // namespace collage::inline v0::fuse
