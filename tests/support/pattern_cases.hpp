// What patterns mean, case by case: a graph, a pattern, and what comes of it at some nodes. Written once; the compiler
// tries each case (tests/static/pattern_cases_test.cpp), the same static graph is tried while the program runs, and so is
// the run-time graph that the same function writes (tests/runtime/pattern/cases_test.cpp).
#pragma once

#include <collage/collage.hpp>
#include <collage/pattern/explain.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pattern_kinds.hpp"

namespace collage_test {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant, c::variable, c::previous, c::same, c::either, c::repeat, c::optional, c::outputs;

/// What is expected at a node: of a match what `tell_match` says, of a miss the whole sentence.
struct expectation {
  std::uint32_t node;
  const char* text;
};

/// "nodes 0 1 2 read x w write relu_2", from the names that `values` gives.
template <class Names>
constexpr c::pattern_text tell_match(const c::match_record& record, const Names& names) {
  c::pattern_text out;
  out << "nodes";
  for (std::uint32_t i = 0; i < record.nodes; ++i) out << " " << record.node[i];
  out << (record.arguments != 0 ? " read" : "");
  for (std::uint32_t i = 0; i < record.arguments; ++i) out << " " << names.value_name(record.argument[i]);
  out << " write";
  for (std::uint32_t i = 0; i < record.outputs; ++i) out << " " << names.value_name(record.output[i]);
  if (record.more_outputs != 0) out << " and " << record.more_outputs << " more";
  return out;
}

constexpr bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

/// The graph of a case, defined at compile time.
template <class Case>
struct static_case {
  static constexpr auto graph = c::define(Case::write);
};

namespace cases {

// Chains and operands --------------------------------------------------------------------------------------------------

struct linear_chain : c::pattern<"chain"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::sigmoid, g(op::relu, g(op::neg, g(op::exp, x)))));
  };
  static constexpr auto expr = op::relu(op::neg(op::exp(any)));
  static constexpr expectation expected[] = {
      {2, "nodes 0 1 2 read x write relu_2"},
      {1,
       "pattern chain does not match at node 1 (neg): there is node 1 (neg) where the pattern has "
       "relu(neg(exp(any))): it is another operator"},
      {3,
       "pattern chain does not match at node 3 (sigmoid): there is node 3 (sigmoid) where the pattern has "
       "relu(neg(exp(any))): it is another operator"}};
};

struct commuting_operands_both_constrained : c::pattern<"both"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    for (int i = 0; i < 2; ++i) {
      auto r = g(op::relu, x);
      auto n = g(op::neg, w);
      g.output(i == 0 ? g(op::add, r, n) : g(op::add, n, r));
    }
    auto r = g(op::relu, x);
    g.output(g(op::add, r, g(op::exp, w)));
  };
  static constexpr auto expr = op::add(op::relu(any), op::neg(constant));
  static constexpr expectation expected[] = {
      {2, "nodes 0 1 2 read x w write add_2"},
      {5, "nodes 3 4 5 read x w write add_5"},
      {8,
       "pattern both does not match at node 8 (add): operand 1 of node 8 (add) is the output of node 7 (exp) where the "
       "pattern has neg(constant): it is another operator"}};
};

struct operands_that_do_not_commute : c::pattern<"ordered"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    g.output(g(op::sub, g(op::relu, x), y));
    g.output(g(op::sub, y, g(op::relu, x)));
  };
  static constexpr auto expr = op::sub(op::relu(any), any);
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x y write sub_1"},
      {3,
       "pattern ordered does not match at node 3 (sub): operand 0 of node 3 (sub) is the input y where the pattern has "
       "relu(any): an operator must compute this, and none does"}};
};

/// Of three operands the first two are swapped, the third is not.
struct first_two_of_three_commute : c::pattern<"three"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    g.output(g(mingle, {w, g(op::relu, x), x}));
    g.output(g(mingle, {g(op::relu, x), w, x}));
    g.output(g(mingle, {g(op::relu, x), w}));
    g.output(g(mingle, {x, w, g(op::relu, x)}));
    g.output(g(mingle, {g(op::relu, x), x, w}));
  };
  static constexpr auto expr = mingle(constant, op::relu(any), c::maybe(any));
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x w write mingle_1"},
      {3, "nodes 2 3 read x w write mingle_3"},
      {5, "nodes 4 5 read x w write mingle_5"},
      {7,
       "pattern three does not match at node 7 (mingle): operand 0 of node 7 (mingle) is the input x where the pattern "
       "has relu(any): an operator must compute this, and none does"},
      {9,
       "pattern three does not match at node 9 (mingle): operand 0 of node 9 (mingle) is the output of node 8 (relu) "
       "where the pattern has constant: it must be a constant"}};
};

struct choice_undone_when_a_later_goal_fails : c::pattern<"undone"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    for (int i = 0; i < 2; ++i) {
      auto with = g(op::add, g(op::neg, x), y);
      auto without = g(op::add, x, g.constant(c::label("w") + i, {4}));
      g.output(i == 0 ? g(op::add, with, without) : g(op::add, without, with));
    }
  };
  static constexpr auto expr = op::add(op::add(any, op::neg(any)), op::add(any, constant));
  static constexpr expectation expected[] = {{3, "nodes 0 1 2 3 read x y w0 write add_3"},
                                             {7, "nodes 4 5 6 7 read x y w1 write add_7"}};
};

struct same_value_twice : c::pattern<"silu"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    g.output(g(op::mul, x, g(op::sigmoid, x)));
    g.output(g(op::mul, g(op::sigmoid, y), y));
    g.output(g(op::mul, x, g(op::sigmoid, y)));
  };
  static constexpr auto expr = op::mul(any.as<"x">(), op::sigmoid(same<"x">()));
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x write mul_1"},
      {3, "nodes 2 3 read y write mul_3"},
      {5,
       "pattern silu does not match at node 5 (mul): operand 0 of node 4 (sigmoid) is the input y where the pattern has "
       "same x: it must be the same value as elsewhere in the pattern"}};
};

