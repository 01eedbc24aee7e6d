// The problem that the search solves: nodes in a topological order, and candidates that cover some of them at a cost.
#pragma once

#include <collage/error.hpp>
#include <collage/search/node_set.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::search {

/// The form of a value at the border of a candidate. The candidate reads the value from outside in this form, or writes
/// it for readers outside. A form is a way to store a value: its layout, memory space and precision.
struct border {
  std::uint32_t value = 0;  ///< index into `problem::values`
  std::uint32_t form = 0;   ///< below `value::forms` of that value
  friend auto operator<=>(const border&, const border&) = default;
};

/// An amount of a resource that a candidate uses.
struct use {
  /// No item: the amount is the candidate's own.
  static constexpr std::uint32_t own = 0xffff'ffffu;

  std::uint32_t resource = 0;  ///< index into `problem::resources`
  std::int64_t amount = 0;     ///< not negative
  /// The number of a shared item. Its amount counts once in a plan, however many chosen candidates name the item. All
  /// candidates that name it give the same amount.
  std::uint32_t item = own;
};

/// A group of nodes that one kernel computes, and its cost.
struct candidate {
  node_set nodes;
  /// Milliseconds, including the launch; finite and not negative.
  double cost_ms = 0;
  /// The caller's own number, which errors name. The search does not use it.
  std::uint32_t tag = 0;
  /// The runtime on whose threads or stream it runs, below `problem::runtimes`.
  std::uint32_t runtime = 0;
  /// Ascending by value. Values that are not listed are read and written in form 0.
  std::vector<border> borders = {};
  /// The amounts of resources that it uses. Amounts of one resource add up.
  std::vector<use> uses = {};
};

/// A tensor that nodes pass on to each other.
struct value {
  /// The node that computes it. `node_set::none` for an input of the network, which has form 0 and no runtime.
  std::uint32_t producer = node_set::none;
  /// Nodes that read it, ascending, each once.
  std::vector<std::uint32_t> readers;
  /// Whether it is also read outside the graph, in form 0.
  bool is_output = false;
  /// The number of forms in which it may be stored, at least 1. Each value numbers its own forms.
  std::uint32_t forms = 1;
  /// The costs of converting it, in milliseconds, as `forms` rows: [from * forms + to]. Empty: conversions are free.
  std::vector<double> convert_ms = {};
  /// The amounts that converting it uses: one such table for each resource, [(resource * forms + from) * forms + to].
  /// Empty: none.
  std::vector<std::int64_t> convert_amounts = {};
};

/// A quantity of which a plan may use a bounded amount, such as memory. The search does not know what it is. Amounts are
/// whole units of the caller's choice, so that sums are exact.
struct resource {
  std::string name;        ///< for messages
  std::int64_t bound = 0;  ///< the most that a plan may use
};

/// A placement problem. It does not say what a node computes.
///
/// The cost of a plan is the sum of its candidates' costs, its conversions and its switches. A value has one conversion
/// for each form in which some group reads it, other than the form in which it is written. It has one switch for each
/// runtime that reads it, other than its producer's. Nothing depends on the order of execution.
///
/// The amount of a resource that a plan uses is a sum too. It adds the own amounts of the candidates and the amounts of the
/// conversions. An item that any of the candidates names adds its amount once. Only `exact` and the checker read resources and `excluded`.
struct problem {
  /// `most_forms` holds for each value: the number of forms in which candidates may read and write it, including form 0.
  static constexpr std::uint32_t most_forms = 16, most_runtimes = 8;

  /// Nodes are 0 .. nodes - 1, numbered in a topological order. A good order keeps nodes that are fused close together:
  /// depth first rather than level by level. The number of states grows with the number of open groups. The exact search
  /// itself moves nodes without producers close to their readers.
  std::size_t nodes = 0;
  /// (producer, consumer), producer < consumer. Edges may be repeated.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<candidate> candidates;
  /// Nodes whose value leaves the graph, even if a node of the graph reads it too. Each is an exit of every group that
  /// it is in. Nodes without readers count as outputs without being listed.
  std::vector<std::uint32_t> outputs;

  std::uint32_t runtimes = 1;
  /// The costs of passing a value from one runtime to another, in milliseconds: [from * runtimes + to]. Empty: free.
  std::vector<double> switch_ms = {};
  /// The values whose form or runtime matters. There is an edge from each producer to each of its readers. If empty,
  /// node i computes value i, which has one form, and the edges give its readers.
  std::vector<value> values = {};
  /// A plan may use at most the bound of each.
  std::vector<resource> resources = {};
  /// Sets of candidates. A plan must not contain all candidates of one set. A caller that finds a plan unfit, for a reason
  /// that is not a sum, adds the responsible candidates here and searches again.
  std::vector<std::vector<std::uint32_t>> excluded = {};
  /// By node: the number by which errors of a search call it. Empty: its own.
  std::vector<std::uint32_t> names = {};
};

