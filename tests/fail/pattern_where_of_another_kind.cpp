// expect: pattern example: where(...): the predicate reads the attributes of another kind of operator
// expect: (at relu(conv(any, constant)) where a condition holds)
// The condition is on the relu, and reads what only the convolution has.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      op::relu(op::conv(c::any, c::constant)).where([](const op::conv_attributes& a) { return a.groups == 1; });
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
