// expect: an operator in a pattern is applied to expressions and to types derived from collage::pattern
// A number is no pattern; scalar(2) is.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::mul(c::any, 2);
