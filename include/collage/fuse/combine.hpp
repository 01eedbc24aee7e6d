// Candidate rules and their combinators. Each is a value of a literal type that lists groups of a graph.
//
// The vocabulary is that of TVM's Collage (partition rules and combiner rules). Basic rules find groups by kind, by a
// function, or by growing to post-dominators. Combinators make a union, a closure under joins, named groups, or the
// valid groups alone. `list` returns the groups of a rule in a graph. The closure is complete: every group that some
// sequence of joins makes is in it.
#pragma once

#include <algorithm>
#include <collage/fuse/closure.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/generate.hpp>
#include <collage/fuse/group.hpp>
#include <collage/fuse/rule.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

template <class Rule>
concept candidate_rule = requires(const Rule& rule, const dataflow& flow, group_list& to) { rule.collect(flow, to); };

/// A backend that declares by `static constexpr auto rule` which groups it takes, beside or in place of patterns.
template <class Backend>
concept declares_rule = requires { requires candidate_rule<std::remove_cvref_t<decltype(Backend::rule)>>; };

/// All groups of a rule.
template <candidate_rule Rule>
group_list list(const Rule& rule, const dataflow& flow) {
  group_list found;
  rule.collect(flow, found);
  return found;
}

/// Every operator of at most this kind, alone.
struct by_kind {
  fusion_kind most = fusion_kind::anchor;
  void collect(const dataflow& flow, group_list& to) const {
    for (std::uint32_t n = 0; n < flow.size(); ++n)
      if (flow.node(n).role == node_role::operation && flow.kind(n) <= most) to.add(flow, {n});
  }
};

/// The groups that a function finds, such as the matches of patterns.
struct found_by {
  void (*find)(const dataflow& flow, group_list& to);
  void collect(const dataflow& flow, group_list& to) const { find(flow, to); }
};

/// The groups that the generator grows by a fusion rule. If there are more than `limits.groups`, only smaller groups are listed:
/// those with at most half as many nodes, or a quarter, and so on. So the groups cover the whole graph.
template <growth_rule Rule>
struct grown {
  Rule rule;
  generate_limits limits = {};
  void collect(const dataflow& flow, group_list& to) const {
    if (limits.groups == 0) return void(generate(flow, rule, to, limits));
    for (generate_limits most = limits;;) {
      group_list found;
      found.stop = to.stop;
      generate(flow, rule, found, most);
      if (found.complete || most.nodes == 1 || to.is_over()) {
        to.complete = to.complete && found.complete && most.nodes == limits.nodes;
        for (const group& g : found) to.add(g);
        return;
      }
      most.nodes = std::max<std::size_t>(1, (most.nodes == 0 ? flow.size() : most.nodes) / 2);
    }
  }
};
template <class Rule>
grown(Rule) -> grown<Rule>;
template <class Rule>
grown(Rule, generate_limits) -> grown<Rule>;

/// Nodes that are no operators and may stay with the host at no cost: tuples, their fields, constants, calls.
struct host {
  void collect(const dataflow& flow, group_list& to) const {
    for (std::uint32_t n = 0; n < flow.size(); ++n)
      if (flow.node(n).role != node_role::operation) to.add(flow, {n});
  }
};

/// The groups of all rules.
template <candidate_rule... Rules>
struct either {
  std::tuple<Rules...> rules;
  constexpr explicit either(Rules... all) : rules(all...) {}
  void collect(const dataflow& flow, group_list& to) const {
    std::apply([&](const Rules&... each) { (each.collect(flow, to), ...); }, rules);
  }
};

/// The groups of a rule, and all groups that joins make of them.
template <candidate_rule Rule, join_rule... Joins>
struct combine {
  Rule rule;
  closure_limits limits;
  std::tuple<Joins...> joins;
  constexpr combine(Rule of, closure_limits most, Joins... by) : rule(of), limits(most), joins(by...) {}
  void collect(const dataflow& flow, group_list& to) const {
    group_list seeds;
    rule.collect(flow, seeds);
    closure all(flow, limits);
    for (const group& g : seeds) all.seed(g);
    std::apply([&](const Joins&... each) { all.close(each...); }, joins);
    to.complete = to.complete && seeds.complete && all.groups().complete;
    for (const group& g : all.groups()) to.add(g);
  }
};

/// The groups of a rule under a name. The name stays with a group as a part when the group is joined to others.
template <candidate_rule Rule>
struct composite {
  const char* name;
  Rule rule;
  void collect(const dataflow& flow, group_list& to) const {
    group_list inner;
    rule.collect(flow, inner);
    to.complete = to.complete && inner.complete;
    for (group g : inner) {
      g.parts.push_back({name, g.nodes});
      to.add(std::move(g));
    }
  }
};
template <class Rule>
composite(const char*, Rule) -> composite<Rule>;

/// The groups of a rule that are valid within the limits.
template <candidate_rule Rule>
struct only_valid {
  limits allowed;
  Rule rule;
  void collect(const dataflow& flow, group_list& to) const {
    group_list all;
    rule.collect(flow, all);
    to.complete = to.complete && all.complete;
    for (const group& g : all)
      if (why_invalid(flow, g, allowed).empty()) to.add(g);
  }
};
template <class Rule>
only_valid(limits, Rule) -> only_valid<Rule>;

}  // namespace collage::inline v0::fuse
