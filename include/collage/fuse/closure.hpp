// The complete closure of groups under joins, by semi-naive evaluation over indexes of entries and exits.
//
// Groups are taken one by one. Each is joined with all groups taken before, as the upper and as the lower one; new
// groups wait for their turn. So every pair meets once. Groups that can be joined are found over the edge between them:
// each group is listed under its entry nodes and under its exit nodes.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/group.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

namespace collage::inline v0::fuse {

/// The groups that the closure keeps. A join never makes a group smaller, so a group beyond a limit is not joined
/// further. 0 is no limit.
struct closure_limits {
  std::size_t depth = 0;  ///< nodes on the longest path from an entry to an exit
  std::size_t nodes = 0;
  /// All groups together; where this ends the closure, `complete` of the list is false.
  std::size_t groups = 1'000'000;
};

class closure {
 public:
  closure(const dataflow& flow, closure_limits most)
      : flow_(&flow), most_(most), entered_(flow.size()), left_(flow.size()) {}

  const dataflow& flow() const { return *flow_; }
  const group_list& groups() const { return groups_; }
  /// The groups taken so far of which the node is an entry, or an exit.
  std::span<const std::size_t> entered_by(std::uint32_t node) const { return entered_[node]; }
  std::span<const std::size_t> left_by(std::uint32_t node) const { return left_[node]; }

  /// Adds a group to begin with; a group that is not convex or too large is left out.
  void seed(const group& g) {
    if (fits(g.nodes)) groups_.add(g);
  }

  /// Joins until nothing is new.
  template <class... Joins>
  void close(const Joins&... joins) {
    for (std::size_t i = 0; i < groups_.size() && groups_.complete; ++i) {
      take(i);
      (joins.join(*this, i), ...);
    }
  }

  /// Adds the union of these groups and of `nodes`, if they are disjoint, and the union is convex and within the
  /// limits. The nodes need not be in any group.
  void offer(std::span<const std::size_t> joined, node_set nodes = {}) {
    for (const std::size_t i : joined) {
      if (nodes.intersects(groups_[i].nodes)) return;
      nodes |= groups_[i].nodes;
    }
    if (groups_.contains(nodes) || refused_.contains(nodes)) return;
    if (!fits(nodes)) return void(refused_.insert(std::move(nodes)));
    if (groups_.size() >= most_.groups) {
      groups_.complete = false;
      return;
    }
    std::vector<named_part> parts;
    for (const std::size_t i : joined) parts.insert(parts.end(), groups_[i].parts.begin(), groups_[i].parts.end());
    groups_.add(*flow_, std::move(nodes), std::move(parts));
  }
  void offer(std::initializer_list<std::size_t> joined, node_set nodes = {}) {
    offer(std::span(joined.begin(), joined.size()), std::move(nodes));
  }

 private:
  bool fits(const node_set& nodes) const {
    return (most_.nodes == 0 || nodes.size() <= most_.nodes) && is_convex(*flow_, nodes) &&
           (most_.depth == 0 || depth(*flow_, nodes) <= most_.depth);
  }
  void take(std::size_t index) {
    const node_set& nodes = groups_[index].nodes;
    for (const std::uint32_t n : nodes) {
      if (is_entry(*flow_, nodes, n)) entered_[n].push_back(index);
      if (is_exit(*flow_, nodes, n)) left_[n].push_back(index);
    }
  }

  const dataflow* flow_;
  closure_limits most_;
  group_list groups_;
  std::unordered_set<node_set> refused_;  // looked up, never walked
  std::vector<std::vector<std::size_t>> entered_, left_;
};

template <class Join> concept join_rule = requires(const Join& rule, closure& c) { rule.join(c, std::size_t{}); };

/// Joins a group of at most kind `up` with a group of at most kind `down` that reads from it.
struct join_kinds {
  fusion_kind up, down;

