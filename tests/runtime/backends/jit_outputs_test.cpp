// The backend of generated kernels, for chains of which an inner value is read outside. Where this build is without it there is
// nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "jit_chains.hpp"
#include "support/effort.hpp"
#include "support/placing.hpp"

#include <collage/backends/jit.hpp>
#include <collage/backends/portable.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace backends_jit_outputs_test {

using namespace collage_test;

/// One or two operators after x, whose result is an output, and up to three more.
value two_outputs(graph_builder& g, data_source& data, value x, std::size_t column, const operand_kinds& allowed) {
  const value kept = chain(g, data, x, column, allowed, 2, "before ");
  g.output("kept", kept);
  return chain(g, data, kept, column, allowed, 3, "after ");
}

value random_product(graph_builder& g, data_source& data) {
  matmul_case c;
  c.attributes.transpose_b = data.chance(0.3);
  const std::int64_t n = data.number(1, 100), k = data.number(1, 150);
  if (data.chance(0.3)) c.a.push_back(data.number(1, 3));
  c.a.push_back(data.number(1, 60));
  c.a.push_back(k);
  c.b = c.attributes.transpose_b ? shape{n, k} : shape{k, n};
  const value x = add_matmul(g, data, c);
  return two_outputs(g, data, x, g.type_of(x).dims.size() - 1, {});
}

/// Of 1x1, of 3x3 and 5x5 by bilinear algorithms, and of others by their definition; in one to three dimensions.
value random_convolution(graph_builder& g, data_source& data) {
  const std::int64_t dimensions = data.number(1, 3), window = data.chance(0.5) ? 3 : data.number(1, 5);
  const std::int64_t stride = data.chance(0.7) ? 1 : 2, pad = data.number(0, window);
  conv_case c;
  c.x = {data.number(1, 2), data.number(1, 40)};
  c.w = {data.number(1, 40), c.x[1]};
  for (std::int64_t d = 0; d < dimensions; ++d) {
    c.x.push_back(data.number(window, 12));
    c.w.push_back(window);
    c.attributes.strides.push_back(stride);
    c.attributes.pads_begin.push_back(pad);
    c.attributes.pads_end.push_back(data.number(0, window));
  }
  c.bias = data.chance(0.5);
  return two_outputs(g, data, add_conv(g, data, c), 1, {.large_constants = false, .rows = window == 1 && pad == 0});
}

void check_outputs(int count) {
  backend_checker<collage::jit> check;
  check_options options;
  options.must_cover = false;
  options.tolerance = {2e-3, 1e-5};  // bilinear algorithms sum numbers that operators may make small
  for (int i = 0; i < count || (check.in_place() == 0 && i < 8 * count); ++i)
    check(i % 3 == 0 ? random_product : random_convolution, options);
  EXPECT_GT(check.checked("two_output_chain"), static_cast<std::size_t>(count / 3));
  EXPECT_GT(check.in_place(), 0U);
  EXPECT_EQ(check.allocations_while_running(), 0U);
}
TEST(jit_outputs, random_chains) { check_outputs(cases(60)); }
TEST(jit_outputs_long, random_chains) { check_outputs(600); }

/// A residual block whose activations come first: the sum is the residual of the next block. With products or convolutions.
collage::graph activations_first(bool is_sum_read, bool has_images = false) {
  graph_builder g;
  data_source data;
  const value x = g.input("x", f32(has_images ? shape{1, 24, 14, 14} : shape{30, 24}));
  const shape for_channels = has_images ? shape{1, 24, 1, 1} : shape{24};
  const auto layer = [&](value from, const char* name, std::int64_t window) {
    if (!has_images) return g(op::matmul, from, data.constant(g, name, f32({24, 24})));
    return g(op::conv, from, data.constant(g, name, f32({24, 24, window, window})),
             {.pads_begin = {window / 2, window / 2}, .pads_end = {window / 2, window / 2}});
  };
  const value sum = g(op::add, x, layer(x, "first", 3));
  const value scaled = g(op::mul, sum, data.constant(g, "scale", f32(for_channels), {0.5, 1}));
  const value active = g(op::relu, g(op::add, scaled, data.constant(g, "shift", f32(for_channels))));
  const value next = layer(active, "second", 1);
  g.output("y", is_sum_read ? g(op::add, sum, next) : next);
  return g.finish();
}

TEST(jit_outputs, plans_of_residual_blocks) {
  using set = collage::backend_set<collage::jit, collage::portable>;
  const collage::graph network = activations_first(true);
  collage::place_options options = quick_options();
  options.costs = collage::placing_costs::none;  // by the order of the set: the backend takes what it can
  const collage::plan made = collage::place<set>(network, options);
  ASSERT_EQ(made.chosen.groups.size(), 2U);
  EXPECT_EQ(made.chosen.groups[0].pattern(), "two_output_chain");
  const auto verify = [](const collage::graph& of, const collage::plan& p) {
    for (const collage::verified_placement& each : collage::verify<set>(of, p).placements)
      EXPECT_TRUE(each.passed()) << each.name << each.why();
  };
  verify(network, made);
  const collage::graph images = activations_first(true, true);
  verify(images, collage::place<set>(images, quick_options()));
}

/// For each node where the pattern matches, why the match is refused; empty if it is not.
std::vector<std::string> verdicts(const collage::graph& network) {
  const collage::pattern_entry& pattern = pattern_called<collage::jit>("two_output_chain");
  std::vector<std::string> list;
  for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
    collage::match_record record;
    if (!collage::match_at(network.view(), pattern.nodes, node, record)) continue;
    const collage::verdict v = pattern.accepts(network.view(), record);
    list.emplace_back(v ? "" : v.rule);
  }
  return list;
}

/// Where no value but the last is read outside, the same operators are a match of another pattern.
TEST(jit_outputs, are_two) {
  EXPECT_EQ(verdicts(activations_first(false)), std::vector<std::string>());
  EXPECT_EQ(verdicts(activations_first(true)), std::vector<std::string>(3));  // to the scale, the shift and the relu
  graph_builder g;
  data_source data;
  const value y = g(op::relu, g(op::matmul, g.input("x", f32({5, 8})), data.constant(g, "w", f32({8, 6}))));
  g.output("y", g(op::mul, y, g(op::sigmoid, y)));  // two operators of one match read it
  const std::vector<std::string> of_gate = {
      "", "no value but the last is read outside, so that another pattern has this match"};
  EXPECT_EQ(verdicts(g.finish()), of_gate);  // to the sigmoid, and to the product
}

}  // namespace backends_jit_outputs_test
#endif
