// The code of an epilogue: for each vector of the tile, its steps on registers, then its outputs.
#pragma once

#include "vector_code.hpp"

#include <collage/op/body.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::jit {

class epilogue_emitter {
 public:
  /// General registers that an epilogue uses, in the order of `pointer_registers`.
  static int pointers(const epilogue& e) {
    return e.empty() ? 0 : 2 + static_cast<int>(e.operands.size() + e.outputs.size());
  }
  static const std::array<Xbyak::Reg64, 14>& pointer_registers();

  /// `accumulators` holds the register of each vector of the tile, row by row. The registers of `spare` are free.
  epilogue_emitter(vector_code& code, const std::vector<int>& accumulators, std::uint32_t spare);

  void emit();

 private:
  using source = epilogue_value::source;

  // Where things are in memory.
  Xbyak::RegExp constant(int index) const { return constants_ + 4 * index; }
  Xbyak::RegExp place_of(const epilogue_value& v) const;
  bool is_repeated(const epilogue_value& v) const;

  // Registers of vectors.
  int take();
  void give(int vector_register) { free_ |= 1U << static_cast<unsigned>(vector_register); }
  int& register_of(const epilogue_value& v);
  bool is_last_use(const epilogue_value& v, int step) const;
  /// The register that holds a value. A value from memory is loaded into a register that `loaded_` lists.
  int fetch(const epilogue_value& v);
  void load(int to, const epilogue_value& v);
  void release(const epilogue_step& s, int step);

  // Code.
  void element(int row, int vector);
  void combine(int accumulator);
  void step(int index);
  void store_outputs();
  void binary(const epilogue_step& s, int index);
  void extreme(const epilogue_step& s, int index);
  void compare(const epilogue_step& s, int index);
  void select(const epilogue_step& s, int index);
  void unary(const epilogue_step& s, int index);
  void exponential(int to, int x);
  void odd_ratio(int to, int x, int table, int terms);

  /// Calls f with a constant as the last operand of an instruction, which AVX2 needs in a register.
  template <class F>
  void with_constant(int index, const F& f);
  template <class F>
  void with_operand(const epilogue_value& v, const F& f);

  vector_code& code_;
  const epilogue& e_;
  const std::vector<int>& accumulators_;
  std::uint32_t spare_;

  Xbyak::Reg64 constants_, destination_;
  std::vector<Xbyak::Reg64> operands_, outputs_;

  std::vector<int> last_use_;  // of each step's result
  int product_last_use_ = -1;  // the number of steps: an output; -1: nothing uses it
  std::vector<int> step_register_;
  std::vector<int> loaded_;
  std::uint32_t free_ = 0;
  int row_ = 0, vector_ = 0, accumulator_ = 0;
};

}  // namespace collage::inline v0::detail::jit
