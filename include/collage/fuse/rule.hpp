// Fusion rules: which operators a backend takes, and how far a group may grow towards its post-dominators.
//
// A rule is a value of a literal type with two members. A backend can declare it as a constant of its class:
//
//     struct short_chains {
//       bool accepts(const dataflow& flow, std::uint32_t node) const;    // the operator check
//       bool grows(const growth& g) const;                               // the fusion rule
//     };
//
// The form is that of the Collage paper's Listing 1 (Jeon and others, 2022): kind of the group so far, source, sink,
// and a helper. The helper looks at every node on every path between the two. `tvm_rule` is the rule of TVM's fuser.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <concepts>
#include <cstdint>
#include <span>

namespace collage::inline v0::fuse {

/// One question to a fusion rule: may the group that began at `source` take in all paths to `sink`, its next
/// post-dominator?
struct growth {
  const dataflow& flow;
  fusion_kind group;     ///< the largest kind in the group so far; a tuple counts as injective
  std::uint32_t source;  ///< where the group began
  std::uint32_t sink;
  fusion_kind edge;  ///< the largest kind of an edge on a path from the last sink to this one
  /// The nodes between: the last sink, unless it is the source, and all nodes on paths from it to this sink. Earlier
  /// nodes were checked in earlier calls.
  std::span<const std::uint32_t> way;

  /// The path helper: whether check(kind, is_sink) holds for every node but the source.
  template <class Check>
  bool each(Check&& check) const {
    return std::ranges::all_of(way, [&](std::uint32_t n) { return check(flow.kind(n), false); }) &&
           check(flow.kind(sink), true);
  }
  /// The same with nodes in place of kinds: check(node, is_sink).
  template <class Check>
  bool each_node(Check&& check) const {
    return std::ranges::all_of(way, [&](std::uint32_t n) { return check(n, false); }) && check(sink, true);
  }
};

template <class Rule>
concept growth_rule = requires(const Rule& rule, const dataflow& flow, std::uint32_t node, const growth& g) {
  { rule.accepts(flow, node) } -> std::convertible_to<bool>;
  { rule.grows(g) } -> std::convertible_to<bool>;
};

/// The rule of TVM's fuser (Chen and others, 2018; src/relay/transforms/fuse_ops.cc). After a convolution or product it
/// allows broadcasts that do not enlarge the result. It fuses elementwise and broadcast operators into movers and one
/// reduction, and movers into movers. Tuples are passed through, but no group ends in one.
struct tvm_rule {
  static constexpr bool moves(fusion_kind kind) { return kind <= fusion_kind::injective || kind == fusion_kind::tuple; }

  bool accepts(const dataflow& flow, std::uint32_t node) const { return flow.kind(node) != fusion_kind::opaque; }
  bool grows(const growth& g) const {
    switch (g.group) {
      case fusion_kind::anchor:
        return g.edge == fusion_kind::elementwise &&
               g.each([](fusion_kind kind, bool) { return kind <= fusion_kind::broadcast; });
      case fusion_kind::elementwise:
      case fusion_kind::broadcast:
        return g.each(
            [](fusion_kind kind, bool is_sink) { return is_sink ? kind <= fusion_kind::reduction : moves(kind); });
      case fusion_kind::injective:
        return g.each(
            [](fusion_kind kind, bool is_sink) { return is_sink ? kind <= fusion_kind::injective : moves(kind); });
      default: return false;
    }
  }
};

/// For backends that work row by row in cache: elementwise operators, broadcasts, movers if `movers` is set, and
/// operators on rows, in any order. Operators on rows work on rows one by one (softmax, norms, sums over trailing
/// axes).
struct row_rule {
  bool movers = true;

  bool fits(const dataflow& flow, std::uint32_t node) const {
    const fusion_kind most = movers ? fusion_kind::injective : fusion_kind::broadcast;
    return flow.kind(node) <= most || flow.node(node).row > 0;
  }
  bool accepts(const dataflow& flow, std::uint32_t node) const { return fits(flow, node); }
  bool grows(const growth& g) const {
    return g.each_node([&](std::uint32_t node, bool) { return fits(g.flow, node); });
  }
};

/// No fusion: every operator, alone. `for_operators` adds a check of operators.
struct single_rule {
  bool accepts(const dataflow&, std::uint32_t) const { return true; }
  bool grows(const growth&) const { return false; }
};

/// `rule`, for the operators that `check` allows: at the source, on the way and at the sink.
template <growth_rule Rule>
struct for_operators {
  bool (*check)(const dataflow& flow, std::uint32_t node);
  Rule rule;

  bool accepts(const dataflow& flow, std::uint32_t node) const { return check(flow, node) && rule.accepts(flow, node); }
  bool grows(const growth& g) const {
    return g.each_node([&](std::uint32_t node, bool) { return check(g.flow, node); }) && rule.grows(g);
  }
};
template <class Rule>
for_operators(bool (*)(const dataflow&, std::uint32_t), Rule) -> for_operators<Rule>;

}  // namespace collage::inline v0::fuse
