// The buffers of OpenBLAS, where the address space is limited.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <collage/backends/impl/openblas_library.hpp>
#include <collage/error.hpp>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Makes the library allocate its buffers, one for each thread that calls it, if there is a limit of the address space. It would
/// otherwise do so at a later call, perhaps after other memory took the room. It would then request the buffer again and again,
/// and never return. Errors: there is no room.
inline void reserve_buffers(int threads) {
  static std::atomic<int> reserved = 0;
  static std::mutex one_at_a_time;
  rlimit most{};
  if (threads <= reserved || getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return;
  const std::lock_guard lock(one_at_a_time);
  if (threads <= reserved) return;
  if (const std::string why = no_room_for_buffers(threads - reserved); !why.empty())
    throw error(error_kind::environment, why, "openblas", "raise this limit, or leave openblas out");
  // Products that are too large for kernels without a buffer. Several rounds, so that all threads have one at the same time.
  constexpr int n = 256, rounds = 4;
  constexpr std::size_t count = std::size_t{n} * n;
  const std::vector<float> in(count);
  std::vector<float> out(count * static_cast<std::size_t>(threads));
  parallel(threads, threads, [&](std::int64_t part, int) {
    for (int round = 0; round < rounds; ++round)
      openblas().sgemm(openblas_library::row_major, openblas_library::as_is, openblas_library::as_is, n, n, n, 1.0F,
                       in.data(), n, in.data(), n, 0.0F, out.data() + count * static_cast<std::size_t>(part), n);
  });
  reserved = threads;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
