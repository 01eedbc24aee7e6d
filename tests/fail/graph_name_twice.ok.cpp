// The twin of graph_name_twice.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    auto y = g(op::mul, x, g.constant("w", {4}));
    g.output(g(op::add, y, g.constant("b", {4})));
  });
};
