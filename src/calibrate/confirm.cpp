// End-to-end errors on held-out samples, and their confidence bounds.
#include <collage/calibrate/confirm.hpp>
#include <collage/error.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/elements.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "distributions.hpp"
#include "suffix_runs.hpp"

namespace collage::inline v0 {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// With fewer samples, the deviation is mostly too small where errors are skewed.
constexpr std::size_t enough_for_deviation = 20;
/// Means of so many samples may be skewed as much as Cantelli's inequality allows.
constexpr double skewed_like = 32;

void check_confidence(double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw error(error_kind::invalid_argument, "is not between 0 and 1", "confidence " + std::to_string(confidence),
                "give one such as 0.95");
}

double mean_of(std::span<const double> list) {
  return std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
}
double variance_of(std::span<const double> list, double mean) {
  double sum = 0;
  for (const double x : list) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(list.size() - 1);
}

/// The generalised upper confidence limit of the mean of a log-normal distribution (Krishnamoorthy and Mathew, 2003). Given the samples,
/// the mean has a distribution, of which this is a quantile, by simulation. Limits in closed form, such as Cox's, are too small for few samples.
double log_normal_bound(std::span<const double> samples, double confidence) {
  std::vector<double> logs;
  for (const double x : samples) logs.push_back(std::log(x));
  const double middle = mean_of(logs), variance = variance_of(logs, middle);
  const auto count = static_cast<double>(samples.size());
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::chi_squared_distribution<double> chi_squared(count - 1);
  std::vector<double> means(4000);
  for (double& m : means) {
    const double z = normal(random), likely = variance * (count - 1) / chi_squared(random);
    m = middle - z * std::sqrt(likely / count) + likely / 2;
  }
  const auto at = means.begin() + static_cast<std::ptrdiff_t>(confidence * static_cast<double>(means.size()));
  std::ranges::nth_element(means, at);
  return std::exp(*at);
}

/// 1 less the cosine of the angle between two tensors: 0 if both are 0, and 1 if one is.
double angle_error(std::span<const double> a, std::span<const double> b) {
  double aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  if (!std::isfinite(bb) || !std::isfinite(ab)) return 2;  // as far as two directions can be apart
  if (aa == 0 || bb == 0) return aa == bb ? 0 : 1;
  return std::max(0.0, 1 - ab / std::sqrt(aa * bb));
}

/// The share of rows whose largest element is another one. NaN is never the largest.
double top_error(std::span<const double> a, std::span<const double> b, std::size_t row) {
  if (a.empty() || row == 0) return 0;
  const auto largest = [](std::span<const double> list) {
    std::size_t at = 0;
    for (std::size_t i = 1; i < list.size(); ++i)
      if (list[i] > list[at] || std::isnan(list[at])) at = i;
    return std::isnan(list[at]) ? list.size() : at;
  };
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < a.size(); at += row)
    wrong += largest(a.subspan(at, row)) != largest(b.subspan(at, row)) ? 1U : 0U;
  return static_cast<double>(wrong) * static_cast<double>(row) / static_cast<double>(a.size());
}

double error_of(error_metric metric, const tensor& right, const tensor& changed) {
  const tensor_type& type = right.type();
  if (metric == error_metric::relative_rms)
    return detail::squared_error(type.type, right.data(), changed.data(),
                                 static_cast<std::size_t>(type.dims.elements()));
  const oracle_value a = to_oracle(right), b = to_oracle(changed);
  if (metric == error_metric::cosine) return angle_error(a.real, b.real);
  const std::size_t row = type.dims.empty() ? 1 : static_cast<std::size_t>(type.dims[type.dims.size() - 1]);
  return top_error(a.real, b.real, row);
}

/// The errors of the samples, by output; by one list for a callback.
struct sample_errors {
  std::vector<std::vector<double>> of;
  std::vector<std::string> names;
};

