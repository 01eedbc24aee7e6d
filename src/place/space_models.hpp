// The cost models of one placing: one for each search space and family. They learn from what the placing measures, begin with what
// earlier placings learned, and are kept beside the store.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/tune/cost_model.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

class space_models {
 public:
  /// `store` is the path of the store; empty: models are not kept.
  space_models(std::string store, std::uint32_t seed) : store_(std::move(store)), seed_(seed) {
    why_not_ = tune::cost_model::refusal();
  }

  /// Why there are no models, in one sentence; empty if there are.
  const std::string& why_not() const { return why_not_; }
  double training_s() const { return training_ms_ / 1e3; }

  /// Notes a measured point of a task. `ms` is infinite if the point has no kernel.
  void add(const tune::model_subject& of, std::size_t task, std::vector<float> features, double ms) {
    if (!why_not_.empty()) return;
    learned& l = find(of);
    l.tasks[task].push_back({std::move(features), ms});
    ++l.points;
  }

  /// The predicted throughputs of points, whose features are in `rows`. Nothing if no model has learned enough.
  std::optional<std::vector<float>> predict(const tune::model_subject& of, std::span<const float> rows) {
    if (!why_not_.empty()) return {};
    learned& l = find(of);
    std::vector<float> own, kept;
    try {
      train(of, l);
      if (l.own) own = l.own->predict(rows);
      if (l.kept) kept = l.kept->predict(rows);
    } catch (const error& e) {  // models only save time
      why_not_ = e.what();
      return {};
    }
    if (own.empty() && kept.empty()) return {};
    if (own.empty()) return kept;
    if (kept.empty()) return own;
    // Each counts by what it learned from, but what was measured here is worth more than what was measured for other networks.
    constexpr double worth = 4;
    const double here = worth * static_cast<double>(l.own->samples()), there = static_cast<double>(l.kept->samples());
    const auto share = static_cast<float>(here / (here + there));
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = share * own[i] + (1 - share) * kept[i];
    return own;
  }

  /// Keeps the models that learned more than those beside the store. A file that cannot be written is no error.
  void keep() {
    for (auto& [of, l] : all_) {
      if (store_.empty() || !l.own) continue;
      if (l.kept && l.kept->samples() > l.own->samples()) continue;
      try {
        l.own->save(tune::cost_model::file_beside(store_, l.own->subject()));
      } catch (const error&) {}
    }
  }

 private:
  struct point {
    std::vector<float> features;
    double ms = 0;
  };
  struct learned {
    std::map<std::size_t, std::vector<point>> tasks;
    std::size_t points = 0, trained = 0;
    std::optional<tune::cost_model> own, kept;
  };
  using key = std::tuple<std::string, std::string, std::string, std::uint64_t>;

  learned& find(const tune::model_subject& of) {
    const auto [at, is_new] = all_.try_emplace({of.space, of.family, of.machine, of.features});
    if (is_new && !store_.empty())
      at->second.kept = tune::cost_model::load(tune::cost_model::file_beside(store_, of), of).model;
    return at->second;
  }

  /// Trains again once a fourth more was measured. This is done between measurements, not beside them, because kernels that are timed
  /// use all threads of the placing. So a log does not depend on what ends first, either.
  void train(const tune::model_subject& of, learned& l) {
    constexpr std::size_t least = 8;
    if (l.points < least || 4 * l.points < 5 * l.trained) return;
    const double start = now_ms();
    tune::training_set samples;
    for (const auto& [task, points] : l.tasks) {
      double shortest = std::numeric_limits<double>::infinity();
      for (const point& p : points) shortest = std::min(shortest, p.ms);
      if (shortest == std::numeric_limits<double>::infinity()) continue;
      for (const point& p : points) samples.add(p.features, p.ms, shortest);
    }
    l.trained = l.points;
    if (samples.size() < least) return;
    tune::model_options how;
    how.seed = seed_;
    l.own = tune::cost_model::train(of, samples, how);
    training_ms_ += now_ms() - start;
  }

  std::string store_;
  std::uint32_t seed_;
  std::string why_not_;
  std::map<key, learned> all_;
  double training_ms_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
