// expect: pattern example: the root of a pattern is read outside anyway; escaping() is for inner operators
// expect: (at escaping relu(neg(any)))
// What a match computes is there to be read.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::neg(c::any)).escaping();
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
