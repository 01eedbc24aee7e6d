// The twin of pattern_previous_may_be_missing.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::repeat<1, 3>(op::conv(c::previous, c::constant, c::maybe(c::any)), c::any);
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
