// Tuning for many shapes: the ends of ranges first, then the middles of parts in which estimates lose time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <collage/error.hpp>
#include <collage/measure/store.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/tune_shapes.hpp>
#include <collage/run/processor.hpp>
#include <queue>
#include <set>
#include <utility>

namespace collage::inline v0 {

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw error(error_kind::invalid_argument, what, "tuning for several shapes", remedy);
}

}  // namespace

extent_values extent_values::range(std::int64_t low, std::int64_t high, std::int64_t step) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  if (low < 0 || high < 0 || high >= most || step < 1)
    refuse("a range of extents has a bound that is negative or too large, or a step below 1",
           "write it as in 16..640/8");
  extent_values made;
  made.step_ = step;
  const std::int64_t up = low % step == 0 ? 0 : step - low % step;
  made.first_ = up > high - low ? low : low + up;
  if (low > high || up > high - low)
    refuse("the range " + std::to_string(low) + ".." + std::to_string(high) + " has no multiple of " +
               std::to_string(step),
           "write the smaller bound first, as in 16..640/8");
  made.count_ = (high - made.first_) / step + 1;
  return made;
}

extent_values extent_values::list(std::vector<std::int64_t> values) {
  if (values.empty() || std::ranges::any_of(values, [](std::int64_t v) { return v < 0; }))
    refuse("a list of extents is empty or has a negative one", "write it as in 16,64,256");
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  extent_values made;
  made.values_ = std::move(values);
  return made;
}

std::string extent_values::text() const {
  if (is_range())
    return std::to_string(at(0)) + ".." + std::to_string(at(count() - 1)) +
           (step_ == 1 ? "" : "/" + std::to_string(step_));
  std::string text;
  for (const std::int64_t v : values_) text += (text.empty() ? "" : ",") + std::to_string(v);
  return text;
}

namespace {

/// The number of a value, for each list or range.
using point = std::vector<std::int64_t>;

/// A part of the ranges, with one value of each list.
struct part {
  point low, high;
  double promise =
      0;  ///< what measuring in it may save: its logarithmic width, times the loss that was found around it
  bool operator<(const part& other) const { return promise < other.promise; }
};

class shape_tuner {
 public:
  shape_tuner(std::span<const extent_values> open,
              const std::function<graph(std::span<const std::int64_t> extents)>& network, backend_table backends,
              const shape_tuning_options& options)
      : open_(open), network_(network), backends_(backends), options_(options) {
    if (open.empty()) refuse("no extent is open", "name a list or a range for one");
    if (options.how.costs != placing_costs::measured) refuse("its results are measured costs", "place by measuring");
    if (options.how.store.empty()) refuse("its results are kept in a store", "name a file for it");
    double combinations = 1;
    for (const extent_values& e : open)
      if (!e.is_range()) combinations *= static_cast<double>(e.count());
    if (combinations > most_combinations)
      refuse("the lists have more than 1,000 combinations", "write ranges in place of lists, as in 16..640/8");
  }

  shape_tuning run() {
    list_combinations(0, point(open_.size(), 0));
    for (const point& p : ends_) {
      if (is_over()) break;
      tune(p,
           left_s() / static_cast<double>(ends_.size() - done_.shapes.size() + (parts_.empty() ? 0 : middles_planned)));
    }
    while (!parts_.empty() && !is_over() && left_s() >= least_share * options_.how.budget_s) {
      const part widest = parts_.top();
      parts_.pop();
      look_into(widest);
    }
    done_.parts_left = parts_.size();
    done_.shapes_left = ends_.size() - std::min(done_.shapes.size(), ends_.size());
    done_.is_complete = parts_.empty() && !was_ended_ && done_.shapes_left == 0;
    return std::move(done_);
  }

 private:
  static constexpr double most_combinations = 1000;
  /// How many middles a budget is shared with before it is known how many there will be.
  static constexpr std::size_t middles_planned = 4;
  /// The least part of the budget that is worth a middle. In less, nothing runs end to end.
  static constexpr double least_share = 1.0 / 12;
  static constexpr double least_s = 0.5;  ///< the same for an end, which must be tuned in any case

