// A network as a type. Its shapes, the patterns that match in it and the backends that cover it are checked while this file
// compiles. Then the same network is placed and run.
// needs: eigen openblas
#include <collage/backends/eigen.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/graph/explain.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/set/candidates.hpp>
#include <collage/set/coverage.hpp>
#include <collage/set/covers.hpp>
#include <cstdio>
#include <vector>

namespace c = collage;
namespace op = collage::ops;

// The compiler counts, writes, checks and infers this graph. A weight of the wrong shape is a compile error that names the
// node, the rule and the remedy. The type `lenet` stands for the graph wherever a graph is expected.
struct lenet {
  static constexpr auto graph = c::define([](auto& g) {
    c::value x = g.input("image", {1, 1, 28, 28});
    x = g(op::conv, x, g.constant("conv1.weight", {6, 1, 5, 5}), {.pads_begin = {2, 2}, .pads_end = {2, 2}});
    x = g(op::relu, g(op::add, x, g.constant("conv1.bias", {6, 1, 1})));
    x = g(op::max_pool, x, {.window = {2, 2}, .strides = {2, 2}});
    x = g(op::conv, x, g.constant("conv2.weight", {16, 6, 5, 5}));
    x = g(op::relu, g(op::add, x, g.constant("conv2.bias", {16, 1, 1})));
    x = g(op::max_pool, x, {.window = {2, 2}, .strides = {2, 2}});
    x = g(op::reshape, x, {.dims = {1, 400}});
    x = g(op::matmul, x, g.constant("dense.weight", {10, 400}), {.transpose_b = true});
    x = g(op::add, x, g.constant("dense.bias", {10}));
    g.output("scores", g(op::softmax, x));
  });
};
static_assert(lenet::graph.view().values[lenet::graph.outputs()[0]].type.dims == c::shape{1, 10});

// A pattern reads like the operators that it matches: a convolution with its bias, perhaps relu, and a pool whose windows do
// not overlap.
struct conv_block : c::pattern<"conv_block"> {
  static constexpr auto convolution = op::add(op::conv(c::any, c::constant).rank(4), c::constant.as<"bias">());
  static constexpr auto expr =
      op::max_pool(c::optional(op::relu(c::previous), convolution))
          .where([](const op::pool_attributes& a) { return a.window == a.strides; }, "its windows must not overlap");
};
static_assert(c::matches<conv_block, lenet, 3>);

// This pattern looks right, too, but every convolution of this network has a bias before its relu.
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
static_assert(!c::occurs_in<conv_relu, lenet>);

// Whether every operator has a backend is known before anything runs.
using backends = c::backend_set<c::openblas, c::eigen, c::portable>;
static_assert(c::covers<backends, lenet>);
static_assert(!c::covers<backends::remove<c::eigen, c::portable>, lenet>);

int main() try {
  std::printf("%s is %s\n\n", conv_block::name, c::describe(conv_block{}).text);
  std::printf("%s\n", c::graph_coverage_text<backends, lenet>.c_str());
  std::printf("%zu candidates, enumerated by the compiler\n\n", c::candidates_of<backends, lenet>.size());

  c::graph network = lenet{};  // the same nodes and values at run time; the contents of constants are bound below
  for (const std::uint32_t v : network.unbound()) {
    const auto count = static_cast<std::size_t>(network.type_of(v).dims.elements());
    network.bind(network.value_name(v), std::vector<float>(count, 0.01F));
  }
  std::printf("%s\n\n", c::explain_match(conv_relu{}, network).text);

  const c::plan plan = c::place<backends>(network, {.network = "lenet", .threads = 1, .comparing = {.seconds = 0.2}});
  const c::dynamic_engine engine = c::engine<backends>(network, plan);
  const c::tensor image({c::dtype::f32, {1, 1, 28, 28}});
  const c::tensor scores({c::dtype::f32, {1, 10}});
  engine.context().run({image}, {scores});
  for (const c::plan_group& group : plan.chosen.groups)
    std::printf("%-10s %s\n", group.backend().c_str(), group.pattern().c_str());
  std::printf("score of class 0: %.3f\n", double(scores.as<float>()[0]));
} catch (const c::error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return e.exit_code();
}
