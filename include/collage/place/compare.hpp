// Comparing placements of one network end to end.
#pragma once

#include <collage/measure/drift.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_step.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace collage::inline v0 {

/// Rounds with a shared cache and rounds with a split cache count alike if there are at least this many of each
/// (place_report::rounds_apart).
inline constexpr std::size_t enough_of_a_regime = 4;

/// True if two steps run the same.
bool same_step(const plan_step& a, const plan_step& b);

/// True if two placements run the same kernels and conversions for the same nodes and values.
bool same_steps(const placement& a, const placement& b);

/// Runs placements of a network end to end in interleaved rounds. Returns one figure for each, in their order, compared with the
/// first.
///
/// The rounds take about `seconds`; waiting for an undisturbed machine comes on top. `seed` determines the inputs'
/// contents. The monitor watches the machine (watch_machine) and may be null.
std::vector<plan_run> compare_placements(const graph& network, const std::vector<const placement*>& placements,
                                         backend_table backends, int threads, double seconds, std::uint64_t seed,
                                         const std::shared_ptr<packed_weights>& packed,
                                         drift_monitor* monitor = nullptr);

/// The index of the fastest run of a single backend; 0, which is the plan's run, if no single backend ran.
std::size_t best_single(const std::vector<plan_run>& runs);

}  // namespace collage::inline v0
