// The twin of pattern_repetition_too_large.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::repeat<1, 20>(op::relu(op::conv(c::previous, c::constant)), c::any);
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
