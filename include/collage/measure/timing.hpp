// Times rivals against each other: bundles of calls, interleaved in rounds, until the fastest rival is known.
#pragma once

#include <algorithm>
#include <collage/measure/drift.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// How rivals are timed.
struct timing_options {
  double sample_ms = 0.2;  ///< a sample bundles as many calls as fill this
  std::size_t rounds = 9;  ///< samples of each rival; up to twice as many if it is then unclear which rivals are ties
  std::size_t least_rounds = 3;  ///< samples of a rival that is clearly beaten or very slow
  double beaten = 2.0;           ///< a rival this many times slower than the fastest is not timed further
  double tie = 1.02;             ///< a rival whose paired ratio to the fastest is at most this is a tie
  double budget_ms = 400;        ///< for one rival; long kernels get fewer rounds, but at least least_rounds
};

/// The result of a race.
struct rival_times {
  std::vector<std::vector<double>> samples;  ///< ms per call, by rival and round; a beaten rival has fewer
  std::vector<timing> times;                 ///< by rival
  /// The cost of each rival: the median of the fastest times the paired ratio to it, which is 1 for a tie. So ties cost the same,
  /// and a rule decides between them, not noise.
  std::vector<double> cost_ms;
  std::size_t fastest = 0;
  std::size_t discarded = 0;  ///< rounds that do not count, because the machine was disturbed
  bool calm = true;           ///< false: the machine stayed disturbed, and such rounds count too
};

namespace detail {

struct warmed_up {
  double call_ms = 0;
  std::size_t bundle = 1;  ///< calls that make a sample
};
/// Calls until a call is no longer clearly faster than the fastest so far, or takes longer than `hopeless_ms`; at most six times.
inline warmed_up warm_up(const std::function<void()>& call, double sample_ms, double hopeless_ms,
                         const time_source& time) {
  warmed_up w;
  for (int i = 0; i < 6; ++i) {
    const double start = time.now_ms();
    call();
    const double took = time.now_ms() - start;
    const bool settled = took > hopeless_ms || (i > 0 && took > 0.8 * w.call_ms);
    w.call_ms = i == 0 ? took : std::min(took, w.call_ms);
    if (settled) break;
  }
  w.bundle = static_cast<std::size_t>(std::clamp(sample_ms / std::max(w.call_ms, 1e-4), 1.0, 1e6));
  return w;
}

/// One race, round by round.
class race {
 public:
  race(std::span<const std::function<void()>> rivals, const timing_options& options, drift_monitor* monitor,
       const time_source& time, const std::function<bool()>& stop)
      : rivals_(rivals), options_(options), monitor_(monitor), time_(time), stop_(stop), runs_(rivals.size()) {
    result_.samples.resize(rivals.size());
    double fastest = 1e300;
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      (void)is_stopped();
      const warmed_up w = warm_up(rivals[i], options.sample_ms, std::max(20 * fastest, 5.0), time);
      fastest = std::min(fastest, w.call_ms);
      runs_[i].bundle = w.bundle;
      const double per_round = w.call_ms * static_cast<double>(w.bundle);
      runs_[i].affordable =
          std::max(options.least_rounds, static_cast<std::size_t>(options.budget_ms / std::max(per_round, 1e-6)));
    }
  }

  rival_times run() {
    const std::size_t most = 2 * options_.rounds;
    // On an overloaded machine, each sample may take a hundred times as long and be disturbed all the same.
    const double most_ms = options_.budget_ms * static_cast<double>(rivals_.size());
    bool any = false;
    for (std::size_t turn = 0; turn < most; ++turn) {
      const bool stopped = is_stopped();
      if (stopped && any) break;
      const bool was_calm = monitor_ == nullptr || monitor_->wait(stop_);
      bool undisturbed = true;
      const double start = time_.now_ms();
      const std::optional<std::vector<double>> round = take(turn, spent_ms_ < most_ms / 2 ? 5 : 1, any, undisturbed);
      if (!round) break;
      spent_ms_ += time_.now_ms() - start;
      const bool is_calm = undisturbed && was_calm && (monitor_ == nullptr || monitor_->is_calm());
      if (was_calm && !is_calm && !stopped && result_.discarded < options_.rounds && spent_ms_ < most_ms / 2) {
        ++result_.discarded;  // the disturbance may be over soon
        continue;
      }
      result_.calm = result_.calm && is_calm;
      any = true;
      for (std::size_t i = 0; i < round->size(); ++i)
        if (runs_[i].active) result_.samples[i].push_back((*round)[i]);
      if (!go_on() || (spent_ms_ > most_ms && turn + 1 >= options_.least_rounds)) break;
    }
    decide();
    return std::move(result_);
  }

