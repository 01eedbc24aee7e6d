// expect: node 1 (neg): operand 0 asks for output 1 of node 0 (relu), which has 1 output; they are counted from 0
// The second output of a node that has one.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    auto y = g(op::relu, x);
    g.output(g(op::neg, y[1]));
  });
};
