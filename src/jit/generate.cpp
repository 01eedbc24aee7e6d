#include "generate.hpp"

#include "code_totals.hpp"

#include "epilogue_emitter.hpp"
#include "vector_code.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

/// A base register serves five rows of A: at 0, 1, 2, 3 and 4 steps.
constexpr int rows_of_base = 5;

class tile_emitter : vector_code {
 public:
  tile_emitter(const tile_plan& p, std::uint8_t* room, std::size_t size)
      : vector_code(p, room, size), bases_{r8, r9, r10, r11, rbx, rbp} {
    const int first = registers_of(set) - 1;
    for (int i = 0; i < rows() * vectors(); ++i) accumulators_.push_back(first - i);
    saved_ = std::max({0, bases() - 4, epilogue_emitter::pointers(p.finish) - 8});
  }

  std::size_t emit() {
    for (int i = 0; i < saved_; ++i) push(saved_register(i));
    begin();
    multiply();
    finish();
    vzeroupper();
    for (int i = saved_; i-- > 0;) pop(saved_register(i));
    ret();
    return getSize();
  }

 private:
  static constexpr std::size_t most_bases = 6;
  static_assert(most_rows <= static_cast<int>(most_bases) * rows_of_base);

  int rows() const { return plan.rows; }
  int vectors() const { return plan.vectors(); }
  int bases() const { return (rows() + rows_of_base - 1) / rows_of_base; }
  int accumulator(int row, int vector) const {
    return accumulators_[static_cast<std::size_t>(row * vectors() + vector)];
  }
  /// The callee saves these; the first ones are also the last bases.
  const Xbyak::Reg64& saved_register(int i) const {
    return epilogue_emitter::pointer_registers()[static_cast<std::size_t>(8 + i)];
  }

  const Xbyak::Reg64 &count_ = rax, &step_ = rcx, &three_steps_ = rdx, &b_ = rsi;

  Xbyak::RegExp a_at(int row, int offset) const {
    const Xbyak::Reg64& base = bases_[static_cast<std::size_t>(row / rows_of_base)];
    switch (row % rows_of_base) {
      case 1: return base + step_ + offset;
      case 2: return base + step_ * 2 + offset;
      case 3: return base + three_steps_ + offset;
      case 4: return base + step_ * 4 + offset;
      default: return base + offset;
    }
  }