 private:
  static constexpr double hopeless = 5.0;  // times slower than the fastest

  struct runner {
    std::size_t bundle = 1;
    std::size_t affordable = 1;
    bool active = true;
  };

  /// A sample of each rival. Nothing if the race is stopped meanwhile, and earlier rounds show all rivals (`may_end`).
  std::optional<std::vector<double>> take(std::size_t turn, int tries, bool may_end, bool& undisturbed) {
    std::vector<double> round(rivals_.size());
    for (std::size_t k = 0; k < rivals_.size(); ++k) {
      const std::size_t i = (k + turn) % rivals_.size();
      if (!runs_[i].active) continue;
      if (is_stopped() && may_end) return {};
      const timed_call took = time_call(time_, tries, [&] {
        for (std::size_t call = 0; call < runs_[i].bundle; ++call) rivals_[i]();
      });
      undisturbed = undisturbed && !took.disturbed;
      round[i] = took.ms / static_cast<double>(runs_[i].bundle);
    }
    return round;
  }

  bool is_stopped() const { return stop_ && stop_(); }

  double median_of(std::size_t i) const { return summarise(result_.samples[i]).median_ms; }

  std::size_t find_fastest() const {
    std::size_t fastest = 0;
    for (std::size_t i = 1; i < rivals_.size(); ++i)
      if (!result_.samples[i].empty() && (result_.samples[fastest].empty() || median_of(i) < median_of(fastest)))
        fastest = i;
    return fastest;
  }

  /// Retires rivals that are beaten or have used up their time. Returns false when the race is decided.
  bool go_on() {
    const std::size_t fastest = find_fastest();
    const std::size_t done = result_.samples[fastest].size();
    for (std::size_t i = 0; i < rivals_.size(); ++i)  // more rounds would cost much and change nothing
      if (compare_paired(result_.samples[i], result_.samples[fastest]).median > hopeless) runs_[i].active = false;
    if (done < options_.least_rounds) return true;
    bool open = false, any = false;
    for (std::size_t i = 0; i < rivals_.size(); ++i) {
      if (!runs_[i].active) continue;
      if (i != fastest) {
        const paired_ratio r = compare_paired(result_.samples[i], result_.samples[fastest]);
        if (r.low > (r.rounds >= 6 ? 1.0 + 2 * (options_.tie - 1) : options_.beaten)) runs_[i].active = false;
        // After the usual rounds, the race goes on only while it is unclear whether some rival is a tie.
        else if (r.low <= options_.tie && r.high >= options_.tie) open = true;
      }
      if (result_.samples[i].size() >= runs_[i].affordable) runs_[i].active = false;
      any = any || runs_[i].active;
    }
    return any && (done < options_.rounds || open);
  }

  void decide() {
    for (const std::vector<double>& s : result_.samples) result_.times.push_back(summarise(s));
    result_.fastest = find_fastest();
    const double best = result_.times[result_.fastest].median_ms;
    for (std::size_t i = 0; i < rivals_.size(); ++i) {
      const paired_ratio r = compare_paired(result_.samples[i], result_.samples[result_.fastest]);
      result_.cost_ms.push_back(r.median <= options_.tie ? best : best * r.median);
    }
  }

  std::span<const std::function<void()>> rivals_;
  const timing_options& options_;
  drift_monitor* monitor_;
  const time_source& time_;
  const std::function<bool()>& stop_;
  std::vector<runner> runs_;
  double spent_ms_ = 0;  // without waiting
  rival_times result_;
};

}  // namespace detail

/// Times rivals for one workload. In each round each rival gives one sample. Each round begins with another rival, so that a slow
/// period of the machine affects all alike. A sample is taken again if threads were preempted during it. With a monitor, a round
/// begins when the machine is undisturbed, and is taken again if it was disturbed. The monitor's patience and the budget limit
/// both. Every rival is called at least once before its first sample. `stop` is called before each sample. It ends the race once each rival
/// has a sample, and may throw to end it at once.
inline rival_times time_rivals(std::span<const std::function<void()>> rivals, const timing_options& options = {},
                               drift_monitor* monitor = nullptr, const time_source& time = {},
                               const std::function<bool()>& stop = {}) {
  if (rivals.empty()) return {};
  return detail::race(rivals, options, monitor, time, stop).run();
}

}  // namespace collage::inline v0
