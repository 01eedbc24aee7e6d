// Ranges of several passes as one, and ranges chosen anew without running the network again.
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <cstddef>

namespace collage::inline v0 {

/// The ranges of all samples of both, chosen as `a` says. If both have histograms with the same number of bins, nothing is lost: one pass
/// over all samples gives the same ranges. With different numbers of bins, the result is as of a pass with the smaller one. Errors: ranges
/// of different networks; weights per channel in only one of them; random samples in only one of them.
network_ranges merged(const network_ranges& a, const network_ranges& b);

/// The fewest bins of any histogram.
std::size_t fewest_bins(const network_ranges& in);

/// Chooses ranges anew from the histograms. Weights stay as they are. Errors: a method other than minmax for ranges without histograms; a
/// percentile out of its bounds.
void choose_again(network_ranges& ranges, range_method method, quantisation_schema schema, double percentile);

/// Throws if ranges were made for another network or for other weights. Then the fingerprint differs, or the name of a value, or the
/// smallest or largest number of a constant. `where` names the ranges in the error.
void check_ranges(const graph& network, const network_ranges& ranges, const std::string& where);

}  // namespace collage::inline v0
