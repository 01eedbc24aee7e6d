// The twin of pattern_step_without_previous.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::softmax(c::repeat<1, 3>(op::relu(c::previous), c::any));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
