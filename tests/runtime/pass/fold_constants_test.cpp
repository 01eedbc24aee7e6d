// The pass that computes constants of constants and makes shapes known.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/pass/remove_dead.hpp>
#include <collage/zoo/all.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pass_fold_constants_test {

using namespace collage_test;

TEST(fold_constants, computes_constants_of_constants) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  const c::value a = floats(g, "a", {1, 2, 3}), b = floats(g, "b", {0.5F, 0.25F, -4});
  const c::value sum = g(op::add, a, b);
  const c::value root = g(op::sqrt, g(op::abs, sum));
  g.output("y", g(op::mul, x, root));
  const c::graph before = g.finish(), after = fold_constants(before);

  EXPECT_EQ(node_names(after), std::vector<std::string>{"mul_3"}) << "names stay";
  const std::uint32_t folded = find(after, "sqrt_2");
  EXPECT_EQ(after.at(folded).role, c::value_role::constant);
  float element = 0;
  std::memcpy(&element, after.bytes_of(folded).data() + 4, 4);
  EXPECT_FLOAT_EQ(element, 1.5F);
  expect_same_results(before, after, 1e-6);
  EXPECT_EQ(fold_constants(after).fingerprint(), after.fingerprint()) << "a fixed point";

  const c::graph small = remove_dead(after);
  EXPECT_FALSE(holds(small, "a") || holds(small, "add_0"));
  EXPECT_EQ(small.constant(find(small, "sqrt_2")).bytes, after.constant(folded).bytes);
  expect_same_results(before, small, 1e-6);
}

TEST(fold_constants, a_scalar_result_has_a_known_value) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  g.output("y", g(op::div, x, g(op::sqrt, g.scalar("head_size", 64))));
  const c::graph after = fold_constants(g.finish());
  const c::value_record& v = after.at(find(after, "sqrt_0"));
  EXPECT_TRUE(v.has_scalar);
  EXPECT_EQ(v.scalar, 8.0);
}

TEST(fold_constants, every_output_of_a_node) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  const c::value first = g(both_signs, floats(g, "w", {1, -2, 3}));
  g.output("y", g(op::add, x, first[1]));
  g.output("constant", first);
  const c::graph before = g.finish(), after = fold_constants(before);
  EXPECT_EQ(node_names(after), std::vector<std::string>{"add_1"});
  EXPECT_EQ(after.at(find(after, "both_signs_0:1")).role, c::value_role::constant);
  EXPECT_TRUE(after.at(find(after, "both_signs_0")).is_output);
  expect_same_results(before, after);
}

TEST(fold_constants, a_known_target_becomes_an_attribute) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3, 4}});
  g.output("y", g(op::reshape, x, integers(g, "target", {0, -1})));
  const c::graph before = g.finish(), after = fold_constants(before);
  ASSERT_EQ(after.node(0).inputs, 1U);
  const auto attributes = c::from_words<op::reshape_attributes>(after.view().words_of(0));
  EXPECT_EQ(attributes.dims, (c::shape{0, -1}));
  EXPECT_EQ(after.type_of(after.outputs()[0]).dims, (c::shape{2, 12}));
  EXPECT_FALSE(holds(remove_dead(after), "target"));
  expect_same_results(before, after);
}

TEST(fold_constants, computed_targets_make_shapes_known) {
  // The target is put together from parts, so that nothing behind the reshape has a known shape before folding.
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3, 4}});
  const c::value target = g(op::concat, integers(g, "rows", {6}), integers(g, "columns", {4}), {.axis = 0});
  const c::value flat = g(op::reshape, x, target);
  const c::value w = g.constant("w", {c::dtype::f32, {4, 5}}, c::uniform{-1, 1});
  const c::value product = g(op::matmul, flat, w);
  g.output("y", g(op::softmax, product));
  c::graph before = g.finish();
  fill_constants(before);
  EXPECT_FALSE(before.type_of(before.outputs()[0]).dims.is_concrete());

  const c::graph after = remove_dead(fold_constants(before));
  EXPECT_EQ(node_names(after), (std::vector<std::string>{"reshape_1", "matmul_2", "softmax_3"}));
  EXPECT_EQ(after.type_of(after.outputs()[0]).dims, (c::shape{6, 5}));

  // The oracle takes known shapes only, so that the same network is written down once more with them.
  c::graph_builder h;
  const c::value x2 = h.input("x", {c::dtype::f32, {2, 3, 4}});
  const c::value w2 = h.constant("w", {c::dtype::f32, {4, 5}}, c::uniform{-1, 1});
  h.output("y", h(op::softmax, h(op::matmul, h(op::reshape, x2, {.dims = {6, 4}}), w2)));
  c::graph plain = h.finish();
  fill_constants(plain);
  expect_same_results(plain, after);
}

