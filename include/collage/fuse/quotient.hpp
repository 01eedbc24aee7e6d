// A graph whose nodes are groups of nodes, kept without cycles and in a topological order while groups are merged.
//
// A merge examines only the part of the order between the first and the last of the merged groups. Groups that a merged
// group reaches there must not reach a merged group, and are moved after it. This is the bounded search of incremental
// topological orders. Fusion in other compilers keeps a matrix of reachability up to date instead, and takes minutes.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/fuse/dataflow.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

class quotient {
 public:
  /// Makes every node a group of its own.
  explicit quotient(const dataflow& flow) : flow_(&flow), group_of_(flow.size()), members_(flow.size()) {
    std::iota(group_of_.begin(), group_of_.end(), 0u);
    for (std::uint32_t n = 0; n < flow.size(); ++n) members_[n] = {n};
    slot_ = at_ = group_of_;
    seen_.resize(flow.size(), 0);
  }
  /// Nodes with the same number in `group_of` are a group. Errors: more or fewer numbers than nodes; a number that is
  /// not below the number of nodes; groups that form a cycle.
  quotient(const dataflow& flow, const std::vector<std::uint32_t>& group_of)
      : flow_(&flow), group_of_(flow.size()), members_(flow.size()), slot_(flow.size(), none), seen_(flow.size(), 0) {
    const bool fits = group_of.size() == flow.size() &&
                      std::ranges::all_of(group_of, [&](std::uint32_t g) { return g < flow.size(); });
    if (!fits)
      throw error(error_kind::invalid_argument, "groups need a number for each node, below the number of nodes",
                  "fusion");
    std::vector<std::uint32_t> first(flow.size(), none);  // a group is named by its first node
    for (std::uint32_t n = 0; n < flow.size(); ++n) {
      std::uint32_t& name = first[group_of[n]];
      if (name == none) name = n;
      group_of_[n] = name;
      members_[name].push_back(n);
    }
    sort();
  }

  const dataflow& flow() const { return *flow_; }
  std::uint32_t group_of(std::uint32_t node) const { return group_of_[node]; }
  /// The nodes of a group, ascending.
  std::span<const std::uint32_t> members(std::uint32_t group) const { return members_[group]; }
  /// The position of a group in the order.
  std::uint32_t position(std::uint32_t group) const { return slot_[group]; }
  /// All groups, in a topological order.
  std::vector<std::uint32_t> groups() const {
    std::vector<std::uint32_t> list;
    std::ranges::copy_if(at_, std::back_inserter(list), [](std::uint32_t g) { return g != none; });
    return list;
  }

  /// Calls visit(group, value, reading node) for other groups that read from this group, perhaps several times for one
  /// group.
  template <class Visit>
  void successors(std::uint32_t group, Visit&& visit) const {
    for (const std::uint32_t n : members_[group])
      flow_->successors(n, [&](std::uint32_t reader, std::uint32_t v) {
        if (group_of_[reader] != group) visit(group_of_[reader], v, reader);
      });
  }
  /// Calls visit(group, value, reading node) for other groups from which this group reads, perhaps several times for
  /// one group.
  template <class Visit>
  void predecessors(std::uint32_t group, Visit&& visit) const {
    for (const std::uint32_t n : members_[group])
      flow_->predecessors(n, [&](std::uint32_t producer, std::uint32_t v) {
        if (group_of_[producer] != group) visit(group_of_[producer], v, n);
      });
  }

  /// Merges these groups into one, which gets the smallest of their names. Returns false and changes nothing if the
  /// merge would close a cycle.
  bool merge(std::span<const std::uint32_t> groups) {
    std::uint32_t low = none, high = 0, name = none;
    const std::uint64_t merged = ++round_, behind = ++round_;
    for (const std::uint32_t g : groups) {
      low = std::min(low, slot_[g]);
      high = std::max(high, slot_[g]);
      name = std::min(name, g);
      seen_[g] = merged;
    }
    std::vector<std::uint32_t> open(groups.begin(), groups.end());
    bool returns = false;
    while (!open.empty() && !returns) {
      const std::uint32_t g = open.back();
      open.pop_back();
      const bool outside = seen_[g] == behind;
      successors(g, [&](std::uint32_t to, std::uint32_t, std::uint32_t) {
        if (slot_[to] > high || seen_[to] == behind) return;
        if (seen_[to] == merged) return void(returns = returns || outside);
        seen_[to] = behind;
        open.push_back(to);
      });
    }
    if (returns) return false;

    std::vector<std::uint32_t> order, late;
    for (std::uint32_t s = low; s <= high; ++s) {
      const std::uint32_t g = at_[s];
      if (g == none || seen_[g] == merged) continue;
      (seen_[g] == behind ? late : order).push_back(g);
    }
    order.push_back(name);
    order.insert(order.end(), late.begin(), late.end());
    order.resize(high - low + 1, none);
    for (std::uint32_t s = low; s <= high; ++s) {
      at_[s] = order[s - low];
      if (at_[s] != none) slot_[at_[s]] = s;
    }
    for (const std::uint32_t g : groups) {
      if (g == name) continue;
      for (const std::uint32_t n : members_[g]) group_of_[n] = name;
      std::vector<std::uint32_t> both;
      std::ranges::merge(members_[name], members_[g], std::back_inserter(both));
      members_[name] = std::move(both);
      members_[g] = {};
    }
    return true;
  }

 private:
  /// Kahn's algorithm; among the groups that are ready, the group with the smallest name is next.
  void sort() {
    std::vector<std::uint32_t> waits(flow_->size(), 0);
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    std::size_t count = 0;
    for (std::uint32_t g = 0; g < flow_->size(); ++g) {
      if (members_[g].empty()) continue;
      ++count;
      predecessors(g, [&](std::uint32_t, std::uint32_t, std::uint32_t) { ++waits[g]; });
      if (waits[g] == 0) ready.push(g);
    }
    while (!ready.empty()) {
      const std::uint32_t g = ready.top();
      ready.pop();
      slot_[g] = static_cast<std::uint32_t>(at_.size());
      at_.push_back(g);
      // A reader of a value is listed once as a successor, but once for each operand as a predecessor.
      successors(g, [&](std::uint32_t to, std::uint32_t v, std::uint32_t reader) {
        waits[to] -= static_cast<std::uint32_t>(std::ranges::count(flow_->operands(reader), v));
        if (waits[to] == 0) ready.push(to);
      });
    }
    if (at_.size() != count)
      throw error(error_kind::invalid_argument, "the groups depend on each other in a cycle", "fusion");
  }
  const dataflow* flow_;
  std::vector<std::uint32_t> group_of_;
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<std::uint32_t> slot_, at_;  // the slot of each group, and the group in each slot of the order
  std::vector<std::uint64_t> seen_;       // the round in which a group was met
  std::uint64_t round_ = 0;
};

}  // namespace collage::inline v0::fuse
