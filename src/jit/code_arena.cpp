#include "code_arena.hpp"

#include "code_totals.hpp"
#include "generate.hpp"

#include "process/forks.hpp"

#include <collage/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::uint8_t trap = 0xCC;  // int3: what is jumped into by mistake between two kernels

/// One lock for all arenas.
constinit std::mutex arena_lock;
[[maybe_unused]] const bool is_held = hold_across_forks(arena_lock);

/// All sealed code of the process. It is never destroyed, since arenas of other static objects may be sealed later.
code_index& sealed() {
  static code_index* const all = new code_index;
  return *all;
}

std::string refusal_of(const char* call, int number) {
  return std::string("the system does not let generated code be executable (") + call + ": " + std::strerror(number) +
         "), as SELinux, seccomp or a limit of memory may have it";
}

}  // namespace

code_arena::code_arena(protect_function protect) : protect_(protect != nullptr ? protect : ::mprotect) {}

std::size_t code_arena::add(std::span<const std::uint8_t> code) {
  const std::lock_guard held(arena_lock);
  equal_.clear();
  return append(code);
}

std::size_t code_arena::append(std::span<const std::uint8_t> code) {
  if (is_sealed_) throw error(error_kind::failure, "code cannot be added to an arena that is sealed", "jit");
  written_.resize((written_.size() + alignment - 1) / alignment * alignment, trap);
  begins_.push_back(written_.size());
  written_.insert(written_.end(), code.begin(), code.end());
  used_ += code.size();
  return begins_.size() - 1;
}

std::size_t code_arena::add(const std::shared_ptr<const tile_plan>& plan) {
  {
    const std::lock_guard held(arena_lock);
    if (add_known(plan)) return begins_.size() - 1;
  }
  const std::vector<std::uint8_t> code = generate(*plan);
  const std::lock_guard held(arena_lock);
  equal_.clear();
  const std::size_t ticket = append(code);
  parts_.push_back({plan, begins_[ticket], code.size()});
  return ticket;
}

/// Copies code from where other arenas have it.
bool code_arena::add_known(const std::shared_ptr<const tile_plan>& plan) {
  if (protect_ != ::mprotect) return false;  // a test counts what this arena does
  const code_timer timer;
  const std::vector<code_index::place> places = sealed().find(*plan);
  if (places.empty()) return false;
  const code_index::place& from = places.front();
  const bool is_first = begins_.empty();
  if (is_first) written_.reserve(from.code->used());  // often it is all of this
  append({reinterpret_cast<const std::uint8_t*>(from.code->memory()) + from.begin, from.size});
  const std::size_t begin = begins_.back();
  parts_.push_back({plan, begin, from.size});
  const auto has_it_here = [&](const std::shared_ptr<const sealed_code>& code) {
    return std::ranges::any_of(places, [&](const auto& p) { return p.code == code && p.begin == begin; });
  };
  if (is_first)
    for (const code_index::place& p : places) equal_.push_back(p.code);
  std::erase_if(equal_, [&](const auto& code) { return !has_it_here(code); });
  return true;
}

/// Shares the memory of an arena that has the same kernels, and no others.
bool code_arena::take_equal(std::size_t size) {
  for (const std::shared_ptr<const sealed_code>& code : equal_)
    if (code->used() == size) code_ = code;
  equal_.clear();
  return code_ != nullptr;
}

std::string code_arena::seal() {
  const std::lock_guard held(arena_lock);
  if (is_sealed_) return refusal_;
  const code_timer timer;
  is_sealed_ = true;
  const std::vector<std::uint8_t> written = std::exchange(written_, {});
  std::vector<sealed_code::part> parts = std::exchange(parts_, {});
  if (take_equal(written.size())) return refusal_;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (written.size() + page) / page * page;  // at least one byte behind the code, which traps
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refusal_ = refusal_of("mmap", errno);
  std::memset(memory, trap, mapped);
  std::ranges::copy(written, static_cast<std::uint8_t*>(memory));
  if (protect_(memory, mapped, PROT_READ | PROT_EXEC) != 0) {
    refusal_ = refusal_of("mprotect", errno);
    munmap(memory, mapped);
    return refusal_;
  }
  code_ =
      std::make_shared<const sealed_code>(static_cast<std::byte*>(memory), mapped, written.size(), std::move(parts));
  if (protect_ == ::mprotect) sealed().add(code_);
  return refusal_;
}

const void* code_arena::at(std::size_t ticket) const {
  const std::lock_guard held(arena_lock);
  return code_ == nullptr ? nullptr : code_->memory() + begins_.at(ticket);
}

std::size_t code_arena::bytes() const {
  const std::lock_guard held(arena_lock);
  return used_;
}

}  // namespace collage::inline v0::detail::jit
