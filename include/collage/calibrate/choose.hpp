// How intervals are chosen from histograms: minimum and maximum, percentile, entropy, mean square error.
#pragma once

#include <collage/calibrate/histogram.hpp>
#include <collage/calibrate/ranges.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// The interval that numbers should cover, which contains zero. For the symmetric schemas it is [-t, t], or [0, t] with unsigned
/// numbers. Deterministic. `percentile` is the share that is kept by that method, in percent, in (0, 100]. Errors: a histogram without
/// any number but zero; a percentile outside of its bounds.
interval chosen_range(const value_histogram& seen, range_method method, quantisation_schema schema, double percentile);

/// The mean square error of all numbers if they are rounded to 8 bits under `how`, and clipped. Numbers are taken as spread evenly within
/// their bins. Zero has no error.
double mean_square_error(const value_histogram& seen, const quantisation& how);

/// The mean square of all numbers, which are taken as spread evenly within their bins. 0 if none was counted.
double mean_square(const value_histogram& seen);

/// The divergence of Kullback and Leibler, in nats, of a clipped and quantised distribution from that of the histogram, as TensorRT
/// computes it (docs/calibration.md). The distribution is that of bins [from, to) of a histogram; the counts outside are added to the
/// nearest of them. It is quantised by merging neighbours into `levels` groups. Infinity where a number of it would have probability 0.
/// Zeros are left out: every schema represents them.
double clipping_divergence(std::span<const std::uint64_t> counts, std::size_t from, std::size_t to, std::size_t levels);

}  // namespace collage::inline v0
