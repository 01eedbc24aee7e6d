// Epilogues on vectors in memory, for the current target of hwy/foreach_target.h: included once for each.
#if defined(COLLAGE_JIT_EPILOGUE_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_EPILOGUE_VECTORS
#undef COLLAGE_JIT_EPILOGUE_VECTORS
#else
#define COLLAGE_JIT_EPILOGUE_VECTORS
#endif

#include "epilogue.hpp"
#include "vector_instructions.hpp"

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

/// An epilogue on some vectors. It is interpreted step by step, each on many vectors.
class epilogue_run {
 public:
  static constexpr std::int64_t most = 8;  ///< vectors at a time

  epilogue_run(const epilogue& e, const float* product, const float* const* whole, const float* const* operands,
               std::int64_t channel, std::int64_t count)
      : e_(e), product_(product), whole_(whole) {
    for (std::size_t i = 0; i < e.operands.size(); ++i)
      if (e.operands[i] != operand_shape::whole)
        tiles::store(e.operands[i] == operand_shape::single ? tiles::number(*operands[i])
                     : count == lanes                       ? tiles::load(operands[i] + channel)
                                                            : tiles::load_some(operands[i] + channel, count),
                     repeated_ + i * lanes);
  }

  /// Vectors [first, first + count): output o goes to to[o] + first * lanes.
  HWY_INLINE void run(std::int64_t first, std::int64_t count, float* const* to) {
    first_ = first;
    count_ = count;
    for (std::size_t i = 0; i < e_.steps.size(); ++i) step(e_.steps[i].code, i);
    for (std::size_t o = 0; o < e_.outputs.size(); ++o) {
      HWY_ALIGN float number[lanes];
      const place from = place_of(e_.outputs[o], number);
      for (std::int64_t k = 0; k < count; ++k)
        tiles::store(tiles::load(from.begin + k * from.step), to[o] + (first + k) * lanes);
    }
  }

 private:
  struct place {
    const float* begin;
    std::int64_t step;
  };
  HWY_INLINE place place_of(const epilogue_value& v, float* number) const {
    switch (v.from) {
      case epilogue_value::source::product: return {product_ + first_ * lanes, lanes};
      case epilogue_value::source::step: return {made_[v.index], lanes};
      case epilogue_value::source::number: tiles::store(tiles::number(e_.numbers[v.index]), number); return {number, 0};
      default: break;
    }
    if (e_.operands[v.index] == operand_shape::whole) return {whole_[v.index] + first_ * lanes, lanes};
    return {repeated_ + static_cast<std::int64_t>(v.index) * lanes, 0};
  }

  template <opcode Code>
  HWY_INLINE void each(std::size_t index) {
    const epilogue_step& s = e_.steps[index];
    HWY_ALIGN float numbers[3][lanes];
    constexpr int operands = operands_of(Code);
    const place a = place_of(s.a, numbers[0]);
    const place b = operands > 1 ? place_of(s.b, numbers[1]) : a;
    const place c = operands > 2 ? place_of(s.c, numbers[2]) : a;
    for (std::int64_t k = 0; k < count_; ++k)
      tiles::store(instruction_of(Code, tiles::load(a.begin + k * a.step), tiles::load(b.begin + k * b.step),
                                  tiles::load(c.begin + k * c.step)),
                   made_[index] + k * lanes);
  }
  void step(opcode code, std::size_t index) {
    switch (code) {
      case opcode::add: return each<opcode::add>(index);
      case opcode::subtract: return each<opcode::subtract>(index);
      case opcode::multiply: return each<opcode::multiply>(index);
      case opcode::divide: return each<opcode::divide>(index);
      case opcode::minimum: return each<opcode::minimum>(index);
      case opcode::maximum: return each<opcode::maximum>(index);
      case opcode::negate: return each<opcode::negate>(index);
      case opcode::absolute: return each<opcode::absolute>(index);
      case opcode::square_root: return each<opcode::square_root>(index);
      case opcode::exponential: return each<opcode::exponential>(index);
      case opcode::tangent_hyperbolic: return each<opcode::tangent_hyperbolic>(index);
      case opcode::error_function: return each<opcode::error_function>(index);
      case opcode::floor: return each<opcode::floor>(index);
      case opcode::ceiling: return each<opcode::ceiling>(index);
      case opcode::round_to_even: return each<opcode::round_to_even>(index);
      case opcode::less: return each<opcode::less>(index);
      case opcode::equal: return each<opcode::equal>(index);
      default: return each<opcode::select>(index);
    }
  }

  const epilogue& e_;
  const float* product_;
  const float* const* whole_;
  std::int64_t first_ = 0, count_ = 0;
  HWY_ALIGN float repeated_[epilogue::most_operands * lanes];
  HWY_ALIGN float made_[epilogue::most_steps][most * lanes];
};

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
