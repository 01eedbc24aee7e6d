// The pass that folds scales and shifts into weights.
#include <gtest/gtest.h>

#include <cmath>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/fold_scales.hpp>
#include <collage/pass/remove_dead.hpp>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "testing.hpp"

namespace pass_fold_scales_test {

using namespace collage_test;

using limits = std::numeric_limits<float>;

c::value weights(c::graph_builder& g, const char* name, const c::shape& dims) {
  return g.constant(name, {c::dtype::f32, dims}, c::uniform{-1, 1});
}
/// Not near 0, for what is divided by it.
c::value factors(c::graph_builder& g, const char* name, const c::shape& dims) {
  return g.constant(name, {c::dtype::f32, dims}, c::uniform{0.5F, 2});
}

/// Folds, and compares with the graph as it was; what is dead goes.
c::graph folded(const c::graph& before, const c::fold_scales_options& options = {}) {
  const c::graph after = c::remove_dead(c::fold_scales(before, options));
  expect_same_results(before, after, 2e-5);
  EXPECT_EQ(c::fold_scales(after, options).fingerprint(), after.fingerprint()) << "a fixed point";
  return after;
}
c::graph finished(c::graph_builder& g) {
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

TEST(fold_scales, normalisation_behind_a_convolution) {
  for (const bool bias : {false, true}) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7, 6}}), w = weights(g, "w", {6, 2, 3, 3});
    const op::conv_attributes attributes{.groups = 2, .strides = {2, 1}, .pads_begin = {1, 0}, .pads_end = {1, 2}};
    c::value y = bias ? g(op::conv, x, w, weights(g, "b", {6}), attributes) : g(op::conv, x, w, attributes);
    y = g(op::mul, y, factors(g, "scale", {1, 6, 1, 1}));
    y = g(op::add, weights(g, "shift", {6, 1, 1}), y);
    g.output("y", g(op::relu, y));
    const c::graph after = folded(finished(g));
    EXPECT_EQ(node_names(after), (names{"add_2", "relu_3"})) << "the last name stays";
    EXPECT_EQ(kinds(after), (names{"conv", "relu"}));
    EXPECT_EQ(after.node(0).inputs, 3U);
    EXPECT_FALSE(holds(after, "w") || holds(after, "b") || holds(after, "scale"));
  }
}

TEST(fold_scales, every_way_to_write_it) {
  // Each adds one node behind y, of which a scale and a shift are made.
  using build = c::value (*)(c::graph_builder&, c::value);
  const build ways[] = {
      [](c::graph_builder& g, c::value y) { return g(op::mul, factors(g, "c", {6, 1}), y); },
      [](c::graph_builder& g, c::value y) { return g(op::mul, y, factors(g, "c", {})); },
      [](c::graph_builder& g, c::value y) { return g(op::mul, y, factors(g, "c", {1, 1, 1})); },
      [](c::graph_builder& g, c::value y) { return g(op::div, y, factors(g, "c", {1, 6, 1})); },
      [](c::graph_builder& g, c::value y) { return g(op::sub, y, factors(g, "c", {1, 6, 1})); },
      [](c::graph_builder& g, c::value y) { return g(op::sub, factors(g, "c", {6, 1}), y); },
      [](c::graph_builder& g, c::value y) { return g(op::add, y, g.scalar("c", 3)); },
      [](c::graph_builder& g, c::value y) { return g(op::mul, y, g.scalar("c", 0)); },
      [](c::graph_builder& g, c::value y) { return g(op::sub, g.scalar("d", 3), g(op::div, y, g.scalar("c", -4))); }};
  for (std::size_t way = 0; way < std::size(ways); ++way)
    for (const bool transposed : {false, true}) {
      c::graph_builder g;
      const c::value x = g.input("x", {c::dtype::f32, {2, 4, 5}});
      const c::value y = transposed ? g(op::conv_transpose, x, weights(g, "w", {4, 3, 3}), weights(g, "b", {6}),
                                        {.groups = 2, .strides = {2}, .output_padding = {1}})
                                    : g(op::conv, x, weights(g, "w", {6, 2, 3}), weights(g, "b", {6}), {.groups = 2});
      g.output("y", ways[way](g, y));
      EXPECT_EQ(folded(finished(g)).nodes().size(), 1U) << "way " << way;
    }
}

