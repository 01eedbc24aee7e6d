// The curve of time over error budgets: for each of several bounds on the error, the fastest plan within it
// (docs/precision.md).
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <vector>

namespace collage::inline v0 {

/// A bound on the error, and the fastest plan within it that a search found. Times are sums of costs of kernels alone, and errors are
/// predicted by those of single values: nothing ran end to end.
struct error_point {
  double most_error = 0;  ///< the bound, as precision_options::most_error; 0: nothing is rounded
  placement chosen;
  double cost_ms = 0;         ///< of the placement; never more than that of a smaller bound
  double lower_bound_ms = 0;  ///< no placement of these kernels within the bound costs less
  double predicted = 0;       ///< the root of the sum of squared errors; at most `most_error`
  /// Groups whose kernels round values, and the part of the time that these kernels take, from 0 to 1.
  std::size_t rounded_groups = 0;
  double rounded_share = 0;

  /// How far the fastest placement may be below this one, as a fraction of this one's cost.
  double gap() const { return cost_ms > 0 ? (cost_ms - lower_bound_ms) / cost_ms : 0; }
};

/// Fastest plans by rising bounds.
struct error_curve {
  error_point exact;  ///< the fastest plan that rounds nothing
  std::vector<error_point>
      points;  ///< the last is the fastest of all; empty if no plan that rounds values is faster than `exact`
};

/// How many bounds the curve has.
inline constexpr std::size_t usual_budgets = 10;

/// The curve for the errors in `options.precision.errors` (see errors_of_rounding); `options.precision.most_error` does not matter.
/// The largest bound is the error of the fastest plan, or 100 % if that is less. The smallest one saves a fiftieth of what that plan
/// saves. The others are between them, at equal ratios. There are fewer than `budgets` where the ends are too near to each other.
///
/// All bounds share one measurement of kernels: costs that the store of the options has are used, and what it lacks is measured once.
/// `options.budget_s` limits measuring. Searches come on top, with at most five seconds for each bound.
/// Errors: those of `place`; no errors in the options; fewer than two budgets.
error_curve curve_of_errors(const graph& network, backend_table backends, const place_options& options,
                            std::size_t budgets = usual_budgets);

}  // namespace collage::inline v0
