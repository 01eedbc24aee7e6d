// The twin of pattern_operand_is_no_pattern.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::mul(c::any, c::scalar(2));
