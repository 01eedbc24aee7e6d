// expect: pattern example: previous is used outside the step of a repetition (at previous)
// There is no iteration before.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::add(c::previous, op::relu(c::any));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
