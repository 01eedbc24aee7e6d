// expect: an operand of a node is a value, as g.input, g.constant, g.scalar and nodes return it
// The name of a constant where the constant is wanted.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    g.constant("w", {4, 3, 3, 3});
    g.output(g(op::conv, x, "w", {.groups = 1}));
  });
};
