// Tuning, replayed on a table: whom to measure next is decided as if each time had just been measured.
#pragma once

#include "statistics.hpp"
#include "table.hpp"

#include <collage/tune/cost_model.hpp>
#include <collage/tune/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace families {

/// Which task is measured next.
enum class scheduler { round_robin, gradient, slowest };
/// How the first points of a task are chosen.
enum class first_points { random, closed_form, model };

/// A way to tune.
struct arm {
  std::string name;
  bool has_models = true;
  first_points first = first_points::random;
  bool knows_closed_form = false;          ///< its features include the estimate
  std::vector<std::size_t> families = {};  ///< of each task; models are for families. Empty: one for each task
  std::vector<std::size_t> known = {};     ///< a further feature for each task: its family
  std::size_t learned_before = 0;          ///< samples of each other task, known before the first measurement
  scheduler order = scheduler::round_robin;
  double foresee = 0;  ///< the paper's p
};

struct limits {
  std::size_t batch = 8;            ///< the paper's g
  std::size_t measurements = 1024;  ///< of all tasks
};

/// What one seed gave: for each task, the best time after each of its own measurements; the sum of the best times after each
/// measurement of any task, from when all tasks have one.
struct course {
  std::vector<std::vector<double>> best;
  std::vector<double> sums;
  double measured_ms = 0;                 ///< the sum of all times that were measured, once each
  double training_s = 0, ordering_s = 0;  ///< as it took here, not replayed
};

