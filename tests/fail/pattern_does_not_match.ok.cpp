// The twin of pattern_does_not_match.cpp.
#include <collage/collage.hpp>
#include <collage/pattern/explain.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 3, 8, 8});
    auto y = g.named("stem")(op::conv, x, g.constant("w", {8, 3, 3, 3}));
    g.output(g(op::relu, g(op::max_pool, y, {.window = {2, 2}})));
  });
};
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::max_pool(op::conv(c::any, c::constant)));
};
static_assert(c::matches<example, network, 2>);
