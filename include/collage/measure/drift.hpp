// The drift monitor repeats fixed pieces of work between measurements. Their times show how fast the machine is at the moment.
//
// On a machine that is shared, throttles or runs other programs, everything takes up to four times as long for minutes. For
// moments it takes a third longer. A kernel measured at such a time would lose to every rival measured before.
#pragma once

#include <algorithm>
#include <array>
#include <collage/measure/time_source.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// A sign of drift. Each sign has a fixed piece of work that shows it (docs/measuring.md).
enum class drift_sign : std::uint8_t {
  exchange,  ///< how long threads take to read data of others: whether their processors share a cache
  walk,      ///< how long each thread takes to read its own cache: whether another machine uses the same core
};
inline constexpr std::size_t drift_signs = 2;

/// Does a fixed piece of work and returns its time by the given clock, in ms.
using drift_work = std::function<double(const time_source&)>;

/// Work that is timed from its beginning to its end.
inline drift_work timed(std::function<void()> work) {
  return [work = std::move(work)](const time_source& time) {
    const double start = time.now_ms();
    work();
    return time.now_ms() - start;
  };
}

struct drift_options {
  /// The machine is undisturbed while each work takes at most this many times its usual time.
  std::array<double, drift_signs> calm = {1.8, 1.1};
  double patience_ms = 30000;  ///< the most time spent waiting, in all
  /// Waiting takes at most a second and this part of the time since the monitor was made.
  double part = 0.05;
  double longest_wait_ms = 10000;                 ///< the longest single wait
  std::array<double, drift_signs> usual_ms = {};  ///< the works' usual times from earlier runs; 0: unknown
};

namespace detail {

/// A fixed piece of work that is repeated. Its usual time is the 10th percentile of the undisturbed readings so far, so that a
/// slow hour does not become usual. If several fast readings show that the start was slow, only these count from then on.
class repeated_work {
 public:
  /// `known_ms`: the usual time from earlier runs; 0: unknown.
  repeated_work(drift_work work, double calm, double known_ms, time_source time)
      : work_(std::move(work)), calm_(calm), time_(std::move(time)) {
    for (std::size_t i = 0; i < first_readings; ++i) readings_.push_back(take());
    std::sort(readings_.begin(), readings_.end());
    readings_.resize(first_readings / 2);  // the slower half was cold
    // A start in a slow minute shows only if it is known how fast the machine can be.
    if (known_ms > 0 && known_ms * calm < readings_.back()) readings_.assign(first_readings / 2, known_ms);
  }

  /// The present time of the work, in multiples of its usual time; about 1 on an undisturbed machine.
  double slowness() {
    const double took = take(), usual = usual_ms();
    last_[taken_++ % last_.size()] = took;
    if (took <= calm_ * usual) {
      if (readings_.size() == most_readings) readings_.pop_back();
      readings_.insert(std::upper_bound(readings_.begin(), readings_.end(), took), took);
    }
    forget_slow_start();
    return usual > 0 ? took / usual : 1;
  }
  bool is_calm() { return slowness() <= calm_; }

  double usual_ms() const { return readings_[readings_.size() / 10]; }
  /// The present time of the work, slow or not: the median of the last readings. 0 while there are too few.
  double recent_ms() const {
    if (taken_ < last_.size()) return 0;
    auto sorted = last_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  /// Keeps only the fast readings if several of the last readings are faster than undisturbed readings can be. The start was
  /// slow then, however many slow readings there are.
  void forget_slow_start() {
    const auto is_fast = [most = usual_ms() / calm_](double reading) { return reading <= most; };
    if (taken_ < last_.size() || std::count_if(last_.begin(), last_.end(), is_fast) < enough_fast) return;
    readings_.clear();
    std::copy_if(last_.begin(), last_.end(), std::back_inserter(readings_), is_fast);
    std::sort(readings_.begin(), readings_.end());
  }
  double take() {
    double best = 0;
    for (int i = 0; i < 3; ++i) {  // a single interrupt is no drift
      const double took = work_(time_);
      best = i == 0 ? took : std::min(best, took);
    }
    return best;
  }

  static constexpr std::size_t first_readings = 20, most_readings = 2000;
  static constexpr std::ptrdiff_t enough_fast = 5;  // among the last readings

  drift_work work_;
  double calm_;
  time_source time_;
  std::vector<double> readings_;   // undisturbed ones, ascending; the slowest are dropped first
  std::array<double, 15> last_{};  // all readings, disturbed or not
  std::size_t taken_ = 0;
};

}  // namespace detail

/// Watches a machine by repeating fixed pieces of work.
class drift_monitor {
 public:
  /// `works` has the work of each sign. A work takes some ten microseconds, with as many threads as the measured kernels, and
  /// depends on nothing else. The sign of an empty work is not watched.
  explicit drift_monitor(std::array<drift_work, drift_signs> works, drift_options options = {}, time_source time = {})
      : options_(options), time_(std::move(time)), started_ms_(time_.now_ms()) {
    for (std::size_t i = 0; i < drift_signs; ++i)
      if (works[i]) signs_[i].emplace(std::move(works[i]), options.calm[i], options.usual_ms[i], time_);
  }
  /// Watches the exchange only.
  explicit drift_monitor(std::function<void()> exchange, drift_options options = {}, time_source time = {})
      : drift_monitor(std::array<drift_work, drift_signs>{timed(std::move(exchange)), {}}, options, std::move(time)) {}

