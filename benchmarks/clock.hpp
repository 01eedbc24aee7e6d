// The clock and the threads of benchmarks that time kernels themselves: COLLAGE_CLOCK and COLLAGE_THREADS.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace benchmarks {

/// Seconds since some moment. With COLLAGE_CLOCK=processor, processor time of the calling thread.
inline double now() {
  static const bool is_processor_time =
      std::getenv("COLLAGE_CLOCK") != nullptr && std::getenv("COLLAGE_CLOCK") == std::string_view("processor");
  if (!is_processor_time)
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The number of COLLAGE_THREADS; 1 without it.
inline int threads() {
  const char* text = std::getenv("COLLAGE_THREADS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

}  // namespace benchmarks
