// One placement of a race: its engine, and the turns that it takes.
#pragma once

#include <algorithm>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "policy.hpp"
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {

/// The setting that all placements of a race share.
struct race_setting {
  const graph* network;
  backend_table backends;
  int threads;
  std::shared_ptr<packed_weights> packed;
  time_source time;
};

/// Why a placement takes part in a race.
enum class race_role : std::uint8_t {
  contender,  ///< stops running once it is clearly slower
  baseline,   ///< the fastest of these runs to the end, so that others can be compared with it
  replica,  ///< a contender that gets an engine of its own even if another has the same steps: shows how far their times differ
};

/// How calls of a placement are counted, by about how long one takes.
struct turn_shape {
  double call_ms = 0;  ///< 0 if not known

  /// Calls that a turn counts: several of short ones.
  int counted_calls() const {
    return call_ms > 0
               ? static_cast<int>(std::clamp(thresholds.race.short_turn_ms / call_ms, 1.0, thresholds.race.most_calls))
               : 1;
  }
  /// Whether counted calls are also timed step by step: reading the clock, some 0.1 us a step, adds nothing to speak of.
  bool is_traced_at_once() const { return call_ms >= thresholds.race.traced_at_once_ms; }
  /// Whether the effects of another placement's run are negligible in a call.
  bool needs_no_settling() const { return call_ms > thresholds.race.unsettled_ms; }
  /// About how long a turn takes.
  double turn_ms(double settling_ms) const {
    return (needs_no_settling() ? 0 : std::max(settling_ms, call_ms)) +
           (is_traced_at_once() ? 1 : 2) * counted_calls() * call_ms;
  }
};

class placement_runner {
 public:
  using poll_function = std::function<void()>;

  placement_runner(const race_setting& setting, const placement& p, bool is_baseline)
      : which_(std::make_unique<placement>(p)), is_baseline_(is_baseline) {
    build(setting);
    for (const step_info& s : engine_->steps()) {
      is_conversion_.push_back(s.nodes.empty());
      if (s.nodes.empty())
        conversions_.push_back(
            static_cast<std::size_t>(find_conversion(p, s.output, to_text(s.written)) - p.conversions.data()));
    }
  }

  /// Builds the engine, also again after it was released.
  void build(const race_setting& setting) {
    engine_.emplace(*setting.network, *which_, setting.backends, setting.threads, setting.packed);
    context_.emplace(engine_->context());
    is_warm_ = false;
  }
  /// Gives back kernels and memory.
  void release() {
    context_.reset();
    engine_.reset();
  }
  bool can_run() const { return context_.has_value(); }
  void call(run_buffers& memory) { context_->run(memory.inputs, memory.outputs); }
  /// Makes the first calls, which have page faults and one-time work of libraries. `poll` is called before each; it may throw.
  void warm_up(run_buffers& memory, const poll_function& poll) {
    constexpr int first_calls = 2;
    for (int k = is_warm_ || !can_run() ? first_calls : 0; k < first_calls; ++k) {
      if (poll) poll();
      call(memory);
    }
    is_warm_ = is_warm_ || can_run();
  }

  const placement& which() const { return *which_; }
  bool is_baseline() const { return is_baseline_; }
  void make_baseline() { is_baseline_ = true; }
  /// By step of the engine, whether it is a conversion.
  const std::vector<bool>& is_conversion() const { return is_conversion_; }
  /// The conversions in the order in which the engine runs them: positions in the placement's list.
  const std::vector<std::size_t>& conversions() const { return conversions_; }

  /// A turn, and whether other programs left it the processors.
  struct taken_turn {
    round_turn turn;
    bool is_undisturbed = true;
  };
  /// `poll` is called before each call; it may throw.
  taken_turn take_turn(run_buffers& memory, const time_source& time, double settling_ms, bool is_traced,
                       const poll_function& poll) {
    const auto settle = [&] {
      if (poll) poll();
      call(memory);
    };
    if (!shape_.needs_no_settling()) shape_.call_ms = call_for(time, settling_ms, settle);
    const int calls = shape_.counted_calls();
    const bool at_once = shape_.is_traced_at_once();
    taken_turn taken;
    std::vector<double> times;
    for (int k = 0; k < calls; ++k) {
      if (poll) poll();
      const timed_call whole = is_traced && at_once ? time_steps(memory, time, taken.turn.step_ms)
                                                    : time_call(time, tries, [&] { call(memory); });
      times.push_back(whole.ms);
      taken.is_undisturbed = taken.is_undisturbed && !whole.disturbed;
    }
    for (int k = 0; is_traced && !at_once && k < calls; ++k) {
      if (poll) poll();
      (void)time_steps(memory, time, taken.turn.step_ms);
    }
    shape_.call_ms = taken.turn.ms = summarise(std::move(times)).median_ms;
    return taken;
  }

 private:
  static constexpr int tries = 3;

  /// Stamps the steps of a run.
  struct stamps {
    const time_source* time;
    std::vector<double>* steps;
    double started_ms = 0;
    static void before(void* data, std::size_t) {
      auto& self = *static_cast<stamps*>(data);
      self.started_ms = self.time->now_ms();
    }
    static void after(void* data, std::size_t, const dynamic_context&) {
      auto& self = *static_cast<stamps*>(data);
      self.steps->push_back(self.time->now_ms() - self.started_ms);
    }
  };
  /// Times a call and its steps. If it has to be tried again, the last try counts for the steps.
  timed_call time_steps(run_buffers& memory, const time_source& time, std::vector<std::vector<double>>& taken) {
    std::vector<double>& steps = taken.emplace_back();
    stamps s{&time, &steps};
    return time_call(time, tries, [&] {
      steps.clear();
      context_->run(memory.inputs, memory.outputs, {&s, &stamps::before, &stamps::after});
    });
  }

  std::unique_ptr<placement> which_;
  std::optional<dynamic_engine> engine_;  // nothing once it has been released
  std::optional<dynamic_context> context_;
  std::vector<bool> is_conversion_;
  std::vector<std::size_t> conversions_;
  turn_shape shape_;
  bool is_warm_ = false, is_baseline_;
};

}  // namespace detail
}  // namespace collage::inline v0
