// expect: more than three operands go in braces: g(collage::ops::concat, {a, b, c, d})
// Calls for nodes list up to three operands.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {1, 3});
    g.output(g(op::concat, x, x, x, x));
  });
};