  void begin() {
    mov(bases_[0], field(offsetof(tile_call, a)));
    mov(b_, field(offsetof(tile_call, b)));
    mov(count_, field(offsetof(tile_call, depth)));
    if (rows() > 1) mov(step_, field(offsetof(tile_call, a_step)));
    if (rows() > 3) lea(three_steps_, ptr[step_ + step_ * 2]);
    for (int i = 1; i < bases(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      lea(bases_[at], ptr[bases_[at - 1] + step_ * 4]);
      add(bases_[at], step_);
    }
    for (const int r : accumulators_) zero(r);
  }

  /// One step over k: the step that is `k` steps after the present one.
  void one_step(int k) {
    const int row_bytes = vectors() * bytes();
    for (int j = 0; j < vectors(); ++j) vmovups(vec(j), ptr[b_ + k * row_bytes + j * bytes()]);
    if (plan.how.prefetch > 0) {
      const int lines = (row_bytes + 63) / 64;
      for (int i = 0; i < lines; ++i) prefetcht0(ptr[b_ + (k + plan.how.prefetch) * row_bytes + 64 * i]);
    }
    // Two registers take turns where there is room, so that a load need not wait for the row before.
    const int spare = registers_of(set) - static_cast<int>(accumulators_.size()) - vectors();
    for (int i = 0; i < rows(); ++i) {
      if (plan.how.broadcast == broadcast_from::memory) {
        for (int j = 0; j < vectors(); ++j) vfmadd231ps(vec(accumulator(i, j)), vec(j), ptr_b[a_at(i, 4 * k)]);
        continue;
      }
      const int a = vectors() + (spare > 1 ? i % 2 : 0);
      repeat(a, a_at(i, 4 * k));
      for (int j = 0; j < vectors(); ++j) vfmadd231ps(vec(accumulator(i, j)), vec(j), vec(a));
    }
  }
  void advance(int steps) {
    for (int i = 0; i < bases(); ++i) add(bases_[static_cast<std::size_t>(i)], 4 * steps);
    add(b_, steps * vectors() * bytes());
  }

  void multiply() {
    const int unroll = plan.how.unroll;
    Xbyak::Label whole, rest, one, end;
    if (unroll > 1) {
      sub(count_, unroll);
      jl(rest, T_NEAR);
      align(32);
      L(whole);
      for (int k = 0; k < unroll; ++k) one_step(k);
      advance(unroll);
      sub(count_, unroll);
      jge(whole, T_NEAR);
      L(rest);
      add(count_, unroll);
      jz(end, T_NEAR);
    } else {
      test(count_, count_);
      jz(end, T_NEAR);
      align(32);
    }
    L(one);
    one_step(0);
    advance(1);
    dec(count_);
    jnz(one, T_NEAR);
    L(end);
  }

  /// The general registers are free from here on, but for the call.
  void finish() {
    std::uint32_t spare = 0;
    for (int r = 0; r < registers_of(set) - static_cast<int>(accumulators_.size()); ++r)
      spare |= 1U << static_cast<unsigned>(r);
    make_mask(rax, 0);
    if (mask_register >= 0) spare &= ~1U;
    const std::size_t first = plan.finish.empty() ? 0 : 1;
    if (plan.destinations.size() > first && rows() > 1) mov(rcx, field(offsetof(tile_call, to_step)));
    for (std::size_t d = first; d < plan.destinations.size(); ++d) {
      mov(rax, field(offsetof(tile_call, to) + 8 * d));
      for (int i = 0; i < rows(); ++i) {
        for (int j = 0; j < vectors(); ++j) write(plan.destinations[d], i, j);
        if (i + 1 < rows()) add(rax, rcx);
      }
    }
    if (!plan.finish.empty()) epilogue_emitter(*this, accumulators_, spare).emit();
  }
  void write(store_mode mode, int i, int j) {
    const Xbyak::RegExp at = rax + j * bytes();
    const int from = accumulator(i, j), other = mask_register >= 0 ? 1 : 0;
    if (mode == store_mode::set) return store(at, from, j);
    if (mode == store_mode::set_negative) zero(other);
    else load(other, at, j);
    if (mode == store_mode::add) vaddps(vec(other), vec(other), vec(from));
    else vsubps(vec(other), vec(other), vec(from));
    store(at, other, j);
  }

  std::array<Xbyak::Reg64, most_bases> bases_;
  std::vector<int> accumulators_;
  int saved_ = 0;
};

constexpr std::size_t room_bytes = std::size_t{256} << 10;

/// Room of one thread, aligned as code is.
std::uint8_t* room() {
  struct alignas(64) block {
    std::uint8_t bytes[room_bytes];
  };
  thread_local const std::unique_ptr<block> mine(new block);  // not zeroed
  return mine->bytes;
}

}  // namespace

std::vector<std::uint8_t> generate(const tile_plan& plan) {
  code_timer timer;
  try {
    std::uint8_t* const code = room();
    tile_emitter emitter(plan, code, room_bytes);
    const std::size_t size = emitter.emit();
    timer.made_kernel(size);
    return {code, code + size};
  } catch (const Xbyak::Error& fault) {
    if (static_cast<int>(fault) == Xbyak::ERR_CODE_IS_TOO_BIG)
      throw error(error_kind::unsupported,
                  "a kernel '" + to_text(plan.how) + "' with its epilogue has more than 256 KiB of code", "jit",
                  "choose a smaller tile or a shorter epilogue");
    throw error(error_kind::failure,
                "Xbyak could not encode a kernel '" + to_text(plan.how) + "': " + std::string(fault.what()), "jit");
  }
}

}  // namespace collage::inline v0::detail::jit
