// expect: this operator kind does not take that many operands
// A pattern that can never match: relu takes one operand.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::relu(c::any, c::any);
