// The twin of pattern_where_of_another_kind.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      op::relu(op::conv(c::any, c::constant).where([](const op::conv_attributes& a) { return a.groups == 1; }));
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
