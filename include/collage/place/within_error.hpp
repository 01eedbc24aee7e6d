// Placing with lower precision: the fastest plan whose error stays within a
// bound, confirmed on samples that were held back (docs/precision.md).
//
// Declarations only. The definitions are in src/place/ (the target
// collage::place).
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/calibrate/samples.hpp>
#include <collage/calibrate/value_errors.hpp>
#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The values that kernels of these backends may round, under these options, in the order
/// of the values. `options.precision.elements` says to which types, and only values with scales are stored as integers of 8 bits. The bound
/// and the errors do not matter. Errors: as of `place`.
std::vector<rounded_value> rounded_values(const graph& network, backend_table backends, const place_options& options);

/// How errors are measured, and plans confirmed.
struct within_error_options {
  value_error_options measuring = {};  ///< of single values. `samples`: how many are used for it
  std::size_t held_back = 8;           ///< samples after those, with which a plan is confirmed; at least 2
  std::size_t most_turns = 4;          ///< quick plans that are made at most (steps 1 and 2 below)
  /// From which the scales of integers of 8 bits are made. Null: the samples of `measuring` are calibrated with, if
  /// `precision_options::elements` allows such integers and there are no scales.
  std::shared_ptr<const network_ranges> ranges = {};
  std::function<void(const std::string&)> progress = {};  ///< called with the current work, for a line of progress
};

/// A plan within an error bound.
struct placed_within_error : placed_plan {
  value_errors errors;        ///< of single values, in the order of rounded_values; 0 where they need not be known
  std::size_t turns = 0;      ///< quick plans that were made
  double correction = 1;      ///< by which the errors of single values were multiplied in the end
  std::string why_unrounded;  ///< why the plan rounds nothing, in a sentence;
                              ///< empty if it does
};

/// Places a network in these steps:
///
/// 1. Finds the plan whose kernels take the least time, whatever it rounds, and tests it: it runs on samples that are held back, against
///    float32. It passes if the upper end of the confidence interval of its error is within the bound `options.precision.most_error`.
/// 2. If it does not pass: measures the error at the outputs that rounding each value alone causes, on other samples. It then places
///    within the bound on the sum of these errors, and tests the plan. The errors are corrected by what was found, and it places again,
///    until a plan passes and the correction changes little.
/// 3. Places with all of `options` in the time that is left: placements run against each other, and regions are searched. This plan is
///    tested, too. If it does not pass, it is made once more with a larger correction.
///
/// The plan never exceeds the bound in the test, and a plan of step 3 is never slower than the best one in float32. If no quick plan
/// passes, the result is that one. If only plans of step 3 do not pass, or the time is up, the result is the quick plan, and
/// `place_report::interrupted` is set. `options.budget_s` is for all of it. Without a store, costs are kept in a temporary folder meanwhile.
///
/// Errors: fewer than three samples; ranges of another network; those of `place`, `calibrate`, measure_value_errors and confirm.
placed_within_error place_within_error(const graph& network, backend_table backends, const place_options& options,
                                       const sample_source& samples, const within_error_options& how = {});

/// The scales of integers of 8 bits by which `place_within_error` stores values: those of the options, or from ranges or samples. Null if
/// `options.precision.elements` allows no such integers. Errors: as of place_within_error.
std::shared_ptr<const value_scales> scales_of_integers(const graph& network, backend_table backends,
                                                       const place_options& options, const sample_source& samples,
                                                       const within_error_options& how = {});

/// The errors by which `place_within_error` searches, without a correction: those that rounding each value of `rounded_values` alone
/// causes. Errors that the store of the options has are not measured again. Errors: as of place_within_error.
std::shared_ptr<const rounding_errors> errors_of_rounding(const graph& network, backend_table backends,
                                                          const place_options& options, const sample_source& samples,
                                                          const within_error_options& how = {});

}  // namespace collage::inline v0
