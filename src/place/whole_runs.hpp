// Placements that run end to end against each other, and which of them is the fastest so far.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <new>
#include <optional>
#include "cost_measurer.hpp"
#include "fastest.hpp"
#include "place_task.hpp"

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

  /// Finds the fastest of what ran.
  void find_fastest() { incumbent_ = fastest_of(arena_).find(incumbent_); }

  /// Decides who is handed out, after as many rounds as it takes to be sure: of what joined late there are few yet, and of what
  /// was disturbed.
  void find_handed_out() {
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
    incumbent_ = fastest_of(arena_).handed_out(incumbent_);
  }

 private:
  const place_task& task_;
  cost_measurer& measurer_;
  std::size_t distrusts_;  // as of the rounds that are kept
  end_to_end arena_;
  std::size_t incumbent_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