struct same_value_computed_inside : c::pattern<"square"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto r = g(op::relu, x);
    g.output(g(op::mul, r, r));
  };
  static constexpr auto expr = op::mul(op::relu(any).as<"r">(), same<"r">());
  static constexpr expectation expected[] = {{1, "nodes 0 1 read x write mul_1"}};
};

struct operator_in_two_places : c::pattern<"two_relus"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto r = g(op::relu, x);
    g.output(g(op::sub, r, r));
    g.output(g(op::sub, g(op::relu, x), g(op::relu, x)));
  };
  static constexpr auto expr = op::sub(op::relu(any), op::relu(any));
  static constexpr expectation expected[] = {
      {1,
       "pattern two_relus does not match at node 1 (sub): operand 0 of node 1 (sub) is the output of node 0 (relu) where "
       "the pattern has relu(any): the operator is matched elsewhere in the pattern already"},
      {4, "nodes 2 3 4 read x write sub_4"}};
};

struct shared_input : c::pattern<"shared"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::add, {g(op::relu, x), g(op::neg, x)}));
  };
  static constexpr auto expr = op::add(op::relu(any), op::neg(any));
  static constexpr expectation expected[] = {{2, "nodes 0 1 2 read x write add_2"}};
};

struct number_of_operands : c::pattern<"counted"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    g.output(g(op::relu, g(biased, x)));
    g.output(g(op::relu, g(biased, x, w)));
  };
  static constexpr auto expr = op::relu(biased(any, any));
  static constexpr expectation expected[] = {
      {1,
       "pattern counted does not match at node 1 (relu): operand 0 of node 1 (relu) is the output of node 0 (biased) "
       "where the pattern has biased(any, any): it has another number of operands"},
      {3, "nodes 2 3 read x w write relu_3"}};
};

struct operand_that_may_be_missing : c::pattern<"with_bias"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    g.output(g(biased, x));
    g.output(g(biased, x, w));
    g.output(g(biased, w, x));
  };
  static constexpr auto expr = biased(any, c::maybe(constant.as<"bias">()));
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x write biased_0"},
      {1, "nodes 1 read x w write biased_1"},
      {2,
       "pattern with_bias does not match at node 2 (biased): operand 1 of node 2 (biased) is the input x where the "
       "pattern has maybe constant as bias: it must be a constant"}};
};

struct as_many_operands_as_there_are : c::pattern<"many"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    auto w = g.constant("w", {4});
    g.output(g(sum, {g(op::neg, x)}));
    g.output(g(sum, {g(op::neg, x), y, y, x}));
    g.output(g(sum, {g(op::neg, x), y, w}));
    auto n = g(op::neg, x);
    g.output(g(sum, {n, y, n}));
  };
  static constexpr auto expr = sum(op::neg(any), c::many(variable));
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x write sum_1"},
      {3, "nodes 2 3 read x y write sum_3"},
      {5,
       "pattern many does not match at node 5 (sum): operand 2 of node 5 (sum) is the constant w where the pattern has "
       "variable...: it must not be a constant"},
      {7,
       "pattern many does not match at node 7 (sum): operand 0 of node 7 (sum) is the output of node 6 (neg) where the "
       "pattern has variable...: this operand must come from outside the match"}};
};

// Values read outside --------------------------------------------------------------------------------------------------

inline constexpr auto write_readers = [](auto& g) {
  auto x = g.input("x", {4});
  auto r = g(op::relu, x);
  g.output(g(op::neg, r));
  g.named("other")(op::exp, r);
  auto s = g(op::relu, x);
  g.output(g(op::neg, s));
  g.output("inner", s);
};
struct read_outside : c::pattern<"closed"> {
  static constexpr auto write = write_readers;
  static constexpr auto expr = op::neg(op::relu(any));
  static constexpr expectation expected[] = {
      {1,
       "pattern closed does not match at node 1 (neg): there is node 0 (relu) where the pattern has relu(any): it is "
       "also read outside the pattern, by node 2 (exp, other)"},
      {4,
       "pattern closed does not match at node 4 (neg): there is node 3 (relu) where the pattern has relu(any): it is an "
       "output of the graph and cannot be fused away"}};
};
struct read_outside_and_allowed : c::pattern<"open"> {
  static constexpr auto write = write_readers;
  static constexpr auto expr = op::neg(op::relu(any).escaping());
  static constexpr expectation expected[] = {{1, "nodes 0 1 read x write neg_1 relu_0"},
                                             {4, "nodes 3 4 read x write neg_3 relu_2"}};
};
struct root_read_by_anybody : c::pattern<"root"> {
  static constexpr auto write = write_readers;
  static constexpr auto expr = op::relu(any);
  static constexpr expectation expected[] = {{0, "nodes 0 read x write relu_0"}, {3, "nodes 3 read x write relu_2"}};
};
struct every_output_of_an_inner_operator_counts : c::pattern<"first_half"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto s = g(split, x);
    g.output(g(op::relu, s));
    auto t = g(split, x);
    g.output(g(op::relu, t));
    g.output(g(op::neg, t[1]));
    g.output(g(op::relu, g(split, x)[1]));
  };
  static constexpr auto expr = op::relu(split(any));
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x write relu_1"},
      {3,
       "pattern first_half does not match at node 3 (relu): there is node 2 (split) where the pattern has split(any): it "
       "is also read outside the pattern, by node 4 (neg)"},
      {6,
       "pattern first_half does not match at node 6 (relu): operand 0 of node 6 (relu) is output 1 of node 5 (split) "
       "where the pattern has split(any): it is another output of the operator"}};
};
struct another_output : c::pattern<"second_half"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::relu, g(split, x)[1]));
    g.output(g(op::relu, g(split, x)));
  };
  static constexpr auto expr = op::relu(split(any).output<1>());
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x write relu_1"},
      {3,
       "pattern second_half does not match at node 3 (relu): operand 0 of node 3 (relu) is output 0 of node 2 (split) "
       "where the pattern has output 1 of split(any): it is another output of the operator"}};
};
struct two_outputs_of_one_operator : c::pattern<"gate"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto s = g(split, x);
    g.output(g(op::mul, s, g(op::sigmoid, s[1])));
    auto t = g(split, x);
    auto u = g(split, x);
    g.output(g(op::mul, t, g(op::sigmoid, u[1])));
  };
  static constexpr auto expr = op::mul(split(any).as<"s">(), op::sigmoid(same<"s">().output<1>()));
  static constexpr expectation expected[] = {
      {2, "nodes 0 1 2 read x write mul_2"},
      {6,
       "pattern gate does not match at node 6 (mul): operand 0 of node 5 (sigmoid) is output 1 of node 4 (split) where "
       "the pattern has output 1 of same s: it must be the same value as elsewhere in the pattern"}};
};