TEST(fold_scales, before_a_convolution) {
  for (const bool padded : {false, true}) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
    c::value y = g(op::mul, x, factors(g, "a", {4, 1}));
    y = g(op::add, y, weights(g, "b", {1, 4, 1}));
    y = g(op::div, y, factors(g, "c", {4, 1}));
    y = g(op::conv, y, weights(g, "w", {6, 2, 3}), {.groups = 2, .pads_begin = {padded ? 1 : 0}});
    g.output("y", g(op::mul, y, factors(g, "d", {6, 1})));
    const c::graph after = folded(finished(g));
    // With padding the shift stays, and the factor before it.
    EXPECT_EQ(kinds(after), padded ? (names{"mul", "add", "conv"}) : names{"conv"});
    EXPECT_EQ(after.node_name(static_cast<std::uint32_t>(after.nodes().size() - 1)), "mul_4");
  }
}

TEST(fold_scales, negations) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
  const c::value y = g(op::conv, g(op::neg, x), weights(g, "w", {6, 4, 3}), weights(g, "b", {6}), {.pads_begin = {1}});
  g.output("y", g(op::sub, g(op::neg, y), g.scalar("one", 1)));
  EXPECT_EQ(kinds(folded(finished(g))), names{"conv"});
}

TEST(fold_scales, activations_before_a_convolution_stay_whole) {
  // One number behind x * clip(x + 3, 0, 6) stays, one for each channel does not.
  for (const c::shape& dims : {c::shape{}, c::shape{4, 1}}) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
    c::value y = g(op::add, x, g.scalar("three", 3));
    y = g(op::mul, x, g(op::clip, y, g.scalar("zero", 0), g.scalar("six", 6)));
    y = g(op::div, y, factors(g, "divisor", dims));
    g.output("y", g(op::conv, y, weights(g, "w", {6, 4, 3})));
    EXPECT_EQ(folded(finished(g)).nodes().size(), dims.empty() ? 5U : 4U);
  }
}

TEST(fold_scales, before_a_transposed_convolution_factors_alone) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
  const c::value y = g(op::mul, g(op::add, x, weights(g, "a", {4, 1})), factors(g, "b", {4, 1}));
  g.output("y", g(op::conv_transpose, y, weights(g, "w", {4, 3, 3}), {.groups = 2}));
  EXPECT_EQ(kinds(folded(finished(g))), (names{"add", "conv_transpose"}));
}

TEST(fold_scales, columns_of_a_product) {
  struct shapes {
    c::shape a, b, constant;
    bool transposed;
  };
  const shapes cases[] = {
      {{3, 4}, {4, 5}, {5}, false},    {{3, 4}, {5, 4}, {1, 5}, true}, {{2, 3, 4}, {4, 5}, {1, 1, 5}, false},
      {{3, 4}, {2, 4, 5}, {5}, false}, {{3, 4}, {2, 5, 4}, {5}, true}, {{4}, {4, 5}, {5}, false},
      {{3, 4}, {4}, {1}, false},       {{4}, {4}, {}, false},          {{3, 4}, {4, 5}, {1, 1}, false},
      {{3, 0}, {5, 0}, {5}, true}};
  for (const shapes& s : cases) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, s.a});
    c::value y = g(op::matmul, x, weights(g, "w", s.b), {.transpose_b = s.transposed});
    y = g(op::add, y, weights(g, "bias", s.constant));
    y = g(op::mul, factors(g, "scale", s.constant), y);
    g.output("y", g(op::sub, y, weights(g, "shift", s.constant)));
    const c::graph after = folded(finished(g));
    EXPECT_EQ(kinds(after), (names{"matmul", "add"}));
    EXPECT_EQ(node_names(after), (names{"matmul_0", "sub_3"}));
  }
}