  /// Whether all works take about their usual times.
  bool is_calm() { return !slow_sign(); }
  bool is_calm(drift_sign sign) { return !is_slow(sign); }
  /// Whether the cache is split: threads take longer than usual to read data of others, because their processors share no cache
  /// for a while. If another program uses one of the processors, the exchange takes longer still. In a slow minute, the walk is
  /// slow too.
  bool is_apart() {
    constexpr double longest = 6, slow_walk = 1.5;  // seen with a split cache: 2 to 4, and up to 1.15
    const auto slowness = [this](drift_sign sign) { return signs_[at(sign)] ? signs_[at(sign)]->slowness() : 1; };
    const double exchange = slowness(drift_sign::exchange);
    return exchange > options_.calm[at(drift_sign::exchange)] && exchange <= longest &&
           slowness(drift_sign::walk) <= slow_walk;
  }

  /// Takes a reading of each sign, without waiting.
  void look() {
    for (std::optional<detail::repeated_work>& sign : signs_)
      if (sign) (void)sign->slowness();
  }

  /// Waits until the machine is undisturbed, patience ends or `stop`, called now and then, returns true. Returns whether the
  /// machine is undisturbed.
  bool wait(const std::function<bool()>& stop = {}) {
    const double start = time_.now_ms();
    double last = start, pause = 1;
    std::optional<drift_sign> waited_for;
    for (;;) {
      const std::optional<drift_sign> slow = slow_sign();
      const double now = time_.now_ms();
      if (waited_for) waited_ms_[at(*waited_for)] += now - last;
      if (!slow) return true;
      if (now - start >= options_.longest_wait_ms || !has_patience() || (stop && stop())) return false;
      waited_for = slow;
      last = now;
      time_.sleep_ms(pause);
      pause = std::min(2 * pause, 50.0);
    }
  }

  /// The usual time of each work; 0 for an empty work.
  std::array<double, drift_signs> usual_ms() const {
    std::array<double, drift_signs> usual{};
    for (std::size_t i = 0; i < drift_signs; ++i)
      if (signs_[i]) usual[i] = signs_[i]->usual_ms();
    return usual;
  }
  /// The times to keep for later runs: the usual time of each work, or its present time if the machine did not return to it.
  std::array<double, drift_signs> known_ms() const {
    std::array<double, drift_signs> known = usual_ms();
    for (std::size_t i = 0; i < drift_signs; ++i) {
      if (!signs_[i]) continue;
      if (options_.usual_ms[i] > 0) known[i] = std::min(known[i], options_.usual_ms[i]);
      const bool was_waited_for = waited_ms_[i] > 0 && !has_patience();
      if (const double recent = signs_[i]->recent_ms(); was_waited_for && recent > options_.calm[i] * known[i])
        known[i] = recent;
    }
    return known;
  }
  /// Whether the machine has become faster than when its usual times were `before`, by more than undisturbed readings differ.
  bool is_faster_than(const std::array<double, drift_signs>& before) const {
    const std::array<double, drift_signs> now = usual_ms();
    for (std::size_t i = 0; i < drift_signs; ++i)
      if (now[i] * options_.calm[i] < before[i]) return true;
    return false;
  }
  double waited_ms() const { return std::accumulate(waited_ms_.begin(), waited_ms_.end(), 0.0); }
  const drift_options& options() const { return options_; }

 private:
  static constexpr std::size_t at(drift_sign sign) { return static_cast<std::size_t>(sign); }

  /// The most time spent waiting until now. A slow machine may stay slow all day: a host may give processors that share no cache to
  /// every program that keeps them busy.
  double patience_ms() const {
    constexpr double at_first_ms = 1000;
    return std::min(options_.patience_ms, at_first_ms + options_.part * (time_.now_ms() - started_ms_));
  }
  bool has_patience() const { return waited_ms() < patience_ms(); }

  bool is_slow(drift_sign which) {
    std::optional<detail::repeated_work>& sign = signs_[at(which)];
    if (!sign || sign->is_calm()) return false;
    if (which == drift_sign::exchange || !has_patience()) return true;
    // The walk may be slow for a moment after other work. Processors take time to return from their widest vectors, and threads
    // of other pools to fall asleep.
    constexpr double aftermath_ms = 2;
    time_.sleep_ms(aftermath_ms);
    return !sign->is_calm();
  }
  /// The first slow sign. Takes a reading of each sign, so that its usual time stays known.
  std::optional<drift_sign> slow_sign() {
    std::optional<drift_sign> slow;
    for (const drift_sign sign : {drift_sign::exchange, drift_sign::walk})
      if (is_slow(sign) && !slow) slow = sign;
    return slow;
  }

  drift_options options_;
  time_source time_;
  double started_ms_;
  std::array<std::optional<detail::repeated_work>, drift_signs> signs_;
  std::array<double, drift_signs> waited_ms_{};
};

}  // namespace collage::inline v0
