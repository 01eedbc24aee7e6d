// The only way for collage's own loops on the host to enter the process's OpenMP team.
#pragma once

#include <algorithm>
#include <cstdint>

#ifndef _OPENMP
#error "compile this file with OpenMP (-fopenmp): all host code of collage shares one team of threads"
#endif
#include <omp.h>

// Everything in impl/ is in unnamed namespaces. These files are compiled for one particular processor. The linker must
// never use their copies of inline functions in code that is meant to run on any processor.
namespace collage::inline v0::detail::host {
namespace {

/// Calls f(index, thread) for each index of [0, count): a free thread takes the next index. thread < threads, and no
/// two calls have the same `thread` at one time. f must not throw.
template <class F>
void parallel(int threads, std::int64_t count, const F& f) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) f(i, 0);
    return;
  }
  // Always the whole team, even for fewer tasks: libgomp ends threads that a smaller team leaves out. It would start
  // them again for the next region.
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1) nowait
    for (std::int64_t i = 0; i < count; ++i) f(i, thread);
  }
}

/// Calls f(first, last) for parts of [0, count) that begin at multiples of `grain`. Runs on one thread where all of it
/// costs less than entering the team. `cost` is the rough cost of one item, in elements moved or instructions of one
/// vector lane.
template <class F>
void parallel_parts(int threads, std::int64_t count, std::int64_t grain, double cost, const F& f) {
  if (count <= 0) return;
  constexpr double least = 131072;  // about 4 microseconds
  const double total = static_cast<double>(count) * cost;
  const auto wanted = static_cast<std::int64_t>(std::min(total / least, 4.0 * threads));
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t parts = threads <= 1 ? 1 : std::clamp<std::int64_t>(wanted, 1, grains);
  parallel(threads, parts, [&](std::int64_t part, int) {
    const std::int64_t first = grains * part / parts * grain;
    const std::int64_t last = std::min(count, grains * (part + 1) / parts * grain);
    if (first < last) f(first, last);
  });
}

/// Change a thread's own OpenMP settings and put them back: the `enter` and `leave` of backends. A library that divides
/// its work among `threads` threads leaves parts undone where a region has fewer. Regions must therefore not shrink
/// because the machine is busy (OMP_DYNAMIC). Where the environment allows fewer threads, or no parallel regions at
/// all, its number holds.
inline int enter_team(int threads) {
  const int before = omp_get_max_threads();
  const bool was_dynamic = omp_get_dynamic() != 0;
  omp_set_dynamic(0);
  omp_set_num_threads(omp_get_max_active_levels() == 0 ? 1 : std::min(threads, omp_get_thread_limit()));
  return was_dynamic ? -before : before;
}
inline void leave_team(int token) {
  omp_set_dynamic(token < 0 ? 1 : 0);
  omp_set_num_threads(token < 0 ? -token : token);
}

/// Holds these settings for as long as it lives.
class team_scope {
 public:
  explicit team_scope(int threads) : token_(enter_team(threads)) {}
  team_scope(const team_scope&) = delete;
  team_scope& operator=(const team_scope&) = delete;
  ~team_scope() { leave_team(token_); }

 private:
  int token_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
