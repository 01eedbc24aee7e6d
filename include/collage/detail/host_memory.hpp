// Memory of the host for tensors.
#pragma once

#ifdef __linux__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace collage::inline v0::detail {

/// How many bytes hold so many and the 64 behind them that a kernel may read, up to the end of a line of the cache.
constexpr std::size_t padded_bytes(std::size_t bytes) {
  constexpr std::size_t line = 64;
  return (bytes + 2 * line - 1) / line * line;
}

/// The address sanitizer should see all memory.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool is_watched = true;
#elif defined(__has_feature)
inline constexpr bool is_watched = __has_feature(address_sanitizer);
#else
inline constexpr bool is_watched = false;
#endif

/// Whether so many bytes have pages of their own, from the system. The C library takes such blocks from there as well, but
/// once the program has freed one it keeps others of that size for itself: weights that are released would stay.
constexpr bool has_own_pages([[maybe_unused]] std::size_t padded) {
#ifdef __linux__
  return !is_watched && padded >= std::size_t{128} << 10;
#else
  return false;
#endif
}

#ifdef __linux__
inline std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
inline std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

/// Pages of the system that begin at a multiple of `alignment`, one of the page size; null where there are none.
inline void* map_pages(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = whole_pages(bytes), spare = alignment > page_bytes() ? alignment - page_bytes() : 0;
  if (whole < bytes || whole + spare < whole) return nullptr;
  void* const mapped = mmap(nullptr, whole + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(mapped) % alignment) % alignment;
  std::byte* const memory = static_cast<std::byte*>(mapped) + before;
  if (before != 0) (void)munmap(mapped, before);
  if (before != spare) (void)munmap(memory + whole, spare - before);
  return memory;
}
#endif

/// So many bytes, aligned to 64, of which a kernel may read 64 more; null where there is no memory. To be given to
/// `release_host`.
///
/// From 2 MB on they lie in huge pages where the system has them for whoever asks (transparent ones of Linux): networks read
/// their weights and activations from end to end, and with pages of 4 KB finding these takes some percent of the time.
inline void* allocate_host(std::size_t bytes) {
  constexpr std::size_t line = 64, huge = std::size_t{2} << 20;
  const std::size_t padded = padded_bytes(bytes);
  if (padded < bytes) return nullptr;
  const std::size_t alignment = padded < huge ? line : huge;
#ifdef __linux__
  if (has_own_pages(padded)) {
    void* const memory = map_pages(padded, alignment);
    // Whole ones alone: a page in which little is used would count as used. Where it is refused, small pages do.
    if (memory != nullptr && padded >= huge) (void)madvise(memory, padded / huge * huge, MADV_HUGEPAGE);
    return memory;
  }
#endif
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, padded) == 0 ? memory : nullptr;
}

/// Gives back what `allocate_host` answered for so many bytes; null is nothing.
inline void release_host(void* memory, std::size_t bytes) {
#ifdef __linux__
  if (memory != nullptr && has_own_pages(padded_bytes(bytes))) {
    (void)munmap(memory, whole_pages(padded_bytes(bytes)));
    return;
  }
#endif
  std::free(memory);
}

/// Gives back to the system what the C library keeps of memory that was freed, as far as it can be asked to.
inline void return_free_memory() {
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}

}  // namespace collage::inline v0::detail
