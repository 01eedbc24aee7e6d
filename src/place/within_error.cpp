// Placing within an error bound: measures the errors of single values, places, and confirms the plan on samples held back.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <collage/calibrate/calibrate.hpp>
#include <collage/calibrate/confirm.hpp>
#include <collage/calibrate/rounding.hpp>
#include <collage/error.hpp>
#include <collage/measure/store.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place/kept_errors.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/limits.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "error_limit.hpp"
#include "place_task.hpp"
#include "placing_state.hpp"
#include "scratch_store.hpp"
#include "value_ranges.hpp"

namespace collage::inline v0 {

namespace {

/// The same options with errors, so that candidates may round. The errors themselves are not read.
place_options with_some_errors(const place_options& given) {
  place_options how = given;
  how.precision.most_error = std::max(given.precision.most_error, 1e-3);
  how.precision.errors = std::make_shared<rounding_errors>();
  return how;
}

/// By how much a correction exceeds what was found, so that the next plan is within the bound; more for each plan that was not.
constexpr double correction_margin = 1.05, more_margin = 1.1;
/// That none of the plans that are tested passes by chance.
constexpr double overall_confidence = 0.95;
/// So many samples are tried first. More, up to all, are only tried where these do not decide.
constexpr std::size_t first_tried = 32;
constexpr double most_correction = 1e3;  ///< where nothing can be computed from an infinite error
/// A smaller correction is worth another turn only if it is smaller than this part of the one before.
constexpr double least_change = 0.8;
/// The parts of the time that is left: for one turn, and for errors of single values.
constexpr double share_of_turn = 0.45, share_of_errors = 0.3;
/// Placements that are tested after a complete placing, beside the plan that it begins with.
constexpr std::size_t most_tests_of_full = 8;
/// Enough samples that a sample is left for each part.
constexpr std::size_t least_held_back = 2;

/// Counts samples up to a number.
std::size_t count_samples(const graph& network, const sample_source& samples, std::size_t most) {
  const run_buffers memory(network);
  std::vector<tensor_view> inputs(memory.in.begin(), memory.in.end());
  if (most != 0 && samples(most - 1, inputs)) return most;  // so those before it are there, too
  std::size_t count = 0;
  while (count < most && samples(count, inputs)) ++count;
  return count;
}

/// The errors of single values, each multiplied by a factor.
std::shared_ptr<const rounding_errors> to_errors(const std::vector<rounded_value>& values, const value_errors& found,
                                                 double factor) {
  auto made = std::make_shared<rounding_errors>();
  for (std::size_t i = 0; i < values.size(); ++i)
    made->set(values[i].value, values[i].element, factor * found.list[i].nmse);
  return made;
}

/// One call of `place_within_error`.
class placing_within_error {
 public:
  placing_within_error(const graph& network, backend_table backends, const place_options& options,
                       const sample_source& samples, const within_error_options& how)
      : network_(network), backends_(backends), options_(options), samples_(samples), how_(how) {
    const std::size_t wanted = how.measuring.samples + std::max(how.held_back, least_held_back);
    const std::size_t given = count_samples(network, samples, wanted);
    if (given < least_held_back + 1)
      throw error(error_kind::invalid_argument,
                  "there " + std::string(given == 1 ? "is 1 sample" : "are " + std::to_string(given) + " samples") +
                      ", and the error of lower precision needs at least " + std::to_string(least_held_back + 1) +
                      ": one is measured with, two are held back",
                  "samples", "give more samples");
    // With few samples, half of them are held back.
    used_ = given == wanted ? how.measuring.samples : given / 2;
    held_back_ = given - used_;
  }

  std::shared_ptr<const rounding_errors> errors() {
    options_.precision.scales = scales();
    const std::vector<rounded_value> values = rounded_values(network_, backends_, options_);
    if (values.empty()) return std::make_shared<rounding_errors>();
    list_visible(values);
    return to_errors(values, measure(values, 1), 1);
  }

  std::shared_ptr<const value_scales> scales() const {
    if (options_.precision.scales != nullptr || !detail::allows_integers(options_.precision.elements))
      return options_.precision.scales;
    return find_scales();
  }

