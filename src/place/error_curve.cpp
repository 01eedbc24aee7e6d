// The curve of time over error budgets: one state of placing, and a search for each budget.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <collage/error.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place/error_curve.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "configuration_candidates.hpp"
#include "cost_measurer.hpp"
#include "coverage.hpp"
#include "place_rules.hpp"
#include "place_task.hpp"
#include "placement_search.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "region_candidates.hpp"
#include "search_view.hpp"
#include "stack_check.hpp"

namespace collage::inline v0 {

namespace {

/// Plans that err more are of no use.
constexpr double most_useful = 1;
/// The part of the largest saving that the smallest budget must save.
constexpr double least_saving = 0.02;
/// The smallest budget, as a part of the largest.
constexpr double least_part = 1e-3;
/// How exactly the smallest useful budget is found, as a ratio, and with how many searches at most.
constexpr double useful_ratio = 1.15;
constexpr int most_useful_searches = 8;
/// The time of the search for a point, which is longer than usual: there are few points, and their gaps are shown.
constexpr std::chrono::seconds time_of_point{5};
/// Costs that a search measures may change other points. So all are searched again until nothing is measured, but not for ever.
constexpr int most_rounds = 4;

/// Rounded up to three digits.
double with_three_digits(double number) {
  const double digit = std::pow(10, std::floor(std::log10(number)) - 2);
  return std::ceil(number / digit * (1 - 1e-9)) * digit;
}

class curve_search {
 public:
  curve_search(const graph& network, backend_table backends, const place_options& options, std::size_t budgets)
      : how_(options),
        budgets_(budgets),
        known_(detail::place_task(network, backends, with_bound(how_, most_useful))),
        task_(known_.task),
        regions_(known_),
        view_(known_),
        progress_{how_},
        measurer_(known_, progress_),
        search_(known_, view_, measurer_, progress_) {}

  error_curve run() {
    prepare();
    error_curve made;
    std::size_t before = 0;
    for (int round = 0; round < most_rounds && std::exchange(before, known_costs()) != known_costs(); ++round)
      made = curve();
    return made;
  }

 private:
  /// Only the bound changes later. The task refers to these options.
  static const place_options& with_bound(place_options& how, double most) {
    how.precision.most_error = most;
    how.improved = {};
    how.previous = nullptr;
    return how;
  }

  /// Measures the kernels of single operators and the largest regions, as `place` does, and places subgraphs.
  void prepare() {
    detail::require_cover(known_, [](const place_candidate&) { return true; });
    if (measurer_.kept()) detail::configuration_candidates(known_).add_kept(*measurer_.kept());
    measurer_.measure_all([this](std::uint32_t s) {
      const place_candidates& all = known_.candidates.all();
      return all.groups[all.structures[s].example].nodes.size() == 1 && !task_.until.is_over_for_kernels();
    });
    regions_.try_largest([this](std::uint32_t candidate) { return measurer_.has_kernel(candidate); });
    for (std::uint32_t n = 0; n < task_.network.nodes().size(); ++n)
      for (const std::shared_ptr<const graph>& body : task_.network.bodies_of(n)) {
        place_options inner = how_;
        inner.precision = {};
        inner.memory = known_.weights.of_subgraphs();
        inner.rules = detail::rules_in(*body, task_.backends, how_.rules);
        known_.bodies.add(n, place(*body, task_.backends, inner));
      }
    detail::require_cover(known_, [this](const place_candidate& c) { return view_.can_be_used(c); });
  }

  /// How many costs are known. It grows where a search measured some.
  std::size_t known_costs() const {
    const auto& conversions = known_.layouts.conversions();
    return 1 + known_.costs.table().size() + (conversions ? conversions->book().table().size() : 0);
  }

  /// A budget ends measuring. Searches then get time of their own, in which nothing is measured any more: a point without a search is
  /// of no use.
  void leave_time_to_search() {
    if (how_.budget_s <= 0 || !task_.until.is_over_for_kernels()) return;
    const double passed_s = (detail::now_ms() - start_ms_) / 1e3;
    how_.budget_s = std::max(how_.budget_s, 0.99 * passed_s / detail::thresholds.budget.for_kernels);
  }