/// All twenty are read; a record lists sixteen.
struct root_of_many_outputs : c::pattern<"fans"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto f = g(fan, g(op::relu, x));
    for (std::uint32_t i = 0; i < 20; ++i) g.output(c::label("y") + i, f[i]);
  };
  static constexpr auto expr = fan(op::relu(any));
  static constexpr expectation expected[] = {
      {1,
       "nodes 0 1 read x write fan_1 fan_1:1 fan_1:2 fan_1:3 fan_1:4 fan_1:5 fan_1:6 fan_1:7 fan_1:8 fan_1:9 fan_1:10 "
       "fan_1:11 fan_1:12 fan_1:13 fan_1:14 fan_1:15 and 4 more"}};
};
struct inner_operator_of_many_outputs : c::pattern<"fanned"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto f = g(fan, x);
    g.output(g(op::relu, f));
    for (std::uint32_t i = 0; i < 20; ++i) g.output(c::label("y") + i, f[i]);
  };
  static constexpr auto expr = op::relu(fan(any).escaping());
  static constexpr expectation expected[] = {
      {1,
       "pattern fanned does not match at node 1 (relu): there is node 0 (fan) where the pattern has escaping fan(any): "
       "more values of the match are read outside than it can have outputs (16)"}};
};

// Repetitions ----------------------------------------------------------------------------------------------------------

/// For k = 0, 1, 3 and 4 operators relu between neg and sigmoid.
inline constexpr auto write_chains = [](auto& g) {
  auto x = g.input("x", {4});
  for (int k : {0, 1, 3, 4}) {
    auto y = g(op::neg, x);
    for (int i = 0; i < k; ++i) y = g(op::relu, y);
    g.output(g(op::sigmoid, y));
  }
};
struct repetition_between : c::pattern<"relus"> {
  static constexpr auto write = write_chains;
  static constexpr auto expr = op::sigmoid(repeat<0, 3>(op::relu(previous), op::neg(any)));
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x write sigmoid_1"},
      {4, "nodes 2 3 4 read x write sigmoid_4"},
      {9, "nodes 5 6 7 8 9 read x write sigmoid_9"},
      {15,
       "pattern relus does not match at node 15 (sigmoid): operand 0 of node 12 (relu) is the output of node 11 (relu) "
       "where the pattern has neg(any): it is another operator"}};
};
struct repetition_from_anything : c::pattern<"relus"> {
  static constexpr auto write = write_chains;
  static constexpr auto expr = op::sigmoid(repeat<1, 3>(op::relu(previous), any));
  static constexpr expectation expected[] = {
      {1,
       "pattern relus does not match at node 1 (sigmoid): operand 0 of node 1 (sigmoid) is the output of node 0 (neg) "
       "where the pattern has relu(previous): it is another operator"},
      {4, "nodes 3 4 read neg_2 write sigmoid_4"},
      {9, "nodes 6 7 8 9 read neg_5 write sigmoid_9"},
      {15, "nodes 12 13 14 15 read relu_11 write sigmoid_15"}};
};
struct repetition_as_root : c::pattern<"relus"> {
  static constexpr auto write = write_chains;
  static constexpr auto expr = repeat<2, 3>(op::relu(previous), variable);
  static constexpr expectation expected[] = {
      {3,
       "pattern relus does not match at node 3 (relu): operand 0 of node 3 (relu) is the output of node 2 (neg) where the "
       "pattern has relu(previous): it is another operator"},
      {7, "nodes 6 7 read neg_5 write relu_7"},
      {8, "nodes 6 7 8 read neg_5 write relu_8"},
      {14, "nodes 12 13 14 read relu_11 write relu_14"}};
};
inline constexpr auto write_side_reader = [](auto& g) {
  auto x = g.input("x", {4});
  auto a = g(op::relu, x);
  auto b = g(op::relu, a);
  auto d = g(op::relu, b);
  g.output(d);
  g.output(g(op::exp, a));
};
struct repetition_with_a_side_reader : c::pattern<"relus"> {
  static constexpr auto write = write_side_reader;
  static constexpr auto expr = repeat<1, 3>(op::relu(previous), any);
  static constexpr expectation expected[] = {{2, "nodes 1 2 read relu_0 write relu_2"},
                                             {1, "nodes 1 read relu_0 write relu_1"}};
};
struct repetition_whose_side_reader_forbids_it : c::pattern<"three_relus"> {
  static constexpr auto write = write_side_reader;
  static constexpr auto expr = repeat<3, 3>(op::relu(previous), any);
  static constexpr expectation expected[] = {
      {2,
       "pattern three_relus does not match at node 2 (relu): there is node 0 (relu) where the pattern has "
       "relu(previous): it is also read outside the pattern, by node 3 (exp)"}};
};
struct repetition_whose_side_reader_is_allowed : c::pattern<"open_relus"> {
  static constexpr auto write = write_side_reader;
  static constexpr auto expr = repeat<3, 3>(op::relu(previous).escaping(), any);
  static constexpr expectation expected[] = {{2, "nodes 0 1 2 read x write relu_2 relu_0"}};
};
/// The longest comes first, though a shorter one stands at the first operand.
struct longest_repetition_first : c::pattern<"adds"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    g.output(g(op::add, y, g(op::add, y, g(op::add, y, x))));
  };
  static constexpr auto expr = repeat<1, 3>(op::add(previous, any), variable);
  static constexpr expectation expected[] = {{2, "nodes 0 1 2 read y x write add_2"}};
};
struct identical_residual_blocks : c::pattern<"residual"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {1, 4, 8, 8});
    for (int i = 0; i < 3; ++i) {
      auto w = g.constant(c::label("w") + i, {4, 4, 1, 1});
      x = g(op::relu, g(op::add, g(op::conv, x, w), x));
    }
    g.output(x);
  };
  static constexpr auto expr = repeat<1, 3>(op::relu(op::add(op::conv(previous, constant.as<"w">()), previous)), any);
  static constexpr expectation expected[] = {{2, "nodes 0 1 2 read x w0 write relu_2"},
                                             {5, "nodes 0 1 2 3 4 5 read x w0 w1 write relu_5"},
                                             {8, "nodes 0 1 2 3 4 5 6 7 8 read x w0 w1 w2 write relu_8"}};
};
/// The shortcut of the second block skips the first: it is no residual block.
struct residual_blocks_that_are_not_identical : c::pattern<"residual"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto a = g(op::add, {g(op::neg, x), x});
    g.output(g(op::add, {g(op::neg, a), x}));
  };
  static constexpr auto expr = repeat<2, 2>(op::add(op::neg(previous), previous), any);
  static constexpr expectation expected[] = {
      {3,
       "pattern residual does not match at node 3 (add): operand 1 of node 3 (add) is the input x where the pattern has "
       "add(neg(previous), previous): it must be the same value as elsewhere in the pattern"}};
};
/// What a step captures is each iteration's own.
struct names_within_iterations : c::pattern<"silus"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    auto z = g.input("z", {4});
    auto a = g(op::sub, g(op::sub, x, y), y);
    g.output(g(op::sub, g(op::sub, a, z), z));
    auto b = g(op::sub, g(op::sub, x, y), y);
    g.output(g(op::sub, g(op::sub, b, z), y));
  };
  static constexpr auto expr = repeat<2, 2>(op::sub(op::sub(previous, any.as<"y">()), same<"y">()), c::input);
  static constexpr expectation expected[] = {
      {3, "nodes 0 1 2 3 read x y z write sub_3"},
      {7,
       "pattern silus does not match at node 7 (sub): operand 1 of node 7 (sub) is the input y where the pattern has same "
       "y: it must be the same value as elsewhere in the pattern"}};
};

