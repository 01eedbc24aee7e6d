// Searches whole spaces of configurations, for backends that have them. The time goes to the group of operators whose improvement
// would make the whole network faster by the most, as the exact search says.
//
// Families and the models that they share are FamilySeer's idea (Zhang et al. 2022). It divides the time by each group's own time;
// the schedule by the exact search is ours.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/graph/graph.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/kind.hpp>
#include <collage/place.hpp>
#include <collage/run/processor.hpp>
#include <collage/tune/any_space.hpp>
#include <collage/tune/family.hpp>
#include <collage/tune/random.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "configuration_candidates.hpp"
#include "cost_measurer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "search_view.hpp"
#include "space_models.hpp"
#include "text.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class space_tuner {
 public:
  space_tuner(placing_state& known, search_view& view, cost_measurer& measurer, const progress& listener)
      : known_(known),
        view_(view),
        measurer_(measurer),
        progress_(listener),
        adding_(known),
        models_(known.task.options.store, static_cast<std::uint32_t>(known.task.options.seed)),
        random_(known.task.options.seed) {
    for (configuration_group& g : adding_.groups()) tasks_.push_back({.group = std::move(g)});
  }

  /// Measures configurations until the time is up, or until no group is expected to gain anything to speak of. The report is whole
  /// also where placing is cancelled meanwhile.
  void run(tuning_report& report) {
    start_ms_ = now_ms();
    try {
      while (!is_over(report) && run_next(report)) {}
      for (task& t : tasks_) finish(t);
      models_.keep();
    } catch (const cancellation&) {
      sum_up(report);
      throw;
    }
    sum_up(report);
  }

 private:
  struct task {
    configuration_group group;
    std::shared_ptr<const tune::any_space> space = {};
    tune::model_subject subject = {};
    double gain = thresholds.tuning.first_gain;  ///< the part of its time that another round may save
    std::set<std::uint32_t> points = {};         ///< that were measured
    std::size_t noted = 0;                       ///< members that the models know
    std::uint32_t rival = 0;                     ///< the kernel that its rounds are against
    bool is_over = false;                        ///< there is no space, or nothing of it is left
  };

  /// False if no task is worth a round.
  bool run_next(tuning_report& report) {
    const std::optional<std::size_t> next = most_promising(report);
    report.is_exhausted = !next;
    if (next) run_round(tasks_[*next], *next, report);
    return next.has_value();
  }
  void sum_up(tuning_report& report) const {
    report.after_ms = optimum().found.cost_ms;
    report.without_model = models_.why_not();
    report.training_s = models_.training_s();
    report.seconds = (now_ms() - start_ms_) / 1e3;
  }

  bool is_over(const tuning_report& report) const {
    const autotune_options& how = known_.task.options.autotune;
    // The fastest configurations of each task that has begun are measured again in the end.
    const double round_ms = report.rounds == 0 ? 0 : rounds_ms_ / static_cast<double>(report.rounds);
    const auto begun = std::ranges::count_if(tasks_, [](const task& t) { return !t.points.empty(); });
    return now_ms() - start_ms_ + static_cast<double>(begun) * round_ms > how.seconds * 1e3 ||
           (how.measurements != 0 && report.measured >= how.measurements) || known_.task.until.is_over_for_kernels();
  }

  // ---- Which group is next ----

  search_result optimum() const {
    search_result now = view_.problem({.not_measured = false});
    now.found = view_.solve(now);
    return now;
  }

  bool is_usable(std::uint32_t candidate) const {
    const measured_cost* const cost = known_.costs.find(known_.candidates[candidate]);
    return cost != nullptr && cost->refusal.empty();
  }
  /// The member of a task that costs the least; nothing if none can be used.
  std::optional<std::uint32_t> fastest_of(const task& t) const {
    std::optional<std::uint32_t> fastest;
    for (const std::uint32_t i : t.group.members)
      if (is_usable(i) && (!fastest || ms_of(i) < ms_of(*fastest))) fastest = i;
    return fastest;
  }
  double ms_of(std::uint32_t candidate) const { return known_.costs.find(known_.candidates[candidate])->alone_ms; }

  /// The task whose next round should make the network faster by the most; nothing if none should by enough.
  ///
  /// If a kernel gets faster by some time, the network does by at most that, times the kernel's occurrences. Tasks are looked at in the
  /// order of these bounds. The search says what each is worth, until no bound is above the best worth.
  std::optional<std::size_t> most_promising(tuning_report& report) {
    const double start = now_ms();
    search_result now = optimum();
    const double found = now_ms(), total = now.found.cost_ms;
    if (report.rounds == 0) report.before_ms = total;
    std::vector<std::pair<double, std::size_t>> bounds;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const task& t = tasks_[i];
      const std::optional<std::uint32_t> best = t.is_over ? std::nullopt : fastest_of(t);
      if (!best) continue;
      const auto occurrences = static_cast<double>(known_.candidates.all().structures[t.group.structure].occurrences);
      bounds.emplace_back(t.gain * ms_of(*best) * occurrences, i);
    }
    std::ranges::sort(bounds, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::optional<std::size_t> best;
    double worth = thresholds.tuning.least_gain * total;
    for (const auto& [bound, i] : bounds) {
      if (bound <= worth) break;
      if (now_ms() - found > thresholds.tuning.most_searching_ms) {  // there is no time to ask what it is worth
        best = i;
        break;
      }
      const double saved = total - cost_with(now, tasks_[i]);
      if (saved <= worth) continue;
      worth = saved;
      best = i;
    }
    report.searching_s += (now_ms() - start) / 1e3;
    return best;
  }

  /// The cost of the best placement if the fastest kernel of a task were faster by what is expected.
  double cost_with(search_result& of, const task& t) const {
    const std::uint32_t best = *fastest_of(t);
    const cost_key key = key_of(known_.candidates.all(), known_.candidates[best]);
    std::vector<std::size_t> lowered;
    for (std::size_t k = 0; k < of.who.size(); ++k)
      if (of.who[k].is_candidate() && key_of(known_.candidates.all(), known_.candidates[of.who[k].number]) == key)
        lowered.push_back(k);
    std::vector<double> before;
    for (const std::size_t k : lowered) {
      before.push_back(of.problem.candidates[k].cost_ms);
      of.problem.candidates[k].cost_ms *= 1 - t.gain;
    }
    search_result with = of;
    const double cost = view_.solve(with).cost_ms;
    for (std::size_t j = 0; j < lowered.size(); ++j) of.problem.candidates[lowered[j]].cost_ms = before[j];
    return cost;
  }

  // ---- A round ----

  void run_round(task& t, std::size_t number, tuning_report& report) {
    const std::optional<std::uint32_t> best = fastest_of(t);
    if (!open(t, *best)) {
      t.is_over = true;
      return;
    }
    note_measured(t, number);
    const std::vector<std::uint32_t> points = propose(t);
    if (points.empty()) {
      t.is_over = true;
      return;
    }
    tell(t, report);
    const double start = now_ms();
    const double before = ms_of(*best);
    std::vector<std::uint32_t> fresh;
    for (const std::uint32_t p : points) {
      t.points.insert(p);
      const std::optional<configuration> how = configuration::of(t.space->text(p));
      const std::optional<std::uint32_t> added = how ? adding_.add(*best, *how) : std::nullopt;
      if (added && std::ranges::find(t.group.members, *added) == t.group.members.end()) fresh.push_back(*added);
    }
    t.group.members.insert(t.group.members.end(), fresh.begin(), fresh.end());
    report.measured += measurer_.measure_beside(t.rival, fresh, false);
    note_measured(t, number);
    ++report.rounds;
    rounds_ms_ += now_ms() - start;
    const double saved = 1 - ms_of(*fastest_of(t)) / before;
    t.gain = std::max(saved, t.gain * thresholds.tuning.fading);
  }

  /// Opens the space of a task. Returns whether there is one.
  bool open(task& t, std::uint32_t like) {
    if (t.space) return true;
    const place_task& of = known_.task;
    const place_candidate& c = known_.candidates[like];
    t.space = of.backends[c.backend].patterns[c.pattern].search_space(
        of.network.view(), record_of(of.network, of.backends, c), c.configuration, of.threads);
    if (!t.space || t.space->size() == 0) return false;
    t.rival = rival_of(t).value_or(like);
    t.subject = t.space->subject(family_of(t), processor_name() + ", " + count_of(of.threads, "thread"));
    return true;
  }
  /// The kernel that all rounds are against: the fastest direct one of the structure now. Against the fastest so far, a cost that came out
  /// too low would lower all that follow. How much other algorithms err is judged beside a direct kernel.
  std::optional<std::uint32_t> rival_of(const task& t) const {
    std::optional<std::uint32_t> fastest;
    for (const std::uint32_t i : known_.costs.rivals_of(t.group.structure)) {
      const place_candidate& c = known_.candidates[i];
      if (!is_usable(i) || known_.errors.rounds(i) || is_last_resort(known_.task.backends, c) ||
          !algorithm_of(known_.task.network, known_.task.backends, c).is_direct())
        continue;
      if (!fastest || ms_of(i) < ms_of(*fastest)) fastest = i;
    }
    return fastest;
  }
  /// The core operator names the family: on the tables of benchmarks/families, one model for all groups of a space is as good as
  /// finer families.
  std::string family_of(const task& t) const {
    tune::subgraph group{.space = {}, .operators = {}};
    const graph& network = known_.task.network;
    for (const std::uint32_t n : known_.candidates.nodes_of(t.group.members.front()))
      group.operators.push_back({network.node(n).kind->name, {}, network.node(n).kind->fusion == fusion_kind::anchor});
    return tune::by_core_operator(group);
  }

  /// Passes on to the models what was measured since the last time.
  void note_measured(task& t, std::size_t number) {
    for (; t.noted < t.group.members.size(); ++t.noted) {
      const place_candidate& c = known_.candidates[t.group.members[t.noted]];
      const std::optional<std::uint32_t> point = t.space->find(c.configuration.text());
      const measured_cost* const cost = known_.costs.find(c);
      if (!point || cost == nullptr || cost->passing) continue;
      t.points.insert(*point);
      const std::uint32_t one[] = {*point};
      models_.add(t.subject, number, t.space->features(one),
                  cost->refusal.empty() ? cost->alone_ms : std::numeric_limits<double>::infinity());
    }
  }

  /// The points to measure next, ascending: the most promising ones, and a random one.
  std::vector<std::uint32_t> propose(const task& t) {
    const std::vector<std::uint32_t> pool = pool_of(t);
    const std::size_t most = std::min(thresholds.tuning.points_of_round, pool.size());
    std::vector<double> promise(pool.size());
    if (const auto predicted = models_.predict(t.subject, t.space->features(pool)))
      std::ranges::copy(*predicted, promise.begin());
    else
      for (std::size_t i = 0; i < pool.size(); ++i) promise[i] = -t.space->estimate(pool[i]);
    std::vector<std::size_t> order(pool.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return promise[a] > promise[b]; });
    const std::set<std::string> refused = refused_algorithms(t);
    std::vector<std::uint32_t> points;
    for (std::size_t i = 0; i < order.size() && points.size() + 1 < most; ++i)
      if (const std::uint32_t p = pool[order[i]]; refused.empty() || !refused.contains(algorithm_at(t, p)))
        points.push_back(p);
    if (most > 0) points.push_back(pool[order[random_.below(order.size())]]);
    std::ranges::sort(points);
    points.erase(std::ranges::unique(points).begin(), points.end());
    return points;
  }

  /// The algorithms of which no kernel of a task could be used so far: others are tried first, because most of them err too much.
  std::set<std::string> refused_algorithms(const task& t) const {
    const place_task& of = known_.task;
    std::set<std::string> refused, used;
    for (const std::uint32_t i : t.group.members) {
      const measured_cost* const cost = known_.costs.find(known_.candidates[i]);
      const kernel_algorithm a = algorithm_of(of.network, of.backends, known_.candidates[i]);
      if (cost != nullptr && !a.is_direct()) (cost->refusal.empty() ? used : refused).insert(a.name);
    }
    for (const std::string& name : used) refused.erase(name);
    return refused;
  }
  /// The name of a point's algorithm; empty if it is direct.
  std::string algorithm_at(const task& t, std::uint32_t point) const {
    place_candidate c = known_.candidates[t.group.members.front()];
    const std::optional<configuration> how = configuration::of(t.space->text(point));
    if (!how) return {};
    c.configuration = *how;
    const kernel_algorithm a = algorithm_of(known_.task.network, known_.task.backends, c);
    return a.is_direct() ? std::string() : std::string(a.name);
  }

  /// Points that were not measured: all of a small space, else random ones and the neighbours of the fastest.
  std::vector<std::uint32_t> pool_of(const task& t) {
    constexpr std::size_t most = 8192;
    std::set<std::uint32_t> pool;
    const auto add = [&](std::uint32_t p) {
      if (!t.points.contains(p)) pool.insert(p);
    };
    if (t.space->size() <= most) {
      for (std::uint32_t p = 0; p < t.space->size(); ++p) add(p);
    } else {
      for (std::size_t i = 0; i < most; ++i) add(static_cast<std::uint32_t>(random_.below(t.space->size())));
      std::vector<std::uint32_t> fastest = by_cost(t);
      fastest.resize(std::min(fastest.size(), thresholds.tuning.kept));
      for (const std::uint32_t i : fastest)
        if (const auto p = t.space->find(known_.candidates[i].configuration.text()))
          for (const std::uint32_t near : t.space->neighbours(*p)) add(near);
    }
    return {pool.begin(), pool.end()};
  }

  // ---- The end ----

  /// The members of a task that can be used, the fastest first.
  std::vector<std::uint32_t> by_cost(const task& t) const {
    std::vector<std::uint32_t> usable;
    for (const std::uint32_t i : t.group.members)
      if (is_usable(i)) usable.push_back(i);
    std::ranges::stable_sort(usable, {}, [this](std::uint32_t i) { return ms_of(i); });
    return usable;
  }
  /// Measures the fastest configurations again, together, and keeps them for later placings. Among hundreds, some always seem fast by
  /// chance, so the costs by which they were selected are too low. The comparison end to end tries these alone.
  void finish(task& t) {
    if (!t.space || t.points.empty()) return;
    std::vector<std::uint32_t> order = by_cost(t);
    if (order.empty()) return;
    std::vector<std::uint32_t> selected(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), thresholds.tuning.kept)));
    std::erase(selected, t.rival);
    if (!known_.task.until.is_over_for_kernels()) measurer_.measure_beside(t.rival, selected, true);
    order = by_cost(t);
    if (order.empty()) return;
    if (auto& kept = measurer_.kept(); kept && !known_.task.until.is_past()) {
      std::vector<std::pair<configuration, double>> best;
      for (std::size_t k = 0; k < std::min(order.size(), thresholds.tuning.kept); ++k)
        best.emplace_back(known_.candidates[order[k]].configuration, ms_of(order[k]));
      kept->put_fastest(known_.candidates[t.group.members.front()], best);
    }
    for (std::size_t k = thresholds.tuning.kept; k < order.size(); ++k)
      if (order[k] >= first_added_) {  // those that backends propose stay: they may keep smaller weights
        view_.leave_out(order[k]);
        known_.costs.retire(order[k]);
      }
  }

  void tell(const task& t, const tuning_report& report) const {
    place_progress now;
    now.stage = "tuning";
    now.what = known_.candidates.all().structures[t.group.structure].label;
    now.done = report.measured;
    now.remaining_s = std::max(known_.task.options.autotune.seconds - (now_ms() - start_ms_) / 1e3, 0.0);
    progress_.tell(std::move(now));
  }

  placing_state& known_;
  search_view& view_;
  cost_measurer& measurer_;
  const progress& progress_;
  configuration_candidates adding_;
  space_models models_;
  tune::random_source random_;
  std::vector<task> tasks_;
  std::uint32_t first_added_ = static_cast<std::uint32_t>(known_.candidates.size());
  double start_ms_ = 0, rounds_ms_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
