// expect: one of these operator kinds does not take that many operands
// add takes two operands, relu one.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = c::one_of(op::relu, op::add)(c::any);
