// expect: pattern example: the step of a repetition must contain previous, where the iteration before goes
// expect: (at repeat(relu(any), 1 to 3 times, from any))
// Where would the iteration before go?
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::softmax(c::repeat<1, 3>(op::relu(c::any), c::any));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
