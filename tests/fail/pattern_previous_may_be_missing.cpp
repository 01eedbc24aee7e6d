// expect: pattern example: previous cannot be maybe(...) or many(...): every iteration needs it
// Without the iteration before there is no repetition.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::repeat<1, 3>(op::conv(c::any, c::constant, c::maybe(c::previous)), c::any);
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
