// The first complete plan in an order of preference: the incumbent of the exact search, and the greedy alternatives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "space.hpp"
#include "state_table.hpp"

namespace collage::inline v0::search::detail {

/// Whether two sets relative to the same node share a member. `a` has at most as many words.
inline bool overlap(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::uint64_t shared = 0;
  for (std::size_t i = 0; i < a.size(); ++i) shared |= a[i] & b[i];
  return shared != 0;
}
/// Writes the union of two sets relative to the same node. `a` has at most as many words.
inline void unite(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b, std::span<std::uint64_t> to) {
  std::ranges::transform(a, b.first(a.size()), to.begin(), std::bit_or<>());
  std::ranges::copy(b.subspan(a.size()), to.begin() + static_cast<std::ptrdiff_t>(a.size()));
}

/// All entries by node, as in the space. The entries of one node are in the order of `before(entry, entry)`.
template <class Before>
std::vector<std::uint32_t> preference(const space& s, Before before) {
  std::vector<std::uint32_t> order(s.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t node = 0; node < s.nodes; ++node) {
    std::sort(order.begin() + s.begin[node], order.begin() + s.end_of(node),
              [&](std::uint32_t a, std::uint32_t b) { return before(s.entries[a], s.entries[b]); });
  }
  return order;
}

/// Walks the nodes up to `end` (a cut). The first uncovered node gets the first entry in `order` that fits. If none
/// fits, the walk steps back. It remembers states without a completion and leaves each once, so it finds a plan if
/// there is one. `steps` bounds the entries tried and is counted down; at 0 the walk gives up. Entries that may be part
/// of a cycle are taken only `with_cycles`.
inline std::optional<std::vector<std::uint32_t>> first_fit(const space& s, std::span<const std::uint32_t> order,
                                                           std::uint32_t position, std::span<const std::uint64_t> mask,
                                                           std::uint32_t end, std::size_t& steps, bool with_cycles) {
  struct step {
    std::uint32_t position;
    std::uint32_t next;  // index into `order`
  };
  std::vector<std::uint32_t> taken;
  std::vector<step> path{{position, position < end ? s.begin[position] : 0}};
  std::vector<std::uint64_t> masks(mask.begin(), mask.end());  // for each step of the path, the nodes covered before it
  std::vector<std::uint64_t> next_mask(s.words);
  state_table dead(s.words);
  while (!path.empty()) {
    step& at = path.back();
    if (at.position >= end) return taken;
    const std::span<const std::uint64_t> covered = std::span(masks).last(s.words);
    if (at.next == s.end_of(at.position)) {
      dead.insert(at.position, covered);
      path.pop_back();
      masks.resize(masks.size() - s.words);
      if (!taken.empty()) taken.pop_back();
      continue;
    }
    if (steps == 0) return std::nullopt;
    --steps;
    const std::uint32_t e = order[at.next++];
    if (overlap(s.mask(e), covered) || (s.entries[e].may_cycle && !with_cycles)) continue;
    unite(s.mask(e), covered, next_mask);
    const std::uint32_t next = past_covered(at.position, next_mask);
    if (next < end && dead.contains(next, next_mask)) continue;
    taken.push_back(e);
    path.push_back({next, next < end ? s.begin[next] : 0});
    masks.insert(masks.end(), next_mask.begin(), next_mask.end());
  }
  return std::nullopt;
}

}  // namespace collage::inline v0::search::detail
