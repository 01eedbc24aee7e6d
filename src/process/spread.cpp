#include "spread.hpp"

#include <omp.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

namespace collage::inline v0::detail {

#if defined(__linux__)
namespace {

constexpr std::chrono::milliseconds between_looks(50);
constexpr int most_threads = 64;

std::optional<cpu_set_t> processors_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};  // more processors than the set has room for
  return set;
}

/// Moves this thread of a team away from the processors of the threads before it, if it is on one of them. A thread that was bound
/// by another hand stays where it is.
void move_away(const cpu_set_t& allowed, std::span<const int> at, std::size_t self) {
  thread_local std::optional<cpu_set_t> set_here;
  const std::optional<cpu_set_t> apart = processors_apart(allowed, at, self);
  if (!apart) return;
  const std::optional<cpu_set_t> now = processors_of_this_thread();
  if (!now || (!CPU_EQUAL(&*now, &allowed) && !(set_here && CPU_EQUAL(&*now, &*set_here)))) return;
  if (sched_setaffinity(0, sizeof(cpu_set_t), &*apart) == 0) set_here = apart;
}

}  // namespace

std::optional<cpu_set_t> processors_apart(const cpu_set_t& allowed, std::span<const int> at, std::size_t self) {
  cpu_set_t rest = allowed;
  for (const int processor : at.first(self))
    if (processor >= 0) CPU_CLR(static_cast<std::size_t>(processor), &rest);
  const bool shares =
      at[self] >= 0 && std::ranges::find(at.first(self), at[self]) != at.begin() + static_cast<std::ptrdiff_t>(self);
  if (!shares || CPU_COUNT(&rest) == 0) return {};
  return rest;
}

void spread_team(int threads) {
  using clock = std::chrono::steady_clock;
  if (threads < 2 || threads > most_threads) return;
  thread_local clock::time_point next{};
  const clock::time_point now = clock::now();
  if (now < next) return;
  next = now + between_looks;
  if (omp_in_parallel() != 0 || omp_get_proc_bind() != omp_proc_bind_false) return;
  const std::optional<cpu_set_t> allowed = processors_of_this_thread();
  if (!allowed || CPU_COUNT(&*allowed) < threads) return;
  std::array<int, most_threads> at{};
#pragma omp parallel num_threads(threads)
  {
    const auto self = static_cast<std::size_t>(omp_get_thread_num());
    at[self] = sched_getcpu();
#pragma omp barrier
    if (self > 0) move_away(*allowed, at, self);
  }
}
#else
void spread_team(int) {}
#endif

}  // namespace collage::inline v0::detail