/// Where the step says `previous` under two operators, what misfits is told of the one that reads it.
struct previous_under_two_operators : c::pattern<"gate"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    auto r = g(op::relu, x);
    g.output(g(op::mul, {g(op::sigmoid, r), g(op::tanh, r)}));
    g.output(g(op::sub, {g(op::sigmoid, x), g(op::tanh, y)}));
    g.output(g(op::sub, {g(op::sigmoid, g(op::relu, x)), g(op::tanh, g(op::exp, x))}));
    auto s = g(op::relu, x);
    g.output(g(op::sub, {g(op::sigmoid, s), g(op::tanh, s)}));
  };
  static constexpr auto expr = optional(op::sub(op::sigmoid(previous), op::tanh(previous)), op::relu(any));
  static constexpr expectation expected[] = {
      {3,
       "pattern gate does not match at node 3 (mul): there is node 3 (mul) where the pattern has sub(sigmoid(previous), "
       "tanh(previous)): it is another operator"},
      {6,
       "pattern gate does not match at node 6 (sub): operand 0 of node 4 (sigmoid) is the input x where the pattern has "
       "relu(any): an operator must compute this, and none does"},
      {11,
       "pattern gate does not match at node 11 (sub): operand 0 of node 10 (tanh) is the output of node 9 (exp) where the "
       "pattern has relu(any): it must be the same value as elsewhere in the pattern"},
      {15, "nodes 12 13 14 15 read x write sub_15"}};
};
struct previous_under_two_operators_from_anything : c::pattern<"gates"> {
  static constexpr auto write = previous_under_two_operators::write;
  static constexpr auto expr = repeat<1, 2>(op::sub(op::sigmoid(previous), op::tanh(previous)), any);
  static constexpr expectation expected[] = {
      {6,
       "pattern gates does not match at node 6 (sub): operand 0 of node 5 (tanh) is the input y where the pattern has "
       "any: it must be the same value as elsewhere in the pattern"},
      {15, "nodes 13 14 15 read relu_12 write sub_15"}};
};

// Optional operators ---------------------------------------------------------------------------------------------------