TEST(fold_scales, a_product_with_a_bias_alone_stays) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3, 4}});
  g.output("y", g(op::sub, g(op::matmul, x, weights(g, "w", {4, 5})), weights(g, "b", {5})));
  EXPECT_EQ(kinds(folded(finished(g))), (names{"matmul", "sub"}));
}

TEST(fold_scales, a_product_without_columns) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3, 4}});
  const c::value y = g(op::add, g(op::matmul, x, weights(g, "w", {4, 0})), g.scalar("one", 1));
  g.output("y", g(op::mul, y, g.scalar("two", 2)));
  EXPECT_EQ(folded(finished(g)).nodes().size(), 1U);
}

TEST(fold_scales, what_is_read_elsewhere_stays) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {1, 4, 7}});
  const c::value read_twice = g(op::conv, x, weights(g, "w", {6, 4, 3}));
  g.output("a", g(op::mul, read_twice, factors(g, "c", {6, 1})));
  g.output("b", g(op::relu, read_twice));
  const c::value answered = g(op::conv, x, weights(g, "v", {6, 4, 3}));
  g.output("c", answered);
  g.output("d", g(op::mul, answered, factors(g, "d", {6, 1})));
  const c::value halfway = g(op::mul, g(op::conv, x, weights(g, "u", {6, 4, 3})), factors(g, "e", {6, 1}));
  g.output("e", halfway);
  g.output("f", g(op::add, halfway, g.scalar("one", 1)));
  EXPECT_EQ(node_names(folded(finished(g))), (names{"conv_0", "mul_1", "relu_2", "conv_3", "mul_4", "mul_6", "add_7"}));
}

TEST(fold_scales, constants_that_are_not_per_channel_stay) {
  for (const c::shape& dims : {c::shape{1, 6, 5, 1}, c::shape{2, 1, 1, 1}, c::shape{5}, c::shape{1, 1, 6, 1, 1}}) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7, 7}});
    g.output("y", g(op::mul, g(op::conv, x, weights(g, "w", {6, 4, 3, 3})), factors(g, "c", dims)));
    EXPECT_EQ(folded(finished(g)).nodes().size(), 2U);
  }
  // One channel that a constant broadcasts to six.
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
  g.output("y", g(op::mul, g(op::conv, x, weights(g, "w", {1, 4, 3})), factors(g, "c", {6, 1})));
  EXPECT_EQ(folded(finished(g)).nodes().size(), 2U);
}

TEST(fold_scales, shared_weights_are_copied_up_to_a_size) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}}), w = weights(g, "w", {6, 4, 3});
  g.output("a", g(op::mul, g(op::conv, x, w), factors(g, "c", {6, 1})));
  g.output("b", g(op::mul, g(op::conv, x, w), factors(g, "d", {6, 1})));
  const c::graph before = finished(g);
  EXPECT_EQ(folded(before, {.largest_copy = 287}).nodes().size(), 4U);
  const c::graph after = folded(before, {.largest_copy = 288});
  EXPECT_EQ(node_names(after), (names{"mul_1", "mul_3"}));
  EXPECT_TRUE(holds(after, "w_1") && holds(after, "w_2"));
}

TEST(fold_scales, factors_of_one_leave_the_weights) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}}), w = weights(g, "w", {6, 4, 3});
  g.output("a", g(op::mul, g(op::add, g(op::conv, x, w), g.scalar("two", 2)), g.scalar("one", 1)));
  const c::graph before = finished(g), after = folded(before);
  EXPECT_EQ(after.nodes().size(), 1U);
  EXPECT_EQ(after.constant(find(after, "w")).bytes, before.constant(w.index).bytes);
}

TEST(fold_scales, constants_that_are_not_loaded_stay) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
  g.output("a", g(op::mul, g(op::conv, x, weights(g, "w", {6, 4, 3})), g.scalar("two", 2)));
  g.output("b", g(op::add, g(op::conv, x, weights(g, "v", {6, 4, 3})), weights(g, "shift", {6, 1})));
  const c::graph before = g.finish();
  EXPECT_EQ(c::fold_scales(before).fingerprint(), before.fingerprint());
}

