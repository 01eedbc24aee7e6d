// The ways to tune that are compared, and all that was replayed of each.
#pragma once

#include "replay.hpp"
#include "statistics.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace families {

inline constexpr std::array closeness = {0.10, 0.05, 0.02, 0.01};  ///< shares above the table's best
inline constexpr std::size_t closeness_of_bars = 2;                ///< 2 %

/// The names by which claims find arms.
namespace names {
inline constexpr const char* random = "random";
inline constexpr const char* closed_form = "closed form alone";
inline constexpr const char* own = "a model per task";
inline constexpr const char* one = "one model for everything";
inline constexpr const char* knowing = "one model that knows the learned family";
inline constexpr const char* learned = "a model per learned family";
inline constexpr const char* cold_own = "closed form first, then a model per task";
inline constexpr const char* cold_one = "closed form first, then one model";
inline constexpr const char* warm = "transfer, with the closed form";

inline std::string count_word(std::size_t count) {
  constexpr std::array words = {"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  return count < words.size() ? words[count] : std::to_string(count);
}
inline std::string transfer(std::size_t tasks) {
  return "transfer from the " + count_word(tasks - 1) + (tasks == 2 ? " other" : " others");
}
}  // namespace names

/// Arms over single tasks. `learned` are the families by how models predict each other.
inline std::vector<arm> arms_of_tasks(const std::vector<std::size_t>& learned) {
  const std::vector<std::size_t> one(learned.size(), 0);
  constexpr std::size_t earlier = 150;
  return {{.name = names::random, .has_models = false},
          {.name = names::closed_form, .has_models = false, .first = first_points::closed_form},
          {.name = names::own},
          {.name = names::one, .families = one},
          {.name = names::knowing, .families = one, .known = learned},
          {.name = names::learned, .families = learned},
          {.name = names::transfer(learned.size()), .first = first_points::model, .learned_before = earlier},
          {.name = names::cold_own, .first = first_points::closed_form, .knows_closed_form = true},
          {.name = names::cold_one, .first = first_points::closed_form, .knows_closed_form = true, .families = one},
          {.name = names::warm, .first = first_points::model, .knows_closed_form = true, .learned_before = earlier}};
}

inline const char* name_of(scheduler order) {
  return order == scheduler::round_robin ? "round robin"
         : order == scheduler::gradient  ? "gradient"
                                         : "the slowest task";
}

/// Arms over the sum of all tasks: one model, three schedulers, the paper's foresee share and none.
inline std::vector<arm> arms_of_sums(std::size_t tasks) {
  std::vector<arm> arms;
  for (const scheduler order : {scheduler::round_robin, scheduler::gradient, scheduler::slowest})
    for (const double foresee : {0.0, 0.25})
      arms.push_back({.name = std::string(name_of(order)) + (foresee > 0 ? ", foresee 0.25" : ", foresee 0"),
                      .families = std::vector<std::size_t>(tasks, 0),
                      .order = order,
                      .foresee = foresee});
  return arms;
}

/// What the seeds gave.
struct outcome {
  std::string name;
  std::array<lengths, closeness.size()> tasks = {};  ///< for each closeness
  std::array<lengths, closeness.size()> sums = {};   ///< of all tasks together: one for each seed
  std::vector<double> regret = {};                   ///< of the median run after each measurement of a task
  double last_regret = 0;                            ///< the mean over runs at the end
  double training_s = 0, ordering_s = 0, measuring_s = 0;
};

namespace detail {

inline double first_within(const std::vector<double>& best, double bound) {
  for (std::size_t i = 0; i < best.size(); ++i)
    if (best[i] <= bound) return static_cast<double>(i + 1);
  return never;
}

inline void add(outcome& all, const table& data, const course& one) {
  double sum = 0;
  for (const timed_task& task : data.tasks) sum += task.best;
  for (std::size_t c = 0; c < closeness.size(); ++c) {
    for (std::size_t i = 0; i < data.tasks.size(); ++i)
      all.tasks[c].counts.push_back(first_within(one.best[i], data.tasks[i].best * (1 + closeness[c])));
    all.sums[c].counts.push_back(first_within(one.sums, sum * (1 + closeness[c])));
  }
  all.training_s += one.training_s;
  all.ordering_s += one.ordering_s;
}

}  // namespace detail

inline outcome outcome_of(const table& data, const arm& how, const limits& within, std::size_t seeds) {
  outcome all{.name = how.name};
  for (std::size_t c = 0; c < closeness.size(); ++c) {
    all.tasks[c].tasks = data.tasks.size();
    all.sums[c].tasks = 1;
  }
  const std::size_t each = within.measurements / data.tasks.size();
  std::vector<std::vector<double>> regrets(each);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const course one = replay(data, how, within, seed).run();
    detail::add(all, data, one);
    for (std::size_t i = 0; i < data.tasks.size(); ++i)
      for (std::size_t n = 0; n < std::min(each, one.best[i].size()); ++n)
        regrets[n].push_back(one.best[i][n] / data.tasks[i].best - 1);
    all.measuring_s += one.measured_ms / 1000;
  }
  for (const auto& after : regrets) {
    all.regret.push_back(after.empty() ? never : median(after));
    all.last_regret = 0;
    for (const double r : after) all.last_regret += r / static_cast<double>(after.size());
  }
  return all;
}

}  // namespace families
