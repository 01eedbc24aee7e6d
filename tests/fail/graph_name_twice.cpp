// expect: value w: the name is used twice; give every input, constant and node a name of its own
// Two constants of one name: data could not be bound.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    auto y = g(op::mul, x, g.constant("w", {4}));
    g.output(g(op::add, y, g.constant("w", {4})));
  });
};
