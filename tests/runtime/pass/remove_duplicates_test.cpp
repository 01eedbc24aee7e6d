// The pass that makes equal nodes and equal constants one.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/remove_dead.hpp>
#include <collage/pass/remove_duplicates.hpp>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pass_remove_duplicates_test {

using namespace collage_test;

c::graph without_duplicates(const c::graph& before) {
  const c::graph after = c::remove_duplicates(before);
  expect_same_results(before, after);
  EXPECT_EQ(c::remove_duplicates(after).fingerprint(), after.fingerprint()) << "a fixed point";
  return after;
}

TEST(remove_duplicates, chains_over_the_same_value) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3}}), z = g.input("z", {c::dtype::f32, {2, 3}});
  const c::value a = g(op::exp, g(op::add, x, z)), b = g(op::exp, g(op::add, z, x));
  g.output("a", g(op::sub, a, b));
  g.output("b", b);
  g.output("other", g(op::sub, b, z));
  const c::graph after = without_duplicates(g.finish());
  EXPECT_EQ(node_names(after), (names{"add_0", "exp_1", "sub_4", "sub_5"}));
  EXPECT_EQ(after.value_name(after.outputs()[1]), "exp_1");
}

TEST(remove_duplicates, order_attributes_and_arity_tell_nodes_apart) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3, 3}}), z = g.input("z", {c::dtype::f32, {3, 3}});
  const c::value list[] = {g(op::sub, x, z),
                           g(op::sub, z, x),
                           g(op::leaky_relu, x, {.alpha = 0.1}),
                           g(op::leaky_relu, x, {.alpha = 0.2}),
                           g(op::concat, {x, z}, {.axis = 0}),
                           g(op::concat, {x, z, z}, {.axis = 0}),
                           g(op::matmul, x, z),
                           g(op::matmul, z, x),
                           g(op::reduce_max, x, {.axes = {0}}),
                           g(op::reduce_max, x, {.axes = {1}})};
  for (std::size_t i = 0; i < std::size(list); ++i) g.output(c::label("y") + i, list[i]);
  EXPECT_EQ(without_duplicates(g.finish()).nodes().size(), std::size(list));
}

TEST(remove_duplicates, every_output_of_a_node) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  const c::value a = g(both_signs, x), b = g(both_signs, x);
  g.output("y", g(op::sub, a, b[1]));
  g.output("same", {b.index + 1});
  const c::graph after = without_duplicates(g.finish());
  EXPECT_EQ(node_names(after), (names{"both_signs_0", "sub_2"}));
}

TEST(remove_duplicates, constants_of_equal_contents) {
  constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2}});
  const c::value a = floats(g, "a", {0, not_a_number}), b = floats(g, "b", {0, not_a_number});
  const c::value minus = floats(g, "minus zero", {-0.0F, not_a_number});
  const c::value column = g.constant("column", {c::dtype::f32, {2, 1}}, bytes_of<float>({0, not_a_number}));
  const c::value whole = g.constant("whole", {c::dtype::i32, {2}}, bytes_of<float>({0, not_a_number}));
  for (const c::value v : {a, b, minus, column}) g.output(c::label("y") + v.index, g(op::less, x, v));
  g.output("whole", whole);
  g.output("b", b);
  const c::graph before = g.finish(), after = c::remove_duplicates(before);
  EXPECT_EQ(node_names(after), (names{"less_0", "less_2", "less_3"}));
  EXPECT_FALSE(holds(after, "b"));
  for (const char* name : {"a", "minus zero", "column", "whole"}) EXPECT_TRUE(holds(after, name)) << name;
  EXPECT_EQ(after.constant(find(after, "a")).bytes, before.constant(a.index).bytes) << "shared, not copied";
  EXPECT_EQ(after.value_name(after.outputs()[5]), "a");
}

TEST(remove_duplicates, constants_of_many_lengths) {
  for (const std::int64_t length : {0, 1, 7, 8, 9, 31, 100}) {
    c::graph_builder g;
    const c::tensor_type type{c::dtype::u8, {length}};
    std::vector<c::value> list;
    for (const std::byte last : {std::byte{3}, std::byte{3}, std::byte{4}}) {
      const std::shared_ptr<std::byte> bytes = c::allocate_bytes(type.bytes());
      std::memset(bytes.get(), 1, type.bytes());
      if (length > 0) bytes.get()[length - 1] = last;
      list.push_back(g.constant(c::label("c") + list.size(), type, bytes));
    }
    g.output("y", g(op::concat, list, {.axis = 0}));
    const c::graph after = c::remove_duplicates(g.finish());
    EXPECT_TRUE(holds(after, "c0") && !holds(after, "c1"));
    EXPECT_EQ(holds(after, "c2"), length > 0);
  }
}

TEST(remove_duplicates, constants_that_are_not_loaded_stay) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  const c::value a = g.constant("a", {c::dtype::f32, {3}}, c::uniform{1, 1});
  const c::value b = g.constant("b", {c::dtype::f32, {3}}, c::uniform{1, 1});
  g.output("y", g(op::add, g(op::mul, x, a), g(op::mul, x, b)));
  c::graph before = g.finish();
  EXPECT_EQ(c::remove_duplicates(before).fingerprint(), before.fingerprint());
  fill_constants(before);
  EXPECT_EQ(without_duplicates(before).nodes().size(), 2U);
}

TEST(remove_duplicates, nodes_with_sub_graphs_stay_and_their_sub_graphs_are_treated) {
  const auto body = [](bool negative) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {3}});
    const c::value twice = g(op::add, g(op::exp, x), g(op::exp, x));
    g.output("y", negative ? g(op::neg, twice) : twice);
    return std::make_shared<const c::graph>(g.finish());
  };
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  const c::value condition = g.constant("condition", {c::dtype::boolean, {}}, bytes_of<std::uint8_t>({0}));
  const std::shared_ptr<const c::graph> bodies[] = {body(false), body(true)};
  const c::value operands[] = {condition, x};
  const c::value a = g.add(c::kind_of<decltype(op::branch)>, operands, {}, "a", bodies);
  const c::value b = g.add(c::kind_of<decltype(op::branch)>, operands, {}, "b", bodies);
  g.output("y", g(op::sub, a, b));
  const c::graph after = without_duplicates(g.finish());
  EXPECT_EQ(node_names(after), (names{"a", "b", "sub_0"}));
  EXPECT_EQ(after.bodies_of(0)[1]->nodes().size(), 3U);
  EXPECT_EQ(after.bodies_of(0)[1], after.bodies_of(1)[1]) << "still shared";
  EXPECT_EQ(c::remove_dead(after).bodies_of(0)[1]->nodes().size(), 3U);
}

TEST(remove_duplicates, random_graphs) {
  const std::uint64_t seed = seed_or(31);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  std::size_t gone = 0;
  for (int round = 0; round < 200; ++round) {
    c::graph before = random_graph(random, {.inputs = 1, .constants = 2, .nodes = 25});
    fill_constants(before);
    const c::graph after = without_duplicates(before);
    gone += before.nodes().size() - after.nodes().size();
    for (std::uint32_t n = 0; n < after.nodes().size(); ++n)
      for (std::uint32_t m = 0; m < n; ++m) {
        const auto a = after.view().inputs_of(n), b = after.view().inputs_of(m);
        const bool same =
            after.node(n).kind == after.node(m).kind && std::equal(a.begin(), a.end(), b.begin(), b.end());
        EXPECT_FALSE(same) << after.node_name(n) << " is " << after.node_name(m);
      }
  }
  EXPECT_GT(gone, 100U);
}

}  // namespace pass_remove_duplicates_test
