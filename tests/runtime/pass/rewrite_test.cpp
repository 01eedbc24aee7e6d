// Rewriting graphs, and the pass that removes dead parts.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/pass/remove_dead.hpp>
#include <collage/pass/rewrite.hpp>
#include <collage/zoo/all.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pass_rewrite_test {

using namespace collage_test;

// Rewriting -----------------------------------------------------------------------------------------------------------

TEST(rewrite, without_rules_nothing_changes) {
  for (const c::zoo::network& n : c::zoo::networks) {
    c::graph_builder g;
    c::zoo::build(n.name, g);
    const c::graph before = g.finish(), after = rewrite(before, {});
    EXPECT_EQ(before.fingerprint(), after.fingerprint()) << n.name;
    EXPECT_EQ(node_names(before), node_names(after)) << n.name;
    for (std::uint32_t v = 0; v < before.values().size(); ++v) {
      ASSERT_EQ(before.value_name(v), after.value_name(v));
      ASSERT_EQ(before.constant(v).fill.low, after.constant(v).fill.low);
      ASSERT_EQ(before.constant(v).fill.high, after.constant(v).fill.high);
    }
  }
}

TEST(rewrite, shares_the_contents_of_constants) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  const c::value rule = g.constant("rule", {c::dtype::f32, {3}}, c::uniform{-1, 1});
  const c::value given = floats(g, "given", {1, 2, 3});
  g.output("y", g(op::add, g(op::add, x, rule), given));
  c::graph before = g.finish();
  EXPECT_EQ(rewrite(before, {}).constant(rule.index).bytes, nullptr) << "what was not made yet is not made";
  fill_constants(before);
  const c::graph after = rewrite(before, {});
  for (const c::value v : {rule, given}) EXPECT_EQ(before.constant(v.index).bytes, after.constant(v.index).bytes);
  expect_same_results(before, after);
}

TEST(rewrite, keeps_long_names_and_several_outputs) {
  c::graph_builder g;
  const std::string long_name(200, 'n');
  const c::value x = g.input(long_name + "x", {c::dtype::f32, {3}});
  const c::value operands[] = {x};
  const c::value first = g.add(c::kind_of<struct both_signs>, operands, {}, long_name);
  g.output(long_name + "y", g(op::sub, first, first[1]));
  const c::graph before = g.finish(), after = rewrite(before, {});
  EXPECT_EQ(node_names(after), (std::vector<std::string>{long_name, "sub_0"}));
  EXPECT_EQ(after.value_name(first.index + 1), long_name + ":1");
  EXPECT_EQ(after.output_name(0), long_name + "y");
  expect_same_results(before, after);
}

TEST(rewrite, a_rule_can_put_something_else) {
  // relu(x) becomes max(x, 0).
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {8}});
  g.output("y", g(op::neg, g(op::relu, g(op::relu, x))));
  g.scalar("zero", 5);  // a name that is taken
  const c::graph before = g.finish();
  const c::graph after = rewrite(before, {.node = [](c::rewriter& r, std::uint32_t node) {
                                   if (r.from().node(node).kind->id != c::kind_of<decltype(op::relu)>.id)
                                     return r.copy_node(node);
                                   const c::value zero = r.to().scalar(r.fresh_name("zero"), 0);
                                   const c::value operands[] = {r.operands_of(node)[0], zero};
                                   r.replace(node, c::kind_of<decltype(op::max)>, operands, {});
                                 }});
  EXPECT_EQ(node_names(after), (std::vector<std::string>{"relu_0", "relu_1", "neg_2"}));
  EXPECT_TRUE(holds(after, "zero_1") && holds(after, "zero_2"));
  EXPECT_STREQ(after.node(1).kind->name, "max");
  expect_same_results(before, after);
}

TEST(rewrite, reading_what_was_dropped_is_an_error) {
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, {8}})));
  const c::graph before = g.finish();
  try {
    (void)rewrite(before, {.node = [](c::rewriter&, std::uint32_t) {}});
    FAIL() << "nothing was thrown";
  } catch (const c::error& e) { EXPECT_STREQ(e.what(), "value relu_0: was dropped and is still read"); }
}

