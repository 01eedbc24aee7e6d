// Memory spaces: the memories in which tensors lie.
#pragma once

#include <collage/detail/host_memory.hpp>
#include <collage/error.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace collage::inline v0 {

/// A kind of memory with its own pointers: the host's, or that of a CUDA device. A kernel states the space that it reads and
/// writes. A copy between two spaces is a kernel with a cost like any other. Spaces are compared by id: 0 is the host, 1 is
/// "cuda", and ids from 16 on are the user's.
///
/// A device may work asynchronously, in the order in which one thread requests the work. Requests of two threads have no order.
/// Before a thread passes a device's memory to another thread, it must call `finish`.
struct memory_space {
  std::uint32_t id = 0;
  const char* name = "host";
  std::size_t alignment = 64;
  /// Returns null if there is no memory left. May throw a more specific error instead.
  void* (*allocate)(std::size_t bytes) = nullptr;
  void (*release)(void* memory, std::size_t bytes) = nullptr;  ///< `bytes` as allocated
  /// Copies within the space.
  void (*copy)(void* to, const void* from, std::size_t bytes) = nullptr;
  // For any space except the host's:
  /// Copies from the host's memory, which may change as soon as this returns.
  void (*from_host)(void* to, const void* from, std::size_t bytes) = nullptr;
  /// Copies to the host's memory, and returns when the bytes are there.
  void (*to_host)(void* to, const void* from, std::size_t bytes) = nullptr;
  /// Waits for all work that the calling thread has requested. Throws the errors of the device.
  void (*finish)() = nullptr;

  friend constexpr bool operator==(const memory_space& a, const memory_space& b) { return a.id == b.id; }
};

/// The host's memory. Allocations are aligned to 64 bytes, and 64 bytes past their end may be read.
inline constexpr memory_space host_space{
    .id = 0,
    .name = "host",
    .alignment = 64,
    .allocate = [](std::size_t bytes) -> void* { return detail::allocate_host(bytes); },
    .release = [](void* memory, std::size_t bytes) { detail::release_host(memory, bytes); },
    .copy = [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
};

/// Owned memory of one space.
class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t bytes, const memory_space& space = host_space) : space_(&space), size_(bytes) {
    if (bytes == 0) return;
    data_ = static_cast<std::byte*>(space.allocate(bytes));
    if (data_ == nullptr)
      throw error(error_kind::environment, "out of memory for " + std::to_string(bytes) + " bytes",
                  std::string("memory space ") + space.name);
  }
  buffer(buffer&& other) noexcept : space_(other.space_), data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  buffer& operator=(buffer&& other) noexcept {
    std::swap(space_, other.space_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~buffer() {
    if (data_ != nullptr) space_->release(data_, size_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  const memory_space& space() const { return *space_; }

 private:
  const memory_space* space_ = &host_space;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Copies between any two spaces. Copies from one device to another go through the host.
inline void copy_bytes(const memory_space& to_space, void* to, const memory_space& from_space, const void* from,
                       std::size_t bytes) {
  if (bytes == 0) return;
  if (to_space == from_space) {
    to_space.copy(to, from, bytes);
  } else if (from_space == host_space) {
    to_space.from_host(to, from, bytes);
  } else if (to_space == host_space) {
    from_space.to_host(to, from, bytes);
  } else {
    const buffer between(bytes);
    from_space.to_host(between.data(), from, bytes);
    to_space.from_host(to, between.data(), bytes);
  }
}

}  // namespace collage::inline v0
