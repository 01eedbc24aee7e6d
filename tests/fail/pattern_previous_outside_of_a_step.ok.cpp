// The twin of pattern_previous_outside_of_a_step.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::optional(op::add(c::previous, c::any), op::relu(c::any));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