  placed_within_error run() {
    // Turns share costs.
    if (options_.store.empty() && options_.costs == placing_costs::measured) scratch_.emplace().serve(options_);
    options_.precision.scales = scales();
    const std::vector<rounded_value> values = rounded_values(network_, backends_, options_);
    if (values.empty()) return unrounded("no kernel that can run here rounds anything");
    if (!(options_.precision.most_error > 0)) return unrounded("no error is allowed");
    list_visible(values);
    const dynamic_engine exact(network_, separate_, backends_, threads());
    // The fastest plan of all may be within the bound. Then the errors of single values need not be known.
    value_errors errors;
    errors.list.resize(values.size());
    placed_within_error made;
    try {
      made = quick_turn(1, values, errors, 1, exact);
      if (is_confirmed(made) && options_.improved) options_.improved(made);
      if (is_confirmed(made) || !made.plan::error) return finished(full_turn(std::move(made), values, exact));
    } catch (const error& e) {  // its share of the time may be too short for any plan
      return unrounded(std::string("a plan that rounds values could not be made: ") + e.what());
    }
    try {
      errors = measure(values, share_of_errors);
    } catch (const error& e) {
      return unrounded(std::string("the errors of single values could not be measured: ") + e.what());
    }
    made.plan::error->predicted = predicted(made.chosen, values, errors);
    const double correction = std::max(1.0, corrected(made));
    return within(std::move(made), correction, values, errors, exact);
  }

 private:
  /// Makes plans by these errors, multiplied by a correction that is corrected again, until one is confirmed. `made` is the plan of
  /// the turn before, which was not.
  placed_within_error within(placed_within_error made, double correction, const std::vector<rounded_value>& values,
                             const value_errors& errors, const dynamic_engine& exact) {
    std::optional<placed_within_error> best;
    for (std::size_t turns = 2; turns <= how_.most_turns && !is_over() && !(best && is_ended()); ++turns) {
      try {
        made = quick_turn(turns, values, errors, correction, exact);
      } catch (const error& e) {
        if (best) break;
        return unrounded(std::string("a plan that rounds values could not be made: ") + e.what());
      }
      if (!made.plan::error) break;  // it rounds nothing
      if (is_confirmed(made) && (!best || made.chosen.cost_ms < best->chosen.cost_ms)) {
        best = made;
        if (options_.improved) options_.improved(made);
      }
      const double margin = is_confirmed(made) ? 1 : std::pow(more_margin, static_cast<double>(turns - 2));
      const double before = std::exchange(correction, margin * corrected(made));
      // A plan that passed could round little more.
      if (is_confirmed(made) && correction > least_change * before) break;
    }
    if (best) return finished(full_turn(*std::move(best), values, exact));
    if (!made.plan::error) return finished(full_turn(std::move(made), values, exact));
    return unrounded(
        "none of the plans was confirmed: on samples that were held back, their errors exceeded the bound");
  }

  int threads() const { return options_.threads > 0 ? options_.threads : available_threads(); }
  void tell(const std::string& what) const {
    if (how_.progress) how_.progress(what);
  }
  sample_source held_back() const {
    return [this](std::size_t which, std::span<const tensor_view> inputs) { return samples_(used_ + which, inputs); };
  }

  /// Makes scales of the ranges that are given, or calibrates with the samples that are not held back.
  std::shared_ptr<const value_scales> find_scales() const {
    if (how_.ranges != nullptr) {
      if (how_.ranges->fingerprint != network_.fingerprint())
        throw error(error_kind::invalid_argument, "are of another network", "ranges",
                    "calibrate this network, or leave them out");
      return detail::scales_of(network_, *how_.ranges);
    }
    tell("calibrating with " + std::to_string(used_) + " samples");
    std::size_t next = 0;
    const sample_reader read = [&](std::span<const tensor> inputs) {
      const std::vector<tensor_view> views(inputs.begin(), inputs.end());
      return next < used_ && samples_(next++, views);
    };
    return detail::scales_of(
        network_, calibrate(network_, backends_, read, {.method = range_method::mse}, {.threads = threads()}));
  }

