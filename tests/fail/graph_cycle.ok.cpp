// The twin of graph_cycle.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    auto y = g(op::add, x, c::value{0});
    g.output(g(op::relu, y));
  });
};
