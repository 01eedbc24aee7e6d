// The twin of one_of_eleven_kinds.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern =
    c::one_of(op::relu, op::elu, op::sigmoid, op::tanh, op::erf, op::exp, op::log, op::sqrt, op::neg, op::abs)(c::any);