inline constexpr auto write_optional = [](auto& g) {
  auto x = g.input("x", {4});
  g.output(g(op::relu, g(op::exp, g(op::neg, x))));
  g.output(g(op::relu, g(op::neg, x)));
  g.output(g(op::exp, x));
};
struct optional_head : c::pattern<"head"> {
  static constexpr auto write = write_optional;
  static constexpr auto expr = op::exp(optional(op::neg(previous), any));
  static constexpr expectation expected[] = {{1, "nodes 0 1 read x write exp_1"}, {5, "nodes 5 read x write exp_5"}};
};
struct optional_middle : c::pattern<"middle"> {
  static constexpr auto write = write_optional;
  static constexpr auto expr = op::relu(optional(op::exp(previous), op::neg(any)));
  static constexpr expectation expected[] = {{2, "nodes 0 1 2 read x write relu_2"},
                                             {4, "nodes 3 4 read x write relu_4"}};
};
/// The tail belongs to the fused set where it is there.
struct optional_tail : c::pattern<"tail"> {
  static constexpr auto write = write_optional;
  static constexpr auto expr = optional(op::relu(previous), op::exp(any));
  static constexpr expectation expected[] = {
      {2, "nodes 1 2 read neg_0 write relu_2"},
      {1, "nodes 1 read neg_0 write exp_1"},
      {5, "nodes 5 read x write exp_5"},
      {4,
       "pattern tail does not match at node 4 (relu): operand 0 of node 4 (relu) is the output of node 3 (neg) where the "
       "pattern has exp(any): it is another operator"}};
};
struct nested_optional_in_repetition : c::pattern<"layers"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    auto a = g(op::relu, g(op::sub, x, w));
    auto b = g(op::sub, a, w);
    g.output(g(op::relu, g(op::sub, b, w)));
  };
  static constexpr auto expr = repeat<1, 3>(optional(op::relu(previous), op::sub(previous, constant)), c::input);
  static constexpr expectation expected[] = {{4, "nodes 0 1 2 3 4 read x w write relu_4"},
                                             {3, "nodes 0 1 2 3 read x w write sub_3"},
                                             {1, "nodes 0 1 read x w write relu_1"},
                                             {0, "nodes 0 read x w write sub_0"}};
};

// Alternatives ---------------------------------------------------------------------------------------------------------

struct first_alternative_first : c::pattern<"either"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::sigmoid, g(op::relu, g(op::neg, x))));
    g.output(g(op::sigmoid, g(op::exp, x)));
    g.output(g(op::sigmoid, x));
  };
  static constexpr auto expr = op::sigmoid(either(op::relu(any), op::relu(op::neg(any)), op::exp(any)));
  static constexpr expectation expected[] = {
      {2, "nodes 1 2 read neg_0 write sigmoid_2"},
      {4, "nodes 3 4 read x write sigmoid_4"},
      {5,
       "pattern either does not match at node 5 (sigmoid): operand 0 of node 5 (sigmoid) is the input x where the "
       "pattern has relu(any): an operator must compute this, and none does"}};
};
/// The first alternative fits by itself, and leads nowhere.
struct alternative_that_is_a_prefix : c::pattern<"prefix"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::sub, g(op::relu, g(op::neg, x)), x));
    auto n = g(op::neg, x);
    g.output(g(op::sub, g(op::relu, n), n));
    g.output(g(op::sub, g(op::relu, g(op::neg, g(op::neg, x))), x));
  };
  static constexpr auto expr = op::sub(either(op::relu(any.as<"x">()), op::relu(op::neg(any.as<"x">()))), same<"x">());
  static constexpr expectation expected[] = {
      {2, "nodes 0 1 2 read x write sub_2"},
      {5, "nodes 4 5 read neg_3 write sub_5"},
      {9,
       "pattern prefix does not match at node 9 (sub): operand 1 of node 9 (sub) is the input x where the pattern has "
       "same x: it must be the same value as elsewhere in the pattern"}};
};
struct alternatives_as_root : c::pattern<"roots"> {
  static constexpr auto write = write_optional;
  static constexpr auto expr = either(op::relu(op::exp(any)), op::exp(op::neg(any)), op::exp(any));
  static constexpr expectation expected[] = {
      {2, "nodes 1 2 read neg_0 write relu_2"},
      {1, "nodes 0 1 read x write exp_1"},
      {5, "nodes 5 read x write exp_5"},
      {4,
       "pattern roots does not match at node 4 (relu): operand 0 of node 4 (relu) is the output of node 3 (neg) where the "
       "pattern has exp(any): it is another operator"},
      {3,
       "pattern roots does not match at node 3 (neg): there is node 3 (neg) where the pattern has relu(exp(any)): it is "
       "another operator"}};
};
struct composed : c::pattern<"composed"> {
  static constexpr auto write = write_optional;
  static constexpr auto expr = op::relu(optional_head{});
  static constexpr expectation expected[] = {{2, "nodes 0 1 2 read x write relu_2"}};
};

// Places ---------------------------------------------------------------------------------------------------------------

struct overlapping_matches : c::pattern<"pair"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::relu, g(op::relu, g(op::relu, x))));
  };
  static constexpr auto expr = op::relu(op::relu(any));
  static constexpr expectation expected[] = {
      {1, "nodes 0 1 read x write relu_1"},
      {2, "nodes 1 2 read relu_0 write relu_2"},
      {0,
       "pattern pair does not match at node 0 (relu): operand 0 of node 0 (relu) is the input x where the pattern has "
       "relu(any): an operator must compute this, and none does"}};
};
/// abs, relu, relu: both pairs, the second by the first alternative.
struct overlapping_alternatives : c::pattern<"overlap"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::relu, g(op::relu, g(op::abs, x))));
  };
  static constexpr auto expr = op::relu(either(op::relu(any), op::abs(any)));
  static constexpr expectation expected[] = {{1, "nodes 0 1 read x write relu_1"},
                                             {2, "nodes 1 2 read abs_0 write relu_2"}};
};
struct larger_than_the_graph : c::pattern<"large"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::relu, g(op::relu, x)));
  };
  static constexpr auto expr = op::relu(op::relu(op::relu(op::relu(any))));
  static constexpr expectation expected[] = {
      {1,
       "pattern large does not match at node 1 (relu): operand 0 of node 0 (relu) is the input x where the pattern has "
       "relu(relu(any)): an operator must compute this, and none does"},
      {2, "pattern large cannot match at node 2: the graph has 2 nodes, counted from 0"}};
};

// Cycles ---------------------------------------------------------------------------------------------------------------

