// Depthwise convolutions with the pointwise one after them, on the backend of generated kernels, against the reference. Where this build is
// without it there is nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/backend_check.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"

#include "jit/depthwise_product.hpp"

#include <collage/backends/jit.hpp>
#include <collage/run/weights.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace backends_jit_depthwise_test {

using namespace collage_test;

class jit_depthwise_backend : public ::testing::Test {
 protected:
  void SetUp() override { options.must_cover = false; }  // the depthwise one alone is for others
  void TearDown() override { EXPECT_EQ(check.allocations_while_running(), 0U); }
  backend_checker<collage::jit> check;
  check_options options;
};

struct pair_case {
  shape x = {1, 24, 9, 9};
  std::int64_t outputs = 20, window = 3, stride = 1;
  shape pads_begin = {1, 1}, pads_end = {1, 1};
  bool has_bias = true, has_second_bias = false;
  int between = 1;  ///< nothing, relu or clip
};

pair_case random_pair(data_source& data) {
  pair_case c;
  c.window = 3 + 2 * data.number(0, 2);
  c.stride = data.number(1, 2);
  c.x = {data.number(1, 2), data.chance(0.2) ? data.number(128, 140) : data.number(2, 50)};
  c.pads_begin = c.pads_end = {};
  for (int d = 0; d < 2; ++d) {
    const std::int64_t before = data.number(0, c.window / 2 + 1), after = data.number(0, c.window / 2 + 1);
    c.pads_begin.push_back(before);
    c.pads_end.push_back(after);
    c.x.push_back(std::max(data.number(1, 17), c.window - before - after));
  }
  c.outputs = data.number(1, 50);
  c.has_bias = data.chance(0.5);
  c.has_second_bias = data.chance(0.5);
  c.between = static_cast<int>(data.number(0, 2));
  return c;
}

/// The result of the depthwise convolution and the operator after it.
value add_depthwise(graph_builder& g, data_source& data, const pair_case& c) {
  const value x = g.input("x", f32(c.x)), w = data.constant(g, "window", f32({c.x[1], 1, c.window, c.window}));
  const op::conv_attributes a{
      .groups = c.x[1], .strides = {c.stride, c.stride}, .pads_begin = c.pads_begin, .pads_end = c.pads_end};
  // The bias of a convolution is a constant in most networks, and may be an input.
  const value y = !c.has_bias        ? g(op::conv, x, w, a)
                  : data.chance(0.5) ? g(op::conv, x, w, data.constant(g, "first bias", f32({c.x[1]})), a)
                                     : g(op::conv, x, w, g.input("first bias", f32({c.x[1]})), a);
  if (c.between == 1) return g(op::relu, y);
  if (c.between == 2) return g(op::clip, y, g.scalar("least", -0.5), g.scalar("most", 1));
  return y;
}
value add_pair(graph_builder& g, data_source& data, const pair_case& c) {
  const value y = add_depthwise(g, data, c), w = data.constant(g, "w", f32({c.outputs, c.x[1], 1, 1}));
  if (!c.has_second_bias) return g(op::conv, y, w);
  return g(op::conv, y, w, data.constant(g, "bias", f32({c.outputs})));
}

/// Up to three operators, with operands of all kinds.
value chain(graph_builder& g, data_source& data, value x) {
  for (std::int64_t i = 0, steps = data.number(0, 3); i < steps; ++i) {
    const shape dims = g.type_of(x).dims;
    const std::string name = "other" + std::to_string(i);
    switch (data.number(0, 5)) {
      case 0: x = g(op::relu, x); break;
      case 1: x = g(op::add, x, g.input(name.c_str(), f32(dims))); break;
      case 2: x = g(op::mul, x, data.constant(g, name, f32({1, dims[1], 1, 1}), {0.5, 1})); break;
      case 3: x = g(op::add, x, g.input(name.c_str(), f32({dims[0], 1, dims[2], dims[3]}))); break;
      case 4: x = g(op::clip, x, g.scalar(name + " low", -1), g.scalar(name + " high", 6)); break;
      default: x = g(op::mul, x, g(op::sigmoid, x));
    }
  }
  return x;
}

