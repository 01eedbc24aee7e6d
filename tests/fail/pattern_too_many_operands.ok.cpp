// The twin of pattern_too_many_operands.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::concat(c::any, c::any, c::any, c::any, c::any, c::many(c::any));
