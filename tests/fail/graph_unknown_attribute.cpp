// expect: conv_attributes
// The attribute is called groups.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    auto w = g.constant("w", {4, 3, 3, 3});
    g.output(g(op::conv, x, w, {.group = 1}));
  });
};
