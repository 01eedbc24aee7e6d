// The twin of graph_wrong_attribute.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    g.output(g(op::softmax, x, {.axis = 3}));
  });
};
