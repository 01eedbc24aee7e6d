// How well the model of one task orders the points of another, and what a model of all tasks does to each: the paper's figures
// 1 and 2, with an accuracy that is defined.
#pragma once

#include "replay.hpp"

#include <collage/tune/family.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace families {

/// Shares of ordered pairs among points that no model has seen, averaged over seeds.
struct accuracy_study {
  tune::agreement_table single;           ///< the model of the row's task, on points of the column's
  std::vector<double> of_all;             ///< one model of the samples of all tasks
  std::vector<std::vector<double>> gain;  ///< for each task and seed: that of all tasks, less the task's own
};

inline constexpr std::size_t samples_of_task = 256;  ///< as in the paper; fewer if a task has not twice as many points

namespace detail {

/// Points without repeats: the first half trains, the second is held back.
inline std::vector<std::size_t> drawn(const timed_task& task, std::uint64_t seed) {
  tune::random_source random(seed);
  const std::size_t samples = std::min(samples_of_task, task.points() / 2);
  std::vector<std::size_t> points(task.points());
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = i;
  for (std::size_t i = 0; i < 2 * samples; ++i) std::swap(points[i], points[i + random.below(points.size() - i)]);
  points.resize(2 * samples);
  return points;
}

inline std::span<const float> row(const table& data, const timed_task& task, std::size_t point) {
  return std::span(task.features).subspan(point * data.columns(), data.kind->plain);
}

}  // namespace detail

/// One seed's addition to a study.
inline void add_seed(accuracy_study& study, const table& data, std::uint64_t seed, double share) {
  const std::size_t count = data.tasks.size();
  std::vector<tune::training_set> sets(count);
  tune::training_set all;
  std::vector<std::vector<float>> held(count);
  std::vector<std::vector<double>> times(count);
  for (std::size_t i = 0; i < count; ++i) {
    const timed_task& task = data.tasks[i];
    const auto points = detail::drawn(task, seed * 1000 + 900 + i);
    double shortest = never;
    for (std::size_t n = 0; n < points.size() / 2; ++n) shortest = std::min(shortest, task.ms[points[n]]);
    for (std::size_t n = 0; n < points.size(); ++n) {
      const auto features = detail::row(data, task, points[n]);
      if (n < points.size() / 2) {
        sets[i].add(features, task.ms[points[n]], shortest);
        all.add(features, task.ms[points[n]], shortest);
      } else {
        held[i].insert(held[i].end(), features.begin(), features.end());
        times[i].push_back(task.ms[points[n]]);
      }
    }
  }
  const tune::model_subject subject = {"study", "", "", 0, data.kind->plain};
  const auto together = tune::cost_model::train(subject, all);
  for (std::size_t from = 0; from < count; ++from) {
    const auto model = tune::cost_model::train(subject, sets[from]);
    for (std::size_t to = 0; to < count; ++to) {
      const double found = tune::share_of_ordered_pairs(model.predict(held[to]), times[to]);
      study.single.shares[from * count + to] += share * found;
      if (from != to) continue;
      const double by_all = tune::share_of_ordered_pairs(together.predict(held[to]), times[to]);
      study.of_all[to] += share * by_all;
      study.gain[to].push_back(by_all - found);
    }
  }
}

inline accuracy_study study_of(const table& data, std::size_t seeds) {
  const std::size_t count = data.tasks.size();
  accuracy_study study;
  study.single = {count, std::vector<double>(count * count)};
  study.of_all.resize(count);
  study.gain.resize(count);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) add_seed(study, data, seed, 1 / static_cast<double>(seeds));
  for (double& share : study.single.shares) share = std::min(share, 1.0);
  return study;
}

}  // namespace families
