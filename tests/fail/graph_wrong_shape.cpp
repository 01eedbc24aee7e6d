// expect: node 0 (conv of x [1, 3, 8, 8] and w [4, 2, 3, 3]): its weights must have shape [M, C / groups, window...]
// expect: (operand 1); change that operand or the attributes of the node
// Weights that do not fit their input.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    auto w = g.constant("w", {4, 2, 3, 3});
    g.output(g(op::conv, x, w));
  });
};
