// Placement: composes measuring, search and a backend set into a plan.
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <array>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/kept_parts.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/holdups.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/weights.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The state of placing, for a line of progress.
struct place_progress {
  const char* stage =
      "";  ///< "listing", "measuring", "tuning", "searching", "comparing", "regions", or "waiting" for a process
  std::string what;      ///< the group being measured, the placement that runs end to end, or what is listed
  std::size_t done = 0;  ///< pieces of work that are finished, of done + remaining in all
  std::size_t remaining =
      0;  ///< with the current one. Some may be skipped: groups that cannot be part of the best placement.
          ///< Some are added when they are needed: conversions and regions
  double remaining_s = 0;  ///< an estimate, if all remaining ones are measured; 0 while nothing is known
  double best_ms = 0;      ///< cost of the best placement with the costs measured so far; 0 while nodes lack a cost
};

/// Results of a search of whole configuration spaces.
struct tuning_report {
  std::size_t rounds = 0;    ///< 0 also where nothing promised a gain
  std::size_t measured = 0;  ///< configurations
  double before_ms = 0;      ///< the cost of the best placement of the configurations that backends propose
  double after_ms = 0;       ///< of the best placement after the search
  double seconds = 0;        ///< all of it, 0 without such a search; and the parts for training and searching
  double training_s = 0, searching_s = 0;
  bool is_exhausted = false;       ///< it ended because nothing seemed worth another round, not for lack of time
  std::string without_model = {};  ///< why no cost model guided it, in one sentence; empty if one did
};

/// Results of the search over regions, for backends that compile whole networks.
struct region_report {
  std::size_t tried = 0;              ///< different divisions of the network; 0 without a search
  std::vector<double> by_generation;  ///< the shortest time after each, relative to the best before the search
  double ratio = 1;                   ///< the time of the selected plan, relative to the best before the search
  bool is_saturated = false;          ///< it ended because nothing improved any more, not for lack of time
};

/// Says in a report that no kernel was measured in the process that places.
inline constexpr const char* in_a_worker = "in a worker";

/// The extra time that kernels of one backend take for each operand that another backend wrote.
struct place_switch {
  std::string from, to;
  double ms = 0;
  std::size_t kernels = 0;  ///< how many kernels ran both ways; `ms` is the median of their differences
};

/// A report of placing, beyond the plan itself.
struct place_report {
  std::size_t candidates = 0;  ///< at all places of the network, without its subgraphs
  std::size_t distinct = 0;    ///< different candidates: the sum of those that are measured, from_store,
                               ///< interpolated, modelled, skipped and refused
  std::size_t measured = 0;    ///< measured now
  std::size_t from_store = 0;  ///< measured at an earlier time: the store has their costs
  std::size_t interpolated = 0, modelled = 0;  ///< by estimated costs: from other shapes, and by the model
  std::size_t skipped = 0;  ///< not measured: they cannot be part of the best placement, or time was up
  std::size_t checked = 0,
              unchecked = 0;     ///< without measuring: kernels that were compared now with the reference, or were not
                                 ///< for lack of time or of a reference
  std::size_t refused = 0;       ///< without a kernel, or with a wrong one, now or at an earlier time
  std::size_t conversions = 0;   ///< conversions between forms with a cost or a refusal; in none of the numbers above
  bool compared_before = false;  ///< the end-to-end times come from the store
  std::vector<place_refusal> refusals;
  std::size_t states = 0, transitions = 0;  ///< of the last search
  std::size_t searches = 0;                 ///< the last search, and earlier ones with fewer known costs
  bool interrupted = false;                 ///< the time was up, or the caller stopped it: the plan is the best so far
  double measuring_s = 0, search_ms = 0, comparing_s = 0;
  double waited_s = 0;  ///< part of these times: waiting for an undisturbed machine
  /// Rounds of end-to-end runs with a split cache (place/compare.hpp), and all rounds.
  std::size_t rounds_apart = 0, rounds = 0;
  tuning_report tuning;
  region_report regions;
  std::vector<place_switch> switches;  ///< empty if costs predict end-to-end times without them
  std::string where;                   ///< in_a_worker, or "in this process" and why; empty if nothing was measured
  std::string unstored;                ///< why measurements could not be written to the store; empty if they were
  process_holdups holdups;             ///< how the system kept the process from its processors meanwhile
};

