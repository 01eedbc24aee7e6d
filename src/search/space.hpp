// A problem prepared for a walk in canonical order.
#pragma once

#include <collage/search/objective.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace collage::inline v0::search::detail {

/// A candidate in a space.
struct entry {
  std::int64_t cost = 0;    ///< picoseconds
  std::int64_t excess = 0;  ///< cost minus the shares of its nodes, never negative
  std::uint32_t index = 0;  ///< into `problem::candidates`
  std::uint32_t size = 0;   ///< number of nodes
  bool may_cycle = false;   ///< may wait for another group that waits for it
  std::uint32_t mask_words = 0;
  std::size_t mask = 0;  ///< where its mask begins in `space::masks`
};

/// The candidates of a problem by their first node, where canonical order considers them. Each has its nodes as a mask
/// relative to that first node. A mask has as many words as it needs: one candidate may hold the whole graph.
///
/// Shares are the admissible bound. The share of a node is the least cost / size among the candidates that cover it. A
/// plan pays at least the share of each node, so the shares of the uncovered nodes bound the rest of a plan from below.
/// The excess of a candidate is its cost without its nodes' shares. Best-first search by cost + bound equals Dijkstra's
/// algorithm over excesses: `bound` plus the excesses on a path is the path's cost.
struct space {
  std::uint32_t nodes = 0;
  std::size_t words = 1;             ///< 64-bit words of a covered set: the widest candidate fits
  std::vector<std::uint32_t> begin;  ///< per node and at the end: its range of entries
  std::vector<entry> entries;        ///< by first node; the entries of one node have no promised order
  std::vector<std::uint64_t> masks;  ///< of the entries, one after the other; bit i is node first + i
  std::vector<std::int64_t> shares;  ///< per node, picoseconds, rounded down
  std::int64_t bound = 0;            ///< sum of the shares
  std::vector<std::uint32_t> cuts;   ///< 0, nodes, and every position between that no candidate straddles

  /// The last word is not 0.
  std::span<const std::uint64_t> mask(std::size_t entry) const {
    return std::span(masks).subspan(entries[entry].mask, entries[entry].mask_words);
  }
  std::uint32_t end_of(std::uint32_t node) const { return begin[node + 1]; }
};

/// Adds the nodes of a candidate relative to its first node. Returns the number of words.
inline std::uint32_t add_mask(const node_set& nodes, std::vector<std::uint64_t>& masks) {
  const std::span<const std::uint64_t> from = nodes.words();
  const auto low = static_cast<unsigned>(nodes.first() % 64);
  const std::size_t begin = masks.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint64_t next = i + 1 < from.size() && low != 0 ? from[i + 1] << (64 - low) : 0;
    masks.push_back((from[i] >> low) | next);
  }
  if (masks.back() == 0) masks.pop_back();
  return static_cast<std::uint32_t>(masks.size() - begin);
}

/// Leaves out entries that no best plan contains. Such an entry costs more than another with the same nodes, borders
/// and runtime, or the same at a higher index. Where borders are free, it may also cost more than its nodes one by one.
/// Entries that tie with their single nodes stay, since fewer groups win ties.
inline void drop_dominated(space& s, const problem& p) {
  std::vector<std::int64_t> alone(s.nodes, -1);
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    for (std::uint32_t e = s.begin[node]; e < s.end_of(node); ++e) {
      const entry& at = s.entries[e];
      if (at.size == 1 && (alone[node] < 0 || at.cost < alone[node])) alone[node] = at.cost;
    }
  }
  const bool free_borders = !has_borders(p);
  const auto loses_to_single_nodes = [&](std::uint32_t node, std::uint32_t e) {
    std::int64_t sum = 0;
    const std::span<const std::uint64_t> mask = s.mask(e);
    for (std::size_t w = 0; w < mask.size(); ++w) {
      for (std::uint64_t rest = mask[w]; rest != 0; rest &= rest - 1) {
        const std::int64_t one = alone[node + 64 * w + static_cast<std::size_t>(std::countr_zero(rest))];
        if (one < 0) return false;
        sum += one;
      }
    }
    return sum < s.entries[e].cost;
  };
  const auto are_twins = [&](std::uint32_t a, std::uint32_t b) {
    if (!std::ranges::equal(s.mask(a), s.mask(b))) return false;
    if (free_borders) return true;
    const candidate& first = p.candidates[s.entries[a].index];
    const candidate& second = p.candidates[s.entries[b].index];
    return first.runtime == second.runtime && first.borders == second.borders;
  };
  std::vector<std::uint64_t> hashes;  // of one node's kept entries: most comparisons end there
  std::uint32_t kept = 0;
  std::uint32_t from = 0;
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    const std::uint32_t to = s.end_of(node);
    const std::uint32_t first_kept = kept;
    hashes.clear();
    for (std::uint32_t e = from; e < to; ++e) {
      if (free_borders && loses_to_single_nodes(node, e)) continue;
      std::uint64_t hash = 0;
      for (const std::uint64_t word : s.mask(e)) hash = (hash ^ word) * 0x9e37'79b9'7f4a'7c15u;
      std::uint32_t twin = first_kept;
      while (twin < kept && (hashes[twin - first_kept] != hash || !are_twins(e, twin))) ++twin;
      const entry& at = s.entries[e];
      if (twin < kept) {
        entry& other = s.entries[twin];
        if (at.cost < other.cost || (at.cost == other.cost && at.index < other.index)) other = at;
        continue;
      }
      hashes.push_back(hash);
      s.entries[kept] = at;
      ++kept;
    }
    from = to;
    s.begin[node + 1] = kept;
  }
  s.entries.resize(kept);
}

