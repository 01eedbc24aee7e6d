// The twin of pattern_one_of_wrong_arity.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = c::one_of(op::mul, op::add)(c::any, c::any);
