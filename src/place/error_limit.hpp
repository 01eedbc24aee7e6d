// The bound on the error of rounded values: which values candidates and conversions round, and whether that is within the bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/form.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "candidate_index.hpp"
#include "candidate_layouts.hpp"
#include "place_task.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// The error that rounding a value to an element type adds.
struct error_use {
  std::uint32_t item = 0;   ///< equal for candidates that round the same value to the same type: it counts once
  std::int64_t amount = 0;  ///< in units of `error_limit`
};

/// Whether the caller lets a placement become the plan (`place_options::accepts`).
inline bool is_accepted(const place_task& task, const placement& p) {
  return !task.options.accepts || rounded_in(task.network, task.backends, p).empty() || task.options.accepts(p);
}

/// Amounts are those of `rounded_by` (run/rounding.hpp), and of conversions.
class error_limit {
 public:
  error_limit(const place_task& task, const candidate_index& candidates, const candidate_layouts& layouts)
      : task_(task), candidates_(candidates), layouts_(layouts) {}

  /// Whether candidates may round anything. Otherwise nothing needs to be counted.
  bool is_needed() const { return task_.options.precision.may_round(); }
  /// The bound, in units: the square of the bound that the user gave is so many.
  static constexpr std::int64_t bound() { return std::int64_t{1} << 20U; }

  /// Forgets the amounts that were computed: the bound in the options has changed, and with it their unit.
  void forget_amounts() { rounded_.clear(); }

  /// The error that a candidate adds.
  const std::vector<error_use>& of(std::uint32_t candidate) const {
    if (candidate >= rounded_.size()) rounded_.resize(candidates_.size());
    std::optional<std::vector<error_use>>& known = rounded_[candidate];
    if (!known) known = find(candidate);
    return *known;
  }
  /// The values and constants that a candidate rounds, with the element types.
  std::vector<rounded_value> values_of(std::uint32_t candidate) const {
    if (!rounding_of(candidate)) return {};
    const node_group values =
        collage::values_of(task_.network, task_.backends, candidates_.all(), candidates_[candidate]);
    if (candidates_[candidate].is_by_rule())
      return task_.backends[candidates_[candidate].backend].rounds(task_.network, values,
                                                                   task_.options.precision.scales.get());
    const value_forms& borders = layouts_.borders_of(candidate);
    return rounded_by(task_.network, borders, values.arguments, values.outputs);
  }
  /// The smallest element type to which a candidate rounds values; nothing if it rounds none.
  std::optional<dtype> rounding_of(std::uint32_t candidate) const {
    const place_candidate& c = candidates_[candidate];
    if (c.is_by_rule()) return task_.backends[c.backend].rounds_to;
    return collage::rounding_of(task_.network, layouts_.borders_of(candidate));
  }
  /// Whether a candidate computes in another element type than the network's.
  bool rounds(std::uint32_t candidate) const { return is_needed() && rounding_of(candidate).has_value(); }
  /// The error that a conversion of a value adds.
  std::int64_t of_conversion(std::uint32_t value, const form& from, const form& to) const {
    const dtype type = task_.network.type_of(value).type;
    const dtype before = from.element.value_or(type), after = to.element.value_or(type);
    return before == after || !is_rounded(type, after) ? 0 : amount_of(value, after);
  }
  /// The sum of the errors of all that a placement rounds.
  double nmse_of(const placement& p) const {
    double sum = 0;
    if (is_needed())
      for (const rounded_value& one : rounded_in(task_.network, task_.backends, p))
        sum += task_.options.precision.errors->of(one.value, one.element);
    return sum;
  }
  /// Whether a placement keeps the bound.
  bool keeps(const placement& p) const {
    const double most = task_.options.precision.most_error;
    return !is_needed() || nmse_of(p) <= most * most;
  }
  /// The amounts that candidates add together.
  std::int64_t of_all(std::span<const std::uint32_t> candidates) const {
    std::set<std::uint32_t> counted;
    std::int64_t sum = 0;
    for (const std::uint32_t i : candidates)
      for (const error_use& r : of(i))
        if (counted.insert(r.item).second) sum += r.amount;
    return sum;
  }

 private:
  double unit() const {
    const double most = task_.options.precision.most_error;
    return most * most / static_cast<double>(bound());
  }
  /// Rounded up. Whatever exceeds the bound alone is just above it, so that sums stay exact.
  std::int64_t amount_of(std::uint32_t value, dtype element) const {
    const double units = std::ceil(task_.options.precision.errors->of(value, element) / unit());
    return units <= static_cast<double>(bound()) ? static_cast<std::int64_t>(units) : bound() + 1;
  }

  std::vector<error_use> find(std::uint32_t candidate) const {
    std::vector<error_use> list;
    if (!is_needed()) return list;
    for (const rounded_value& one : values_of(candidate)) {
      const auto item = items_.try_emplace(one, static_cast<std::uint32_t>(items_.size())).first->second;
      if (std::ranges::find(list, item, &error_use::item) == list.end())
        list.push_back({item, amount_of(one.value, one.element)});
    }
    return list;
  }

  const place_task& task_;
  const candidate_index& candidates_;
  const candidate_layouts& layouts_;
  mutable std::vector<std::optional<std::vector<error_use>>> rounded_;  // by candidate
  mutable std::map<rounded_value, std::uint32_t> items_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