void check_pairs(backend_checker<collage::jit>& check, const check_options& options, int count) {
  for (int i = 0; i < count; ++i)
    check([](graph_builder& g, data_source& data) { return chain(g, data, add_pair(g, data, random_pair(data))); },
          options);
  EXPECT_GT(check.checked("depthwise_pointwise"), 0U);
  EXPECT_TRUE(std::ranges::any_of(
      check.kernels(), [](const auto& k) { return k.first.find(", shared blocks of ") != std::string::npos; }));
}
TEST_F(jit_depthwise_backend, pairs) { check_pairs(check, options, cases(30)); }
class jit_depthwise_backend_long : public jit_depthwise_backend {};
TEST_F(jit_depthwise_backend_long, pairs) { check_pairs(check, options, 400); }

TEST_F(jit_depthwise_backend, nan_and_infinity_pass) {
  options.range.specials = 0.01;
  for (int i = 0; i < cases(10); ++i)
    check([](graph_builder& g, data_source& data) { return add_pair(g, data, random_pair(data)); }, options);
  EXPECT_GT(check.checked("depthwise_pointwise"), 0U);
}

/// An inverted residual block: the sum may lie over what is added.
TEST_F(jit_depthwise_backend, results_may_lie_over_a_residual) {
  check(
      [](graph_builder& g, data_source& data) {
        const value y = add_pair(g, data, {.x = {1, 40, 14, 14}, .outputs = 40, .between = 2});
        return g(op::add, y, g.input("residual", g.type_of(y)));
      },
      options);
  EXPECT_GT(check.in_place(), 0U);
}

/// The input is also added to the result, so that it must not be overwritten.
TEST_F(jit_depthwise_backend, the_input_may_be_added) {
  check(
      [](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({1, 24, 9, 9}));
        const value y = g(op::conv, x, data.constant(g, "window", f32({24, 1, 3, 3})),
                          {.groups = 24, .pads_begin = {1, 1}, .pads_end = {1, 1}});
        return g(op::add, g(op::conv, y, data.constant(g, "w", f32({24, 24, 1, 1}))), x);
      },
      options);
  EXPECT_GT(check.checked("depthwise_pointwise"), 0U);
}

std::string refusal_of(const shape& x, const shape& window, const op::conv_attributes& a, const shape& w,
                       bool is_read_elsewhere = false) {
  graph_builder g;
  data_source data;
  const value y = g(op::conv, g.input("x", f32(x)), data.constant(g, "window", f32(window)), a);
  g.output("out", g(op::conv, y, data.constant(g, "w", f32(w))));
  if (is_read_elsewhere) g.output("between", y);
  return refusal_of_match<collage::jit>(g.finish(), "depthwise_pointwise");
}

TEST(jit_depthwise_rules, say_what_is_computed) {
  constexpr const char* other_groups =
      "before a convolution of 1x1 it computes a depthwise one of images, with as many outputs as channels";
  constexpr const char* other_window =
      "it computes depthwise convolutions of 3x3, 5x5 and 7x7, with stride 1 or 2 and dilation 1";
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 3, 3}, {.groups = 4}, {6, 4, 1, 1}), "");
  EXPECT_EQ(
      refusal_of({1, 4, 9, 9}, {4, 1, 7, 7}, {.groups = 4, .strides = {2, 2}, .pads_begin = {9, 0}}, {6, 4, 1, 1}), "");
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {8, 1, 3, 3}, {.groups = 4}, {6, 8, 1, 1}), other_groups);
  EXPECT_EQ(refusal_of({1, 8, 9, 9}, {8, 2, 3, 3}, {.groups = 4}, {6, 8, 1, 1}), other_groups);
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 3, 3}, {.groups = 4}, {6, 4, 3, 3}), other_groups);
  EXPECT_EQ(refusal_of({1, 4, 9}, {4, 1, 3}, {.groups = 4}, {6, 4, 1}), other_groups);
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 3, 5}, {.groups = 4}, {6, 4, 1, 1}), other_window);
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 2, 2}, {.groups = 4}, {6, 4, 1, 1}), other_window);
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 3, 3}, {.groups = 4, .strides = {1, 2}}, {6, 4, 1, 1}), other_window);
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 3, 3}, {.groups = 4, .dilations = {2, 2}}, {6, 4, 1, 1}), other_window);
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 4, 3, 3}, {}, {6, 4, 1, 1}), "there is no match");
  EXPECT_EQ(refusal_of({1, 4, 9, 9}, {4, 1, 3, 3}, {.groups = 4}, {6, 4, 1, 1}, true), "there is no match");
}

