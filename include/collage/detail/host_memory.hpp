// Host memory for tensors.
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

/// `bytes` and the 64 bytes after them that a kernel may read, rounded up to whole cache lines.
constexpr std::size_t padded_bytes(std::size_t bytes) {
  constexpr std::size_t line = 64;
  return (bytes + 2 * line - 1) / line * line;
}

/// Whether the address sanitizer is active. It should see all memory, so all memory then comes from the C library.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool is_watched = true;
#elif defined(__has_feature)
inline constexpr bool is_watched = __has_feature(address_sanitizer);
#else
inline constexpr bool is_watched = false;
#endif

/// Whether a block of `padded` bytes gets pages of its own from the system, which releases them at once. The C library would
/// also map the first such block. But once the program has freed one, the C library keeps freed blocks of that size for
/// reuse, and released weights would still take memory.
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

/// Maps pages from the system, the first at a multiple of `alignment`; null if there are none. `alignment` is a power of two.
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

/// Allocates `bytes`, aligned to 64; null if there is no memory. A kernel may read the 64 bytes after them. Free it with
/// `release_host`.
///
/// Blocks of 2 MB and more lie in huge pages, if Linux gives transparent huge pages on request. Networks read their weights and
/// activations from end to end. With pages of 4 KB, translating the addresses takes a few percent of the time.
inline void* allocate_host(std::size_t bytes) {
  constexpr std::size_t line = 64, huge = std::size_t{2} << 20;
  const std::size_t padded = padded_bytes(bytes);
  if (padded < bytes) return nullptr;
  const std::size_t alignment = padded < huge ? line : huge;
#ifdef __linux__
  if (has_own_pages(padded)) {
    void* const memory = map_pages(padded, alignment);
    // Only whole huge pages: a page counts as used even if little of it is. If the system refuses, small pages remain.
    if (memory != nullptr && padded >= huge) (void)madvise(memory, padded / huge * huge, MADV_HUGEPAGE);
    return memory;
  }
#endif
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, padded) == 0 ? memory : nullptr;
}

/// Releases memory that `allocate_host` returned for `bytes`. Null is allowed.
inline void release_host(void* memory, std::size_t bytes) {
#ifdef __linux__
  if (memory != nullptr && has_own_pages(padded_bytes(bytes))) {
    (void)munmap(memory, whole_pages(padded_bytes(bytes)));
    return;
  }
#endif
  std::free(memory);
}

/// Returns to the system the freed memory that the C library keeps, if the C library supports it.
inline void return_free_memory() {
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}

}  // namespace collage::inline v0::detail
