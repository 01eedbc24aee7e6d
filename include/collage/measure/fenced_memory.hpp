// Guarded memory: the processor stops reads and writes beyond it, or writes leave traces.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <collage/error.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace collage::inline v0 {

/// Memory aligned to 64 bytes, with a guard page on either side. Its size is rounded up to a multiple of 64 bytes. Another 64
/// bytes follow, which kernels may read (see host_space), and then the guard page. For tests of kernels, in a process that a
/// signal may end.
class fenced_memory {
 public:
  explicit fenced_memory(std::size_t bytes) : size_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t wanted = (bytes + 63) / 64 * 64 + readable;
    inner_ = (wanted + page - 1) / page * page;
    mapped_ = inner_ + 2 * page;
    void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw error(error_kind::environment, "out of memory for " + std::to_string(bytes) + " bytes", "fenced memory");
    map_ = static_cast<std::byte*>(memory);
    begin_ = map_ + page;
    if (mprotect(begin_, inner_, PROT_READ | PROT_WRITE) != 0) {
      munmap(map_, mapped_);
      throw error(error_kind::environment, "the system does not let memory be fenced", "fenced memory");
    }
    std::memset(begin_, mark, inner_);
    data_ = begin_ + inner_ - wanted;
  }
  fenced_memory(fenced_memory&& other) noexcept
      : size_(other.size_),
        inner_(other.inner_),
        mapped_(other.mapped_),
        map_(std::exchange(other.map_, nullptr)),
        begin_(other.begin_),
        data_(other.data_) {}
  fenced_memory& operator=(fenced_memory&&) = delete;
  ~fenced_memory() {
    if (map_ != nullptr) munmap(map_, mapped_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Makes every later write end the process.
  void make_read_only() { mprotect(begin_, inner_, PROT_READ); }
  /// Whether the bytes between the memory and the guard pages are unchanged: the processor does not stop writes to them.
  bool is_whole() const {
    const auto is_mark = [](std::byte b) { return b == static_cast<std::byte>(mark); };
    return std::all_of(begin_, data_, is_mark) && std::all_of(data_ + size_, begin_ + inner_, is_mark);
  }

 private:
  static constexpr std::size_t readable = 64;
  static constexpr int mark = 0xA5;

  std::size_t size_ = 0, inner_ = 0, mapped_ = 0;
  std::byte* map_ = nullptr;
  std::byte* begin_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace collage::inline v0
