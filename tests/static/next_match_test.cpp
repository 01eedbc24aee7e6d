// All matches of a pattern in a static graph, found one after another, are those that are found node by node; and what is
// rejected at a glance is what a whole search rejects.
#include <collage/collage.hpp>
#include <cstdint>

namespace {

namespace c = collage;
namespace op = collage::ops;

struct network {
  static constexpr auto graph = c::define([](auto& g) {
    c::value x = g.input("x", {1, 4, 8, 8});
    const c::value w = g.constant("w", {4, 4, 1, 1}), bias = g.constant("bias", {4, 1, 1});
    for (int block = 0; block < 3; ++block) {
      const c::value y = g(op::conv, x, w);
      const c::value z = g(op::relu, block == 1 ? g(op::add, bias, y) : g(op::add, y, bias));
      x = g(op::add, g(op::mul, g(op::sigmoid, z), z), block == 2 ? g(op::concat, {x}) : x);
    }
    g.output(g(op::conv, x, w, g.constant("last", {4})));
  });
};

struct conv_add_relu : c::pattern<"conv_add_relu"> {
  static constexpr auto expr = op::relu(op::add(op::conv(c::any, c::constant), c::constant));
};
struct swish_add : c::pattern<"swish_add"> {
  static constexpr auto expr = op::add(op::mul(op::sigmoid(c::any.as<"x">()), c::same<"x">()), c::any);
};
struct conv_with_or_without_bias : c::pattern<"conv_with_or_without_bias"> {
  static constexpr auto expr = op::conv(c::any, c::constant, c::maybe(c::constant));
};
struct add_of_either : c::pattern<"add_of_either"> {
  static constexpr auto expr = op::add(c::either(op::concat(c::many(c::any)), op::conv(c::any, c::any)), c::any);
};
struct add_of_optional : c::pattern<"add_of_optional"> {
  static constexpr auto expr = op::add(c::any, c::optional(op::relu(c::previous), op::conv(c::any, c::any)));
};
struct any_node : c::pattern<"any_node"> {
  static constexpr auto expr = c::any_operator;
};
struct absent : c::pattern<"absent"> {
  static constexpr auto expr = op::tanh(c::any);
};

/// How often a pattern matches, or -1 where the three ways to find out disagree.
template <class P>
constexpr int matches() {
  const c::graph_view graph = network::graph.view();
  c::match_record found, again;
  c::verdict why;
  int count = 0;
  std::uint32_t next = next_match(graph, P::expr, 0, found);
  for (std::uint32_t n = 0; n < graph.node_count(); ++n) {
    const bool stands = match_at(graph, P::expr, n, again);
    if (stands != match_at(graph, P::expr, n, again, &why) || stands != (n == next)) return -1;
    if (!stands) continue;
    for (std::uint32_t i = 0; i < found.nodes; ++i)
      if (found.nodes != again.nodes || found.node[i] != again.node[i]) return -1;
    ++count;
    next = next_match(graph, P::expr, n + 1, found);
  }
  return next == graph.node_count() ? count : -1;
}

static_assert(matches<conv_add_relu>() == 3);
static_assert(matches<swish_add>() == 3);
static_assert(matches<conv_with_or_without_bias>() == 4);
static_assert(matches<add_of_either>() == 4);
static_assert(matches<add_of_optional>() == 3);
static_assert(matches<any_node>() == 20);
static_assert(matches<absent>() == 0);

}  // namespace