/// The result of placing: a plan, and a report of how it was made.
struct placed_plan : plan {
  place_report report;
};

/// A placement constraint: which backend must or must not run some nodes.
struct place_rule {
  enum class action : std::uint8_t { pin, exclude } act = action::pin;  ///< only by this backend, or never
  std::string backend;
  std::string what;  ///< the name of a node or operator kind; otherwise of a pattern of the backend
};

/// How kernels are measured.
struct measuring_options {
  /// true: measures every distinct candidate, not only those that can still be part of the best placement.
  bool complete = false;
  /// Measures kernels in a process of their own, if main calls `collage::worker` (place/worker.hpp).
  bool workers = true;
  double worker_timeout_s = 60;  ///< for one step of one kernel; a kernel that takes longer is refused
  timing_options timing = {};    ///< how rivals are timed
  drift_options drift = {};      ///< when the machine counts as disturbed, and how long measuring waits for it
  /// Whether to provoke a split cache for some of the measurements. Hosts move virtual processors, so threads may share a cache
  /// at times and not at others (docs/measuring.md). Provoking it takes a few seconds. Not set: only on virtual machines.
  std::optional<bool> splits_caches = {};
  /// A clock other than the machine's, for simulations. Work that takes no time by this clock costs nothing. Workers use the
  /// machine's clock.
  time_source clock = {};
  std::array<drift_work, drift_signs> drift_works = {};  ///< replace the works of `watch_machine`
};

/// How placements are compared end to end.
struct comparing_options {
  /// How long placements run against every baseline. 0: no placement runs, and the plan is the one whose kernels take the least time alone.
  double seconds = 3;
  /// false: stored end-to-end results of placements are used; true: the placements run again.
  bool recheck = false;
};

/// The search of whole configuration spaces, for backends that have them (`search_space` in docs/adding-a-backend.md). Kernels of the
/// few configurations that a backend proposes are measured before that.
struct autotune_options {
  double seconds = 0;            ///< for how long it measures; 0: no such search
  std::size_t measurements = 0;  ///< the most configurations that it measures; 0: as many as there is time for
};

/// The search over regions, if the set has a backend that takes regions.
struct region_options {
  double seconds = 30;  ///< for how long the search starts new generations; 0: no such search
};

/// By which costs a network is placed.
enum class placing_costs : std::uint8_t {
  measured,  ///< kernels are timed, and placements run against each other; what the store knows is not timed again
  /// Nothing is timed and no worker starts. Costs that the store lacks at this shape come from other shapes of the same kernels. The
  /// rest come from a model that the store scales (docs/measuring.md). The placement is the cheapest by these costs. It is not
  /// compared with others end to end.
  estimated,
  /// Nothing is timed, and there are no costs. Each node goes to the first backend of the set that takes it and can build its
  /// kernel. Large patterns come first, as in engines with a priority list. Such a plan has no certificate.
  none
};

