// The error at a network's outputs that storing one value, or one constant, in fewer bits causes (docs/errors-of-values.md).
//
//   const placement separate = separate_kernels(network, table_of<backends>, values, threads);
//   const value_errors found = measure_value_errors(network, separate, table_of<backends>, requests, samples);
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/calibrate/rounding.hpp>
#include <collage/calibrate/samples.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// A float32 value or constant of a network, and a way to store it.
struct value_rounding {
  std::uint32_t value = 0;  ///< in the network, not in a subgraph of it
  rounding how;
};

/// Requests for all values and constants of these ranges that have 8-bit numbers. Those of subgraphs are left out.
std::vector<value_rounding> roundings_of(const graph_ranges& ranges);

/// All that a measured error depends on, but for the kernels.
struct value_error_key {
  std::uint64_t network = 0;   ///< graph::fingerprint
  std::uint64_t contents = 0;  ///< a hash of the contents of constants
  std::uint64_t samples = 0;   ///< a hash of the samples
  std::uint32_t value = 0;
  std::string rounding;  ///< its name
};

/// The hash of the contents of a network's constants, subgraphs included, that keys of errors have.
std::uint64_t contents_of_constants(const graph& network);

/// The error of one value and one rounding. Errors are squared and relative: an output y becomes y', and the sum of (y' - y)^2 is
/// divided by the sum of y^2. If all of y is 0, the error is 0 if y' is y and 1 if not.
struct value_error {
  std::uint32_t value = 0;
  std::string rounding;
  /// The error of the outputs: the mean over samples, and of several outputs the largest. Infinite if outputs become NaN or
  /// infinite.
  double nmse = 0;
  double worst = 0;         ///< the largest of one output for one sample
  double own = 0;           ///< the error of the value itself: the mean over samples
  std::size_t samples = 0;  ///< on which it was measured
  /// Nothing was measured, because the time was up. `nmse` is `own` times the largest nmse / own among the values that were
  /// measured, times `estimate_margin`; it is infinite if there are none.
  bool is_estimate = false;
  bool is_recalled = false;  ///< value_error_options::recall knew it
};

/// Estimates are multiplied by this, because the value with the largest amplification may not have been measured.
inline constexpr double estimate_margin = 4;

/// All measurements, in the order of the requests.
struct value_errors {
  std::vector<value_error> list;
  std::size_t samples = 0;     ///< that were run
  bool is_complete = true;     ///< every error was measured on every sample; otherwise the time was up
  std::uint64_t contents = 0;  ///< as in value_error_key; 0 if no key was needed
  std::uint64_t inputs = 0;    ///< value_error_key::samples
  std::size_t steps = 0;       ///< kernels that ran
  double seconds = 0;
  std::size_t peak_bytes = 0;  ///< of values, at most value_error_options::memory
  bool keeps_all =
      true;  ///< a sample's values were all kept. Otherwise only those that are still read, and more kernels ran
};

struct value_error_options {
  int threads = 0;                                           ///< 0: as many as the process may use
  std::size_t samples = 8;                                   ///< at most
  double seconds = std::numeric_limits<double>::infinity();  ///< when they are over, the rest is estimated
  /// Bytes for values of the undisturbed run and of a suffix together. Workspaces of kernels, weights and one rounded copy of a
  /// constant come on top.
  std::size_t memory = std::size_t{256} << 20;
  std::function<void(std::size_t done, std::size_t all)> progress = {};  ///< suffix runs of all samples
  /// Returns an error that is known, which is then not measured.
  std::function<std::optional<value_error>(const value_error_key&)> recall = {};
  /// Called with each error that was measured on every sample.
  std::function<void(const value_error_key&, const value_error&)> keep = {};
};

/// A placement in which a kernel writes each of the `visible` values, on the host and in the plain form. Nodes go to the first
/// backend of the table that can build a kernel of one exit by the operators' definitions; large kernels come first. Nothing is measured. Errors: a
/// node that no backend can run alone; a value that does not exist.
placement separate_kernels(const graph& network, backend_table backends, std::span<const std::uint32_t> visible,
                           int threads = 0);

/// Measures the error of each request alone, by *suffix runs*. For each sample the network runs once undisturbed. Then, for each
/// request, the value is rounded and all kernels that depend on it run again. The other values are those of the undisturbed run. For a
/// constant, the kernels that read it are built again.
///
/// A value that is an output counts as well. Values that a view shares are disturbed one by one. Values and constants of subgraphs
/// cannot be requested.
///
/// Outputs of other than floating-point types are left out. Errors, in one sentence each:
///
/// - no floating-point outputs; no samples; NaN or infinity in an output of the undisturbed run;
/// - a request for a value that is not float32, or for a constant that kernels know as a number;
/// - a value that no kernel of the placement writes; a placement on a device;
/// - too little memory, with what is needed.
value_errors measure_value_errors(const graph& network, const placement& groups, backend_table backends,
                                  std::span<const value_rounding> requests, const sample_source& samples,
                                  const value_error_options& options = {});

/// The same by `separate_kernels`.
value_errors measure_value_errors(const graph& network, backend_table backends,
                                  std::span<const value_rounding> requests, const sample_source& samples,
                                  const value_error_options& options = {});

}  // namespace collage::inline v0
