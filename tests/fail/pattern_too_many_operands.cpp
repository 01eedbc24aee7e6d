// expect: an operator in a pattern takes at most 6 operand patterns; write many(any) for the rest
// Seven operands, each with a pattern of its own.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::concat(c::any, c::any, c::any, c::any, c::any, c::any, c::any);
