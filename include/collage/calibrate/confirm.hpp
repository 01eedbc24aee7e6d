// Confirms on held-out samples that a plan's outputs are close enough to the float32 network's, with a confidence bound.
//
//   const confirmation found = confirm(network, run_of(exact), run_of(candidate), held_out);
//   if (found.upper <= 0.01) ...  // with a confidence of 95 %, the relative error is at most 1 %
#pragma once

#include <collage/calibrate/samples.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// Runs a network, or what stands for it: reads its inputs and writes its outputs, both in its order.
using network_run =
    std::function<void(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs)>;

/// The runs of an engine, in a context of its own.
network_run run_of(const dynamic_engine& engine);

/// How outputs are compared.
enum class error_metric : std::uint8_t {
  relative_rms,  ///< the root of the mean over samples of sum (y' - y)^2 / sum y^2
  cosine,        ///< 1 less the cosine of the angle between y and y'
  top_1,         ///< the share of rows, along the last dimension, whose largest element is another one
};

struct confirm_options {
  error_metric metric = error_metric::relative_rms;
  /// Replaces the metric: the error of one sample, from its outputs by the reference and by the candidate. Not negative; larger is
  /// worse.
  std::function<double(std::span<const const_tensor_view> right, std::span<const const_tensor_view> changed)> callback =
      {};
  double confidence = 0.95;                                       ///< of the upper bound, in (0, 1)
  std::size_t samples = std::numeric_limits<std::size_t>::max();  ///< at most
};

/// An error and its bound. With several outputs, it is that of the output with the largest upper bound.
struct confirmation {
  double value = 0;  ///< the error over all samples, in the unit of the metric
  /// The true error, over everything that samples come from, is at most this with the given confidence. Infinite if there are too
  /// few samples to tell.
  double upper = std::numeric_limits<double>::infinity();
  std::size_t samples = 0;
  std::string output;  ///< of which output; empty for a callback
  std::vector<double>
      each;           ///< by sample: the squared relative error, 1 less the cosine, the share, or the callback's number
  std::string bound;  ///< in words, how `upper` was computed
};

/// Runs both on the samples and compares their outputs. Samples must be independent of each other, and not those by which the
/// candidate was chosen. Outputs of other than floating-point types count for a callback only.
///
/// `upper` is a one-sided bound of the mean over samples (docs/errors-of-values.md). For top_1 it is that of Clopper and Pearson, which
/// takes each sample as one trial. Otherwise it is at least that of Student's t. It is the smaller of two others if that is larger. These
/// are the generalised limit for the mean of a log-normal distribution and, for 20 samples and more, Cantelli's inequality. If a sample does not err at all, Cantelli's inequality alone counts. Errors of
/// samples are positive and skewed, and for those Student's t alone is too small.
///
/// Errors: no samples; no output to compare; a confidence outside (0, 1). NaN or infinity in an output of the reference, and a callback
/// that returns NaN or a negative number, are errors, too.
confirmation confirm(const graph& network, const network_run& reference, const network_run& candidate,
                     const sample_source& samples, const confirm_options& options = {});

/// An upper confidence bound of the mean that independent, non-negative samples come from; infinite for fewer than two. Errors: a
/// negative sample or NaN; a confidence outside (0, 1).
double upper_bound_of_mean(std::span<const double> samples, double confidence);
/// The same for a share: `hits` of `trials` is what was seen. `hits` need not be whole.
double upper_bound_of_share(double hits, std::size_t trials, double confidence);

}  // namespace collage::inline v0
