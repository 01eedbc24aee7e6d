// How candidates are measured, and the results.
#pragma once

#include <collage/fwd.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/trial_data.hpp>
#include <collage/run/algorithm.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The result of measuring one candidate.
struct measured_candidate {
  std::string kernel;
  std::string refusal;  ///< why it cannot be used; empty if it can
  timing time;
  double cost_ms = 0;    ///< by the race with the rivals that were measured in the same call
  bool passing = false;  ///< the refusal is due to the machine's state, such as a lack of memory, not to the kernel
};

/// The step that a candidate is at. If it brings its process down, the refusal names this step.
enum class measuring_step : std::uint8_t { build, first_call, timing };

/// Everything but the conditions under which it was measured, and whether it is from the store.
inline void set_measured(measured_cost& cost, const measured_candidate& measured) {
  cost.time = measured.time;
  cost.alone_ms = measured.cost_ms;
  cost.kernel = measured.kernel;
  cost.refusal = measured.refusal;
  cost.passing = measured.passing;
}

/// How candidates are measured.
struct measuring_setup {
  int threads = 1;
  std::uint64_t seed = 1;  ///< of the values that the kernels read
  packed_weights* packed = nullptr;
  timing_options timing = {};
  drift_monitor* monitor = nullptr;  ///< null: drift is not monitored
  /// Called while a worker is at work: true ends the worker. The candidate under way is then refused. For groups without which
  /// a placement can be complete.
  std::function<bool()> give_up = {};
  /// True ends timing once each kernel has a sample. Once some kernel can be used, no other is built.
  std::function<bool()> stop = {};
  /// The time for all candidates of a list together, in milliseconds; 0: no limit. They are built in an order in which each backend
  /// and each kind of algorithm has its turn early. After half of the time no more are built, if some kernel can be used. Timing
  /// gets what is left, and takes at least `timing.least_rounds` samples.
  double slot_ms = 0;
  /// Every candidate is built, whatever the time: none does the work of another. So it is with conversions between layouts.
  bool needs_all = false;
  time_source time = {};
  /// Called before each step. `which` is a position in the list of candidates to measure; the step `timing` is for all of them.
  std::function<void(std::size_t which, measuring_step step)> note = {};
  /// The first call of each kernel runs in guarded memory, so that a kernel that writes elsewhere is caught or ends the process.
  /// For workers.
  bool fence = false;
  /// Kernels that do not pass on NaN or infinity as the reference does are refused.
  bool keep_non_finite = false;
  /// Kernels that compute by other algorithms are refused.
  collage::algorithms algorithms = collage::algorithms::all;
  /// The elements that are compared with the reference, for each value that the kernels write, in order.
  /// Empty: all elements.
  std::vector<selected_elements> compared = {};
};

}  // namespace collage::inline v0