  /// The loss of parts in which no plan was compared yet.
  static constexpr double unknown_loss = 0.2;

  /// Lists the ends of the ranges for each combination of lists, and the part between them.
  void list_combinations(std::size_t at, point now) {
    for (; at < open_.size(); ++at)
      if (!open_[at].is_range()) {
        for (std::int64_t i = 0; i < open_[at].count(); ++i) {
          now[at] = i;
          list_combinations(at + 1, now);
        }
        return;
      }
    part whole{now, now};
    std::vector<std::size_t> ranges;
    for (std::size_t d = 0; d < open_.size(); ++d)
      if (open_[d].is_range()) {
        whole.high[d] = open_[d].count() - 1;
        ranges.push_back(d);
      }
    const auto add = [&](const point& p) {
      if (std::ranges::find(ends_, p) == ends_.end()) ends_.push_back(p);
    };
    add(whole.high);  // first: its kernels matter most
    add(whole.low);
    if (ranges.size() == 2)  // with more ranges, there would be too many corners
      for (const std::size_t d : ranges) {
        point corner = whole.low;
        corner[d] = whole.high[d];
        add(corner);
      }
    add_part(whole, unknown_loss);
  }

  double log_width(const part& p, std::size_t d) const {
    const auto log_of = [&](std::int64_t i) {
      return std::log(static_cast<double>(std::max<std::int64_t>(open_[d].at(i), 1)));
    };
    return log_of(p.high[d]) - log_of(p.low[d]);
  }

  void add_part(part p, double loss) {
    double width = 0;
    bool has_inner = false;
    for (std::size_t d = 0; d < open_.size(); ++d) {
      width += log_width(p, d);
      has_inner = has_inner || p.high[d] - p.low[d] >= 2;
    }
    if (!has_inner) return;
    p.promise = width * std::max(loss, options_.tolerance);
    parts_.push(std::move(p));
  }

  /// The value in the middle of a part: the one nearest to the geometric mean of its bounds.
  point middle_of(const part& p) const {
    point middle = p.low;
    for (std::size_t d = 0; d < open_.size(); ++d) {
      if (p.high[d] - p.low[d] < 2) continue;
      const auto low = static_cast<double>(std::max<std::int64_t>(open_[d].at(p.low[d]), 1));
      const double mean = std::sqrt(low * static_cast<double>(open_[d].at(p.high[d])));
      const auto step = static_cast<double>(open_[d].at(p.low[d] + 1) - open_[d].at(p.low[d]));
      const auto steps =
          static_cast<std::int64_t>(std::lround((mean - static_cast<double>(open_[d].at(p.low[d]))) / step));
      middle[d] = std::clamp(p.low[d] + steps, p.low[d] + 1, p.high[d] - 1);
    }
    return middle;
  }

  void look_into(const part& p) {
    const point middle = middle_of(p);
    double loss = unknown_loss;
    if (seen_.count(middle) == 0) {
      const double share = left_s() / static_cast<double>(std::min(parts_.size() + 2, middles_planned));
      const double least = least_share * options_.how.budget_s;
      const tuned_shape& t = tune(middle, left_s() < 2 * least ? left_s() : std::max(share, least));
      if (was_ended_) return parts_.push(p);
      if (t.loss && *t.loss <= options_.tolerance) return;
      if (t.loss) loss = *t.loss;
    }
    // Only a dimension with a value between its bounds can be divided. Parts have one.
    std::optional<std::size_t> found;
    for (std::size_t d = 0; d < open_.size(); ++d)
      if (p.high[d] - p.low[d] >= 2 && (!found || log_width(p, d) > log_width(p, *found))) found = d;
    const std::size_t widest = *found;
    part lower = p, upper = p;
    lower.high[widest] = upper.low[widest] = middle[widest];
    add_part(std::move(lower), loss);
    add_part(std::move(upper), loss);
  }

