// Quantised networks whose precision is chosen anew: their network in floating point, with the ranges that the file has
// (docs/quantised-files.md).
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>

namespace collage::inline v0 {

/// A network without the rounding of a file, and the ranges of its values there.
struct requantised_network {
  graph network;          ///< with all passes of `optimise`
  network_ranges ranges;  ///< of this network: `within_error_options::ranges`
};

/// Removes the rounding of a quantised network as `remove_quantisation` does, and makes float32 weights of its integers. The constants of
/// the network have contents, and passes need not have run. A value that only moves or picks the numbers of another has its range.
/// Errors: no value is quantised by one known scale and zero point.
requantised_network requantise(const graph& quantised);

}  // namespace collage::inline v0
