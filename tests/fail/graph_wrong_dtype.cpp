// expect: node 0 (add of x [4] and ids int64 [4]): its operands must have the same element type (operand 1)
// Integers added to real numbers.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    auto ids = g.input("ids", {c::dtype::i64, {4}});
    g.output(g(op::add, x, ids));
  });
};