TEST(fold_scales, between_two_convolutions_the_first_takes_it) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 4, 7}});
  const c::value y = g(op::mul, g(op::conv, x, weights(g, "w", {6, 4, 3})), factors(g, "c", {6, 1}));
  g.output("y", g(op::conv, y, weights(g, "v", {2, 6, 3})));
  const c::graph after = folded(finished(g));
  EXPECT_EQ(after.nodes().size(), 2U);
  EXPECT_TRUE(holds(after, "v") && !holds(after, "w"));
}

TEST(fold_scales, integers_stay) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 2}});
  const c::value w = g.constant("w", {c::dtype::i32, {2, 2}}, bytes_of<std::int32_t>({1, 2, 3, 4}));
  g.output("x", x);
  g.output("y", g(op::mul, g(op::matmul, w, w), g.scalar("three", 3, c::dtype::i32)));
  EXPECT_EQ(folded(finished(g)).nodes().size(), 2U);
}

// Numbers at the limits -----------------------------------------------------------------------------------------------

struct extreme_case {
  float weight, factor;
  bool folds;
};

TEST(fold_scales, factors_and_weights_at_the_limits) {
  const extreme_case cases[] = {{1, limits::infinity(), false},
                                {1, limits::quiet_NaN(), false},
                                {0, limits::infinity(), false},
                                {1, 0, true},
                                {1e20F, 1e20F, false},    // overflows
                                {1e-20F, 1e-20F, false},  // loses its digits
                                {1e-20F, 1e-30F, false},
                                {1e-20F, 0, true},
                                {0, 1e-30F, true},
                                {1e-40F, 0.5F, true},  // had none to lose
                                {1e30F, 1e8F, true}};
  for (const extreme_case& e : cases)
    for (const bool before : {false, true}) {
      c::graph_builder g;
      c::value x = g.input("x", {c::dtype::f32, {1, 1, 2}});
      const c::value w = g.constant("w", {c::dtype::f32, {1, 1, 1}}, bytes_of<float>({e.weight}));
      const c::value factor = g.scalar("factor", static_cast<double>(e.factor));
      if (before) g.output("y", g(op::conv, g(op::mul, x, factor), w));
      else g.output("y", g(op::mul, g(op::conv, x, w), factor));
      EXPECT_EQ(c::fold_scales(g.finish()).nodes().size(), e.folds ? 1U : 2U) << e.weight << " times " << e.factor;
    }
}

TEST(fold_scales, one_small_weight_among_large_ones_may_lose_digits) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {1, 2, 2}});
  const c::value w = g.constant("w", {c::dtype::f32, {1, 2, 1}}, bytes_of<float>({1e-38F, 1}));
  g.output("y", g(op::mul, g(op::conv, x, w), g.scalar("factor", 1e-8)));
  const c::graph after = folded(g.finish());
  ASSERT_EQ(after.nodes().size(), 1U);
  float first = 0;
  std::memcpy(&first, after.bytes_of(after.view().inputs_of(0)[1]).data(), 4);
  EXPECT_EQ(first, limits::denorm_min()) << "and stays what it is: not 0";
}

TEST(fold_scales, half_precision_has_limits_of_its_own) {
  for (const auto& [factor, folds] : {std::pair{4.0F, true}, {0.01F, false}, {1e6F, false}}) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f16, {1, 1, 2}});
    const c::value w = g.constant("w", {c::dtype::f16, {1, 1, 1}}, bytes_of<std::uint16_t>({0x1419}));  // 0.001
    const std::uint16_t bits = c::detail::half::narrow(static_cast<double>(factor));
    const c::value f = g.constant("f", {c::dtype::f16, {}}, bytes_of<std::uint16_t>({bits}));
    g.output("y", g(op::mul, g(op::conv, x, w), f));
    EXPECT_EQ(c::fold_scales(g.finish()).nodes().size(), folds ? 1U : 2U) << factor;
  }
}

