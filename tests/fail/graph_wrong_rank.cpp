// expect: node 1 (conv of relu_0 [1, 3, 8] and w [4, 3, 3, 3]): its weights must have the rank of its input (operand 1)
// Weights for pictures, applied to rows.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8});
    auto w = g.constant("w", {4, 3, 3, 3});
    g.output(g(op::conv, g(op::relu, x), w));
  });
};
