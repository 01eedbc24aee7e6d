// expect: pattern example: output<k>(): the operator has fewer outputs, counted from 0 (at output 2 of top_k(any))
// top_k answers values and places.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::top_k(c::any).output<2>());
};

constexpr c::pattern_view nodes = c::nodes_of<example>;
