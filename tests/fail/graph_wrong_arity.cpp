// expect: node 0 (add): takes 2 operands, not 1; give it as many values as that
// A sum of one operand.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    g.output(g(op::add, x));
  });
};
