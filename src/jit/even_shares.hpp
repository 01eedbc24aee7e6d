// Divides short work evenly among threads, so that each thread has the same part in every run.
#pragma once

#include <collage/backends/impl/team.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace collage::inline v0::detail::jit {
namespace {

/// Calls f(first, last) for parts of [0, count), one for each thread. A thread takes the part of its number, so that it finds there
/// what it wrote before in its own cache. If a thread is late, another one takes its part. `cost` is that of one item, as for
/// `host::parallel_parts`: too little work stays on one thread.
template <class F>
void even_shares(int threads, std::int64_t count, double cost, const F& f) {
  constexpr double least = 131072;
  constexpr int most_shares = 64;  // bits of `taken`
  const auto worthwhile = static_cast<std::int64_t>(std::min(static_cast<double>(count) * cost / least, 1e6));
  const auto shares = static_cast<int>(std::min<std::int64_t>({threads, count, worthwhile, most_shares}));
  if (shares <= 1) {
    if (count > 0) f(std::int64_t{0}, count);
    return;
  }
  std::atomic<std::uint64_t> taken = 0;
  const auto take = [&](int share) {
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(share);
    return (taken.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  };
  host::parallel(threads, shares, [&](std::int64_t, int thread) {
    int share = thread % shares;
    while (!take(share)) share = (share + 1) % shares;  // as many calls as shares: one is free
    f(count * share / shares, count * (share + 1) / shares);
  });
}

}  // namespace
}  // namespace collage::inline v0::detail::jit
