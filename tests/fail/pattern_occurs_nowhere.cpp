// expect: pattern example does not match anywhere; it comes nearest at node 2 (relu): operand 0 of node 1 (max_pool) is the output of node 0 (conv, stem) where the pattern has max_pool(any): it is another operator
// The user does not know where to look.
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
  static constexpr auto expr = op::relu(op::max_pool(op::max_pool(c::any)));
};
static_assert(c::occurs_in<example, network>);