/// How a network is placed. Most programs set only some of the first members.
struct place_options {
  std::string network = "network";         ///< a name for people
  std::vector<std::string> backends = {};  ///< names of the backends to use; all of the set if empty
  std::vector<place_rule> rules = {};      ///< hold for all placements, baselines included
  int threads = 0;                         ///< 0: as many as the process may use
  placing_costs costs = placing_costs::measured;
  /// For `estimated`: the store's costs, if they were read before. It must outlive placing. Null: `store` is read.
  const cost_index* index = nullptr;
  /// Without measuring: for how many seconds, about, chosen kernels are compared with the reference before they are used. A kernel
  /// with a wrong result is refused, as by measuring. In large results only some elements are compared (docs/measuring.md). The
  /// results are kept in the store. 0: no kernel is compared. By estimated costs, kernels that the store has at this shape are not
  /// compared again. Kernels that were refused at another shape are refused if there is no time to compare them.
  double check_s = 2;
  /// A file of measured costs (measure/store.hpp); empty: none. Costs in it are not measured again, and new costs are added.
  /// Only one process at a time measures with a store.
  std::string store = {};
  /// true: a store that cannot be opened, read or written does not end placing. It goes on without the store, and
  /// place_report::unstored says why. For a store that the user did not name.
  bool store_is_optional = false;
  /// Limits the time of placing, in seconds; 0: no limit. When it is over, the best placement with the costs known so far is
  /// returned. Kernels are measured in the first part of the time, and placements are compared in the rest. A node for which no
  /// kernel was measured gets the first that can be built.
  double budget_s = 0;
  std::function<void(const place_progress&)> progress = {};  ///< called with the work that is done now
  std::function<bool()> stop = {};  ///< called often, also between measurements: true ends placing as the budget does
  /// Called often, also during measurements and at each call of a comparison: true abandons what is under way. Returned is the best
  /// placement so far. If some node has no measured kernel yet, there is none: an error of the kind `cancelled`. The store keeps all
  /// costs that were complete.
  std::function<bool()> cancel = {};
  /// Called with the first complete plan, and with each better one, for programs that may have to end before placing does.
  std::function<void(const plan&)> improved = {};
  /// Whether a placement that rounds values may become the plan. It is called for each that would be the fastest in the comparison end
  /// to end, and for baselines before they run. If it returns false, the next fastest is tried. Plans that were not compared are not
  /// passed to it, and neither are those of `improved`. Empty: all may.
  std::function<bool(const placement&)> accepts = {};
  /// An earlier plan of this network. It takes part in the comparison, and is returned if it is faster.
  const plan* previous = nullptr;
  /// true: also refuses kernels that do not pass NaN and infinity on as the reference does. Each kernel is checked when it is
  /// measured, with NaN and infinity among its inputs. Plans get slower if a library saves time by not passing NaN on
  /// (docs/measuring.md). Needs measured costs.
  bool keep_non_finite = false;
  /// Which kernels may compute by other algorithms than the operator's definition. How much they err is measured with each kernel.
  /// Without costs, `accurate` is as `direct`. By estimated costs, it takes other algorithms only where their kernels were measured, and
  /// were accurate at each measured shape.
  collage::algorithms algorithms = collage::algorithms::accurate;
  /// In which element types the kernels of a plan may store and multiply float32 values, and how far its outputs may err for it. The
  /// sum of the errors of all values that a plan rounds is within the bound. Subgraphs of branches and loops stay in float32. Needs
  /// measured costs.
  precision_options precision = {};
  /// Parts that stay in float32 nevertheless: no kernel that runs any of these nodes rounds a value or a weight.
  std::vector<kept_part> kept = {};
  /// How much memory the weights of a plan may take, as its kernels keep them. Kernels of other algorithms are faster with
  /// weights that are several times as large.
  weight_bound memory = {};
  /// Packed weights that the kernels which placing builds may use, as of engines of the same constants. Null: none.
  std::shared_ptr<packed_weights> packed = {};
  std::uint64_t seed = 1;            ///< of the random inputs that kernels are checked and timed with
  measuring_options measuring = {};  ///< how kernels are measured
  comparing_options comparing = {};  ///< how placements are compared end to end
  autotune_options autotune = {};    ///< the search of whole configuration spaces
  region_options regions = {};       ///< the search over regions
};

/// Places a network in these steps:
///
/// 1. Measures the distinct candidates that can be part of the best placement, and finds that placement exactly.
/// 2. Runs it end to end against every baseline and the previous plan.
/// 3. Measures its kernels within these runs, and tries other kernels there that may be faster than they are alone.
/// 4. Searches again with the new costs.
/// 5. Tries which parts are faster as regions, for backends that take regions (place/region_search.hpp).
///
/// Returns the fastest placement. The network's constants must have contents (`graph::bind`, `fill_constants`).
///
/// The log (run/log.hpp) gets what the report says about kernels and the store.
///
/// Errors: constants without contents; an unknown backend name; no available backend; a network with unknown extents; a
/// constraint, or a kept part, that names nothing. No plan whose weights keep the bound is an error, too. Nodes that no backend takes are one
/// error, which lists each refusal with its backend and reason.
placed_plan place(const graph& network, backend_table backends, const place_options& options = {});

/// The same for a backend set: `auto plan = place<backend_set<eigen, onednn>>(network);`.
template <backend_set_type Set>
placed_plan place(const graph& network, const place_options& options = {}) {
  return place(network, table_of<Set>, options);
}

}  // namespace collage::inline v0
