// Tuning a network for many shapes: it measures where plans by estimated costs would lose time (docs/changing-shapes.md).
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The values that an open extent may have, ascending.
class extent_values {
 public:
  /// The multiples of `step` from `low` to `high`. Errors: a negative bound; a step below 1; no such multiple.
  static extent_values range(std::int64_t low, std::int64_t high, std::int64_t step = 1);
  /// Each of these, sorted and once. Errors: none, or a negative one.
  static extent_values list(std::vector<std::int64_t> values);

  /// Whether they are a range, of which a few values stand for all.
  bool is_range() const { return values_.empty(); }
  std::int64_t count() const { return is_range() ? count_ : static_cast<std::int64_t>(values_.size()); }
  /// The value number i, from 0 to count() - 1.
  std::int64_t at(std::int64_t i) const {
    return is_range() ? first_ + i * step_ : values_[static_cast<std::size_t>(i)];
  }
  /// "1..512", "16..640/8" or "16,64,256".
  std::string text() const;

 private:
  std::int64_t first_ = 0, step_ = 1, count_ = 0;
  std::vector<std::int64_t> values_;
};

/// One combination of extents that was tuned.
struct tuned_shape {
  std::vector<std::int64_t> extents;  ///< one for each list or range
  double median_ms = 0;               ///< of the plan end to end, or the sum of its costs if nothing ran end to end
  /// How much longer the plan by estimated costs took, as a part of the tuned plan's time: 0.03 for 3 %. Nothing if the store was
  /// empty, if time was up before both ran, or if the shape was tuned without such a plan before.
  std::optional<double> loss;
  double seconds = 0;           ///< of tuning this shape
  bool is_interrupted = false;  ///< its tuning ended early: the time was up, or the caller ended it
};

struct shape_tuning_options {
  /// How each shape is placed. `costs` must be measured, and `store` must name a file, which keeps the results. `budget_s` is for all
  /// shapes together; 0: each is tuned to the end. `previous` and `index` are not used.
  place_options how = {};
  /// Between two tuned shapes no other is tuned, if the plan by estimates lost at most this part in their middle.
  double tolerance = 0.02;
  std::function<void(std::span<const std::int64_t> extents)> begins = {};  ///< called before a shape is tuned
  std::function<void(const tuned_shape&)> tuned = {};                      ///< called after it
};

struct shape_tuning {
  std::vector<tuned_shape> shapes;  ///< in the order in which they were tuned
  /// Whether all values of lists were tuned, and estimates are within the tolerance in the middle of all parts of the ranges.
  /// Otherwise the time was up, or the caller ended it.
  bool is_complete = false;
  std::size_t shapes_left = 0;  ///< values of lists and ends of ranges that were not tuned
  /// The parts of the ranges in whose middle no plan was compared.
  std::size_t parts_left = 0;
};

/// Tunes a network at some of its shapes, so that plans by estimated costs serve all of them. The store gets the measured costs.
///
/// Every value of a list is tuned, with every value of the other lists. The ends of ranges are tuned first. Then the middle of the
/// largest part is placed by estimates, tuned, and both plans run in turns. If the estimated plan loses more than the tolerance, the
/// part is divided there, and its halves follow. Middles are geometric means. Work goes first to large parts that lose much.
///
/// `network` makes the network for one extent of each list or range; its constants have contents.
///
/// Errors: no list or range; more than 1,000 combinations of lists; options that contradict; those of `network` and `place`.
shape_tuning tune_shapes(std::span<const extent_values> open,
                         const std::function<graph(std::span<const std::int64_t> extents)>& network,
                         backend_table backends, const shape_tuning_options& options);

}  // namespace collage::inline v0