  /// The plan by estimates; nothing if the costs know nothing, or if there is no such plan.
  std::optional<placed_plan> estimated(const graph& network, const cost_index& index) const {
    if (index.size() == 0) return {};
    place_options how = options_.how;
    how.costs = placing_costs::estimated;
    how.index = &index;
    how.previous = nullptr;
    how.check_s = 0;  // the comparison measures its kernels, and that checks them
    how.budget_s = 0;
    how.progress = {};
    how.improved = {};
    how.keep_non_finite = false;
    try {
      return place(network, backends_, how);
    } catch (const error& e) {
      if (e.kind() == error_kind::cancelled) throw;
      return {};
    }
  }

  /// Tunes one shape in at most so many seconds, if there is a budget.
  const tuned_shape& tune(const point& p, double budget_s) {
    const double start_s = now_s();
    seen_.insert(p);
    tuned_shape& made = done_.shapes.emplace_back();
    for (std::size_t d = 0; d < open_.size(); ++d) made.extents.push_back(open_[d].at(p[d]));
    if (options_.begins) options_.begins(made.extents);
    try {
      const graph network = network_(made.extents);
      if (take_finished(network, made)) return noted(made, start_s);
      // Without the results of whole runs: the plan of an earlier tuning that time ended would be no estimate.
      const cost_index costs(cost_store(options_.how.store).list({.machine = processor_name()}));
      const std::optional<placed_plan> before = estimated(network, costs);
      place_options how = options_.how;
      how.previous = before ? &*before : nullptr;
      how.index = nullptr;
      if (how.budget_s > 0) how.budget_s = std::max(budget_s, least_s);
      const placed_plan found = place(network, backends_, how);
      made.is_interrupted = found.report.interrupted;
      take_times(found, before.has_value(), made);
    } catch (const error& e) {
      if (e.kind() != error_kind::cancelled) throw;
      was_ended_ = made.is_interrupted = true;
    }
    if (was_ended_ && made.median_ms <= 0) {
      done_.shapes.pop_back();
      return none_;
    }
    return noted(made, start_s);
  }
  const tuned_shape& noted(tuned_shape& made, double start_s) const {
    made.seconds = now_s() - start_s;
    if (options_.tuned) options_.tuned(made);
    return made;
  }

  static void take_times(const plan& found, bool has_estimate, tuned_shape& made) {
    made.median_ms = found.runs.empty() ? found.chosen.cost_ms : found.runs.front().median_ms;
    for (const plan_run& r : found.runs)
      if (has_estimate && r.name == previous_run) made.loss = std::max(r.ratio - 1, 0.0);
    if (has_estimate && found.origin == previous_run) made.loss = 0;
  }

  /// Takes the result of an earlier tuning of this shape that came to its end, if the store has one.
  bool take_finished(const graph& network, tuned_shape& made) const {
    if (options_.how.comparing.recheck) return false;
    const std::optional<placed_plan> known = estimated(network, cost_index(options_.how.store));
    if (!known || !known->report.compared_before || known->report.interrupted) return false;
    take_times(*known, true, made);
    return true;
  }

  static double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  double left_s() const { return options_.how.budget_s > 0 ? options_.how.budget_s - (now_s() - start_s_) : 1e9; }
  bool is_over() {
    was_ended_ =
        was_ended_ || (options_.how.stop && options_.how.stop()) || (options_.how.cancel && options_.how.cancel());
    return was_ended_ || left_s() < least_s;
  }

  const std::span<const extent_values> open_;
  const std::function<graph(std::span<const std::int64_t> extents)>& network_;
  const backend_table backends_;
  const shape_tuning_options& options_;
  const double start_s_ = now_s();
  const tuned_shape none_;
  shape_tuning done_;
  std::vector<point> ends_;
  std::priority_queue<part> parts_;
  std::set<point> seen_;
  bool was_ended_ = false;  // by the caller
};

}  // namespace

shape_tuning tune_shapes(std::span<const extent_values> open,
                         const std::function<graph(std::span<const std::int64_t> extents)>& network,
                         backend_table backends, const shape_tuning_options& options) {
  return shape_tuner(open, network, backends, options).run();
}

}  // namespace collage::inline v0