struct cycle_through_itself : c::pattern<"loop"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto r = g(op::relu, x);
    g.output(g(op::sub, r, r));
  };
  static constexpr auto expr = op::sub(op::relu(any).escaping(), any);
  static constexpr expectation expected[] = {
      {1,
       "pattern loop does not match at node 1 (sub): operand 0 of node 1 (sub) is the output of node 0 (relu) where the "
       "pattern has any: this operand must come from outside the match"}};
};
struct cycle_through_outside : c::pattern<"loop"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto r = g(op::relu, x);
    g.output(g(op::sub, r, g(op::exp, r)));  // through one node
    auto s = g(op::relu, x);
    auto e = g(op::neg, g(op::exp, s));
    g.output(g(op::sub, s, e));  // through two
    auto t = g(op::relu, x);
    g.output(g(op::exp, t));
    g.output(g(op::sub, t, g(op::neg, x)));  // beside each other
  };
  static constexpr auto expr = op::sub(op::relu(any).escaping(), any);
  static constexpr expectation expected[] = {
      {2,
       "pattern loop does not match at node 2 (sub): operand 1 of node 2 (sub) is the output of node 1 (exp) where the "
       "pattern has sub(escaping relu(any), any): it is computed outside from a value of the match, so a fused kernel "
       "would depend on its own result"},
      {6,
       "pattern loop does not match at node 6 (sub): operand 1 of node 6 (sub) is the output of node 5 (neg) where the "
       "pattern has sub(escaping relu(any), any): it is computed outside from a value of the match, so a fused kernel "
       "would depend on its own result"},
      {10, "nodes 7 10 read x neg_9 write sub_10 relu_7"}};
};

/// Of a diamond, one side stays outside: it would have to run in the middle of the match.
struct diamond_without_a_side : c::pattern<"diamond"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto d = g(op::relu, x);
    auto n = g(op::neg, d);
    auto o = g(op::exp, d);
    g.output(g(op::sub, n, o));
  };
  static constexpr auto expr = op::sub(op::neg(op::relu(any).escaping()), any);
  static constexpr expectation expected[] = {
      {3,
       "pattern diamond does not match at node 3 (sub): operand 1 of node 3 (sub) is the output of node 2 (exp) where the "
       "pattern has sub(neg(escaping relu(any)), any): it is computed outside from a value of the match, so a fused "
       "kernel would depend on its own result"}};
};
struct whole_diamond : c::pattern<"diamond"> {
  static constexpr auto write = diamond_without_a_side::write;
  static constexpr auto expr = op::sub(op::neg(op::relu(any).as<"d">()), op::exp(same<"d">()));
  static constexpr expectation expected[] = {{3, "nodes 0 1 2 3 read x write sub_3"}};
};

// Several outputs ------------------------------------------------------------------------------------------------------

struct several_outputs : c::pattern<"siblings"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {4});
    g.output(g(op::relu, x));
    g.output(g(op::neg, x));
    g.output(g(op::neg, x));
    g.output(g(op::relu, y));
    g.output(g(op::exp, y));
  };
  static constexpr auto expr = outputs(op::relu(any.as<"x">()), op::neg(same<"x">()));
  static constexpr expectation expected[] = {
      {0, "nodes 0 1 read x write relu_0 neg_1"},
      {3,
       "pattern siblings does not match at node 3 (relu): there is node 3 (relu) where the pattern has "
       "neg(same x): nothing of this kind reads the value that the outputs share"}};
};
struct several_outputs_of_a_chain : c::pattern<"fork"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto e = g(op::exp, x);
    g.output(g(op::relu, e));
    g.output(g(op::sigmoid, g(op::neg, e)));
  };
  static constexpr auto expr =
      outputs(op::relu(op::exp(any).as<"e">()), op::sigmoid(optional(op::neg(previous), same<"e">())));
  static constexpr expectation expected[] = {{1, "nodes 0 1 2 3 read x write relu_1 sigmoid_3"}};
};
/// The first place for the second output leads nowhere, the second fits.
struct several_outputs_undone : c::pattern<"siblings"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    g.output(g(op::relu, x));
    g.output(g(op::sub, x, x));
    g.output(g(op::sub, x, w));
  };
  static constexpr auto expr = outputs(op::relu(any.as<"x">()), op::sub(same<"x">(), constant));
  static constexpr expectation expected[] = {{0, "nodes 0 2 read x w write relu_0 sub_2"}};
};
struct several_outputs_in_a_cycle : c::pattern<"siblings"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto r = g(op::relu, x);
    g.output(g(op::sub, x, g(op::exp, r)));
    g.output(r);
  };
  static constexpr auto expr = outputs(op::relu(any.as<"x">()), op::sub(same<"x">(), any));
  static constexpr expectation expected[] = {
      {0,
       "pattern siblings does not match at node 0 (relu): operand 1 of node 2 (sub) is the output of node 1 (exp) where "
       "the pattern has sub(same x, any): it is computed outside from a value of the match, so a fused kernel would "
       "depend on its own result"}};
};