  error_curve curve() {
    error_curve made;
    tell(0);
    leave_time_to_search();
    made.exact = point_of(search_.best_unrounded(), 0);
    const error_point fastest = within(most_useful);
    if (fastest.rounded_groups == 0 || fastest.cost_ms >= made.exact.cost_ms) return made;
    if (fastest.predicted > 0) {
      const double least = least_useful(made.exact, fastest);
      view_.set_bounded_time(time_of_point);
      const double ratio = std::pow(fastest.predicted / least, 1 / static_cast<double>(budgets_ - 1));
      double budget = least;
      for (std::size_t i = 1; i < budgets_; ++i, budget *= ratio) {
        const double most = with_three_digits(budget);
        if (most >= with_three_digits(fastest.predicted)) break;
        if (!made.points.empty() && most <= made.points.back().most_error) continue;
        tell(i);
        made.points.push_back(within(most));
      }
    }
    made.points.push_back(fastest);
    made.points.back().most_error = fastest.predicted > 0 ? with_three_digits(fastest.predicted) : most_useful;
    agree(made);
    return made;
  }

  /// The smallest budget whose plan saves a part of what the fastest one saves.
  double least_useful(const error_point& exact, const error_point& fastest) {
    double high = fastest.predicted, low = least_part * high;
    for (int i = 0; i < most_useful_searches && high > useful_ratio * low; ++i) {
      const double middle = std::sqrt(low * high);
      const error_point found = within(middle);
      const bool is_useful = exact.cost_ms - found.cost_ms >= least_saving * (exact.cost_ms - fastest.cost_ms);
      if (is_useful) high = std::clamp(found.predicted, low, middle);
      else low = middle;
    }
    return high;
  }

  /// A search may stop with a gap. A plan within a bound is within each larger one, so that times do not rise. And no plan within a
  /// smaller bound is faster than what is proved for a larger one.
  static void agree(error_curve& made) {
    const error_point* before = &made.exact;
    for (error_point& p : made.points) {
      if (p.cost_ms > before->cost_ms) {
        const error_point found = std::exchange(p, *before);
        p.most_error = found.most_error;
        p.lower_bound_ms = found.lower_bound_ms;
      }
      before = &p;
    }
    double least = 0;
    for (std::size_t i = made.points.size(); i-- > 0;) {
      error_point& p = made.points[i];
      p.lower_bound_ms = least = std::min(std::max(least, p.lower_bound_ms), p.cost_ms);
    }
    made.exact.lower_bound_ms = std::min(std::max(least, made.exact.lower_bound_ms), made.exact.cost_ms);
  }

  error_point within(double most_error) {
    with_bound(how_, most_error);
    known_.errors.forget_amounts();
    leave_time_to_search();
    return point_of(search_.best_within_bound(), most_error);
  }

  error_point point_of(const detail::search_result& found, double most_error) const {
    error_point p;
    p.most_error = most_error;
    p.chosen = detail::placement_writer(known_).write("plan", found);
    p.cost_ms = found.found.cost_ms;
    p.lower_bound_ms = std::min(found.found.lower_bound_ms, p.cost_ms);
    p.predicted = std::sqrt(known_.errors.nmse_of(p.chosen));
    double rounded_ms = 0;
    std::size_t at = 0;
    const auto who = known_.candidates.in(p.chosen);
    for (const plan_group& g : p.chosen.groups) {
      if (g.is_view()) continue;
      const auto candidate = who[at++];
      if (!candidate || !known_.errors.rounds(*candidate)) continue;
      ++p.rounded_groups;
      rounded_ms += g.cost_ms;
    }
    if (p.chosen.cost_ms > 0) p.rounded_share = rounded_ms / p.chosen.cost_ms;
    return p;
  }

  void tell(std::size_t done) const {
    place_progress now;
    now.stage = "searching";
    now.what = "the fastest plans within error budgets";
    now.done = done;
    now.remaining = budgets_ - done;
    progress_.tell(std::move(now));
  }

  place_options how_;  // its bound changes from search to search
  double start_ms_ = detail::now_ms();
  std::size_t budgets_;
  detail::placing_state known_;
  const detail::place_task& task_;
  detail::region_candidates regions_;
  detail::search_view view_;
  detail::progress progress_;
  detail::cost_measurer measurer_;
  detail::placement_search search_;
};

}  // namespace

error_curve curve_of_errors(const graph& network, backend_table backends, const place_options& options,
                            std::size_t budgets) {
  detail::check_stack();
  check_contents(network);
  if (options.precision.elements == precisions::f32 || options.precision.errors == nullptr)
    throw error(error_kind::invalid_argument,
                "a curve over errors needs element types and the errors of rounding to them", "precision",
                "measure them with errors_of_rounding");
  if (budgets < 2)
    throw error(error_kind::invalid_argument, "a curve needs at least 2 budgets", "budgets", "ask for more");
  try {
    return curve_search(network, backends, options, budgets).run();
  } catch (const detail::cancellation&) {
    throw error(error_kind::cancelled, "the curve was cancelled", options.network, "let it run longer");
  }
}

}  // namespace collage::inline v0
