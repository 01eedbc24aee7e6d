// expect: one_of takes at most 10 operator kinds
// There is room for ten.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = c::one_of(op::relu, op::elu, op::sigmoid, op::tanh, op::erf, op::exp, op::log, op::sqrt,
                                   op::neg, op::abs, op::sin)(c::any);
