// The matcher on run-time graphs: what matches, what is bound, and why something does not match.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pattern_pattern_test {

using namespace collage_test;
using c::any, c::constant, c::variable;

// What matches --------------------------------------------------------------------------------------------------------

TEST(pattern, linear_chain) {
  sketch s;
  const auto o = match(s, op::relu(op::neg(op::exp(any))), s(op::relu, s(op::neg, s(op::exp, s.x))));
  ASSERT_TRUE(o.matched);
  EXPECT_EQ(nodes(o), (list{0, 1, 2})) << "inner operators first, the root last";
  EXPECT_EQ(arguments(o), list{s.x.index});
}

TEST(pattern, matches_inside_of_a_graph) {
  sketch s;
  const c::value r = s(op::relu, s(op::neg, s(op::exp, s.x)));
  s.output("out", s(op::sigmoid, r));
  const c::graph g = s.finish();
  EXPECT_TRUE(match(g, op::relu(op::neg(any)), 2).matched);
  EXPECT_FALSE(match(g, op::relu(op::neg(any)), 3).matched);
  EXPECT_FALSE(match(g, op::relu(op::neg(any)), 1).matched);
}

TEST(pattern, roles_of_values) {
  sketch s;
  const c::value inputs = s(op::sub, s.x, s.y), mixed = s(op::sub, inputs, s.w), constants = s(op::sub, s.w, s.b);
  s.output("a", mixed);
  s.output("c", constants);
  const c::graph g = s.finish();
  EXPECT_TRUE(match(g, op::sub(variable, variable), 0).matched);
  EXPECT_TRUE(match(g, op::sub(any, any), 0).matched);
  EXPECT_FALSE(match(g, op::sub(constant, variable), 0).matched);
  EXPECT_TRUE(match(g, op::sub(variable, constant), 1).matched);
  EXPECT_FALSE(match(g, op::sub(variable, variable), 1).matched);
  EXPECT_TRUE(match(g, op::sub(constant, constant), 2).matched);
}

TEST(pattern, commuting_operands_both_constrained) {
  constexpr auto pattern = op::add(op::relu(any.as<"a">()), op::neg(constant));
  for (const bool swapped : {false, true}) {
    sketch s;
    const c::value r = s(op::relu, s.x), n = s(op::neg, s.w);
    const auto o = match(s, pattern, swapped ? s(op::add, n, r) : s(op::add, r, n));
    ASSERT_TRUE(o.matched) << swapped;
    EXPECT_EQ(nodes(o), (list{0, 1, 2})) << "in the pattern's order, not the graph's";
    EXPECT_EQ(arguments(o), (list{s.x.index, s.w.index}));
  }
  // What does not commute must stand as it is written.
  sketch s;
  EXPECT_FALSE(match(s, op::sub(op::relu(any), any), s(op::sub, s.y, s(op::relu, s.x))).matched);
}

TEST(pattern, a_choice_is_undone_when_a_later_goal_fails) {
  // Either operand of the outer add is an add; only one of them has a neg in it.
  constexpr auto pattern = op::add(op::add(any, op::neg(any)), op::add(any, any));
  for (const bool swapped : {false, true}) {
    sketch s;
    const c::value with = s(op::add, s(op::neg, s.x), s.y), without = s(op::add, s.x, s.w);
    const auto o = match(s, pattern, swapped ? s(op::add, without, with) : s(op::add, with, without));
    EXPECT_TRUE(o.matched) << swapped;
  }
}

