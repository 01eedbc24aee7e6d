// The steps of epilogues on vectors, for the current target of hwy/foreach_target.h: included once for each.
#if defined(COLLAGE_JIT_VECTOR_INSTRUCTIONS) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_VECTOR_INSTRUCTIONS
#undef COLLAGE_JIT_VECTOR_INSTRUCTIONS
#else
#define COLLAGE_JIT_VECTOR_INSTRUCTIONS
#endif

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_tiles.hpp>
#include <collage/op/body.hpp>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace tiles = host::HWY_NAMESPACE;
using tiles::lanes;
using tiles::tag;
using tiles::vector;

/// One step of those that `is_in_epilogues` knows. Operands that it does not have are not read.
HWY_INLINE vector instruction_of(opcode code, vector a, vector b, vector c) {
  switch (code) {
    case opcode::add: return hn::Add(a, b);
    case opcode::subtract: return hn::Sub(a, b);
    case opcode::multiply: return hn::Mul(a, b);
    case opcode::divide: return hn::Div(a, b);
    case opcode::minimum: return tiles::minimum_of::run(a, b);
    case opcode::maximum: return tiles::maximum_of::run(a, b);
    case opcode::negate: return hn::Neg(a);
    case opcode::absolute: return hn::Abs(a);
    case opcode::square_root: return hn::Sqrt(a);
    case opcode::exponential: return tiles::exponential(a);
    case opcode::tangent_hyperbolic: return tiles::tangent_hyperbolic(a);
    case opcode::error_function: return tiles::error_function(a);
    case opcode::floor: return tiles::floor_of::run(a);
    case opcode::ceiling: return tiles::ceiling_of::run(a);
    case opcode::round_to_even: return tiles::round_to_even_of::run(a);
    case opcode::less: return tiles::less_of::run(a, b);
    case opcode::equal: return tiles::equal_of::run(a, b);
    default: return hn::IfThenElse(tiles::is_true(a), b, c);  // select
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
