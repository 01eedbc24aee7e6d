// The twin of pattern_of_65_nodes.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = [] {
    constexpr auto row = op::concat(c::any, c::any, c::any, c::any, c::any);
    constexpr auto rows = op::concat(row, row, row, row, row);
    return op::concat(rows, row, row, row, row, op::concat(c::any, op::concat(c::any, c::any, c::any, c::any, c::any)));
  }();
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