TEST(fold_constants, leaves_what_is_too_large) {
  const auto network = [] {
    c::graph_builder g;
    const c::value column = g.constant("column", {c::dtype::f32, {64, 1}}, c::uniform{0, 1});
    const c::value row = g.constant("row", {c::dtype::f32, {1, 64}}, c::uniform{0, 1});
    const c::value table = g(op::add, column, row);  // 16384 bytes out of 512
    const c::value turned = g(op::transpose, table);
    g.output("y", g(op::add, turned, g.input("x", {c::dtype::f32, {64, 64}})));
    c::graph made = g.finish();
    fill_constants(made);
    return made;
  };
  const c::graph before = network();
  EXPECT_EQ(fold_constants(before, {.largest = 16383}).nodes().size(), 3U);
  EXPECT_EQ(fold_constants(before, {.largest = 16384}).nodes().size(), 1U);
  expect_same_results(before, fold_constants(before), 1e-6);
}

TEST(fold_constants, what_is_as_large_as_its_operands_is_folded) {
  c::graph_builder g;
  const c::value w = g.constant("w", {c::dtype::f32, {64, 32}}, c::uniform{0, 1});
  g.output("y", g(op::matmul, g.input("x", {c::dtype::f32, {2, 32}}), g(op::transpose, w)));
  c::graph before = g.finish();
  fill_constants(before);
  const c::graph after = fold_constants(before, {.largest = 0});
  EXPECT_EQ(node_names(after), std::vector<std::string>{"matmul_1"});
  expect_same_results(before, after);
}

TEST(fold_constants, leaves_constants_without_contents) {
  c::graph_builder g;
  const c::value w = g.constant("w", {c::dtype::f32, {3}}, c::uniform{0, 1});
  g.output("y", g(op::add, g(op::neg, w), g.input("x", {c::dtype::f32, {3}})));
  c::graph before = g.finish();
  EXPECT_EQ(fold_constants(before).fingerprint(), before.fingerprint());
  fill_constants(before);
  EXPECT_EQ(fold_constants(before).nodes().size(), 1U);
}

TEST(fold_constants, leaves_what_the_reference_cannot_compute) {
  c::graph_builder g;
  g.output("y", g(op::relu, g(mystery, floats(g, "w", {1, 2}))));
  const c::graph before = g.finish();
  EXPECT_EQ(fold_constants(before).fingerprint(), before.fingerprint());
}

TEST(fold_constants, integers_stay_exact) {
  c::graph_builder g;
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  g.output("y", g(op::concat, integers(g, "a", {big}), integers(g, "b", {-1, 7}), {.axis = 0}));
  const c::graph before = g.finish(), after = fold_constants(before);
  EXPECT_TRUE(after.nodes().empty());
  std::int64_t first = 0;
  std::memcpy(&first, after.bytes_of(after.outputs()[0]).data(), 8);
  EXPECT_EQ(first, big);
  expect_same_results(before, after);
}

TEST(fold_constants, random_graphs) {
  const std::uint64_t seed = seed_or(12);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  std::size_t folded = 0;
  for (int round = 0; round < 200; ++round) {
    c::graph before = random_graph(random, {.inputs = 1, .constants = 6, .nodes = 20});
    fill_constants(before);
    const c::graph after = remove_dead(fold_constants(before));
    const double largest = 1e-5;  // folded values are rounded to float32, and sub of equal values may amplify that
    expect_same_results(before, after, largest * 100);
    folded += before.nodes().size() - after.nodes().size();
    EXPECT_EQ(remove_dead(fold_constants(after)).fingerprint(), after.fingerprint());
    for (std::uint32_t n = 0; n < after.nodes().size(); ++n) {
      bool constant = true;
      for (const std::uint32_t v : after.view().inputs_of(n)) constant = constant && after.view().is_constant(v);
      EXPECT_FALSE(constant) << after.node_name(n) << " could be folded";
    }
  }
  EXPECT_GT(folded, 0U);
}

TEST(fold_constants, the_zoo_keeps_its_results) {
  for (const char* name : {"resnext50-paper", "bert-paper"}) {
    c::graph_builder g;
    c::zoo::build(name, g);
    const c::graph before = g.finish();
    const c::graph after = remove_dead(fold_constants(before));
    EXPECT_EQ(after.fingerprint(), before.fingerprint()) << name << ": there is nothing to fold in it";
  }
}

}  // namespace pass_fold_constants_test
