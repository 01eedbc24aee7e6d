// Placement: composes measuring, search and a backend set into a plan.
//
// Declarations. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <array>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// What is going on, for a line of progress.
struct place_progress {
  const char* stage = "";  ///< "measuring", "comparing", "regions", "waiting" for another process
  std::string what;        ///< the group being measured, or what runs end to end
  std::size_t done = 0;
  std::size_t remaining = 0;  ///< at most so many; groups that can no longer be part of the best placement are skipped
  double remaining_s = 0;     ///< roughly, if all of these are measured; 0 while nothing is known
  double best_ms = 0;         ///< cost of the best placement over what is measured so far; 0 while nodes lack a cost
};

/// What the search over regions did, for backends that compile whole networks.
struct region_report {
  std::size_t tried = 0;              ///< different divisions of the network; 0 where there was no search
  std::vector<double> by_generation;  ///< the least time after each, as a part of the best time before the search
  double ratio = 1;                   ///< the time of what is handed out, as a part of the best time before the search
  bool is_saturated = false;          ///< it ended because nothing was gained any more, not for want of time
};

/// How a report says that no kernel was measured in the process that places.
inline constexpr const char* in_a_worker = "in a worker";

/// By how much kernels of one backend were found to take longer for each operand that another backend wrote.
struct place_switch {
  std::string from, to;
  double ms = 0;
  std::size_t kernels = 0;  ///< so many ran both ways: it is the median of their differences
};

/// What happened, beyond the plan itself.
struct place_report {
  std::size_t candidates = 0;  ///< at all places of the network
  std::size_t distinct = 0;    ///< different ones
  std::size_t measured = 0;    ///< of these, now
  std::size_t from_store = 0;  ///< of these, at an earlier time
  std::size_t skipped = 0;     ///< of these, because they could not be part of the best placement, or for want of time
  std::size_t refused = 0;     ///< of these, because there is no kernel or it is wrong
  bool compared_before = false;  ///< the end-to-end figures are those of an earlier time, from the store
  std::vector<place_refusal> refusals;
  std::size_t states = 0, transitions = 0;  ///< of the last search
  std::size_t searches = 0;                 ///< the last one and those before it, with fewer costs known
  bool interrupted = false;                 ///< the time was up, or somebody said stop: the plan is the best so far
  double measuring_s = 0, search_ms = 0, comparing_s = 0;
  double waited_s = 0;  ///< of these, until the machine was calm
  /// Rounds of whole runs in which threads' processors shared no cache, as they do otherwise (place/compare.hpp), and all.
  std::size_t rounds_apart = 0, rounds = 0;
  region_report regions;
  std::vector<place_switch>
      switches;          ///< empty where costs predict what whole runs take without telling neighbours apart
  std::string where;     ///< in_a_worker, or "in this process" and why; empty where nothing was measured
  std::string unstored;  ///< why what was measured could not be put into the store; empty where it was
};

/// The result of placing: a plan, and a report of what happened while it was made.
struct placed_plan : plan {
  place_report report;
};

/// Says by whom nodes may be run.
struct place_rule {
  enum class action : std::uint8_t { pin, exclude } act = action::pin;  ///< only by this backend, or never
  std::string backend;
  std::string what;  ///< the name of a node or operator kind; else of a pattern of the backend
};

struct place_options {
  std::string network = "network";         ///< a name for people
  std::vector<std::string> backends = {};  ///< names to use; all of the set when empty
  std::vector<place_rule> rules = {};      ///< hold for all that is placed, single backends too
  int threads = 0;                         ///< 0: as many as the process may use
  std::uint64_t seed = 1;                  ///< of the random inputs kernels are checked and timed with
  timing_options timing = {};
  drift_options drift = {};
  /// Another clock than the machine's, for simulations: what costs no time on it costs nothing. Workers have the machine's.
  time_source time = {};
  std::array<drift_work, drift_signs> drift_works = {};  ///< and other works than those of `watch_machine`
  /// Whether processors are brought apart where several threads may share a cache at times and none at others: hosts move virtual
  /// ones about (docs/measuring.md). Takes some seconds. On virtual machines alone where it is not said.
  std::optional<bool> parts_processors = {};
  double compare_s = 3;  ///< for end-to-end runs against every single backend
  /// Where the set has a backend that takes regions: for how long the search over regions begins new generations;
  /// 0: not at all.
  double regions_s = 30;
  /// false: nothing runs; the first backend of the set that takes a node and can build its kernel gets it, its largest
  /// patterns first, as engines with a priority list do. Such a plan has no costs, no certificate and no comparison.
  bool measure = true;
  /// A file of costs measured at earlier times, which are not measured again, and of those measured now
  /// (measure/store.hpp); none where it is empty. One process at a time measures with a store.
  std::string store = {};
  /// false: end-to-end results of placements that the store has are taken as they are; true: they run again.
  bool recheck = false;
  /// true: kernels through which NaN or infinity do not pass as in the reference are refused, as those are that answer wrong
  /// numbers; each is asked while it is measured, with a few of them among what it reads. Costs time where libraries save it
  /// (docs/measuring.md). Not without measuring.
  bool keep_non_finite = false;
  /// true: measures every distinct candidate, not only those that can still be part of the best placement.
  bool complete = false;
  /// Where main calls `collage::worker` (place/worker.hpp), kernels are measured in a process of their own.
  bool workers = true;
  double worker_timeout_s = 60;  ///< for one step of one kernel; then it is refused
  /// A plan of this network made earlier: it runs in the comparison, too, and is handed out where it is faster.
  const plan* previous = nullptr;
  /// Seconds for all of it; 0 means as long as it takes. When they are over, the best placement over what was measured
  /// is handed out. They do not hold before every node has one kernel.
  double budget_s = 0;
  /// Asked between measurements: true ends placing as the budget does.
  std::function<bool()> stop = {};
  std::function<void(const place_progress&)> progress = {};
};

/// Measures the distinct candidates of the backends that can be part of the best placement, finds it exactly, runs it
/// end to end against every single-backend placement and the previous plan, measures its kernels within these runs,
/// tries others there that may be faster than they are alone, searches again with what that showed, tries which parts
/// of it are faster as regions of backends that take these (place/region_search.hpp), and hands out the fastest. The
/// network's constants must have contents (`graph::bind`, `fill_constants`). Errors: constants without contents; an
/// unknown backend name; no backend available; nodes that no backend takes, all in one message with who refused and
/// why; a network with unknown extents; a rule that names nothing.
placed_plan place(const graph& network, backend_table backends, const place_options& options = {});

/// The same over a backend set: `auto plan = place<backend_set<eigen, onednn>>(network);`.
template <backend_set_type Set>
placed_plan place(const graph& network, const place_options& options = {}) {
  return place(network, table_of<Set>, options);
}

}  // namespace collage::inline v0