TEST(pattern, the_same_value_twice) {
  constexpr auto silu = op::mul(any.as<"x">(), op::sigmoid(c::same<"x">()));
  {
    sketch s;
    const auto o = match(s, silu, s(op::mul, s.x, s(op::sigmoid, s.x)));
    ASSERT_TRUE(o.matched);
    EXPECT_EQ(arguments(o), list{s.x.index}) << "one argument";
  }
  {
    sketch s;
    EXPECT_TRUE(match(s, silu, s(op::mul, s(op::sigmoid, s.y), s.y)).matched);
  }
  {
    sketch s;
    const auto o = match(s, silu, s(op::mul, s.x, s(op::sigmoid, s.y)));
    EXPECT_FALSE(o.matched);
    EXPECT_EQ(o.rule(), "it must be the same value as elsewhere in the pattern");
  }
  {
    // mul(r, r) with r an operator's output: the operator is part of the match, once.
    sketch s;
    const c::value r = s(op::relu, s.x);
    const auto o = match(s, op::mul(op::relu(any).as<"r">(), c::same<"r">()), s(op::mul, r, r));
    ASSERT_TRUE(o.matched);
    EXPECT_EQ(nodes(o), (list{0, 1}));
  }
}

TEST(pattern, an_operator_is_matched_once) {
  sketch s;
  const c::value r = s(op::relu, s.x);
  const auto o = match(s, op::mul(op::relu(any), op::relu(any)), s(op::mul, r, r));
  EXPECT_FALSE(o.matched);
  EXPECT_EQ(o.rule(), "the operator is matched elsewhere in the pattern already");
}

TEST(pattern, what_a_match_computes_is_not_its_argument) {
  // The second operand is meant to come from outside; a kernel would look for it among its arguments in vain.
  sketch s;
  const c::value r = s(op::relu, s.x);
  const auto o = match(s, op::add(op::relu(any), any), s(op::add, r, r));
  EXPECT_FALSE(o.matched);
  EXPECT_EQ(o.rule(), "this operand must come from outside the match");
  EXPECT_EQ(o.why.graph_node, 1);

  sketch many;
  const c::value n = many(op::neg, many.x);
  EXPECT_FALSE(match(many, sum(op::neg(any), c::many(any)), many(sum, {n, many.y, n})).matched);
}

TEST(pattern, a_shared_input_is_one_argument) {
  sketch s;
  const auto o = match(s, op::add(op::relu(any), op::neg(any)), s(op::add, s(op::relu, s.x), s(op::neg, s.x)));
  ASSERT_TRUE(o.matched);
  EXPECT_EQ(arguments(o), list{s.x.index});
}

TEST(pattern, a_value_read_outside) {
  const auto graph = [](bool output) {
    sketch s;
    const c::value r = s(op::relu, s.x), n = s(op::neg, r);
    s.output("out", n);
    if (output) s.output("inner", r);
    else s.output("other", s(op::exp, r));
    return s.finish();
  };
  const auto refused = match(graph(false), op::neg(op::relu(any)), 1);
  EXPECT_FALSE(refused.matched);
  EXPECT_EQ(refused.rule(), "it is also read outside the pattern");
  EXPECT_EQ(refused.why.graph_node, 0);
  EXPECT_EQ(refused.why.pattern_node, 1);
  EXPECT_TRUE(match(graph(false), op::neg(op::relu(any).escaping()), 1).matched);

  const auto output = match(graph(true), op::neg(op::relu(any)), 1);
  EXPECT_FALSE(output.matched);
  EXPECT_EQ(output.rule(), "it is an output of the graph and cannot be fused away");
  EXPECT_TRUE(match(graph(true), op::neg(op::relu(any).escaping()), 1).matched);
}

TEST(pattern, the_root_may_be_read_by_anybody) {
  sketch s;
  const c::value r = s(op::relu, s.x);
  s.output("a", r);
  s.output("b", s(op::neg, r));
  EXPECT_TRUE(match(s.finish(), op::relu(any), 0).matched);
}

TEST(pattern, every_output_of_an_inner_operator_counts) {
  const auto graph = [](bool read) {
    sketch s;
    const c::value first = s(split, s.x);
    s.output("a", s(op::relu, first));
    if (read) s.output("b", s(op::neg, first[1]));
    return s.finish();
  };
  EXPECT_TRUE(match(graph(false), op::relu(split(any)), 1).matched);
  const auto o = match(graph(true), op::relu(split(any)), 1);
  EXPECT_FALSE(o.matched);
  EXPECT_EQ(o.rule(), "it is also read outside the pattern");
}

