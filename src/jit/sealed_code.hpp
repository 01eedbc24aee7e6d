// Executable memory, and which kernels it has. Kernels of equal plans have equal code, which is generated once.
#pragma once

#include "tile_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Executable memory, which several arenas may share.
class sealed_code {
 public:
  /// A kernel, and where its code is.
  struct part {
    std::shared_ptr<const tile_plan> plan;
    std::size_t begin = 0, size = 0;
  };

  /// Takes over memory that was mapped. `used` bytes are code, with gaps between kernels.
  sealed_code(std::byte* memory, std::size_t mapped, std::size_t used, std::vector<part> parts)
      : memory_(memory), mapped_(mapped), used_(used), parts_(std::move(parts)) {}
  sealed_code(const sealed_code&) = delete;
  sealed_code& operator=(const sealed_code&) = delete;
  ~sealed_code();

  const std::byte* memory() const { return memory_; }
  std::size_t used() const { return used_; }
  /// The kernels that have plans.
  const std::vector<part>& parts() const { return parts_; }

 private:
  std::byte* memory_;
  std::size_t mapped_, used_;
  std::vector<part> parts_;
};

/// Finds sealed code by the plans of its kernels, as long as some arena has it.
class code_index {
 public:
  struct place {
    std::shared_ptr<const sealed_code> code;
    std::size_t begin = 0, size = 0;
  };

  void add(const std::shared_ptr<const sealed_code>& code);
  /// All code of a plan.
  std::vector<place> find(const tile_plan& plan) const;

 private:
  struct entry {
    std::weak_ptr<const sealed_code> code;
    std::size_t part = 0;
  };
  std::unordered_multimap<std::uint64_t, entry> entries_;  ///< by the hash of a plan
  std::size_t sweep_at_ = 256;                             ///< with so many, those of code that is gone are removed
};

}  // namespace collage::inline v0::detail::jit