/// One reader among many fits: all are tried, and each once.
inline constexpr auto write_many_readers = [](auto& g) {
  auto r = g(op::relu, g.input("x", {4}));
  for (int i = 1; i <= 160; ++i) g.output(g(op::neg, r));
};
template <std::int32_t Node>
struct one_of_many_readers : c::pattern<"readers"> {
  static constexpr auto write = write_many_readers;
  static constexpr auto expr = outputs(
      op::relu(any).as<"x">(), op::neg(same<"x">()).where([](const c::value_record& v) { return v.producer == Node; }));
};
struct the_last_of_many_readers : one_of_many_readers<160> {
  static constexpr expectation expected[] = {{0, "nodes 0 160 read x write relu_0 neg_160"}};
};
struct none_of_many_readers : one_of_many_readers<161> {
  static constexpr expectation expected[] = {
      {0,
       "pattern readers does not match at node 0 (relu): there is node 1 (neg) where the pattern has neg(same x) where a "
       "condition holds: its condition does not hold"}};
};
/// What is captured is read by 70 operators of the right kind, which are read by none.
struct many_readers_that_lead_nowhere : c::pattern<"branches"> {
  static constexpr auto write = [](auto& g) {
    auto r = g(op::relu, g.input("x", {4}));
    for (int i = 0; i < 70; ++i) g.output(g(op::sigmoid, g(op::neg, r)));
    g.output(g(op::exp, g(op::neg, r)));
  };
  static constexpr auto expr = outputs(op::relu(any).as<"r">(), op::exp(op::neg(same<"r">())));
  static constexpr expectation expected[] = {{0, "nodes 0 141 142 read x write relu_0 exp_142"}};
};
/// For each of 80 places of the second output, the third is looked for behind 80 readers: too long for one search.
struct too_many_places : c::pattern<"places"> {
  static constexpr auto write = [](auto& g) {
    auto r = g(op::relu, g.input("x", {4}));
    for (int i = 0; i < 80; ++i) g.output(g(op::neg, r));
    for (int i = 0; i < 80; ++i) g.output(g(op::exp, r));
  };
  static constexpr auto expr =
      outputs(op::relu(any).as<"r">(), op::neg(same<"r">()), op::sub(op::exp(same<"r">()), same<"r">()));
  static constexpr expectation expected[] = {
      {0,
       "pattern places does not match at node 0 (relu): there is node 0 (relu) where the pattern has outputs(relu(any) as "
       "r and neg(same r) and sub(exp(same r), same r)): the match was given up: too many combinations would have to "
       "be tried"}};
};

// What is asked of values ----------------------------------------------------------------------------------------------

struct scalar_with_tolerance : c::pattern<"half"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(op::mul, x, g.scalar("half", 0.5)));
    g.output(g(op::mul, g.scalar("nearly", 0.505), x));
    g.output(g(op::mul, x, g.scalar("off", 0.51)));
    g.output(g(op::mul, x, g.scalar("negative", -0.5)));
    g.output(g(op::mul, x, g.constant("list", {4})));
  };
  static constexpr auto expr = op::mul(variable, c::scalar(0.5, 0.01));
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x half write mul_0"},
      {1, "nodes 1 read nearly x write mul_1"},
      {2,
       "pattern half does not match at node 2 (mul): operand 1 of node 2 (mul) is the constant off where the pattern has "
       "scalar 0.5 within 0.01: the constant has another value"},
      {3,
       "pattern half does not match at node 3 (mul): operand 1 of node 3 (mul) is the constant negative where the "
       "pattern has scalar 0.5 within 0.01: the constant has another value"},
      {4,
       "pattern half does not match at node 4 (mul): operand 1 of node 4 (mul) is the constant list where the pattern "
       "has scalar 0.5 within 0.01: it must be a constant of one element with a known value"}};
};
/// As in masks of attention. Infinity is within no tolerance of a number.
struct infinite_scalar : c::pattern<"mask"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    constexpr double infinity = std::numeric_limits<double>::infinity();
    g.output(g(op::add, x, g.scalar("mask", -infinity)));
    g.output(g(op::add, x, g.scalar("large", -1e30)));
    g.output(g(op::add, x, g.scalar("other", infinity)));
    g.output(g(op::add, x, g.scalar("nothing", std::numeric_limits<double>::quiet_NaN())));
  };
  static constexpr auto expr = op::add(variable, c::scalar(-std::numeric_limits<double>::infinity()));
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x mask write add_0"},
      {1,
       "pattern mask does not match at node 1 (add): operand 1 of node 1 (add) is the constant large where the pattern "
       "has scalar -infinity: the constant has another value"},
      {2,
       "pattern mask does not match at node 2 (add): operand 1 of node 2 (add) is the constant other where the pattern "
       "has scalar -infinity: the constant has another value"},
      {3,
       "pattern mask does not match at node 3 (add): operand 1 of node 3 (add) is the constant nothing where the pattern "
       "has scalar -infinity: the constant has another value"}};
};
struct largest_scalar : c::pattern<"largest"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {c::dtype::f64, {4}});
    constexpr double largest = std::numeric_limits<double>::max();
    g.output(g(op::add, x, g.scalar("least", -largest, c::dtype::f64)));
    g.output(g(op::add, x, g.scalar("most", largest, c::dtype::f64)));
    g.output(g(op::add, x, g.scalar("infinity", std::numeric_limits<double>::infinity(), c::dtype::f64)));
  };
  static constexpr auto expr = op::add(variable, c::scalar(-std::numeric_limits<double>::max()));
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x least write add_0"},
      {1,
       "pattern largest does not match at node 1 (add): operand 1 of node 1 (add) is the constant most where the pattern "
       "has scalar -1.797693e308: the constant has another value"},
      {2,
       "pattern largest does not match at node 2 (add): operand 1 of node 2 (add) is the constant infinity where the "
       "pattern has scalar -1.797693e308: the constant has another value"}};
};
struct roles_of_values : c::pattern<"roles"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto w = g.constant("w", {4});
    g.output(g(sum, {x, g(op::neg, x), w}));
    g.output(g(sum, {w, x, w}));
    g.output(g(sum, {x, w, w}));
    g.output(g(sum, {x, x, x}));
  };
  static constexpr auto expr = sum(c::input, variable, constant);
  static constexpr expectation expected[] = {
      {1, "nodes 1 read x neg_0 w write sum_1"},
      {2,
       "pattern roles does not match at node 2 (sum): operand 0 of node 2 (sum) is the constant w where the pattern has "
       "input: it must be an input of the graph"},
      {3,
       "pattern roles does not match at node 3 (sum): operand 1 of node 3 (sum) is the constant w where the pattern has "
       "variable: it must not be a constant"},
      {4,
       "pattern roles does not match at node 4 (sum): operand 0 of node 4 (sum) is the input x where the pattern has "
       "constant: it must be a constant"}};
};
struct attributes_asked_for : c::pattern<"depthwise"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {1, 4, 8, 8});
    g.output(g(op::conv, x, g.constant("w", {4, 1, 3, 3}), {.groups = 4}));
    g.output(g(op::conv, x, g.constant("v", {4, 4, 3, 3})));
  };
  static constexpr auto expr =
      op::conv(any, constant)
          .where([](const op::conv_attributes& a) { return a.groups > 1; }, "groups must be more than 1");
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x w write conv_0"},
      {1,
       "pattern depthwise does not match at node 1 (conv): there is node 1 (conv) where the pattern has "
       "conv(any, constant) where groups must be more than 1: groups must be more than 1"}};
};
struct types_asked_for : c::pattern<"typed"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto i = g.input("i", {c::dtype::i64, {4}});
    auto d = g.input("d", {c::dtype::f64, {4, 4}});
    g.output(g(op::neg, x));
    g.output(g(op::neg, i));
    g.output(g(op::neg, d));
  };
  static constexpr auto expr = op::neg(any.of(c::dtype::f32, c::dtype::f64).rank(1));
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x write neg_0"},
      {1,
       "pattern typed does not match at node 1 (neg): operand 0 of node 1 (neg) is the input i where the pattern has any "
       "of float32 or float64 of rank 1: it has another element type"},
      {2,
       "pattern typed does not match at node 2 (neg): operand 0 of node 2 (neg) is the input d where the pattern has any "
       "of float32 or float64 of rank 1: it has another number of dimensions"}};
};
/// One condition that answers a verdict, one of the whole record.
struct conditions_on_values : c::pattern<"conditions"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto y = g.input("y", {3});
    g.output(g(op::neg, x));
    g.output(g(op::neg, y));
    auto z = g.input("z", {4});
    g.output(g(op::neg, z));
    g.output(g(op::exp, z));
  };
  static constexpr auto expr = op::neg(
      any.where([](const c::tensor_type& t) { return c::verdict(t.dims[0] % 2 == 0, "its extent must be even"); })
          .where([](const c::value_record& v) { return v.uses == 1; }));
  static constexpr expectation expected[] = {
      {0, "nodes 0 read x write neg_0"},
      {1,
       "pattern conditions does not match at node 1 (neg): operand 0 of node 1 (neg) is the input y where the pattern "
       "has any where a condition holds where a condition holds: its extent must be even"},
      {2,
       "pattern conditions does not match at node 2 (neg): operand 0 of node 2 (neg) is the input z where the pattern "
       "has any where a condition holds where a condition holds: its condition does not hold"}};
};

