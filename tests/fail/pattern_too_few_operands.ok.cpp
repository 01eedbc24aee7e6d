// The twin of pattern_too_few_operands.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::conv(c::any, c::constant, c::maybe(c::any));
