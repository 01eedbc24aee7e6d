// Buckets: runs of a session at a few declared extents, with padded inputs and cut outputs (docs/changing-shapes.md).
//
// Whether a network gives the same results with padding depends on the network: its inputs may have a mask, for example. Nothing
// is padded unless the program asks for it, and `bucketed_context::check` compares.
#pragma once

#include <collage/run/agreement.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/session.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The extents that an open extent is rounded up to.
struct bucket_list {
  std::string
      symbol;  ///< as inputs declare it (`open_port::symbols`); "x[3]" for dimension 3 of x, if that has no symbol
  std::vector<std::int64_t> extents;  ///< none negative, in any order
};

/// The value with which an input is padded, behind its elements. Inputs that are not named are padded with 0.
struct bucket_padding {
  std::string input;
  double value = 0;  ///< must be exact in the input's element type, unless that is a floating-point type
};

/// How an output is cut. Outputs that declare a symbol need none: they are cut to the extent of the inputs.
struct bucket_cut {
  std::string output;
  std::size_t dimension = 0;
  std::string symbol;
  /// The output keeps (extent of the inputs + addend) / divisor, rounded down. With the extent of the bucket in place of that of the
  /// inputs, this must be its own extent.
  std::int64_t divisor = 1, addend = 0;
};

struct bucket_options {
  std::vector<bucket_list> buckets;
  std::vector<bucket_padding> padding = {};
  std::vector<bucket_cut> cuts = {};
};

/// The difference that padding makes to an output.
struct bucket_difference {
  std::string output;
  agreement found;  ///< of the padded run with the run at the exact shape
};

/// One thread's runs of a session in buckets. The session carries no state: a state of one bucket would not fit another.
class bucketed_context {
 public:
  /// Errors: a session that carries state; a symbol of no input; a list that is empty or given twice. A padding or a cut that names nothing. A padding that the
  /// element type does not have.
  bucketed_context(const session& of, bucket_options options);
  bucketed_context(bucketed_context&&) noexcept;
  bucketed_context& operator=(bucketed_context&&) noexcept;
  ~bucketed_context();

  /// Makes the engine of every combination of buckets and times it, in runs whose inputs are zeros. From then on, `run` takes the
  /// fastest bucket that the inputs fit into. Before it, `run` takes the smallest. `extents` has one for each open extent of the
  /// inputs without a bucket, in the order of the session's inputs. Errors: those of a run; another number of extents; more than
  /// 1,000 combinations, or more than the session keeps engines.
  void prepare(std::span<const std::int64_t> extents = {});

  /// Runs the network at the shape of a bucket. Inputs and outputs are as for `session_context::run`, at their own shapes. Outputs
  /// are valid until the run after the next. Errors besides those of a run: an extent above the largest bucket; a symbol with two
  /// extents; an output that a cut does not fit.
  std::span<const session_output> run(std::span<const const_tensor_view> inputs, const run_limits& limits = {});
  /// The extents of the last run's bucket, in the order of `bucket_options::buckets`.
  std::span<const std::int64_t> bucket() const;

  /// Runs the inputs both in their bucket and at their exact shape, and compares each output.
  std::vector<bucket_difference> check(std::span<const const_tensor_view> inputs);

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace collage::inline v0
