// Placements that run end to end against each other, and which of them is the fastest so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/error.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/impl/cost_measurer.hpp>
#include <collage/place/impl/place_task.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>

namespace collage::inline v0 {

namespace detail {
namespace {

class whole_runs {
 public:
  whole_runs(const place_task& task, cost_measurer& measurer)
      : task_(task),
        measurer_(measurer),
        distrusts_(measurer.distrusts()),
        arena_(task.network, task.backends, task.threads, task.options.seed, task.packed, &measurer.monitor(),
               task.options.time) {}

  end_to_end& arena() { return arena_; }
  const end_to_end& arena() const { return arena_; }

  /// The number of the fastest so far, as of the last time that it was asked who that is.
  std::size_t incumbent() const { return incumbent_; }
  void set_incumbent(std::size_t number) { incumbent_ = number; }

  /// How placements are compared, for the time that the task gives: who gives little for it does not want to wait either.
  comparison_options options() const {
    comparison_options how;
    how.seconds = task_.options.compare_s;
    how.settling_ms = std::min(how.settling_ms, how.seconds * 1e3 / 20);
    return how;
  }

  /// Adds a placement to the runs (end_to_end::add) and answers its number; nothing where it cannot be built, as for want
  /// of memory.
  std::optional<std::size_t> add_if_possible(const placement& p, bool stays = false, bool twin = false) {
    try {
      return arena_.add(p, stays, twin);
    } catch (const error&) { return {}; } catch (const std::bad_alloc&) {
      return {};
    }
  }

  /// Rounds of whole runs. Where the machine turns out to be faster than it began, all that was timed is timed again.
  void run(const comparison_options& how) {
    const auto is_over = [this] { return task_.until.is_over(); };
    for (;;) {
      if (measurer_.distrusts() != distrusts_ && !is_over()) {  // found here, or while kernels were measured meanwhile
        measurer_.replace_distrusted();
        distrusts_ = measurer_.distrusts();
        arena_.forget_rounds();
      }
      arena_.run(how, is_over);
      if (is_over() || !measurer_.distrust_slow_start()) return;
    }
  }

  /// Finds the fastest of what ran, by the paired rounds; the incumbent stays where nothing is faster. Ratios of different
  /// pairs come from different rounds, and on a restless machine they may go round in a circle: it is the one that loses
  /// least to whoever it loses most to, among those that can go on running and are not surely slower than another.
  void find_fastest() {
    std::size_t fastest = incumbent_;
    double behind = most_behind(incumbent_);
    bool is_beaten = is_surely_slower(incumbent_);
    for (std::size_t i = 0; i < arena_.size(); ++i) {
      const double other = most_behind(i);
      if (!std::isfinite(other)) continue;  // of what ran beside nobody nothing is known
      const bool loses = is_surely_slower(i);
      if (loses == is_beaten ? other < behind : is_beaten) fastest = i, behind = other, is_beaten = loses;
    }
    incumbent_ = fastest;
  }

  /// The same after as many rounds as it takes to be sure: of what joined late there are few yet, and of what was disturbed.
  void surely_find_fastest() {
    comparison_options how = options();
    how.seconds /= 2;
    how.parting_s = arena_.met_apart() ? how.seconds : 0;
    constexpr std::size_t enough = 15;
    find_fastest();
    for (int more = 0; more < 4 && !task_.until.is_over(); ++more) {
      const std::size_t ran = arena_.rounds(incumbent_), calm = arena_.time_of(incumbent_).samples;
      const bool lacks_apart =
          arena_.met_apart() && arena_.rounds(incumbent_, true) < end_to_end::enough_of_a_kind && more < 2;
      how.apart_alone = calm >= enough || (more >= 2 && 3 * calm > 2 * ran);
      if (how.apart_alone && !lacks_apart) break;
      how.most_rounds = std::max(enough, calm + how.least_rounds) - calm;
      run(how);
      find_fastest();
    }
  }

 private:
  static constexpr std::size_t enough_rounds = 5;  // for a ratio to be believed

  /// Tells `each` how placement `i` compares with each other one that ran beside it, unless it was released. Those that were
  /// count as well: what they beat and runs no more would look good beside what is slower still.
  template <class Each>
  void compare(std::size_t i, Each each) const {
    for (std::size_t j = 0; j < arena_.size() && arena_.can_run(i); ++j) {
      if (arena_.counts_apart(j) && !arena_.counts_apart(i)) continue;  // it was there to show what kernels take then
      if (const paired_ratio r = arena_.ratio(i, j); j != i && r.rounds != 0) each(r);
    }
  }
  /// How many times as long as the fastest beside it a placement takes; infinity where it ran beside nobody. Few rounds say
  /// little, so that what they say counts for part.
  double most_behind(std::size_t i) const {
    double most = 0;
    compare(i, [&most](const paired_ratio& r) {
      constexpr auto enough = static_cast<double>(enough_rounds);
      most = std::max(most, std::pow(r.median, std::min(1.0, static_cast<double>(r.rounds) / enough)));
    });
    return most > 0 ? most : std::numeric_limits<double>::infinity();
  }
  bool is_surely_slower(std::size_t i) const {
    bool is = false;
    compare(i, [&is](const paired_ratio& r) { is = is || (r.rounds >= enough_rounds && r.low > 1); });
    return is;
  }

  const place_task& task_;
  cost_measurer& measurer_;
  std::size_t distrusts_;  // as of the rounds that are kept
  end_to_end arena_;
  std::size_t incumbent_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
