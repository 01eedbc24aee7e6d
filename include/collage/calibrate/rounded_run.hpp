// Runs a network as if several of its values and constants were stored in fewer bits, by its float32 kernels.
#pragma once

#include <collage/calibrate/confirm.hpp>
#include <collage/calibrate/value_errors.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <span>

namespace collage::inline v0 {

/// A run with all of these roundings at once, as a candidate for `confirm`. It needs no kernels of 8 or 16 bits. Several roundings of
/// one value follow one another. Not for several threads at the same time. Errors: those of measure_value_errors for requests.
network_run run_with_roundings(const graph& network, const placement& groups, backend_table backends,
                               std::span<const value_rounding> roundings, int threads = 0);

}  // namespace collage::inline v0
