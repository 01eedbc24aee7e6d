// The twin of pattern_same_outside_of_its_repetition.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      op::add(c::repeat<1, 3>(op::matmul(c::previous, c::constant), c::any.as<"w">()), c::same<"w">());
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