TEST(pattern, operands_that_may_be_missing) {
  constexpr auto pattern = biased(any, c::maybe(constant.as<"bias">()));
  const auto try_with = [&](auto operands) {
    sketch s;
    return match(s, pattern, operands(s));
  };
  const auto with = try_with([](sketch& s) { return s(biased, s.x, s.b); });
  const auto without = try_with([](sketch& s) { return s(biased, s.x); });
  const auto other = try_with([](sketch& s) { return s(biased, s.x, s.y); });
  ASSERT_TRUE(with.matched && without.matched);
  EXPECT_NE(with.record.bound[1], c::match_record::nothing);
  EXPECT_EQ(without.record.bound[1], c::match_record::nothing);
  EXPECT_EQ(with.record.arguments, 2U);
  EXPECT_EQ(without.record.arguments, 1U);
  EXPECT_FALSE(other.matched) << "what is there must fit";
  EXPECT_EQ(other.rule(), "it must be a constant");
}

TEST(pattern, a_missing_operator_takes_its_operands_along) {
  constexpr auto pattern = biased(any, c::maybe(op::relu(any.as<"inner">())));
  sketch s, t;
  EXPECT_TRUE(match(s, pattern, s(biased, s.x, s(op::relu, s.y))).matched);
  const auto o = match(t, pattern, t(biased, t.x));
  ASSERT_TRUE(o.matched);
  EXPECT_EQ(nodes(o), list{0});
  EXPECT_EQ(arguments(o), list{t.x.index});
}

TEST(pattern, any_number_of_operands) {
  const auto matched = [](const auto& pattern, std::size_t count, bool last_constant) {
    sketch s;
    std::vector<c::value> operands(count, s.x);
    if (last_constant) operands.back() = s.w;
    return match(s, pattern, s(sum, operands)).matched;
  };
  for (const std::size_t count : {1U, 2U, 5U, 60U}) {
    EXPECT_TRUE(matched(sum(c::many(any)), count, false));
    EXPECT_TRUE(matched(sum(any, c::many(any)), count, false)) << "none is a number, too";
    EXPECT_EQ(matched(sum(any, any, c::many(any)), count, false), count >= 2);
    EXPECT_EQ(matched(sum(any, any), count, false), count == 2);
    EXPECT_TRUE(matched(sum(c::many(variable)), count, false));
    EXPECT_FALSE(matched(sum(c::many(variable)), count, true));
  }
}

TEST(pattern, a_kernel_takes_72_operands) {
  for (const std::size_t count : {72U, 73U}) {
    sketch s;
    std::vector<c::value> operands;
    for (std::size_t i = 0; i < count; ++i) operands.push_back(s.input(c::label("in") + i, vec));
    const auto o = match(s, sum(c::many(any)), s(sum, operands));
    EXPECT_EQ(o.matched, count == 72);
    if (!o.matched) { EXPECT_EQ(o.rule(), "it has more operands than a kernel can take (72)"); }
  }
}

TEST(pattern, one_of_several_kinds) {
  constexpr auto pattern = c::one_of(op::relu, op::sigmoid, op::tanh)(op::neg(any));
  sketch s;
  for (const c::value v : {s(op::relu, s(op::neg, s.x)), s(op::tanh, s(op::neg, s.x)), s(op::exp, s(op::neg, s.x))})
    s.output(c::label("out") + v.index, v);
  const c::graph g = s.finish();
  EXPECT_TRUE(match(g, pattern, 1).matched);
  EXPECT_TRUE(match(g, pattern, 3).matched);
  const auto o = match(g, pattern, 5);
  EXPECT_FALSE(o.matched);
  EXPECT_EQ(o.rule(), "it is another operator");
}

