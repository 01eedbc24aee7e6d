// The twin of graph_wrong_dtype.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    auto ids = g.input("ids", {c::dtype::f32, {4}});
    g.output(g(op::add, x, ids));
  });
};
