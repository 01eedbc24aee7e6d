// The drift monitor: a fixed piece of work, repeated between measurements, tells how fast the machine is just now.
//
// Machines that are shared, throttle or run something else have minutes in which everything takes up to four times as
// long. A kernel measured then would lose to every rival measured before.
#pragma once

#include <algorithm>
#include <array>
#include <collage/measure/time_source.hpp>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace collage::inline v0 {

struct drift_options {
  double calm = 1.8;               ///< the machine is calm while the work takes at most this many times its usual time
  double patience_ms = 30000;      ///< for waiting until it is, in all
  double longest_wait_ms = 10000;  ///< at one time
  double usual_ms = 0;             ///< what the work took at earlier times, if that is known
};

/// Repeats a fixed piece of work. Its usual time is the 10th percentile of the calm readings so far, so that a slow hour does
/// not become usual; and of the fast ones alone once there are some that a slow start explains, which is corrected so.
class drift_monitor {
 public:
  /// `work` is to take some ten microseconds, with as many threads as what is measured, and to depend on nothing.
  explicit drift_monitor(std::function<void()> work, drift_options options = {}, time_source time = {})
      : work_(std::move(work)), options_(options), time_(std::move(time)) {
    for (std::size_t i = 0; i < first_readings; ++i) readings_.push_back(take(work_));
    std::sort(readings_.begin(), readings_.end());
    readings_.resize(first_readings / 2);  // the others were cold
    // A start in a slow minute is recognised where it is known how fast the machine can be.
    if (options_.usual_ms > 0 && options_.usual_ms * options_.calm < readings_.back())
      readings_.assign(first_readings / 2, options_.usual_ms);
  }

  /// How many times its usual time the work takes now; about 1 on a calm machine.
  double slowness() {
    const double took = take(work_), usual = usual_ms();
    last_[taken_++ % last_.size()] = took;
    if (took <= options_.calm * usual) {
      if (readings_.size() == most_readings) readings_.pop_back();
      readings_.insert(std::upper_bound(readings_.begin(), readings_.end(), took), took);
    }
    forget_slow_start();
    return usual > 0 ? took / usual : 1;
  }

  bool is_calm() { return slowness() <= options_.calm; }

  /// Waits until the machine is calm, or patience ends. `stop` is asked now and then. Answers whether it is calm.
  bool wait(const std::function<bool()>& stop = {}) {
    const double start = time_.now_ms();
    double pause = 1;
    while (!is_calm()) {
      const double so_far = time_.now_ms() - start;
      if (so_far >= options_.longest_wait_ms || waited_ms_ + so_far >= options_.patience_ms || (stop && stop())) {
        waited_ms_ += so_far;
        return false;
      }
      time_.sleep_ms(pause);
      pause = std::min(2 * pause, 50.0);
    }
    waited_ms_ += time_.now_ms() - start;
    return true;
  }

  double usual_ms() const { return readings_[readings_.size() / 10]; }
  /// What is to be known at later times: the usual time, or what the work takes now if the machine did not come back to it.
  double known_ms() const {
    if (waited_ms_ < options_.patience_ms || taken_ < last_.size())
      return options_.usual_ms > 0 ? std::min(usual_ms(), options_.usual_ms) : usual_ms();
    auto sorted = last_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double waited_ms() const { return waited_ms_; }
  const drift_options& options() const { return options_; }

 private:
  /// What was usual so far is not, once several of the last readings are faster by more than calm ones differ: however many
  /// slow ones there were before.
  void forget_slow_start() {
    const auto is_fast = [most = usual_ms() / options_.calm](double reading) { return reading <= most; };
    if (taken_ < last_.size() || std::count_if(last_.begin(), last_.end(), is_fast) < enough_fast) return;
    readings_.clear();
    std::copy_if(last_.begin(), last_.end(), std::back_inserter(readings_), is_fast);
    std::sort(readings_.begin(), readings_.end());
  }
  double take(const std::function<void()>& work) {
    double best = 0;
    for (int i = 0; i < 3; ++i) {  // a single interrupt is no drift
      const double start = time_.now_ms();
      work();
      const double took = time_.now_ms() - start;
      best = i == 0 ? took : std::min(best, took);
    }
    return best;
  }

  static constexpr std::size_t first_readings = 20, most_readings = 2000;
  static constexpr std::ptrdiff_t enough_fast = 5;  // of the last ones

  std::function<void()> work_;
  drift_options options_;
  time_source time_;
  std::vector<double> readings_;  // of calm moments, ascending; the slowest are forgotten first
  double waited_ms_ = 0;
  std::array<double, 15> last_{};  // whether calm or not
  std::size_t taken_ = 0;
};

}  // namespace collage::inline v0
