// expect: the graph has no output; name its outputs with g.output(y)
// Nothing reads what the graph computes.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    g(op::relu, x);
  });
};