TEST(rewrite, sub_graphs) {
  // Two nodes share their subgraphs; in these something can be folded and something is dead.
  c::graph_builder inner;
  const c::value x = inner.input("x", {c::dtype::f32, {2}});
  inner(op::exp, x);
  inner.output("y", inner(op::mul, x, inner(op::neg, floats(inner, "w", {1, 2}))));
  const auto body = std::make_shared<const c::graph>(inner.finish());
  c::graph_builder g;
  const c::value condition = g.constant("condition", {c::dtype::boolean, {}}, bytes_of<std::uint8_t>({1}));
  const c::value operands[] = {condition, g.input("x", {c::dtype::f32, {2}})};
  const std::shared_ptr<const c::graph> bodies[] = {body, body};
  for (const char* name : {"a", "b"})
    g.output(name, g.add(c::kind_of<decltype(op::branch)>, operands, {}, name, bodies));
  const c::graph before = g.finish();

  EXPECT_EQ(rewrite(before, {}).bodies_of(1)[0], body) << "shared where there is no rule";
  const c::graph folded = fold_constants(before), after = remove_dead(folded);
  expect_same_results(before, after);
  EXPECT_EQ(node_names(after), (std::vector<std::string>{"a", "b"})) << "the condition is known, the node stays";
  EXPECT_EQ(node_names(*folded.bodies_of(0)[0]), (std::vector<std::string>{"exp_0", "mul_2"}));
  EXPECT_EQ(node_names(*after.bodies_of(0)[0]), std::vector<std::string>{"mul_2"});
  EXPECT_EQ(after.bodies_of(0)[0], after.bodies_of(1)[1]);
}

TEST(rewrite, a_sub_graph_keeps_its_types) {
  // Folding makes the extents known, in one of two subgraphs that must return the same types: it stays.
  const auto flat = [](bool computed) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {2, 3}});
    const c::value ends = g.input("target", {c::dtype::i64, {1}});
    const c::value target = integers(g, "six", {6});
    g.output("y", g(op::reshape, x, computed ? g(op::neg, g(op::neg, target)) : ends));
    return std::make_shared<const c::graph>(g.finish());
  };
  c::graph_builder g;
  const c::value operands[] = {g.constant("condition", {c::dtype::boolean, {}}, bytes_of<std::uint8_t>({1})),
                               g.input("x", {c::dtype::f32, {2, 3}}), integers(g, "target", {6})};
  const std::shared_ptr<const c::graph> bodies[] = {flat(true), flat(false)};
  g.output("y", g.add(c::kind_of<decltype(op::branch)>, operands, {}, "branch", bodies));
  const c::graph after = fold_constants(g.finish());
  EXPECT_EQ(after.bodies_of(0)[0], bodies[0]);
  EXPECT_FALSE(after.type_of(after.outputs()[0]).dims.is_concrete());
}

// Dead parts ----------------------------------------------------------------------------------------------------------

TEST(remove_dead, keeps_what_reaches_an_output) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  g.input("unread", {c::dtype::f32, {7}});
  const c::value w = floats(g, "w", {1, 2, 3});
  floats(g, "unread constant", {1, 2, 3});
  const c::value dead = g(op::exp, x);
  g(op::mul, dead, floats(g, "read by the dead", {4, 5, 6}));
  const c::value half = g(both_signs, g(op::add, x, w));
  g.output("y", g(op::relu, half[1]));
  const c::graph before = g.finish(), after = remove_dead(before);

  EXPECT_EQ(node_names(after), (std::vector<std::string>{"add_2", "both_signs_3", "relu_4"}));
  EXPECT_TRUE(holds(after, "w") && holds(after, "unread"));
  EXPECT_FALSE(holds(after, "unread constant") || holds(after, "read by the dead") || holds(after, "exp_0"));
  expect_same_results(before, after);
  EXPECT_EQ(remove_dead(after).fingerprint(), after.fingerprint());
}

TEST(remove_dead, an_input_or_a_constant_can_be_an_output) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  g.output("same", x);
  g.output("one", floats(g, "w", {1, 2, 3}));
  const c::graph before = g.finish();
  EXPECT_EQ(remove_dead(before).fingerprint(), before.fingerprint());
  expect_same_results(before, remove_dead(before));
}

TEST(remove_dead, random_graphs) {
  const std::uint64_t seed = seed_or(11);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  for (int round = 0; round < 100; ++round) {
    c::graph before = random_graph(random, {.constants = 4, .nodes = 20});
    fill_constants(before);
    const c::graph after = remove_dead(before);
    expect_same_results(before, after);
    for (const c::value_record& v : after.values()) {
      EXPECT_TRUE(v.uses > 0 || v.is_output || v.role == c::value_role::input);
    }
  }
}

}  // namespace pass_rewrite_test