TEST(pattern, a_number_within_its_tolerance) {
  const auto matched = [](double in_graph, double number, double tolerance = 1e-6) {
    sketch s;
    return match(s, op::mul(any, c::scalar(number, tolerance)), s(op::mul, s.x, s.scalar("number", in_graph))).matched;
  };
  EXPECT_TRUE(matched(0.5, 0.5));
  EXPECT_TRUE(matched(0.1, 0.1)) << "float32 rounds it";
  EXPECT_TRUE(matched(-1.4142135, -1.41421356));
  EXPECT_FALSE(matched(0.5, 0.50001));
  EXPECT_TRUE(matched(0.5, 0.50001, 1e-4));
  EXPECT_FALSE(matched(0.5, -0.5));
  EXPECT_TRUE(matched(0, 0));
  EXPECT_FALSE(matched(1e-9, 0)) << "the tolerance is relative";

  sketch s, t;
  const auto no_number = match(s, op::mul(any, c::scalar(2)), s(op::mul, s.x, s.w));
  EXPECT_EQ(no_number.rule(), "it must be a constant of one element with a known value");
  const auto other = match(t, op::mul(any, c::scalar(2)), t(op::mul, t.x, t.scalar("three", 3)));
  EXPECT_EQ(other.rule(), "the constant has another value");
  EXPECT_EQ(other.why.operand, 1);
}

TEST(pattern, gelu_spelled_out) {
  constexpr auto gelu = op::mul(
      op::mul(any.as<"x">(), op::add(op::erf(op::div(c::same<"x">(), c::scalar(1.4142135623730951))), c::scalar(1))),
      c::scalar(0.5));
  sketch s;
  const c::value e = s(op::erf, s(op::div, s.x, s.scalar("root", 1.4142135623730951)));
  const c::value one = s(op::add, s.scalar("one", 1), e);
  const auto o = match(s, gelu, s(op::mul, s.scalar("half", 0.5), s(op::mul, one, s.x)));
  ASSERT_TRUE(o.matched) << o.rule();
  EXPECT_EQ(o.record.nodes, 5U);
}

TEST(pattern, a_pattern_larger_than_the_graph) {
  sketch s;
  const auto o = match(s, op::relu(op::relu(op::relu(op::relu(any)))), s(op::relu, s(op::relu, s.x)));
  EXPECT_FALSE(o.matched);
  EXPECT_EQ(o.rule(), "an operator must compute this, and none does");
  EXPECT_EQ(o.why.pattern_node, 2);
  EXPECT_EQ(o.why.graph_node, 0) << "the reader of the graph's input";
  EXPECT_EQ(o.why.operand, 0);
}

// Why not -------------------------------------------------------------------------------------------------------------

TEST(pattern, the_reason_is_the_one_that_came_furthest) {
  // conv_bias_relu on a graph that has all of it, but whose convolution is read twice: not "another operator", which is
  // what the matcher finds when it tries the operands of add the other way round.
  constexpr auto pattern = op::relu(op::add(op::neg(any), constant));
  sketch s;
  const c::value n = s(op::neg, s.x);
  const c::value r = s(op::relu, s(op::add, n, s.b));
  s.output("a", r);
  s.output("b", s(op::exp, n));
  const auto o = match(s.finish(), pattern, 2);
  EXPECT_EQ(o.rule(), "it is also read outside the pattern");
  EXPECT_EQ(o.why.graph_node, 0);
}

