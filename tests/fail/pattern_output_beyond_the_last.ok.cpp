// The twin of pattern_output_beyond_the_last.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::top_k(c::any).output<1>());
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
