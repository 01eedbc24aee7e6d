// The twin of pattern_outputs_share_nothing.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::outputs(op::relu(c::any.as<"x">()), op::neg(c::same<"x">()));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
