// Xbyak with the instructions that differ between AVX-512 and AVX2, for kernels of float32.
#pragma once

#include "instruction_set.hpp"
#include "tile_plan.hpp"

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::jit {

/// Emits into memory of the caller. Registers of vectors are named by their numbers.
class vector_code : public Xbyak::CodeGenerator {
 public:
  vector_code(const tile_plan& p, std::uint8_t* room, std::size_t size)
      : CodeGenerator(size, room), plan(p), set(p.how.set), is_wide(set == instruction_set::avx512) {}

  const tile_plan& plan;
  const instruction_set set;
  const bool is_wide;
  int mask_register = -1;  ///< AVX2: holds the lanes of the last vector that count

  static constexpr int lanes_mask = 1, compare_mask = 2;  ///< registers k1 and k2 of AVX-512

  Xbyak::Xmm vec(int i) const { return {is_wide ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, i}; }
  Xbyak::Address field(std::size_t offset) const { return ptr[rdi + static_cast<int>(offset)]; }
  int bytes() const { return bytes_of(set); }

  void zero(int to) {
    if (is_wide) vpxord(vec(to), vec(to), vec(to));
    else vxorps(vec(to), vec(to), vec(to));
  }
  void copy(int to, int from) {
    if (to != from) vmovaps(vec(to), vec(from));
  }
  void repeat(int to, const Xbyak::RegExp& from) { vbroadcastss(vec(to), dword[from]); }

  /// Whether vector j of a row is one of which some lanes do not count.
  bool is_partial(int j) const { return j + 1 == plan.vectors() && plan.tail() != 0; }

  /// Makes the mask of the last vector. `constants` is needed by AVX2 only.
  void make_mask(const Xbyak::Reg64& scratch, int vector_register) {
    if (plan.tail() == 0) return;
    if (is_wide) {
      mov(scratch.cvt32(), (1U << static_cast<unsigned>(plan.tail())) - 1);
      kmovw(Xbyak::Opmask(lanes_mask), scratch.cvt32());
    } else {
      mask_register = vector_register;
      mov(scratch, field(offsetof(tile_call, constants)));
      vmovups(vec(mask_register), ptr[scratch + 4 * constant_at::mask]);
    }
  }
  /// Vector j of a row in memory. Lanes that do not count are not read, and are 0.
  void load(int to, const Xbyak::RegExp& from, int j) {
    if (!is_partial(j)) vmovups(vec(to), ptr[from]);
    else if (is_wide) vmovups(vec(to) | Xbyak::Opmask(lanes_mask) | T_z, ptr[from]);
    else vmaskmovps(vec(to), vec(mask_register), ptr[from]);
  }
  /// Lanes that do not count are not written.
  void store(const Xbyak::RegExp& to, int from, int j) {
    if (!is_partial(j)) vmovups(ptr[to], vec(from));
    else if (is_wide) vmovups(ptr[to] | Xbyak::Opmask(lanes_mask), vec(from));
    else vmaskmovps(ptr[to], vec(mask_register), vec(from));
  }
};

}  // namespace collage::inline v0::detail::jit
