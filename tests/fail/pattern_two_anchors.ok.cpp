// The twin of pattern_two_anchors.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
  static constexpr bool one_anchor = true;
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