/// Calls `visit(node)` for every node of an entry whose first node is `first`.
template <class Visit>
void for_each_node(const space& s, std::uint32_t first, std::uint32_t e, Visit visit) {
  const std::span<const std::uint64_t> mask = s.mask(e);
  for (std::size_t w = 0; w < mask.size(); ++w) {
    for (std::uint64_t rest = mask[w]; rest != 0; rest &= rest - 1) {
      visit(first + static_cast<std::uint32_t>(64 * w) + static_cast<std::uint32_t>(std::countr_zero(rest)));
    }
  }
}

inline void add_bound(space& s) {
  s.shares.assign(s.nodes, std::numeric_limits<std::int64_t>::max());
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    for (std::uint32_t e = s.begin[node]; e < s.end_of(node); ++e) {
      const std::int64_t share = s.entries[e].cost / s.entries[e].size;
      for_each_node(s, node, e, [&](std::uint32_t member) { s.shares[member] = std::min(s.shares[member], share); });
    }
  }
  s.bound = std::accumulate(s.shares.begin(), s.shares.end(), std::int64_t{0});
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    for (std::uint32_t e = s.begin[node]; e < s.end_of(node); ++e) {
      s.entries[e].excess = s.entries[e].cost;
      for_each_node(s, node, e, [&](std::uint32_t member) { s.entries[e].excess -= s.shares[member]; });
    }
  }
}

inline void add_cuts(space& s) {
  s.cuts.assign(1, 0);
  std::uint32_t reach = 0;  // one past the last node of any candidate that begins before the position
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    if (node != 0 && reach <= node) s.cuts.push_back(node);
    for (std::uint32_t e = s.begin[node]; e < s.end_of(node); ++e) {
      const std::span<const std::uint64_t> mask = s.mask(e);
      reach = std::max(reach, node + static_cast<std::uint32_t>(64 * mask.size()) -
                                  static_cast<std::uint32_t>(std::countl_zero(mask.back())));
    }
  }
  if (s.nodes != 0) s.cuts.push_back(s.nodes);
}

/// `costs` are the candidates' costs in picoseconds; `may_cycle` is the result of `check`. With `reduce`, dominated
/// candidates are left out.
inline space make_space(const problem& p, std::span<const std::int64_t> costs, const std::vector<bool>& may_cycle,
                        bool reduce) {
  space s;
  s.nodes = static_cast<std::uint32_t>(p.nodes);
  s.begin.resize(p.nodes + 1);
  std::uint32_t width = 1;
  for (const candidate& c : p.candidates) {
    const std::uint32_t first = c.nodes.first();
    ++s.begin[first + 1];
    width = std::max(width, c.nodes.last() - first + 1);
  }
  s.words = (width + 63) / 64;
  for (std::size_t node = 0; node < p.nodes; ++node) s.begin[node + 1] += s.begin[node];
  s.entries.resize(p.candidates.size());
  std::vector<std::uint32_t> at(s.begin.begin(), s.begin.end());
  for (std::size_t i = 0; i < p.candidates.size(); ++i) {
    const node_set& nodes = p.candidates[i].nodes;
    const std::uint32_t e = at[nodes.first()]++;
    const std::size_t mask = s.masks.size();
    s.entries[e] = {.cost = costs[i],
                    .index = static_cast<std::uint32_t>(i),
                    .size = static_cast<std::uint32_t>(nodes.size()),
                    .may_cycle = may_cycle[i],
                    .mask_words = add_mask(nodes, s.masks),
                    .mask = mask};
  }
  if (reduce) drop_dominated(s, p);
  add_bound(s);
  add_cuts(s);
  return s;
}

}  // namespace collage::inline v0::search::detail
