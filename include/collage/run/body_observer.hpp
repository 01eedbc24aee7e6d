// Observers of subgraphs: called when a branch or loop runs one, for tools that look at every value of a network.
#pragma once

#include <collage/run/engine.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace collage::inline v0 {

/// Called around each run of a subgraph: once for a branch, and once for each round of a loop. Both functions must be given.
struct body_observer {
  void* data = nullptr;
  /// Subgraph `which` of node `node` begins to run. The node is one of the graph that runs at the time: the network's, or the one of the
  /// last `enter` without a `leave`. The observer that is returned sees the steps of the subgraph.
  step_observer (*enter)(void* data, std::uint32_t node, std::size_t which) = nullptr;
  void (*leave)(void* data) = nullptr;
};

/// While an object exists, the observer is called for all runs of subgraphs in the thread that made the object. Objects of one thread end
/// in the reverse order. Runs without one cost nothing more. Limits of a run (run_limits) are not checked within subgraphs meanwhile.
class observed_bodies {
 public:
  explicit observed_bodies(const body_observer& observer) : before_(std::exchange(here_, &observer)) {}
  observed_bodies(const observed_bodies&) = delete;
  observed_bodies& operator=(const observed_bodies&) = delete;
  ~observed_bodies() { here_ = before_; }

  /// The observer of this thread; null if there is none.
  static const body_observer* here() { return here_; }

 private:
  static inline thread_local const body_observer* here_ = nullptr;
  const body_observer* before_;
};

}  // namespace collage::inline v0
