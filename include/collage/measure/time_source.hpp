// Clocks, and calls that are timed with them.
#pragma once

#include <chrono>
#include <collage/run/process_clock.hpp>
#include <cstdint>
#include <functional>
#include <thread>

namespace collage::inline v0 {

/// The machine's clock and its count of preemptions. Tests bring their own.
struct time_source {
  std::function<double()> now_ms = detail::now_ms;
  std::function<void(double)> sleep_ms = [](double ms) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  };
  std::function<std::uint64_t()> preemptions = detail::preemptions_so_far;
};

/// A measured time, and whether it was disturbed: threads of the process were preempted more than once in five milliseconds. On
/// any machine that happens now and then.
struct timed_call {
  double ms = 0;
  bool disturbed = false;
};

/// Times a call. Repeats it while it is disturbed, up to `tries` calls in all. If all were disturbed, returns the shortest time.
template <class Call>
timed_call time_call(const time_source& time, int tries, Call&& call) {
  timed_call best;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t before = time.preemptions();
    const double start = time.now_ms();
    call();
    const double took = time.now_ms() - start;
    const bool disturbed = static_cast<double>(time.preemptions() - before) > 0.2 * took;
    if (i == 0 || !disturbed || took < best.ms) best = {took, disturbed};
    if (!disturbed) break;
  }
  return best;
}

/// Calls until `ms` are over, at least once, and returns the mean time of a call. A thousand calls are the most, because a test's
/// clock may stand still.
template <class Call>
double call_for(const time_source& time, double ms, Call&& call) {
  constexpr int most = 1000;
  const double start = time.now_ms();
  int calls = 0;
  do call();
  while (++calls < most && time.now_ms() - start < ms);
  return (time.now_ms() - start) / calls;
}

}  // namespace collage::inline v0
