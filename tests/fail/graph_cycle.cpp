// expect: node 0 (add): operand 1 names value 2, which does not exist yet; a graph has no cycles
// A node that reads a value computed behind it.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    auto y = g(op::add, x, c::value{2});
    g.output(g(op::relu, y));
  });
};