sample_errors errors_of(const graph& network, const network_run& reference, const network_run& candidate,
                        const sample_source& samples, const confirm_options& options) {
  run_buffers right(network), changed(network);
  const std::vector<tensor_view> inputs(right.in.begin(), right.in.end());
  std::vector<const_tensor_view> a(right.out.begin(), right.out.end()), b(changed.out.begin(), changed.out.end());
  std::vector<std::size_t> compared;
  for (std::size_t i = 0; i < right.out.size(); ++i)
    if (is_floating(right.out[i].type().type)) compared.push_back(i);
  if (compared.empty() && !options.callback)
    throw error(error_kind::invalid_argument, "has no output of a floating-point type", "network",
                "compare its outputs by a callback");
  sample_errors found;
  found.of.resize(options.callback ? 1 : compared.size());
  if (options.callback) found.names = {""};
  else
    for (const std::size_t i : compared) found.names.push_back(network.output_name(i));
  for (std::size_t s = 0; s < options.samples && samples(s, inputs); ++s) {
    reference(right.inputs, right.outputs);
    candidate(right.inputs, changed.outputs);
    if (options.callback) {
      found.of[0].push_back(options.callback(a, b));
      continue;
    }
    for (std::size_t i = 0; i < compared.size(); ++i) {
      const tensor& t = right.out[compared[i]];
      if (!detail::is_finite(t.type().type, t.data(), static_cast<std::size_t>(t.type().dims.elements())))
        throw error(error_kind::invalid_argument,
                    "has NaN or infinity for sample " + std::to_string(s) +
                        " in the reference, so that no error can be measured",
                    "output " + found.names[i], "leave that sample out");
      found.of[i].push_back(error_of(options.metric, t, changed.out[compared[i]]));
    }
  }
  return found;
}

}  // namespace

network_run run_of(const dynamic_engine& engine) {
  auto context = std::make_shared<dynamic_context>(engine.context());
  return [context](std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) {
    context->run(inputs, outputs);
  };
}

double upper_bound_of_mean(std::span<const double> samples, double confidence) {
  check_confidence(confidence);
  for (const double x : samples)
    if (!(x >= 0))
      throw error(error_kind::invalid_argument, "is NaN or negative", "error of a sample", "give numbers from 0");
  if (samples.size() < 2) return infinity;
  const auto count = static_cast<double>(samples.size());
  const double mean = mean_of(samples);
  if (!std::isfinite(mean)) return infinity;
  const double deviation = std::sqrt(variance_of(samples, mean) / count);
  const double quantile = confidence > 0.5 ? detail::student_quantile(confidence, count - 1) : 0;
  const double by_student = mean + quantile * deviation;
  // Cantelli's inequality for few samples. The skew of a mean falls with the root of their number, and so does the excess of a quantile.
  const double shrunk = std::min(1.0, std::sqrt(skewed_like / count));
  double skewed = mean + shrunk * std::sqrt(confidence / (1 - confidence)) * deviation;
  if (*std::ranges::min_element(samples) > 0) {  // zeros have no logarithm
    const double by_logs = log_normal_bound(samples, confidence);
    skewed = samples.size() < enough_for_deviation ? by_logs : std::min(by_logs, skewed);
  }
  return std::max(by_student, skewed);
}

double upper_bound_of_share(double hits, std::size_t trials, double confidence) {
  check_confidence(confidence);
  const auto count = static_cast<double>(trials);
  if (!(hits >= 0 && hits <= count))
    throw error(error_kind::invalid_argument, "is not from 0 to " + std::to_string(trials), "share of samples");
  return trials == 0 || hits == count ? 1 : detail::beta_quantile(confidence, hits + 1, count - hits);
}

confirmation confirm(const graph& network, const network_run& reference, const network_run& candidate,
                     const sample_source& samples, const confirm_options& options) {
  check_confidence(options.confidence);
  sample_errors found = errors_of(network, reference, candidate, samples, options);
  if (found.of[0].empty())
    throw error(error_kind::invalid_argument, "has no samples", "confirmation", "give at least two");
  const bool is_share = !options.callback && options.metric == error_metric::top_1;
  const bool is_squared = !options.callback && options.metric == error_metric::relative_rms;
  std::optional<confirmation> worst;
  for (std::size_t i = 0; i < found.of.size(); ++i) {
    confirmation c;
    c.samples = found.of[i].size();
    c.output = found.names[i];
    c.value = mean_of(found.of[i]);
    c.upper = is_share ? upper_bound_of_share(c.value * static_cast<double>(c.samples), c.samples, options.confidence)
                       : upper_bound_of_mean(found.of[i], options.confidence);
    c.bound = is_share ? "Clopper and Pearson's bound"
                       : "Student's t, or more where a log-normal mean and Cantelli's inequality both ask for more";
    if (is_squared) {
      c.value = std::sqrt(c.value);
      c.upper = std::sqrt(c.upper);
    }
    c.each = std::move(found.of[i]);
    if (!worst || std::pair(worst->upper, worst->value) < std::pair(c.upper, c.value)) worst = std::move(c);
  }
  return std::move(*worst);
}

}  // namespace collage::inline v0
