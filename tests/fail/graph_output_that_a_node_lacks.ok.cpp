// The twin of graph_output_that_a_node_lacks.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    auto y = g(op::relu, x);
    g.output(g(op::neg, y[0]));
  });
};
