// Memory for generated code. Code is written first, and one call makes all of it executable.
#pragma once

#include "sealed_code.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Code of one owner, such as a plan. It is collected, sealed once, and freed as a whole.
///
/// Memory that is writable is not executable, and the other way round. It is private to the process and lies in no
/// file. Several threads may add code. After a fork, both processes may run, seal and free their copies.
///
/// Layers of a network often have the same kernels. A kernel that other sealed code of the process has is copied, and not
/// generated. Arenas with the same kernels share one piece of memory.
class code_arena {
 public:
  /// The call that changes the protection of memory. Tests replace it.
  using protect_function = int (*)(void* memory, std::size_t bytes, int protection);

  explicit code_arena(protect_function protect = nullptr);
  code_arena(code_arena&&) = delete;

  /// Copies code that runs at any address. The result is its ticket for `at`.
  /// Error (failure): the arena is sealed.
  std::size_t add(std::span<const std::uint8_t> code);
  /// The code of a kernel. Errors: those of `generate`, besides.
  std::size_t add(const std::shared_ptr<const tile_plan>& plan);

  /// Makes all code executable. The result is empty, or one sentence says why the system does not allow it. Further
  /// calls have the same result.
  std::string seal();

  /// Where code lies; null before a successful `seal`.
  const void* at(std::size_t ticket) const;
  template <class Function>
  Function function(std::size_t ticket) const {
    return reinterpret_cast<Function>(reinterpret_cast<std::uintptr_t>(at(ticket)));
  }

  /// Bytes of code so far.
  std::size_t bytes() const;

 private:
  std::size_t append(std::span<const std::uint8_t> code);
  bool add_known(const std::shared_ptr<const tile_plan>& plan);
  bool take_equal(std::size_t size);

  protect_function protect_;
  bool is_sealed_ = false;
  std::string refusal_;
  std::vector<std::uint8_t> written_;  ///< until it is sealed
  std::vector<std::size_t> begins_;
  std::size_t used_ = 0;
  std::vector<sealed_code::part> parts_;                   ///< until it is sealed
  std::vector<std::shared_ptr<const sealed_code>> equal_;  ///< until then: code that begins with all that was added
  std::shared_ptr<const sealed_code> code_;
};

}  // namespace collage::inline v0::detail::jit
