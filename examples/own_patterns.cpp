// Patterns of one's own: written as types, checked by the compiler, matched in a static network and at run time.
#include <collage/collage.hpp>
#include <collage/graph/explain.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <cstdio>

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant, c::previous;

/// A convolution with a bias, two residual blocks and a gate.
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g(op::conv, g.input("image", {1, 3, 16, 16}), g.constant("stem.weights", {8, 3, 1, 1}));
    x = g(op::relu, g(op::add, x, g.constant("stem.bias", {8, 1, 1})));
    for (int i = 0; i < 2; ++i) {
      const auto w = g.constant(c::label("block") + i + ".weights", {8, 8, 1, 1});
      x = g(op::relu, g(op::add, g(op::conv, x, w), x));
    }
    g.output("gated", g.named("gate")(op::mul, x, g(op::sigmoid, x)));
  });
};

/// One convolution with whatever is done to its result: an activation, a bias, both or neither.
struct conv_bias_activation : c::pattern<"conv_bias_activation"> {
  static constexpr auto convolution =
      op::conv(any, constant).where([](const op::conv_attributes& a) { return a.groups == 1; }, "groups must be 1");
  static constexpr auto biased = c::optional(op::add(previous, constant.as<"bias">()), convolution);
  static constexpr auto expr = c::optional(c::one_of(op::relu, op::sigmoid, op::tanh)(previous), biased);
  static constexpr bool one_anchor = true;
};

/// Any number of residual blocks, up to four.
struct residual_blocks : c::pattern<"residual_blocks"> {
  static constexpr auto expr =
      c::repeat<1, 4>(op::relu(op::add(op::conv(previous, constant.as<"weights">()), previous)), any.as<"x">());
};

/// x * sigmoid(x), as exporters spell SiLU.
struct silu : c::pattern<"silu"> {
  static constexpr auto expr = op::mul(any.as<"x">(), op::sigmoid(c::same<"x">()));
};

static_assert(c::matches<residual_blocks, network, 8>);
static_assert(c::occurs_in<silu, network> && !c::matches<silu, network, 8>);

template <class P>
void show(const c::graph& g) {
  std::printf("%s: %s\n", P::name, c::describe(P{}).text);
  for (std::uint32_t node = 0; node < g.nodes().size(); ++node) {
    c::match_record record;
    if (c::match_at(g.view(), c::nodes_of<P>, node, record)) std::printf("  %s\n", c::explain_match(P{}, g, node).text);
  }
}

int main() {
  const c::graph g = network{};
  show<conv_bias_activation>(g);
  show<residual_blocks>(g);
  show<silu>(g);

  const c::graph_view view = g.view();
  c::match_record record;
  if (!c::match_at(view, c::nodes_of<residual_blocks>, 8, record)) return 1;
  const c::match<residual_blocks> m(view, record);
  std::printf("%zu residual blocks:", m.count<"weights">());
  for (std::size_t i = 0; i < m.count<"weights">(); ++i)
    std::printf(" %s", g.value_name(m.get<"weights">(i).value).c_str());
  std::printf("\n%s\n", c::explain_match(silu{}, g, 8).text);
  std::printf("%s\n", c::explain_match(c::single<op::softmax>{}, g).text);
}
