// expect: either() of nothing matches nothing; give it alternatives
// No alternatives.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(c::either());
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
