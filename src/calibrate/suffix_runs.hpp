// One sample's undisturbed run, and the runs of what depends on a value that was changed.
#pragma once

#include <collage/calibrate/rounding.hpp>
#include <collage/calibrate/samples.hpp>
#include <collage/run/buffers.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "step_runner.hpp"

namespace collage::inline v0::detail {

/// Memory of values, within a limit. Blocks that are given back serve values of the same size.
class value_pool {
 public:
  explicit value_pool(std::size_t limit) : limit_(limit) {}

  buffer take(std::size_t bytes);
  void give(buffer&& block);
  std::size_t peak() const { return peak_; }
  /// Counts memory that lies elsewhere.
  void count(std::size_t bytes) { peak_ = std::max(peak_, total_ += bytes); }

 private:
  std::size_t limit_, total_ = 0, peak_ = 0;
  std::multimap<std::size_t, buffer> free_;
};

/// Rounds the elements of a float32 value that lies in memory in a form.
void apply(const rounding& how, const tensor_type& type, const form& stored, std::byte* at);

/// Throws if a value is none of the network's, not float32, or a constant that kernels know as a number.
void check_request(const graph& network, std::uint32_t value);
/// Throws if no step writes a value that is computed.
void check_written(const step_runner& runner, std::uint32_t value);

/// The squared relative error of a tensor: the sum of (changed - right)^2 divided by that of right^2. If all of `right` is 0: 0 or 1.
/// Infinite if `changed` has NaN or infinity where `right` has none, or another one.
double squared_error(dtype type, const void* right, const void* changed, std::size_t elements);
/// Whether all elements of a floating-point type are finite.
bool is_finite(dtype type, const void* elements, std::size_t count);

/// The values of one sample after another.
class suffix_runs {
 public:
  /// A value of the network, or a constant, that is changed.
  struct root {
    std::uint32_t value = 0;
    std::size_t position = 0;  ///< how many steps run before it has contents that a step reads
    bool is_constant = false;
  };

  /// Errors: `memory` is too small, with what is needed.
  suffix_runs(step_runner& runner, std::size_t memory);

  root root_of(std::uint32_t value) const;
  /// Whether all values of a sample are kept. Then roots may come in any order, and otherwise by position.
  bool keeps_all() const { return keeps_all_; }

  /// Memory for the next sample's inputs.
  std::span<const tensor_view> inputs() const { return inputs_; }
  /// Runs the network undisturbed. Errors: an output has NaN or infinity. `which` names the sample there.
  void begin_sample(std::size_t which);
  /// Makes the values available that exist before `position` steps have run, or at least as many.
  void go_to(std::size_t position);

  /// Rounds a copy of a root's contents. Returns the squared relative error of the copy.
  double round(const root& of, const rounding& how);
  /// Runs all that depends on the rounded copy, which it gives up. Writes the error of each output, in the order of `compared`.
  /// Returns false if `ends` was over before it had finished.
  bool run_suffix(const root& of, std::chrono::steady_clock::time_point ends, std::span<double> errors);
  /// Gives up the rounded copy.
  void forget_copy();

  /// The outputs of floating-point types, by their number among the network's outputs.
  std::span<const std::size_t> compared() const { return compared_; }
  std::size_t steps_run() const { return steps_run_; }
  std::size_t peak_bytes() const { return pool_.peak(); }

 private:
  std::byte* clean_at(std::uint32_t stored) const;
  std::byte* changed_at(std::uint32_t stored) const;
  bool is_available(std::uint32_t stored) const {
    return runner_.writer_of(stored) < 0 || clean_[stored].data() != nullptr;
  }
  void run_clean(std::size_t step, bool keeps);
  void release_clean();
  void keep_outputs(std::size_t which);
  void find_suffix(const root& of);
  void run_changed(std::size_t step, const root& of);
  void drop_use(std::uint32_t stored);

  step_runner& runner_;
  bool keeps_all_ = true;
  value_pool pool_;
  run_buffers memory_;  // a sample's inputs, and the outputs of its undisturbed run
  std::vector<tensor_view> inputs_;
  std::vector<std::int32_t> input_index_;  // by value
  std::vector<buffer> clean_, changed_;    // by stored value
  std::size_t position_ = 0;               // so many steps have run undisturbed
  std::vector<std::size_t> compared_;
  std::shared_ptr<std::byte> constant_;  // the rounded copy of a constant
  std::uint32_t constant_value_ = no_region;
  std::vector<std::size_t> suffix_;  // the steps to run
  std::vector<char> is_dirty_, is_needed_;
  std::vector<std::uint32_t> uses_;  // by stored value: what is left to read it in the suffix
  std::size_t steps_run_ = 0;
};

}  // namespace collage::inline v0::detail
