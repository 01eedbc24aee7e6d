// The twin of pattern_escaping_root.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::neg(c::any).escaping());
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
