// expect: pattern example: a pattern has at most 64 nodes, repetitions unrolled; this one has 68
// Unrolled, 22 iterations of 3 nodes, the start and the choice between the lengths.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::repeat<1, 22>(op::relu(op::conv(c::previous, c::constant)), c::any);
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
