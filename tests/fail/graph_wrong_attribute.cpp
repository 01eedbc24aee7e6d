// expect: node 0 (softmax of x [1, 3, 8, 8]): its axis must be within the rank of its input; change its operands
// An axis that the input does not have.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    g.output(g(op::softmax, x, {.axis = 4}));
  });
};