// Searches that would not end ------------------------------------------------------------------------------------------

/// A tree of 15 additions whose operands might all be swapped; in no way does it match.
struct too_many_ways : c::pattern<"tree"> {
  static constexpr auto write = [](auto& g) {
    auto x = g.input("x", {4});
    auto make = [&](auto& self, int depth) -> c::value {
      if (depth == 0) return g(op::neg, x);
      auto a = self(self, depth - 1);
      return g(op::add, a, self(self, depth - 1));
    };
    g.output(make(make, 4));
  };
  static constexpr auto two = op::add(op::neg(any), op::neg(any));
  static constexpr auto four = op::add(two, two);
  static constexpr auto odd = op::add(two, op::add(op::neg(any), op::neg(constant)));
  static constexpr auto expr = op::add(op::add(four, four), op::add(four, odd));
  static constexpr expectation expected[] = {
      {30,
       "pattern tree does not match at node 30 (add): there is node 30 (add) where the pattern has "
       "add(add(add(add(neg(any), neg(any)), add(neg(any), neg(any))), add(add(neg(any), neg(any)), "
       "add(neg(any), neg(any)))), add(add(add(neg(any), neg(any)), add(neg(any), neg(any))), "
       "add(add(neg(any), neg(any)), add(neg(any), neg(constant))))): the match was given up: too many combinations "
       "would have to be tried"}};
};

}  // namespace cases

/// All of them.
template <class... Case>
struct case_list {};
using all_cases = case_list<
    cases::linear_chain, cases::commuting_operands_both_constrained, cases::operands_that_do_not_commute,
    cases::first_two_of_three_commute, cases::root_of_many_outputs, cases::inner_operator_of_many_outputs,
    cases::previous_under_two_operators, cases::previous_under_two_operators_from_anything, cases::infinite_scalar,
    cases::largest_scalar, cases::the_last_of_many_readers, cases::none_of_many_readers,
    cases::many_readers_that_lead_nowhere, cases::too_many_places, cases::choice_undone_when_a_later_goal_fails,
    cases::same_value_twice, cases::same_value_computed_inside, cases::operator_in_two_places, cases::shared_input,
    cases::number_of_operands, cases::operand_that_may_be_missing, cases::as_many_operands_as_there_are,
    cases::read_outside, cases::read_outside_and_allowed, cases::root_read_by_anybody,
    cases::every_output_of_an_inner_operator_counts, cases::another_output, cases::two_outputs_of_one_operator,
    cases::repetition_between, cases::repetition_from_anything, cases::repetition_as_root,
    cases::repetition_with_a_side_reader, cases::repetition_whose_side_reader_forbids_it,
    cases::repetition_whose_side_reader_is_allowed, cases::longest_repetition_first, cases::identical_residual_blocks,
    cases::residual_blocks_that_are_not_identical, cases::names_within_iterations, cases::optional_head,
    cases::optional_middle, cases::optional_tail, cases::nested_optional_in_repetition, cases::first_alternative_first,
    cases::alternative_that_is_a_prefix, cases::alternatives_as_root, cases::composed, cases::overlapping_matches,
    cases::overlapping_alternatives, cases::larger_than_the_graph, cases::cycle_through_itself,
    cases::cycle_through_outside, cases::diamond_without_a_side, cases::whole_diamond, cases::several_outputs,
    cases::several_outputs_of_a_chain, cases::several_outputs_undone, cases::several_outputs_in_a_cycle,
    cases::scalar_with_tolerance, cases::roles_of_values, cases::attributes_asked_for, cases::types_asked_for,
    cases::conditions_on_values, cases::too_many_ways>;

}  // namespace collage_test