TEST(pattern, the_reason_says_where) {
  constexpr auto pattern = op::relu(op::sub(op::neg(any), constant));
  {
    sketch s;
    const auto o = match(s, pattern, s(op::exp, s.x));
    EXPECT_EQ(o.rule(), "it is another operator");
    EXPECT_EQ(o.why.pattern_node, 4) << "the root";
    EXPECT_EQ(o.why.graph_node, 0);
    EXPECT_EQ(o.why.operand, -1);
  }
  {
    sketch s;
    const auto o = match(s, pattern, s(op::relu, s(op::sub, s(op::exp, s.x), s.b)));
    EXPECT_EQ(o.rule(), "it is another operator");
    EXPECT_EQ(o.why.pattern_node, 1);
    EXPECT_EQ(o.why.graph_node, 1) << "operand 0 of the sub";
    EXPECT_EQ(o.why.operand, 0);
  }
  {
    sketch s;
    const auto o = match(s, pattern, s(op::relu, s(op::sub, s(op::neg, s.x), s.y)));
    EXPECT_EQ(o.rule(), "it must be a constant");
    EXPECT_EQ(o.why.graph_node, 1);
    EXPECT_EQ(o.why.operand, 1);
  }
  {
    sketch s;
    const auto o = match(s, op::relu(biased(any, any)), s(op::relu, s(biased, s.x)));
    EXPECT_EQ(o.rule(), "it has another number of operands");
  }
  {
    sketch s;
    const auto o = match(s, op::relu(variable), s(op::relu, s.w));
    EXPECT_EQ(o.rule(), "it must not be a constant");
  }
}

/// Readers of a shared value are tried one by one, each at no more cost than the one before.
TEST(pattern, a_further_output_among_many_readers) {
  for (const std::uint32_t readers : {1U, 50U, 95U, 160U, 1000U, 5000U}) {
    sketch s;
    const c::value r = s(op::relu, s.x);
    for (std::uint32_t i = 1; i < readers; ++i) s.output(c::label("out") + i, s(op::exp, r));
    s.output("last", s(op::sub, r, s.w));
    const c::graph g = s.finish();
    const auto found = match(g, c::outputs(op::relu(any).as<"x">(), op::sub(c::same<"x">(), constant)), 0);
    EXPECT_TRUE(found.matched) << found.rule();
    EXPECT_EQ(nodes(found), (list{0, readers}));
    const auto missing = match(g, c::outputs(op::relu(any).as<"x">(), op::tanh(c::same<"x">())), 0);
    EXPECT_EQ(missing.rule(), "nothing of this kind reads the value that the outputs share");
    // All are of the right kind, and none fits.
    const auto unfit = match(g, c::outputs(op::relu(any).as<"x">(), op::exp(c::same<"x">()).rank(7)), 0);
    EXPECT_FALSE(unfit.matched);
    EXPECT_EQ(unfit.rule(), readers == 1     ? "nothing of this kind reads the value that the outputs share"
                            : readers < 2000 ? "it has another number of dimensions"
                                             : "the match was given up: too many combinations would have to be tried");
    EXPECT_GE(unfit.why.graph_node, 0);
  }
}
/// What misfits may be read by any of the operators over which the iteration before stands.
TEST(pattern, a_misfit_under_the_second_operator_that_reads_the_iteration_before) {
  sketch s;
  const c::value left = s(op::relu, s.x), right = s(op::sigmoid, s.y);
  const auto o =
      match(s, c::repeat<1, 2>(op::sub(op::relu(c::previous), op::sigmoid(c::previous)), any), s(op::sub, left, right));
  EXPECT_EQ(o.rule(), "it must be the same value as elsewhere in the pattern");
  EXPECT_EQ(o.why.graph_node, 1);
  EXPECT_EQ(o.why.operand, 0);
}

TEST(pattern, a_miss_leaves_no_debris) {
  sketch s;
  s.output("out", s(op::relu, s(op::exp, s.x)));
  const c::graph g = s.finish();
  c::match_record record;
  record.nodes = 7;
  record.bound[0] = 1234;
  record.argument[3] = 99;
  EXPECT_FALSE(match_at(g.view(), op::relu(op::neg(any)).node, 1, record));
  EXPECT_EQ(record.nodes, 7U);
  EXPECT_EQ(record.bound[0], 1234U);
  EXPECT_EQ(record.argument[3], 99U);
}

}  // namespace pattern_pattern_test
