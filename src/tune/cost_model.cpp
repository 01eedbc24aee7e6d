#include "booster.hpp"

#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/tune/cost_model.hpp>

#include <cmath>
#include <mutex>
#include <utility>

namespace collage::inline v0::tune {

void training_set::add(std::span<const float> of_point, double time, double shortest) {
  const auto refuse = [](text_ref why) { throw error(error_kind::invalid_argument, why, "a sample of a cost model"); };
  if (features == 0) features = of_point.size();
  if (of_point.empty() || of_point.size() != features)
    refuse("all samples need the same number of features, and at least one");
  for (const float f : of_point)
    if (!std::isfinite(f)) refuse("a feature is not finite");
  if (!(time > 0) || !(shortest > 0) || !std::isfinite(shortest)) refuse("a time is no positive number");
  rows.insert(rows.end(), of_point.begin(), of_point.end());
  throughputs.push_back(static_cast<float>(shortest / time));
}

std::string cost_model::refusal() { return xgboost::refusal(); }

cost_model::cost_model(model_subject subject, std::size_t samples, std::string trees,
                       std::shared_ptr<const booster> made)
    : subject_(std::move(subject)), samples_(samples), trees_(std::move(trees)), made_(std::move(made)) {}

cost_model cost_model::train(const model_subject& subject, const training_set& samples, const model_options& options) {
  if (samples.size() == 0)
    throw error(error_kind::invalid_argument, "a cost model needs at least one sample", "cost_model::train");
  if (samples.features != subject.feature_count)
    throw error(error_kind::invalid_argument, "the samples have another number of features than the subject",
                "cost_model::train");
  if ((subject.space + subject.family + subject.machine).find('\n') != std::string::npos)
    throw error(error_kind::invalid_argument, "the subject of a model has a line break", "cost_model::train");
  const xgboost::setting settings[] = {{"max_depth", std::to_string(options.depth)},
                                       {"eta", std::to_string(options.rate)},
                                       {"gamma", "0.001"},
                                       {"min_child_weight", "0"},
                                       {"tree_method", "hist"},  // the exact one is slow even on small data
                                       {"nthread", "1"},         // several are not reproducible
                                       {"verbosity", "0"},
                                       {"seed", std::to_string(options.seed)}};
  auto made = std::make_shared<const booster>(
      xgboost::trees::train(samples.rows, samples.features, samples.throughputs, settings, options.trees));
  std::string trees = made->trees.bytes();
  return {subject, samples.size(), std::move(trees), std::move(made)};
}

std::vector<float> cost_model::predict(std::span<const float> rows) const {
  if (rows.size() % subject_.feature_count != 0)
    throw error(error_kind::invalid_argument, "the rows are no whole number of points", "cost_model::predict");
  if (rows.empty()) return {};
  const std::scoped_lock lock(made_->one_at_a_time);
  return made_->trees.predict(rows, subject_.feature_count);
}

}  // namespace collage::inline v0::tune
