// What every search returns, and when a search may stop early.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::search {

/// A chosen set of candidates that covers every node of a problem once, with its certificate.
struct placement {
  /// Indices into `problem::candidates`, ordered by the first node of each.
  std::vector<std::uint32_t> chosen;
  /// The plan's cost in milliseconds as `problem` says, added exactly (see `picoseconds`).
  double cost_ms = 0;
  /// No plan for the same problem costs less. Equal to `cost_ms` when `optimal`.
  double lower_bound_ms = 0;
  /// States expanded: distinct triples (first uncovered node, covered set beyond it, forms of the values between).
  std::size_t states = 0;
  /// Candidates that were tried from those states and fitted.
  std::size_t transitions = 0;
  /// Parts of the graph that were equal to one solved before, and took no states.
  std::size_t repeated = 0;
  /// Whether this plan is proven to be the best.
  bool optimal = false;

  /// How far the best plan may be below this one, as a part of this one's cost: 0 when proven optimal, below 1 always.
  double gap() const noexcept { return cost_ms > 0 ? (cost_ms - lower_bound_ms) / cost_ms : 0; }
};

/// When the exact search stops and answers with its best plan so far.
struct limits {
  /// Most states expanded, summed over the pieces of the graph. The result under this limit is deterministic.
  std::size_t states = 4'000'000;
  /// Most memory for the states that are kept at one time.
  std::size_t bytes = std::size_t{2} << 30U;
  /// Longest time for the search. Looked at between states; 0 asks for the incumbent at once.
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
};

}  // namespace collage::inline v0::search