TEST(fold_scales, infinity_and_nan_come_out_as_before) {
  const float special[] = {limits::infinity(), -limits::infinity(), limits::quiet_NaN(), 0, 2};
  for (const float weight : {2.0F, 0.0F, 1e-40F, limits::infinity()})
    for (const float factor : {-3.0F, 0.0F, 0.25F}) {
      c::graph_builder g;
      const c::value x = g.input("x", {c::dtype::f32, {1, 2, 5}});
      const c::value w = g.constant("w", {c::dtype::f32, {1, 2, 1}}, bytes_of<float>({weight, 1}));
      const c::value scaled = g(op::mul, g(op::conv, x, w), g.scalar("factor", static_cast<double>(factor)));
      g.output("y", g(op::add, scaled, g.scalar("shift", 1)));
      const c::graph before = g.finish(), after = c::fold_scales(before);
      ASSERT_EQ(after.nodes().size(), 1U);
      c::tensor in(before.type_of(before.inputs()[0]));
      for (std::size_t i = 0; i < 10; ++i) in.as<float>()[i] = i < 5 ? special[i] : 1;
      const std::vector<c::const_tensor_view> views = {in};
      const std::vector<double> a = evaluate(before, views)[0].real, b = evaluate(after, views)[0].real;
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(std::isnan(a[i]), std::isnan(b[i])) << weight << " " << factor << " " << special[i];
        if (!std::isnan(a[i]) && std::isinf(a[i])) {
          EXPECT_EQ(a[i], b[i]) << weight << " " << factor << " " << special[i];
        } else if (!std::isnan(a[i])) {
          EXPECT_NEAR(a[i], b[i], 1e-6);
        }
      }
    }
}

// Random --------------------------------------------------------------------------------------------------------------

/// A chain of convolutions, products, scales and shifts over [1, 4, 6] (products run over the last dimension).
c::graph random_chain(generator& random) {
  c::graph_builder g;
  const c::shape shapes[] = {{}, {1}, {4, 1}, {1, 4, 1}, {6}, {4, 6}};
  c::value y = g.input("x", {c::dtype::f32, {1, 4, 6}});
  for (std::size_t n = 0; n < 12; ++n) {
    const auto constant = [&] {
      return g.constant(c::label("c") + n, {c::dtype::f32, shapes[pick(random, 6)]}, c::uniform{0.8F, 1.2F});
    };
    const auto weight = [&](const c::shape& dims) {
      return g.constant(c::label("w") + n, {c::dtype::f32, dims}, c::uniform{-0.5F, 0.5F});
    };
    switch (pick(random, 8)) {
      case 0: y = g(op::conv, y, weight({4, 2, 3}), {.groups = 2, .pads_begin = {1}, .pads_end = {1}}); break;
      case 1: y = g(op::conv, y, weight({4, 4, 1})); break;
      case 2: y = g(op::matmul, y, weight({6, 6})); break;
      case 3: y = g(op::add, y, constant()); break;
      case 4: y = pick(random, 2) == 0 ? g(op::sub, y, constant()) : g(op::sub, constant(), y); break;
      case 5: y = g(op::div, y, constant()); break;
      case 6: y = g(op::conv_transpose, y, weight({4, 4, 3}), {.pads_begin = {1}, .pads_end = {1}}); break;
      default: y = g(op::mul, constant(), y); break;
    }
    if (pick(random, 12) == 0) g.output(c::label("y") + n, y);
  }
  g.output("y", y);
  return finished(g);
}

TEST(fold_scales, random_chains) {
  const std::uint64_t seed = seed_or(21);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  std::size_t gone = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const c::graph before = random_chain(random);
    gone += before.nodes().size() - folded(before).nodes().size();
  }
  EXPECT_GT(gone, 300U);
}

TEST(fold_scales, graphs_without_weights_stay) {
  generator random(5);
  for (int round = 0; round < 20; ++round) {
    c::graph before = random_graph(random, {.constants = 4, .nodes = 20});
    c::fill_constants(before);
    EXPECT_EQ(c::fold_scales(before).fingerprint(), before.fingerprint());
  }
}

}  // namespace pass_fold_scales_test
