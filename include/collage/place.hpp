// Placement: composes measuring, search and a backend set into a plan.
//
// Declarations. The definitions are in collage/place/impl/placer.hpp, compiled in exactly one file (by default the target
// collage::place).
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// What is going on, for a line of progress.
struct place_progress {
  const char* stage = "";  ///< "measuring", "comparing"
  std::string what;        ///< the group being measured
  std::size_t done = 0;
  std::size_t remaining = 0;
  double best_ms = 0;  ///< cost of the best placement over what is measured so far; 0 while nodes lack a cost
};

/// What happened, beyond the plan itself.
struct place_report {
  std::size_t candidates = 0;  ///< at all places of the network
  std::size_t distinct = 0;    ///< different ones
  std::size_t measured = 0;
  std::vector<place_refusal> refusals;
  std::size_t states = 0, transitions = 0;  ///< of the search
  double measuring_s = 0, search_ms = 0, comparing_s = 0;
};

struct place_options {
  std::string network = "network";         ///< a name for people
  std::vector<std::string> backends = {};  ///< names to use; all of the set when empty
  int threads = 0;                         ///< 0: as many as the process may use
  std::uint64_t seed = 1;                  ///< of the random inputs kernels are checked and timed with
  timing_options timing = {};
  double compare_s = 3;  ///< for the end-to-end comparison with every single backend
  /// false: nothing runs; the first backend of the set that takes a node and can build its kernel gets it, its largest
  /// patterns first, as engines with a priority list do. Such a plan has no costs, no certificate and no comparison.
  bool measure = true;
  std::function<void(const place_progress&)> progress = {};
  place_report* report = nullptr;
};

/// Measures every distinct candidate of the backends, finds the cheapest placement exactly, compares it end to end with
/// every single-backend placement, and hands out the faster one. The network's constants must have contents
/// (`graph::bind`, `fill_constants`). Errors: constants without contents; an unknown backend name; no backend available;
/// nodes that no backend takes, all in one message with who refused and why; a network with unknown extents.
plan place(const graph& network, backend_table backends, const place_options& options = {});

/// The same over a backend set: `auto plan = place<backend_set<eigen, onednn>>(network);`.
template <backend_set_type Set>
plan place(const graph& network, const place_options& options = {}) {
  return place(network, table_of<Set>, options);
}

}  // namespace collage::inline v0