  /// Finds kernels that give each value that may be rounded memory of its own.
  void list_visible(const std::vector<rounded_value>& values) {
    std::vector<std::uint32_t> visible;
    for (const rounded_value& v : values)
      if (network_.at(v.value).producer >= 0 && (visible.empty() || visible.back() != v.value))
        visible.push_back(v.value);
    separate_ = separate_kernels(network_, backends_, visible, threads());
  }

  /// `share`: of the time that is left.
  value_errors measure(const std::vector<rounded_value>& values, double share) const {
    std::vector<value_rounding> requests;
    std::vector<std::size_t> places;  // of the requests among the values
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!detail::is_roundable(network_, values[i])) continue;
      places.push_back(i);
      requests.push_back(
          {values[i].value, detail::rounding_of_value(network_, values[i], options_.precision.scales.get())});
    }
    tell("measuring the errors of " + std::to_string(values.size()) + " values");
    value_error_options measuring = how_.measuring;
    measuring.samples = used_;
    measuring.threads = threads();
    if (options_.budget_s > 0) measuring.seconds = std::min(measuring.seconds, share * left_s());
    std::optional<cost_store> store;
    try {
      if (!options_.store.empty() && !measuring.recall) use_store(measuring, store.emplace(options_.store), network_);
    } catch (const error&) {
      if (!options_.store_is_optional) throw;  // `place` says why the store cannot be used
    }
    value_errors found = measure_value_errors(network_, separate_, backends_, requests, samples_, measuring);
    std::vector<value_error> all(values.size());
    for (value_error& never : all) never.nmse = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = found.list[i];
    found.list = std::move(all);
    return found;
  }

  /// A turn that may not be the last one: the costs of kernels decide. No placement runs, and regions are not searched.
  placed_within_error quick_turn(std::size_t number, const std::vector<rounded_value>& values,
                                 const value_errors& errors, double correction, const dynamic_engine& exact) {
    place_options how = options_;
    how.regions.seconds = 0;
    how.comparing.seconds = 0;
    how.improved = {};  // plans that were not confirmed are not shown
    if (options_.budget_s > 0) how.budget_s = std::max(share_of_turn * left_s(), 1e-3);
    return turn(number, values, errors, correction, exact, std::move(how));
  }
  /// The plan of a quick turn again, with all that placing can do in the time that is left. The fastest of its comparison are tested, and
  /// stay out if they fail. If nothing could be compared, the quick plan, as one of a placing that was interrupted.
  placed_within_error full_turn(placed_within_error quick, const std::vector<rounded_value>& values,
                                const dynamic_engine& exact) {
    place_options how = options_;
    how.improved = {};
    const std::size_t most = tests_.size() + most_tests_of_full;
    how.accepts = [&](const placement& p) {
      if (options_.accepts && !options_.accepts(p)) return false;
      if (find_test(p) == nullptr && (tests_.size() >= most || is_over() || is_ended())) return false;
      try {
        return tested(p, exact).upper <= options_.precision.most_error;
      } catch (const std::exception&) { return false; }  // it cannot be built
    };
    if (!is_over() && !is_ended()) {
      // The fastest may be found at the end, and must be tested.
      if (options_.budget_s > 0) how.budget_s = std::max(left_s() - longest_test_s_, 1e-3);
      try {
        placed_within_error full = turn(quick.turns, values, quick.errors, quick.correction, exact, how);
        const bool has_run = !full.runs.empty() || !quick.plan::error;
        if (is_confirmed(full) || (!full.plan::error && has_run)) return full;
      } catch (const error&) {}  // the quick plan is left
    }
    quick.report.interrupted = true;
    return quick;
  }

