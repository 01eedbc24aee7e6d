// Prices of precision: the time that each group of a plan saves, the error that it adds, and the next precision up
// (docs/precision.md).
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <optional>
#include <vector>

namespace collage::inline v0 {

/// A group of a plan with larger elements, and all that changes with it: conversions are added or not needed any more.
struct next_precision {
  dtype element = dtype::f32;  ///< the smallest type that its kernels then compute in
  double more_ms = 0;          ///< how much more the plan then costs; below 0: it costs less
  bool is_least = false;  ///< a conversion that it then needs has no cost in the store: more_ms has a lower bound of it
  std::optional<double> less = {};  ///< how much smaller the plan's sum of squared errors then is; nothing: not known

  /// Squared error for each millisecond: the groups with the largest are those to keep in a higher precision.
  double error_per_ms() const;
};

/// A group whose kernel rounds values. Times are those of kernels alone.
struct precision_price {
  std::size_t group = 0;        ///< in placement::groups
  dtype element = dtype::bf16;  ///< the smallest type in which its kernel stores or multiplies values
  double cost_ms = 0;           ///< of its kernel
  std::optional<double> exact_ms =
      {};  ///< of the fastest kernel for the same nodes that rounds nothing; nothing: not known
  /// The squared error of the values that its kernel rounds; nothing: not known. A weight that several groups share is in each.
  std::optional<double> nmse = {};
  std::optional<next_precision> next = {};  ///< nothing where a cost is not known, or no kernel is more precise
};

struct precision_prices {
  std::vector<precision_price> groups;  ///< those to keep in a higher precision first: by next_precision::error_per_ms
  std::optional<double> nmse = {};      ///< of all that the plan rounds; nothing: some error is not known
  std::optional<double> conversions = {};  ///< the part of it that conversions round, and no kernel
};

/// The prices of the groups of `made.chosen` that round values, by costs of kernels that the store of the options has. Nothing is
/// measured. The options are those of the plan, and `precision.errors` has the errors of single values; null if none are known.
/// Errors: those of `place` and of its store.
precision_prices prices_of_precision(const graph& network, backend_table backends, const plan& made,
                                     const place_options& options);

/// A step of the greedy way to a smaller error: one more group computes in float32.
struct greedy_step {
  std::size_t group = 0;  ///< in placement::groups
  double cost_ms = 0;  ///< of the fastest placement in which its nodes, and those of all steps before it, round nothing
  double nmse = 0;     ///< the squared error that the values rounded there add up to
};

/// The groups of `made.chosen` that round values, one after another in float32: first the group that alone gives back most error. Time
/// plays no part in the order. Tools for quantisation proceed so until an error is small enough, as NNCF does in
/// `quantize_with_accuracy_control`. A search with a bound is never slower, so this shows what it gains. Nothing is measured. The
/// options are those of `prices_of_precision`. Empty where the store lacks costs of the plan, or errors of values that it rounds.
/// Errors: those of `place` and of its store.
std::vector<greedy_step> greedy_steps(const graph& network, backend_table backends, const plan& made,
                                      const place_options& options);

}  // namespace collage::inline v0
