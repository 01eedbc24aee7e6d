// expect: pattern example: outputs(...) must share values: capture one with as<name>(), and name it with same<name>() in those after it (at neg(any))
// The second could be anywhere in the graph.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::outputs(op::relu(c::any.as<"x">()), op::neg(c::any));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
