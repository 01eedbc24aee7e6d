// Calibration: runs a network on samples and notes the numbers of every value, in one pass and in bounded memory.
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace collage::inline v0 {

struct calibration_options {
  int threads = 1;
  /// For all histograms together. Each has the same number of bins, as many as fit, and at most 4096.
  std::size_t bytes = std::size_t{32} << 20U;
  /// Also allows networks with more values than histograms fit for. Then only the method minmax can choose ranges.
  bool minmax_only = false;
};

/// Observes a network. Every operator runs by a kernel of its own. So each value is there to be seen, also those that a plan's fused
/// kernels never store. Values of branches and loops are seen in each round.
///
/// Memory: the histograms, one run's arena, and packed weights; nothing grows with the number of samples. Results depend on the samples, not
/// on their order, but for the last bits that kernels of other processors or numbers of threads compute otherwise.
class calibration {
 public:
  /// Builds an engine. The network is ready to be placed: constants are filled. Kernels are those of the first backend of the table that
  /// runs an operator on the host, by its definition. Errors: a network without float32 values; more values than histograms fit for; what
  /// backends refuse; constants without contents.
  calibration(const graph& network, backend_table backends, const calibration_options& options = {});
  calibration(calibration&&) noexcept;
  ~calibration();

  /// Runs the network on one sample: an array for each input, in dense host memory. Errors: counts and types that do not fit; NaN or
  /// infinity in an input, with the number of the sample, from 1. Such a sample is not counted.
  void add(std::span<const const_tensor_view> inputs);

  std::uint64_t samples() const;
  /// Bytes of all histograms; it does not change with samples.
  std::size_t bytes() const;
  /// The number of bins of each.
  std::size_t bins() const;

  /// Chooses ranges from what was seen; `made_by.samples` is set. Values that were NaN or infinite in a sample, and values that were
  /// always 0, get no numbers, and `why` says so. Errors: no sample; every float32 input was constant in all samples.
  network_ranges finish(const range_origin& made_by) &&;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Fills the inputs of a sample, and returns false if there is none any more.
using sample_reader = std::function<bool(std::span<const tensor> inputs)>;

/// Runs a network on all samples of a source and chooses ranges. Errors: those of `calibration`, and of the source.
network_ranges calibrate(const graph& network, backend_table backends, const sample_reader& samples,
                         const range_origin& made_by, const calibration_options& options = {});
/// The same with the backends of a set: `calibrate<backends>(network, samples, {.method = range_method::mse})`.
template <backend_set_type Set>
network_ranges calibrate(const graph& network, const sample_reader& samples, const range_origin& made_by,
                         const calibration_options& options = {}) {
  return calibrate(network, table_of<Set>, samples, made_by, options);
}

}  // namespace collage::inline v0
