#include "code_arena.hpp"

#include "process/forks.hpp"

#include <collage/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::uint8_t trap = 0xCC;  // int3: what is jumped into by mistake between two kernels

/// One lock for all arenas.
constinit std::mutex arena_lock;
[[maybe_unused]] const bool is_held = hold_across_forks(arena_lock);

std::string refusal_of(const char* call, int number) {
  return std::string("the system does not let generated code be executable (") + call + ": " + std::strerror(number) +
         "), as SELinux, seccomp or a limit of memory may have it";
}

}  // namespace

code_arena::code_arena(protect_function protect) : protect_(protect != nullptr ? protect : ::mprotect) {}

code_arena::~code_arena() {
  if (memory_ != nullptr) munmap(memory_, mapped_);
}

std::size_t code_arena::add(std::span<const std::uint8_t> code) {
  const std::lock_guard held(arena_lock);
  if (is_sealed_) throw error(error_kind::failure, "code cannot be added to an arena that is sealed", "jit");
  written_.resize((written_.size() + alignment - 1) / alignment * alignment, trap);
  begins_.push_back(written_.size());
  written_.insert(written_.end(), code.begin(), code.end());
  used_ += code.size();
  return begins_.size() - 1;
}

std::string code_arena::seal() {
  const std::lock_guard held(arena_lock);
  if (is_sealed_) return refusal_;
  is_sealed_ = true;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  mapped_ = (written_.size() + page) / page * page;  // at least one byte behind the code, which traps
  void* const memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refusal_ = refusal_of("mmap", errno);
  std::memset(memory, trap, mapped_);
  std::copy(written_.begin(), written_.end(), static_cast<std::uint8_t*>(memory));
  if (protect_(memory, mapped_, PROT_READ | PROT_EXEC) != 0) {
    refusal_ = refusal_of("mprotect", errno);
    munmap(memory, mapped_);
  } else {
    memory_ = static_cast<std::byte*>(memory);
  }
  written_ = {};
  return refusal_;
}

const void* code_arena::at(std::size_t ticket) const {
  const std::lock_guard held(arena_lock);
  return memory_ == nullptr ? nullptr : memory_ + begins_.at(ticket);
}

std::size_t code_arena::bytes() const {
  const std::lock_guard held(arena_lock);
  return used_;
}

}  // namespace collage::inline v0::detail::jit