collage::graph small_pair() {
  graph_builder g;
  data_source data;
  g.output("y", add_pair(g, data, {}));
  return g.finish();
}

/// The first match of the pattern, with what the backend proposes for it.
struct proposed_pair {
  const collage::pattern_entry* pattern = nullptr;
  collage::match_record record;

  explicit proposed_pair(const collage::graph& network) {
    for (const collage::pattern_entry& p : backend_checker<collage::jit>::table().patterns)
      if (std::string(p.name) == "depthwise_pointwise") pattern = &p;
    for (std::uint32_t node = 0; node < network.nodes().size(); ++node)
      if (collage::match_at(network.view(), pattern->nodes, node, record)) return;
  }
};

TEST(jit_depthwise_weights, are_as_built) {
  const collage::graph network = small_pair();
  const proposed_pair found(network);
  const collage::configuration_list proposed = collage::proposed_for(*found.pattern, network.view(), found.record);
  ASSERT_GT(proposed.size(), 0U);
  for (const collage::configuration& how : proposed) {
    const collage::kept_constants kept = found.pattern->weights(network.view(), found.record, how);
    ASSERT_EQ(kept.size(), 2U) << how.text();
    collage::packed_weights packed;
    collage::build_context context(network, 2, packed);
    context.set_configuration(how);
    const collage::kernel made = found.pattern->build(network.view(), found.record, context);
    EXPECT_EQ(packed.bytes(), kept[0].bytes + kept[1].bytes) << how.text();
    for (const collage::kept_constant& k : kept)
      static_cast<void>(packed.get(network.constant(k.value).bytes, k.packing, k.bytes,
                                   [&](std::byte*) { ADD_FAILURE() << how.text() << ": " << k.packing; }));
  }
}

TEST(jit_depthwise_weights, that_are_not_finite_are_refused) {
  graph_builder g;
  data_source data;
  const std::shared_ptr<std::byte> window = collage::allocate_bytes(4 * 9 * 4);
  std::fill_n(reinterpret_cast<float*>(window.get()), 4 * 9, std::numeric_limits<float>::infinity());
  const value y = g(op::conv, g.input("x", f32({1, 4, 9, 9})), g.constant("window", f32({4, 1, 3, 3}), window),
                    {.groups = 4, .pads_begin = {1, 1}, .pads_end = {1, 1}});
  g.output("y", g(op::conv, y, data.constant(g, "w", f32({6, 4, 1, 1}))));
  const collage::graph network = g.finish();
  const proposed_pair found(network);
  collage::packed_weights packed;
  collage::build_context context(network, 1, packed);
  context.set_configuration(*collage::proposed_for(*found.pattern, network.view(), found.record).begin());
  const std::string why =
      collage_test::message_of([&] { static_cast<void>(found.pattern->build(network.view(), found.record, context)); },
                               collage::error_kind::unsupported);
  EXPECT_NE(why.find("a weight of a depthwise convolution is not finite"), std::string::npos) << why;
}

TEST(jit_depthwise_configurations, of_others_are_refused) {
  const collage::graph network = small_pair();
  const proposed_pair found(network);
  const auto knows = [&](const char* text) {
    return found.pattern->knows(network.view(), found.record, *collage::configuration::of(text));
  };
  EXPECT_TRUE(knows("depthwise1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register rows 4 threads blocks"));
  EXPECT_TRUE(knows("depthwise1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register rows 40 threads shared"));
  EXPECT_FALSE(knows("depthwise1 avx2 tile 6x4 unroll 4 prefetch 0 broadcast register rows 4 threads blocks"));
  EXPECT_FALSE(knows("product1 classical avx2 tile 6x2 unroll 4 prefetch 0"));
}

}  // namespace backends_jit_depthwise_test
#endif