/// Adds the time of its life, in seconds, to a sum.
class stopwatch {
 public:
  explicit stopwatch(double& sum) : sum_(sum) {}
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class replay {
 public:
  replay(const table& data, const arm& how, const limits& within, std::uint64_t seed)
      : data_(data), how_(how), within_(within), seed_(seed), tasks_(data.tasks.size()) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i].is_measured.assign(data.tasks[i].points(), false);
      tasks_[i].random = tune::random_source(seed * 1000 + i);
    }
  }

  course run() {
    if (how_.learned_before > 0) learn_before();
    for (std::size_t i = 0; i < tasks_.size(); ++i) measure(i, within_.batch);
    for (std::size_t turn = 0; total_ < within_.measurements; ++turn) {
      std::vector<std::size_t> scope(tasks_.size());
      std::iota(scope.begin(), scope.end(), std::size_t{0});
      std::erase_if(scope, [&](std::size_t i) { return tasks_[i].measured.size() == tasks_[i].is_measured.size(); });
      if (scope.empty()) break;  // each point of the table is measured
      const std::size_t now = pick(scope, turn);
      measure(now, within_.batch);
      if (how_.foresee <= 0) continue;
      std::erase_if(scope, [&](std::size_t i) { return model_of(i) != model_of(now); });
      if (scope.size() < 2) continue;
      measure(pick(scope, turn / scope.size() + turn + 1),
              static_cast<std::size_t>(static_cast<double>(within_.batch) * how_.foresee));
    }
    course done = std::move(done_);
    for (state& s : tasks_) done.best.push_back(std::move(s.best));
    done.sums = std::move(sums_);
    return done;
  }

 private:
  struct state {
    std::vector<bool> is_measured;
    std::vector<std::size_t> measured;
    std::vector<double> best;
    tune::random_source random{0};
    std::vector<std::size_t> order;  ///< of the points, by the last model
    std::size_t order_made_by = 0;   ///< its number
    std::size_t next = 0;            ///< in the order
  };
  struct family_model {
    std::optional<tune::cost_model> model;
    std::size_t number = 0, trained_on = 0;
  };

  std::size_t model_of(std::size_t task) const { return how_.families.empty() ? task : how_.families[task]; }
  std::size_t width() const {
    return (how_.knows_closed_form ? data_.columns() : data_.kind->plain) + (how_.known.empty() ? 0 : 1);
  }
  void append(std::vector<float>& rows, std::size_t task, std::size_t point) const {
    const std::size_t columns = data_.columns(), taken = width() - (how_.known.empty() ? 0 : 1);
    const float* row = data_.tasks[task].features.data() + point * columns;
    rows.insert(rows.end(), row, row + taken);
    if (!how_.known.empty()) rows.push_back(static_cast<float>(how_.known[task]));
  }

  /// Samples of the other tasks, the same for all arms of a seed. A task must not learn from itself, so each has a model of
  /// its own.
  void learn_before() {
    earlier_.resize(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      tune::random_source random(seed_ * 1000 + 500 + i);
      for (std::size_t n = 0; n < how_.learned_before; ++n)
        earlier_[i].push_back(random.below(data_.tasks[i].points()));
    }
  }

  std::size_t pick(std::span<const std::size_t> scope, std::size_t turn) const {
    if (how_.order == scheduler::round_robin) return scope[turn % scope.size()];
    const auto potential = [&](std::size_t task) {
      const std::vector<double>& best = tasks_[task].best;
      if (how_.order == scheduler::slowest) return best.back();
      // Ansor's: what the last rounds gained, and what an even descent to zero would gain.
      constexpr double recent = 0.2;
      const std::size_t window = std::min(best.size() - 1, 3 * within_.batch);
      const double gained =
          window == 0 ? 0 : (best[best.size() - 1 - window] - best.back()) / static_cast<double>(window);
      return recent * gained + (1 - recent) * best.back() / static_cast<double>(best.size());
    };
    return *std::ranges::max_element(scope, {}, potential);
  }

  void measure(std::size_t task, std::size_t count) {
    state& s = tasks_[task];
    const bool is_first = s.measured.empty();
    const bool by_model = how_.has_models && (!is_first || how_.first == first_points::model);
    if (by_model) bring_up_to_date(task);
    else if (s.order.empty() && (!how_.has_models || is_first) && how_.first == first_points::closed_form)
      s.order = data_.tasks[task].order;
    count = std::min({count, within_.measurements - total_, data_.tasks[task].points() - s.measured.size()});
    const bool explores = by_model && count >= 4;
    for (std::size_t n = 0; n < count; ++n) {
      const bool is_random = s.order.empty() || (explores && n + 1 == count);
      take(task, is_random ? unmeasured(task) : next_of_order(s));
    }
    if (is_first && how_.first == first_points::closed_form && how_.has_models) s.order.clear();
  }
  std::size_t unmeasured(std::size_t task) {
    state& s = tasks_[task];
    std::size_t point = s.random.below(s.is_measured.size());
    while (s.is_measured[point]) point = s.random.below(s.is_measured.size());
    return point;
  }
  static std::size_t next_of_order(state& s) {
    while (s.is_measured[s.order[s.next]]) ++s.next;
    return s.order[s.next];
  }
  void take(std::size_t task, std::size_t point) {
    state& s = tasks_[task];
    const double ms = data_.tasks[task].ms[point];
    s.is_measured[point] = true;
    s.measured.push_back(point);
    s.best.push_back(s.best.empty() ? ms : std::min(s.best.back(), ms));
    ++total_;
    done_.measured_ms += ms;
    double sum = 0;
    for (const state& other : tasks_) sum += other.best.empty() ? never : other.best.back();
    sums_.push_back(sum);
  }

  /// Trains the task's model again if there are many new samples, and orders the points by it.
  void bring_up_to_date(std::size_t task) {
    const std::size_t which = model_of(task);
    family_model& family = models_[which];
    std::size_t samples = 0;
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (model_of(i) == which) samples += tasks_[i].measured.size();
    if (!family.model || samples >= family.trained_on + std::max(within_.batch, family.trained_on / 4)) {
      const stopwatch took(done_.training_s);
      train(family, which, samples);
    }
    state& s = tasks_[task];
    if (!s.order.empty() && s.order_made_by == family.number) return;
    const stopwatch took(done_.ordering_s);
    std::vector<float> rows;
    for (std::size_t i = 0; i < data_.tasks[task].points(); ++i) append(rows, task, i);
    const std::vector<float> promise = family.model->predict(rows);
    s.order.resize(promise.size());
    std::iota(s.order.begin(), s.order.end(), std::size_t{0});
    std::ranges::stable_sort(s.order, [&](std::size_t a, std::size_t b) { return promise[a] > promise[b]; });
    s.order_made_by = family.number;
    s.next = 0;
  }

  void train(family_model& family, std::size_t which, std::size_t samples) {
    tune::training_set set;
    std::vector<float> row;
    const auto add = [&](std::size_t task, std::size_t point, double shortest) {
      row.clear();
      append(row, task, point);
      set.add(row, data_.tasks[task].ms[point], shortest);
    };
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!earlier_.empty() && i != which) {
        double shortest = never;
        for (const std::size_t point : earlier_[i]) shortest = std::min(shortest, data_.tasks[i].ms[point]);
        for (const std::size_t point : earlier_[i]) add(i, point, shortest);
      }
      if (model_of(i) != which || tasks_[i].best.empty()) continue;
      for (const std::size_t point : tasks_[i].measured) add(i, point, tasks_[i].best.back());
    }
    family.model = tune::cost_model::train({"replay", "", "", 0, width()}, set);
    family.number += 1;
    family.trained_on = samples;
  }

  const table& data_;
  const arm& how_;
  const limits within_;
  std::uint64_t seed_;
  std::vector<state> tasks_;
  std::vector<std::vector<std::size_t>> earlier_;
  std::map<std::size_t, family_model> models_;
  std::vector<double> sums_;
  course done_;
  std::size_t total_ = 0;
};

}  // namespace families
