// The twin of pattern_either_of_nothing.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(c::either(op::neg(c::any), op::abs(c::any)));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