  void join(closure& c, std::size_t index) const {
    const node_set nodes = c.groups()[index].nodes;  // copies: an offer moves the groups
    const fusion_kind kind = c.groups()[index].kind;
    for (const std::uint32_t n : nodes) {
      if (kind <= up)
        c.flow().successors(n, [&](std::uint32_t reader, std::uint32_t) {
          if (nodes.contains(reader)) return;
          for (const std::size_t other : c.entered_by(reader))
            if (c.groups()[other].kind <= down) c.offer({index, other});
        });
      if (kind <= down)
        c.flow().predecessors(n, [&](std::uint32_t producer, std::uint32_t) {
          if (nodes.contains(producer)) return;
          for (const std::size_t other : c.left_by(producer))
            if (c.groups()[other].kind <= up) c.offer({other, index});
        });
    }
  }
};

/// Joins a group with the field of a tuple that reads its value; neither does more than move elements.
struct join_projections {
  void join(closure& c, std::size_t index) const {
    if (c.groups()[index].kind > fusion_kind::injective) return;
    const node_set nodes = c.groups()[index].nodes;
    for (const std::uint32_t n : nodes) {
      c.flow().successors(n, [&](std::uint32_t reader, std::uint32_t) {
        if (!nodes.contains(reader) && c.flow().node(reader).role == node_role::projection)
          c.offer({index}, node_set{reader});
      });
    }
  }
};

/// Joins a group with all constants that it reads.
struct join_constants {
  void join(closure& c, std::size_t index) const {
    node_set constants;
    for (const std::uint32_t n : c.groups()[index].nodes) {
      c.flow().predecessors(n, [&](std::uint32_t producer, std::uint32_t) {
        if (c.flow().node(producer).role == node_role::constant) constants.insert(producer);
      });
    }
    if (!constants.empty()) c.offer({index}, constants);
  }
};

/// Joins a reader of a tuple, the tuple, and a group for each of its fields; none does more than move elements.
struct join_tuple_fields {
  void join(closure& c, std::size_t index) const {
    if (c.groups()[index].kind > fusion_kind::injective) return;
    const node_set nodes = c.groups()[index].nodes;
    for (const std::uint32_t n : nodes) {
      c.flow().predecessors(n, [&](std::uint32_t tuple, std::uint32_t) {
        if (is_tuple(c, nodes, tuple)) choose(c, tuple, {index}, 0);
      });
      c.flow().successors(n, [&](std::uint32_t tuple, std::uint32_t) {
        if (!is_tuple(c, nodes, tuple)) return;
        c.flow().successors(tuple, [&](std::uint32_t reader, std::uint32_t) {
          for (const std::size_t other : c.entered_by(reader))
            if (c.groups()[other].kind <= fusion_kind::injective) choose(c, tuple, {other}, 0);
        });
      });
    }
  }

 private:
  static bool is_tuple(const closure& c, const node_set& nodes, std::uint32_t node) {
    return c.flow().node(node).role == node_role::tuple && !nodes.contains(node);
  }
  /// Offers every choice of a group for each field from `field` on. One group may hold several fields.
  static void choose(closure& c, std::uint32_t tuple, std::vector<std::size_t> chosen, std::size_t field) {
    const auto fields = c.flow().operands(tuple);
    if (field == fields.size()) return c.offer(chosen, node_set{tuple});
    const std::uint32_t producer = c.flow().at(fields[field]).producer;
    if (producer == none) return;
    if (std::ranges::any_of(chosen, [&](std::size_t i) { return c.groups()[i].nodes.contains(producer); }))
      return choose(c, tuple, std::move(chosen), field + 1);
    for (const std::size_t other : c.left_by(producer)) {
      if (c.groups()[other].kind > fusion_kind::injective) continue;
      chosen.push_back(other);
      choose(c, tuple, chosen, field + 1);
      chosen.pop_back();
    }
  }
};

}  // namespace collage::inline v0::fuse
