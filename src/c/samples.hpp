// Samples of a caller, on which plans of lower precision are confirmed.
#pragma once

#include "call.hpp"

#include <collage_precision.h>
#include <collage/calibrate/samples.hpp>
#include <collage/graph/graph.hpp>
#include <collage/place/kept_parts.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/tensor.hpp>
#include <samples/sample_files.hpp>
#include <samples/sample_spread.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace c_interface {

/// Where samples come from: a function, or files if there is none.
struct sample_request {
  collage_sample_function function = nullptr;
  void* data = nullptr;
  std::uint64_t count = 0;  ///< samples of the function; 0: not known
  std::string files;
};

/// The precision that a caller wants, checked; float32 if `given` is NULL. `samples` becomes where its samples come from, and `kept` what
/// stays in float32.
collage::precision_options precision_of(const call& here, const collage_place_options& given, sample_request& samples,
                                        std::vector<collage::kept_part>& kept);

/// An error of the samples. It is no collage::error, because placing would take that for errors that cannot be measured, and go on in
/// float32.
struct sample_fault {
  std::exception_ptr what;
};

/// The samples of one placing. Not copied: the network is the caller's.
class caller_samples {
 public:
  /// `pause` is called before each sample, and may throw. Reads all samples that are used, once. Errors: those of `read`; files that do
  /// not fit.
  caller_samples(const sample_request& from, const collage::graph& network, std::function<void()> pause);

  const collage::detail::sample_spread& spread() const { return spread_; }
  /// Writes a sample of those that are used. Returns false if there are no more. Errors: as sample_fault; what `pause` throws.
  bool read(std::size_t which, std::span<const collage::tensor_view> inputs);

 private:
  bool call_function(std::uint64_t which, std::span<const collage::tensor_view> inputs) const;
  std::uint64_t count_function(std::span<const collage::tensor_view> inputs) const;

  sample_request from_;
  std::function<void()> pause_;
  std::optional<collage::detail::sample_files> files_;
  collage::detail::sample_spread spread_;
  const collage::graph& network_;
};

}  // namespace c_interface
