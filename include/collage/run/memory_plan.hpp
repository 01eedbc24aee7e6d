// Planning the arena: where every intermediate value lies, decided before anything runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace collage::inline v0 {

/// A block of memory needed from one step to another, both included.
struct memory_request {
  std::size_t bytes = 0;
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
};

/// Offsets for all requests, the size they need together, and the bound that no plan can beat.
struct memory_plan {
  std::vector<std::size_t> offset;
  std::size_t bytes = 0;
  std::size_t lower_bound = 0;  ///< the largest sum of blocks alive at one step
};

/// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020): largest
/// blocks first, each into the lowest gap left by the blocks that live at the same time. Offsets are multiples of
/// `alignment`.
inline memory_plan plan_memory(std::span<const memory_request> requests, std::size_t alignment = 64) {
  memory_plan plan;
  plan.offset.assign(requests.size(), 0);
  const auto rounded = [alignment](std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };

  std::uint32_t steps = 0;
  for (const memory_request& r : requests) steps = std::max(steps, r.last_step + 1);
  std::vector<std::size_t> alive(steps + 1, 0);
  for (const memory_request& r : requests)
    for (std::uint32_t s = r.first_step; s <= r.last_step; ++s) alive[s] += rounded(r.bytes);
  plan.lower_bound = *std::max_element(alive.begin(), alive.end());

  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return requests[a].bytes > requests[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t index : order) {
    const memory_request& r = requests[index];
    std::size_t at = 0;
    for (const std::size_t other : placed) {
      const memory_request& o = requests[other];
      if (o.last_step < r.first_step || r.last_step < o.first_step) continue;
      if (plan.offset[other] >= at + rounded(r.bytes)) break;
      at = std::max(at, plan.offset[other] + rounded(o.bytes));
    }
    plan.offset[index] = at;
    plan.bytes = std::max(plan.bytes, at + rounded(r.bytes));
    const auto position = std::upper_bound(placed.begin(), placed.end(), at, [&](std::size_t value, std::size_t other) {
      return value < plan.offset[other];
    });
    placed.insert(position, index);
  }
  return plan;
}

}  // namespace collage::inline v0