/// A cost as the search adds it: in whole picoseconds, so that sums are exact and do not depend on their order. Two
/// plans cost the same if and only if these sums are equal.
inline std::int64_t picoseconds(double milliseconds) { return std::llround(milliseconds * 1e9); }
/// Back to milliseconds.
inline double milliseconds(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-9; }

namespace detail {

/// The consumers of each node, or the producers, in one array.
struct neighbour_lists {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> nodes;

  explicit neighbour_lists(const problem& p, bool forward = true) : begin(p.nodes + 1), nodes(p.edges.size()) {
    for (const auto& [producer, consumer] : p.edges) ++begin[(forward ? producer : consumer) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<std::uint32_t> at(begin.begin(), begin.end());
    for (const auto& [producer, consumer] : p.edges)
      nodes[at[forward ? producer : consumer]++] = forward ? consumer : producer;
  }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

inline std::string name_of(const problem& p, std::size_t index) {
  return "candidate " + std::to_string(index) + " (tag " + std::to_string(p.candidates[index].tag) + ")";
}

/// "node 2" or "nodes 2, 5, 9".
inline std::string list_of(std::span<const std::uint32_t> nodes) {
  std::string text = nodes.size() == 1 ? "node " : "nodes ";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(nodes[i]);
  return text;
}

/// "nodes 2 to 9", or some of them where their names do not ascend.
inline std::string range_of(const problem& p, std::uint32_t begin, std::uint32_t end) {
  constexpr std::uint32_t few = 8;
  const std::vector<std::uint32_t>& names = p.names;
  const auto at = [&](std::uint32_t node) { return names.begin() + static_cast<std::ptrdiff_t>(node); };
  if (names.empty()) return "nodes " + std::to_string(begin) + " to " + std::to_string(end - 1);
  std::vector<std::uint32_t> some(at(begin), at(end));
  std::ranges::sort(some);
  if (some.back() - some.front() == some.size() - 1)
    return "nodes " + std::to_string(some.front()) + " to " + std::to_string(some.back());
  const bool is_long = some.size() > few;
  if (is_long) some.resize(few);
  return list_of(some) + (is_long ? ", ..." : "");
}

/// Collects the members whose value is needed outside the group. The caller passes `exits` to spare an allocation.
inline void find_exits(const node_set& group, const neighbour_lists& consumers, const std::vector<bool>& is_output,
                       std::vector<std::uint32_t>& exits) {
  exits.clear();
  for (const std::uint32_t node : group) {
    bool leaves = is_output[node] || consumers.of(node).empty();
    for (const std::uint32_t reader : consumers.of(node)) leaves = leaves || !group.contains(reader);
    if (leaves) exits.push_back(node);
  }
}

/// A node outside the group that lies on a path from one member to another, if there is one.
inline std::optional<std::uint32_t> node_between(const node_set& group, const neighbour_lists& consumers) {
  const std::uint32_t first = group.first();
  const std::uint32_t last = group.last();
  std::vector<std::uint32_t> through(last - first + 1, node_set::none);  // the outside node by which a path gets here
  for (std::uint32_t node = first; node <= last; ++node) {
    const bool inside = group.contains(node);
    const std::uint32_t by = through[node - first];
    if (inside && by != node_set::none) return by;
    if (!inside && by == node_set::none) continue;
    for (const std::uint32_t reader : consumers.of(node)) {
      if (reader > last || (inside && group.contains(reader))) continue;
      through[reader - first] = inside ? reader : by;
    }
  }
  return std::nullopt;
}

inline void check_graph(const problem& p) {
  using enum error_kind;
  if (p.nodes >= 0xffff'ffc0u) throw error(invalid_argument, "a graph may have at most 2^32 - 65 nodes", "search");
  if (!p.names.empty() && p.names.size() != p.nodes)
    throw error(invalid_argument,
                std::to_string(p.names.size()) + " names are given for " + std::to_string(p.nodes) + " nodes", "search",
                "name each node, or none");
  for (const auto& [producer, consumer] : p.edges) {
    const std::string edge = "edge " + std::to_string(producer) + " -> " + std::to_string(consumer);
    if (producer >= p.nodes || consumer >= p.nodes) {
      throw error(invalid_argument, "the graph has only " + std::to_string(p.nodes) + " nodes", edge);
    }
    if (producer >= consumer) {
      throw error(invalid_argument, "the graph is cyclic or its nodes are not in topological order", edge,
                  "number every producer below its consumers");
    }
  }
  for (const std::uint32_t node : p.outputs) {
    if (node < p.nodes) continue;
    throw error(invalid_argument, "the graph has only " + std::to_string(p.nodes) + " nodes",
                "output " + std::to_string(node));
  }
}

}  // namespace detail

/// The nodes that no candidate covers, ascending. Members that are not nodes of the graph are ignored here.
inline std::vector<std::uint32_t> uncovered(const problem& p) {
  std::vector<bool> covered(p.nodes);
  for (const candidate& c : p.candidates) {
    for (const std::uint32_t node : c.nodes) {
      if (node < p.nodes) covered[node] = true;
    }
  }
  std::vector<std::uint32_t> holes;
  for (std::size_t node = 0; node < p.nodes; ++node) {
    if (!covered[node]) holes.push_back(static_cast<std::uint32_t>(node));
  }
  return holes;
}

namespace detail {

/// Null if a cost is finite, not negative and small enough to add; else the fault of the cost.
inline const char* fault_of_cost(double cost, double most) {
  if (cost >= 0 && cost <= most) return nullptr;
  return std::isnan(cost)   ? "is not a number"
         : std::isinf(cost) ? "is infinite"
         : cost < 0         ? "is negative"
                            : "is too large to be added exactly";
}

inline void check_table(const std::vector<double>& table, std::size_t side, double most, const std::string& where) {
  using enum error_kind;
  if (table.empty()) return;
  if (table.size() != side * side)
    throw error(invalid_argument,
                "the table of costs has " + std::to_string(table.size()) + " entries for " + std::to_string(side) +
                    " x " + std::to_string(side),
                where);
  for (std::size_t i = 0; i < table.size(); ++i)
    if (const char* fault = fault_of_cost(table[i], most))
      throw error(invalid_argument,
                  "the cost from " + std::to_string(i / side) + " to " + std::to_string(i % side) + " " + fault, where,
                  "leave out candidates that need an impossible conversion or switch");
}

inline void check_values(const problem& p, double most) {
  using enum error_kind;
  const auto few = [](std::uint32_t count, std::uint32_t limit, const char* what) {
    if (count >= 1 && count <= limit) return;
    throw error(
        invalid_argument,
        std::to_string(count) + " " + what + " are given, but only 1 to " + std::to_string(limit) + " are allowed",
        "search");
  };
  few(p.runtimes, problem::most_runtimes, "runtimes");
  check_table(p.switch_ms, p.runtimes, most, "switches between runtimes");
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    const value& at = p.values[v];
    const std::string where = "value " + std::to_string(v);
    if (at.forms == 0) throw error(invalid_argument, "it has no form", where, "count form 0");
    check_table(at.convert_ms, at.forms, most, where);
    if (at.producer != node_set::none && at.producer >= p.nodes)
      throw error(invalid_argument, "its producer is node " + std::to_string(at.producer) + ", which does not exist",
                  where);
    for (std::size_t i = 0; i < at.readers.size(); ++i) {
      const std::uint32_t reader = at.readers[i];
      const bool late = at.producer == node_set::none || at.producer < reader;
      if (reader >= p.nodes || !late || (i != 0 && at.readers[i - 1] >= reader))
        throw error(
            invalid_argument,
            "its reader " + std::to_string(reader) + " does not exist, comes before its producer or is out of order",
            where);
    }
  }
}

/// Checks the values that one candidate reads and writes. `forms` holds the number of forms of each value.
inline void check_borders(const problem& p, std::size_t index, std::span<const std::uint32_t> forms) {
  using enum error_kind;
  const candidate& c = p.candidates[index];
  if (c.runtime >= p.runtimes)
    throw error(invalid_argument,
                "its runtime is " + std::to_string(c.runtime) + ", but there are " + std::to_string(p.runtimes),
                name_of(p, index));
  for (std::size_t i = 0; i < c.borders.size(); ++i) {
    const border& at = c.borders[i];
    if (at.value >= forms.size())
      throw error(invalid_argument, "it names value " + std::to_string(at.value) + ", which does not exist",
                  name_of(p, index));
    if (at.form >= forms[at.value])
      throw error(invalid_argument,
                  "it needs value " + std::to_string(at.value) + " in form " + std::to_string(at.form) +
                      ", but that value has " + std::to_string(forms[at.value]) + " forms",
                  name_of(p, index));
    if (i != 0 && c.borders[i - 1].value >= at.value)
      throw error(invalid_argument, "its borders are not ascending by value", name_of(p, index));
  }
}

/// Counts form 0 and the forms that candidates name. Values without a table of costs may have any number.
inline void check_number_of_forms(const problem& p) {
  if (std::ranges::all_of(p.values, [](const value& v) { return v.forms <= problem::most_forms; })) return;
  std::vector<std::vector<bool>> named(p.values.size());
  for (const candidate& c : p.candidates)
    for (const border& at : c.borders) {
      const value& v = p.values[at.value];
      if (v.forms <= problem::most_forms || (v.convert_ms.empty() && v.convert_amounts.empty())) continue;
      named[at.value].resize(v.forms);
      named[at.value][at.form] = true;
    }
  for (std::size_t v = 0; v < named.size(); ++v) {
    if (named[v].empty()) continue;
    named[v][0] = true;
    const auto count = std::ranges::count(named[v], true);
    if (static_cast<std::size_t>(count) > problem::most_forms)
      throw error(error_kind::invalid_argument,
                  "candidates read and write it in " + std::to_string(count) +
                      " forms, form 0 included, but the search handles at most " + std::to_string(problem::most_forms),
                  "value " + std::to_string(v), "leave out candidates");
  }
}

/// An upper bound on the number of costs that a plan adds.
inline double most_terms(const problem& p) {
  double terms = static_cast<double>(p.nodes + 1);  // at most one candidate per node
  if (p.runtimes > 1) terms += static_cast<double>(p.values.size() + p.nodes) * p.runtimes;
  for (const value& v : p.values)
    if (!v.convert_ms.empty() || !v.convert_amounts.empty()) terms += v.forms;
  return terms;
}

/// Whether a group has more than one entry. An entry is a member that reads a node outside, or no node at all. A single
/// entry reaches all other members inside the group.
inline bool has_several_entries(const node_set& group, const neighbour_lists& producers) {
  std::size_t entries = 0;
  for (const std::uint32_t node : group) {
    bool enters = producers.of(node).empty();
    for (const std::uint32_t producer : producers.of(node)) enters = enters || !group.contains(producer);
    entries += enters;
  }
  return entries > 1;
}

}  // namespace detail

/// Throws `error` unless the problem can be searched. Edges must ascend. Every candidate must have nodes, all of them in
/// the graph, and be convex. Its forms and its runtime must exist. Its cost must be finite, not negative and small
/// enough to add. Every node must have a candidate (else `error_kind::unsupported`, which names all such nodes at once).
///
/// Returns for each candidate whether it can be part of a cycle of groups. In a convex group with one exit, every path that
/// enters reaches that exit. With one entry, every path that leaves comes from that entry. So groups of these kinds never wait
/// for each other. Groups with several entries and several exits may (edges 1 -> 3 and 2 -> 4, groups {1, 4} and {2, 3}).
inline std::vector<bool> check(const problem& p) {
  using enum error_kind;
  detail::check_graph(p);
  // No sum can overflow if each cost is at most this.
  const double most_ms =
      static_cast<double>(std::numeric_limits<std::int64_t>::max() / 4) * 1e-9 / detail::most_terms(p);
  detail::check_values(p, most_ms);
  std::vector<std::uint32_t> forms;
  for (const value& v : p.values) forms.push_back(v.forms);
  const detail::neighbour_lists consumers(p);
  std::optional<detail::neighbour_lists> producers;  // few candidates need them
  std::vector<bool> is_output(p.nodes);
  for (const std::uint32_t node : p.outputs) is_output[node] = true;
  std::vector<bool> may_cycle(p.candidates.size());
  std::vector<std::uint32_t> exits;
  for (std::size_t i = 0; i < p.candidates.size(); ++i) {
    const candidate& c = p.candidates[i];
    if (c.nodes.empty()) throw error(invalid_argument, "it covers no node", detail::name_of(p, i));
    if (c.nodes.last() >= p.nodes) {
      throw error(invalid_argument,
                  "it covers node " + std::to_string(c.nodes.last()) + " but the graph has only " +
                      std::to_string(p.nodes) + " nodes",
                  detail::name_of(p, i));
    }
    if (const char* fault = detail::fault_of_cost(c.cost_ms, most_ms))
      throw error(invalid_argument, std::string("its cost ") + fault, detail::name_of(p, i),
                  "leave out candidates that could not be measured");
    detail::check_borders(p, i, forms);
    detail::find_exits(c.nodes, consumers, is_output, exits);
    if (exits.size() == 1) continue;  // one exit implies convex: a path that leaves elsewhere is another exit
    if (const auto between = detail::node_between(c.nodes, consumers)) {
      throw error(invalid_argument,
                  "it is not convex: a path between two of its nodes " + to_string(c.nodes) +
                      " leaves it through node " + std::to_string(*between),
                  detail::name_of(p, i));
    }
    if (!producers) producers.emplace(p, false);
    may_cycle[i] = detail::has_several_entries(c.nodes, *producers);
  }
  detail::check_number_of_forms(p);
  if (const std::vector<std::uint32_t> holes = uncovered(p); !holes.empty()) {
    throw error(unsupported, "no candidate covers " + detail::list_of(holes), "search",
                "add a backend that takes " + std::string(holes.size() == 1 ? "it" : "them"));
  }
  return may_cycle;
}

}  // namespace collage::inline v0::search
