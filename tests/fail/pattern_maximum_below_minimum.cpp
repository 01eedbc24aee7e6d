// expect: repeat<Min, Max>: the maximum is below the minimum
// The two are swapped.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::softmax(c::repeat<3, 1>(op::relu(c::previous), c::any));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
