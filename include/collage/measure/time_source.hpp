// Where time comes from, and whether the processor was taken away meanwhile.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace collage::inline v0 {

namespace detail {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// How often threads of this process had to give up their processor to others so far.
inline std::uint64_t preemptions_so_far() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

}  // namespace detail

/// The machine's clock and what it tells about others; tests bring their own.
struct time_source {
  std::function<double()> now_ms = detail::now_ms;
  std::function<void(double)> sleep_ms = [](double ms) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  };
  std::function<std::uint64_t()> preemptions = detail::preemptions_so_far;
};

/// A measured time, and whether it was disturbed: threads of the process had to give up their processor more often than
/// once in five milliseconds, which happens now and then on any machine.
struct timed_call {
  double ms = 0;
  bool disturbed = false;
};

/// Times a call; one that was disturbed is repeated, `tries` times at most in all. Of those that were all disturbed the
/// shortest is answered.
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

/// Calls until so many ms are over, at least once; answers what a call takes, about. Where the clock stands still, a
/// thousand calls are enough.
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
