// Memory of the host for tensors.
#pragma once

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdlib>

namespace collage::inline v0::detail {

/// How many bytes hold so many and the 64 behind them that a kernel may read, up to the end of a line of the cache.
constexpr std::size_t padded_bytes(std::size_t bytes) {
  constexpr std::size_t line = 64;
  return (bytes + 2 * line - 1) / line * line;
}

/// So many bytes, aligned to 64, of which a kernel may read 64 more; null where there is no memory. To be given to std::free.
///
/// From 2 MB on they lie in huge pages where the system has them for whoever asks (transparent ones of Linux): networks read
/// their weights and activations from end to end, and with pages of 4 KB finding these takes some percent of the time.
inline void* allocate_host(std::size_t bytes) {
  constexpr std::size_t line = 64, huge = std::size_t{2} << 20;
  const std::size_t padded = padded_bytes(bytes);
  if (padded < bytes) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, padded < huge ? line : huge, padded) != 0) return nullptr;
#ifdef __linux__
  // Whole ones alone: a page in which little is used would count as used. Where it is refused, small pages do.
  if (padded >= huge) (void)madvise(memory, padded / huge * huge, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace collage::inline v0::detail
