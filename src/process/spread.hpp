// Keeps the threads of a team on different processors.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

#include <cstddef>
#include <optional>
#include <span>

namespace collage::inline v0::detail {

/// For the calling thread's OpenMP team of so many threads. On a busy machine, Linux wakes a thread on the processor of the one that
/// wakes it. Then threads that wait briefly share one processor for as long as both run, and take turns there. So now and then this
/// looks where they are. A thread that shares the processor of another is kept from it, until they meet again on the next one. Does
/// nothing where the caller has bound threads, or has fewer processors than threads.
void spread_team(int threads);

#if defined(__linux__)
/// The processors that keep a thread of a team away from the threads before it. Nothing if it shares a processor with none of them, or
/// if no other one is allowed. `at`: the processor of each thread.
std::optional<cpu_set_t> processors_apart(const cpu_set_t& allowed, std::span<const int> at, std::size_t self);
#endif

}  // namespace collage::inline v0::detail
