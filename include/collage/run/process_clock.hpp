// The clock, and the number of times that the process lost a processor to others.
#pragma once

#if defined(__linux__)
#include <sys/resource.h>
#endif

#include <chrono>
#include <cstdint>

namespace collage::inline v0::detail {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// How often threads of this process were preempted so far; 0 where the system does not say.
inline std::uint64_t preemptions_so_far() {
#if defined(__linux__)
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) return static_cast<std::uint64_t>(usage.ru_nivcsw);
#endif
  return 0;
}

}  // namespace collage::inline v0::detail
