// expect: pattern example: a pattern with more than one anchor where one is allowed (one_anchor); match the others on their own; this one has 2
// Two convolutions, and the pattern says that it has one.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::conv(op::conv(c::any, c::constant), c::constant));
  static constexpr bool one_anchor = true;
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
