// The result of every search, and the limits that stop a search early.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace collage::inline v0::search {

/// The resource of which no plan was found that keeps all bounds.
struct shortage {
  std::uint32_t resource = 0;  ///< index into `problem::resources`
  /// The least amount of it in any plan that was found. Plans that keep the other bounds come first, if there are any.
  std::int64_t least = 0;
  /// Whether it is proven that no plan keeps all bounds. Otherwise a limit ended the search.
  bool proven = false;
};

/// A chosen set of candidates that covers every node of a problem once, with its certificate.
struct placement {
  /// Indices into `problem::candidates`, in the order of each candidate's first node.
  std::vector<std::uint32_t> chosen;
  /// The cost of the plan in milliseconds, as `problem` defines it, added exactly (see `picoseconds`).
  double cost_ms = 0;
  /// No plan for the same problem costs less. Equal to `cost_ms` when `optimal`.
  double lower_bound_ms = 0;
  /// States expanded: distinct triples (first uncovered node, covered set beyond it, forms of the values between).
  std::size_t states = 0;
  /// Candidates that were tried from those states and fitted.
  std::size_t transitions = 0;
  /// Parts of the graph that were equal to a part solved before. They took no states.
  std::size_t repeated = 0;
  /// Whether this plan is proven to be the best.
  bool optimal = false;
  /// The amount of each resource that the plan uses. Empty without resources.
  std::vector<std::int64_t> amounts = {};
  /// Set if the plan breaks a bound, because no plan was found that keeps all of them. The plan is complete, and uses
  /// `shortage::least` of that resource.
  std::optional<shortage> lacks = {};

  /// How far the best plan may be below this plan, as a fraction of this plan's cost: 0 if proven optimal, always below 1.
  double gap() const noexcept { return cost_ms > 0 ? (cost_ms - lower_bound_ms) / cost_ms : 0; }
};

/// The limits at which the exact search stops and returns its best plan so far.
struct limits {
  /// Most states expanded, summed over the pieces of the graph. The result under this limit is deterministic.
  std::size_t states = 4'000'000;
  /// Most memory for the states that are kept at one time.
  std::size_t bytes = std::size_t{2} << 30U;
  /// Longest time for the search, checked between states. With 0 the search returns the incumbent at once.
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
  /// Called between states; true ends the search as the time does.
  std::function<bool()> stop = {};
  /// With bounded resources, the search stops at this gap (see `placement::gap`). With 0 it proves the best plan.
  double gap = 0.005;
  /// With bounded resources, the longest time for finding and proving plans within the bounds. It begins when the best
  /// plan without bounds is known.
  std::chrono::nanoseconds bounded_time = std::chrono::seconds(1);
};

}  // namespace collage::inline v0::search