  /// Places by these errors, and tests the plan. It has no error if it rounds nothing.
  placed_within_error turn(std::size_t number, const std::vector<rounded_value>& values, const value_errors& errors,
                           double correction, const dynamic_engine& exact, place_options how) {
    how.precision.errors = to_errors(values, errors, correction);
    if (how.previous != nullptr && !has_these_scales(how.previous->chosen)) how.previous = nullptr;
    placed_within_error made;
    static_cast<placed_plan&>(made) = place(network_, backends_, how);
    keep_tuning(made.report);
    const std::optional<plan_error> expected = std::exchange(made.plan::error, std::nullopt);  // until it is tested
    made.chosen.scales = used_scales(network_, backends_, made.chosen);
    for (placement& single : made.singles) single.scales = used_scales(network_, backends_, single);
    made.errors = errors;
    made.correction = correction;
    made.turns = number;
    const bool is_exact = rounded_in(network_, backends_, made.chosen).empty();
    forget_untested_singles(made, is_exact);
    if (!expected || is_exact) return made;
    const confirmation found = tested(made.chosen, exact);
    made.plan::error = plan_error{expected->most, expected->predicted, found.value, found.upper, found.samples};
    return made;
  }
  /// Removes baselines that round values and did not pass a test, and their times. Beside an exact plan, those that passed as well: no
  /// bound on their error stands in it.
  void forget_untested_singles(plan& made, bool is_exact) const {
    std::erase_if(made.singles, [&](const placement& single) {
      const confirmation* const test = is_exact ? nullptr : find_test(single);
      if (test != nullptr && test->upper <= options_.precision.most_error) return false;
      if (rounded_in(network_, backends_, single).empty()) return false;
      std::erase_if(made.runs, [&](const plan_run& run) { return run.name == single.name; });
      return true;
    });
  }
  /// The error that single values predict for a placement, as a relative root mean square.
  double predicted(const placement& chosen, const std::vector<rounded_value>& values,
                   const value_errors& errors) const {
    const std::shared_ptr<const rounding_errors> single = to_errors(values, errors, 1);
    double sum = 0;
    for (const rounded_value& one : rounded_in(network_, backends_, chosen)) sum += single->of(one.value, one.element);
    return std::sqrt(sum);
  }
  /// Whether a placement of before stores values by the scales of now. Errors are of these.
  bool has_these_scales(const placement& before) const {
    if (before.scales == nullptr) return true;
    return options_.precision.scales != nullptr &&
           std::ranges::all_of(before.scales->list(), [&](const value_scales::entry& e) {
             return options_.precision.scales->of(e.value, e.element) == e.how;
           });
  }
  /// The test of the same steps; null if there was none.
  const confirmation* find_test(const placement& of) const {
    const auto found = std::ranges::find_if(tests_, [&](const auto& one) { return same_steps(one.first, of); });
    return found == tests_.end() ? nullptr : &found->second;
  }
  /// Tests a placement once.
  confirmation tested(const placement& chosen, const dynamic_engine& exact) {
    if (const confirmation* const known = find_test(chosen)) return *known;
    tell("confirming the plan on samples that were held back");
    const double start_ms = detail::now_ms();
    const confirmation found = compared(chosen, exact);
    longest_test_s_ = std::max(longest_test_s_, (detail::now_ms() - start_ms) / 1e3);
    tests_.emplace_back(chosen, found);
    return found;
  }
  /// Compares a placement with float32 on few samples that were held back. If its error is within the bound there, but not its confidence
  /// interval, all samples are tried.
  confirmation compared(const placement& chosen, const dynamic_engine& exact) const {
    const dynamic_engine engine(network_, chosen, backends_, threads(), packed_);
    // The more plans are tested, and the more often, the likelier is one that passes by chance.
    const std::size_t looks = held_back_ > first_tried ? 2 : 1;
    const auto tests = static_cast<double>((how_.most_turns + most_tests_of_full + 1) * looks);
    confirm_options how;
    how.confidence = 1 - (1 - overall_confidence) / tests;
    how.samples = std::min(held_back_, first_tried);
    confirmation found = confirm(network_, run_of(exact), run_of(engine), held_back(), how);
    const double most = options_.precision.most_error;
    if (looks == 1 || found.upper <= most || found.value > most || is_over()) return found;
    tell("confirming the plan on " + std::to_string(held_back_) + " samples");
    how.samples = held_back_;
    return confirm(network_, run_of(exact), run_of(engine), held_back(), how);
  }
  bool is_confirmed(const placed_within_error& made) const {
    return made.plan::error && made.plan::error->upper <= options_.precision.most_error;
  }
  /// The factor by which the errors of single values predict what was found.
  static double corrected(const placed_within_error& made) {
    const plan_error& e = *made.plan::error;
    const double ratio = correction_margin * e.upper / e.predicted;
    return std::isfinite(ratio) ? made.correction * ratio * ratio : most_correction * made.correction;
  }

