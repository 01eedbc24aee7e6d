// How much code this process generated, and how long it took, for measurements.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::jit {

struct code_totals {
  std::atomic<std::uint64_t> kernels = 0;      ///< that were generated
  std::atomic<std::uint64_t> bytes = 0;        ///< of their code
  std::atomic<std::uint64_t> nanoseconds = 0;  ///< of generating and copying it, and of making memory executable
};
inline constinit code_totals totals;

/// Adds the time of a scope.
class code_timer {
 public:
  code_timer() = default;
  code_timer(const code_timer&) = delete;
  code_timer& operator=(const code_timer&) = delete;
  ~code_timer() {
    const auto spent = std::chrono::steady_clock::now() - begin_;
    totals.nanoseconds +=
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  }

  void made_kernel(std::size_t bytes) {
    ++totals.kernels;
    totals.bytes += bytes;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace collage::inline v0::detail::jit
