// Placing within an error bound: measures the errors of single values, places,
// and confirms the plan on samples held back.
#include <algorithm>
#include <cmath>
#include <collage/calibrate/confirm.hpp>
#include <collage/calibrate/rounding.hpp>
#include <collage/error.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/limits.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <memory>
#include <set>
#include <utility>

#include "error_limit.hpp"
#include "place_task.hpp"
#include "placing_state.hpp"

namespace collage::inline v0 {

namespace {

/// The same options with errors, so that candidates may round. The errors
/// themselves are not read.
place_options with_some_errors(const place_options &given) {
  place_options how = given;
  how.precision.most_error = std::max(given.precision.most_error, 1e-3);
  how.precision.errors = std::make_shared<rounding_errors>();
  return how;
}

/// How much of what is missed counts in a correction, so that the next plan is
/// within the bound.
constexpr double correction_margin = 1.05;
/// Enough samples that a sample is left for each part.
constexpr std::size_t least_held_back = 2;

/// Counts samples up to a number.
std::size_t count_samples(const graph &network, const sample_source &samples,
                          std::size_t most) {
  const run_buffers memory(network);
  std::vector<tensor_view> inputs(memory.in.begin(), memory.in.end());
  std::size_t count = 0;
  while (count < most && samples(count, inputs))
    ++count;
  return count;
}

/// The errors of single values, each multiplied by a factor.
std::shared_ptr<const rounding_errors>
to_errors(const std::vector<rounded_value> &values, const value_errors &found,
          double factor) {
  auto made = std::make_shared<rounding_errors>();
  for (std::size_t i = 0; i < values.size(); ++i)
    made->set(values[i].value, values[i].element, factor * found.list[i].nmse);
  return made;
}

/// One call of `place_within_error`.
class placing_within_error {
public:
  placing_within_error(const graph &network, backend_table backends,
                       const place_options &options,
                       const sample_source &samples,
                       const within_error_options &how)
      : network_(network), backends_(backends), options_(options),
        samples_(samples), how_(how) {
    const std::size_t wanted =
        how.measuring.samples + std::max(how.held_back, least_held_back);
    const std::size_t given = count_samples(network, samples, wanted);
    if (given < least_held_back + 1)
      throw error(error_kind::invalid_argument,
                  "there " +
                      std::string(given == 1 ? "is 1 sample"
                                             : "are " + std::to_string(given) +
                                                   " samples") +
                      ", and the error of lower precision needs at least " +
                      std::to_string(least_held_back + 1) +
                      ": one is measured with, two are held back",
                  "samples", "give more samples");
    // With few samples, half of them are held back.
    used_ = given == wanted ? how.measuring.samples : given / 2;
    held_back_ = given - used_;
  }

  placed_within_error run() {
    const std::vector<rounded_value> values =
        roundable_values(network_, backends_, options_);
    placed_within_error made;
    if (values.empty() || !(options_.precision.most_error > 0))
      return unrounded(std::move(made),
                       values.empty()
                           ? "no kernel that can run here rounds anything"
                           : "no error is allowed");
    measure(values, made);
    const dynamic_engine exact(network_, separate_, backends_, threads());
    for (made.turns = 1; made.turns <= how_.most_turns; ++made.turns) {
      place_options turn = options_;
      turn.precision.errors = to_errors(values, made.errors, made.correction);
      static_cast<placed_plan &>(made) = place(network_, backends_, turn);
      const double predicted = predicted_error(made, *turn.precision.errors);
      if (predicted == 0)
        return unrounded_already(std::move(made));
      tell("confirming the plan on samples that were held back");
      const dynamic_engine engine(network_, made.chosen, backends_, threads());
      const confirmation found =
          confirm(network_, run_of(exact), run_of(engine), held_back(),
                  {.samples = held_back_});
      made.plan::error = plan_error{options_.precision.most_error, predicted,
                                    found.value, found.upper, found.samples};
      if (found.upper <= options_.precision.most_error)
        return made;
      const double missed = found.upper / options_.precision.most_error;
      made.correction *=
          std::isfinite(missed) ? correction_margin * missed * missed : 1e3;
    }
    return unrounded(std::move(made),
                     "none of the plans was confirmed: on samples that were "
                     "held back, their errors "
                     "exceeded the bound");
  }

private:
  int threads() const {
    return options_.threads > 0 ? options_.threads : available_threads();
  }
  void tell(const std::string &what) const {
    if (how_.progress)
      how_.progress(what);
  }
  sample_source held_back() const {
    return [this](std::size_t which, std::span<const tensor_view> inputs) {
      return samples_(used_ + which, inputs);
    };
  }

  void measure(const std::vector<rounded_value> &values,
               placed_within_error &made) {
    std::vector<value_rounding> requests;
    std::vector<std::uint32_t> visible;
    for (const rounded_value &v : values) {
      requests.push_back({v.value, rounding_to(v.element)});
      if (network_.at(v.value).producer >= 0 &&
          (visible.empty() || visible.back() != v.value))
        visible.push_back(v.value);
    }
    tell("measuring the errors of " + std::to_string(values.size()) +
         " values");
    value_error_options measuring = how_.measuring;
    measuring.samples = used_;
    measuring.threads = threads();
    separate_ =
        separate_kernels(network_, backends_, visible, measuring.threads);
    made.errors = measure_value_errors(network_, separate_, backends_, requests,
                                       samples_, measuring);
  }

  /// The square root of the sum of the errors of all that a plan rounds.
  double predicted_error(const plan &made,
                         const rounding_errors &errors) const {
    double sum = 0;
    for (const rounded_value &v : rounded_in(network_, backends_, made.chosen))
      sum += errors.of(v.value, v.element);
    return std::sqrt(sum);
  }

  placed_within_error unrounded(placed_within_error made,
                                const std::string &why) const {
    place_options how = options_;
    how.precision = {};
    static_cast<placed_plan &>(made) = place(network_, backends_, how);
    made.why_unrounded = why;
    return made;
  }
  /// Where rounding gains no time, the plan is one in float32.
  static placed_within_error unrounded_already(placed_within_error made) {
    made.precision = fp32;
    made.why_unrounded =
        "no plan within the bound was faster than the best one in float32";
    return made;
  }

  const graph &network_;
  backend_table backends_;
  const place_options &options_;
  const sample_source &samples_;
  const within_error_options &how_;
  std::size_t used_ = 0, held_back_ = 0;
  placement separate_; // in which each value that may be rounded has memory
};

} // namespace

std::vector<rounded_value> roundable_values(const graph &network,
                                            backend_table backends,
                                            const place_options &options) {
  if (options.precision.elements == precisions::f32)
    return {};
  const place_options how = with_some_errors(options);
  const detail::placing_state known(detail::place_task(network, backends, how));
  std::set<rounded_value> found;
  for (std::uint32_t i = 0; i < known.candidates.size(); ++i)
    for (const rounded_value &one : known.errors.values_of(i))
      found.insert(one);
  // Conversions round what other kernels wrote.
  for (const auto &[v, number] : known.layouts.numbers())
    for (const form &stored : known.layouts.forms_of_value(v))
      if (stored.element &&
          is_rounded(network.type_of(v).type, *stored.element))
        found.insert({v, *stored.element});
  return {found.begin(), found.end()};
}

placed_within_error place_within_error(const graph &network,
                                       backend_table backends,
                                       const place_options &options,
                                       const sample_source &samples,
                                       const within_error_options &how) {
  return placing_within_error(network, backends, options, samples, how).run();
}

} // namespace collage::inline v0
