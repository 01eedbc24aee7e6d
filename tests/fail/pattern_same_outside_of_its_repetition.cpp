// expect: pattern example: same<name>() stands outside of the repetition that captures the name, one value for each iteration
// expect: (at same w)
// Which of the weights is meant?
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      op::add(c::repeat<1, 3>(op::matmul(c::previous, c::constant.as<"w">()), c::any), c::same<"w">());
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