  /// The first placing searches whole spaces. The store has what it found, for those that follow, and their reports say it, too.
  void keep_tuning(place_report& report) {
    if (report.tuning.seconds > 0) tuning_ = report.tuning;
    else report.tuning = tuning_;
    options_.autotune = {};
  }

  placed_within_error unrounded(const std::string& why) {
    place_options how = options_;
    how.precision = {};
    if (options_.budget_s > 0) how.budget_s = std::max(left_s(), 1e-3);
    placed_within_error made;
    static_cast<placed_plan&>(made) = place(network_, backends_, how);
    keep_tuning(made.report);
    made.why_unrounded = why;
    return made;
  }
  /// Where rounding gains no time, the plan is one in float32.
  static placed_within_error finished(placed_within_error made) {
    if (made.plan::error) return made;
    made.precision = fp32;
    made.why_unrounded = "no plan within the bound was faster than the best one in float32";
    return made;
  }

  double left_s() const {
    return options_.budget_s - std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// Whether the caller wants the end.
  bool is_ended() const { return (options_.cancel && options_.cancel()) || (options_.stop && options_.stop()); }
  bool is_over() const { return options_.budget_s > 0 && left_s() <= 0; }

  const graph& network_;
  backend_table backends_;
  place_options options_;
  tuning_report tuning_;
  const sample_source& samples_;
  const within_error_options& how_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t used_ = 0, held_back_ = 0;
  double longest_test_s_ = 0;
  std::vector<std::pair<placement, confirmation>> tests_;
  std::shared_ptr<packed_weights> packed_ = std::make_shared<packed_weights>();  // of the plans that are tested
  std::optional<detail::scratch_store> scratch_;
  placement separate_;  // in which each value that may be rounded has memory
};

}  // namespace

std::vector<rounded_value> rounded_values(const graph& network, backend_table backends, const place_options& options) {
  if (options.precision.elements == precisions::f32) return {};
  const place_options how = with_some_errors(options);
  const detail::placing_state known(detail::place_task(network, backends, how));
  std::set<rounded_value> found;
  for (std::uint32_t i = 0; i < known.candidates.size(); ++i)
    for (const rounded_value& one : known.errors.values_of(i)) found.insert(one);
  // Regions that placing adds later may hold any nodes: each alone shows all that it may round.
  for (std::uint32_t b = 0; b < backends.size(); ++b)
    for (std::uint32_t n = 0; known.task.use[b] && backends[b].rounds != nullptr && n < network.nodes().size(); ++n)
      if (!known.task.is_alias[n] && !known.forbidden[b][n] && takes_node(backends[b], network, n))
        for (const rounded_value& one :
             backends[b].rounds(network, group_of(network, std::span(&n, 1)), how.precision.scales.get()))
          found.insert(one);
  // Conversions round what other kernels wrote.
  for (const auto& [v, number] : known.layouts.numbers())
    for (const form& stored : known.layouts.forms_of_value(v))
      if (stored.element && is_rounded(network.type_of(v).type, *stored.element)) found.insert({v, *stored.element});
  return {found.begin(), found.end()};
}

placed_within_error place_within_error(const graph& network, backend_table backends, const place_options& options,
                                       const sample_source& samples, const within_error_options& how) {
  return placing_within_error(network, backends, options, samples, how).run();
}

std::shared_ptr<const value_scales> scales_of_integers(const graph& network, backend_table backends,
                                                       const place_options& options, const sample_source& samples,
                                                       const within_error_options& how) {
  return placing_within_error(network, backends, options, samples, how).scales();
}

std::shared_ptr<const rounding_errors> errors_of_rounding(const graph& network, backend_table backends,
                                                          const place_options& options, const sample_source& samples,
                                                          const within_error_options& how) {
  return placing_within_error(network, backends, options, samples, how).errors();
}

}  // namespace collage::inline v0
