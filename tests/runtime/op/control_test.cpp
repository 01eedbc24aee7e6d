// Control flow: branches and loops in the graph, the reference, placements, the engine and plan files.
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/graph/print.hpp>
#include <collage/graph/totals.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/op/control.hpp>
#include <collage/ops.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/agreement.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/messages.hpp"

namespace op_control_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;
using set = c::backend_set<c::portable>;

const c::tensor_type row{c::dtype::f32, {3}};
const c::tensor_type flag{c::dtype::boolean, {}};
const c::tensor_type whole{c::dtype::i64, {}};

std::shared_ptr<const c::graph> side(bool doubles) {
  c::graph_builder g;
  const c::value x = g.input("x", row);
  const c::value y = doubles ? g(op::add, x, x) : g(op::neg, x);
  g.output("y", g(op::mul, y, g.scalar("two", 2.0)));
  return std::make_shared<const c::graph>(g.finish());
}

/// y = condition ? 4 x : -2 x, then + 1.
c::graph branching() {
  c::graph_builder g;
  const c::value condition = g.input("condition", flag);
  const c::value x = g.input("x", row);
  const std::shared_ptr<const c::graph> bodies[] = {side(true), side(false)};
  const c::value operands[] = {condition, x};
  const c::value y = g.add(c::kind_of<decltype(op::branch)>, operands, {}, "choice", bodies);
  g.output("z", g(op::add, y, g.scalar("one", 1.0)));
  return g.finish();
}

/// Carries x: each round x = 2 x + bias, and stacks x before the round. Ends early where `limit` is given and the sum of x
/// has passed it.
std::shared_ptr<const c::graph> round_of(bool stops) {
  c::graph_builder g;
  (void)g.input("round", whole);
  const c::value condition = g.input("goes_on", flag);
  const c::value x = g.input("x", row);
  const c::value bias = g.input("bias", row);
  const c::value next = g(op::add, g(op::add, x, x), bias);
  if (stops) {
    const c::value sum = g(op::reduce_sum, next, {.axes = {0}, .keep_dims = false});
    g.output("goes_on_after", g(op::less, sum, g.scalar("limit", 100.0)));
  } else {
    g.output("goes_on_after", condition);
  }
  g.output("next", next);
  if (!stops) g.output("before", x);
  return std::make_shared<const c::graph>(g.finish());
}

c::graph looping(bool stops, std::int64_t rounds) {
  c::graph_builder g;
  const c::value start = g.input("x", row);
  const c::value bias = g.input("bias", row);
  const std::shared_ptr<const c::graph> bodies[] = {round_of(stops)};
  const std::shared_ptr<std::byte> count = c::allocate_bytes(sizeof rounds);
  std::memcpy(count.get(), &rounds, sizeof rounds);
  const c::value operands[] = {g.constant("rounds", whole, count), g.scalar("true", 1, c::dtype::boolean), start, bias};
  const c::value made = g.add(c::kind_of<decltype(op::loop)>, operands,
                              c::to_words(op::loop_attributes{.carried = 1, .stops = stops}), "rounds_of_x", bodies);
  g.output("last", made);
  if (!stops) g.output("stack", c::value{made.index + 1});
  return g.finish();
}

template <class T>
c::tensor filled(const c::tensor_type& type, const std::vector<T>& list) {
  c::tensor t(type);
  std::copy(list.begin(), list.end(), t.as<T>().begin());
  return t;
}

/// Runs a network by the engine and by the reference; both must agree, and the engine's answers are returned.
std::vector<std::vector<float>> run_both(const c::graph& network, const c::plan& made,
                                         const std::vector<const c::tensor*>& given) {
  std::vector<c::const_tensor_view> in;
  for (const c::tensor* t : given) in.emplace_back(*t);
  std::vector<c::tensor> results;
  std::vector<c::tensor_view> out;
  for (const std::uint32_t v : network.outputs()) results.emplace_back(network.type_of(v));
  for (const c::tensor& t : results) out.emplace_back(t);
  c::engine<set>(network, made).context().run(in, out);
  const std::vector<c::oracle_value> expected = c::evaluate(network, in);
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(c::compare(results[i], expected[i])) << "output " << i;
    const auto list = results[i].as<float>();
    values.emplace_back(list.begin(), list.end());
  }
  return values;
}

c::plan quick(const c::graph& network, bool measure) {
  return c::place<set>(network, {.threads = 1,
                                 .costs = measure ? c::placing_costs::measured : c::placing_costs::none,
                                 .comparing = {.seconds = 0.01}});
}

TEST(control, a_branch_runs_the_side_its_condition_names) {
  const c::graph network = branching();
  const c::tensor x = filled<float>(row, {1, 2, 3});
  for (const bool measure : {false, true}) {
    const c::plan made = quick(network, measure);
    const c::tensor yes = filled<std::uint8_t>(flag, {1}), no = filled<std::uint8_t>(flag, {0});
    EXPECT_EQ(run_both(network, made, {&yes, &x})[0], (std::vector<float>{5, 9, 13}));
    EXPECT_EQ(run_both(network, made, {&no, &x})[0], (std::vector<float>{-1, -3, -5}));
  }
}

TEST(control, rules_hold_where_what_they_name_is) {
  const c::graph network = branching();  // neg is only in one subgraph
  c::place_options o{
      .rules = {{c::place_rule::action::pin, "portable", "neg"}}, .threads = 1, .comparing = {.seconds = 0.01}};
  EXPECT_NO_THROW((void)c::place<set>(network, o));
  const auto message = [&] { return message_of([&] { (void)c::place<set>(network, o); }); };
  o.rules[0].act = c::place_rule::action::exclude;
  EXPECT_NE(message().find("no backend runs"), std::string::npos) << message();
  o.rules[0].what = "tanh";
  EXPECT_NE(message().find("is neither a node nor an operator of the network"), std::string::npos) << message();
}

TEST(control, a_loop_carries_stacks_and_stops) {
  const c::tensor x = filled<float>(row, {1, 2, 3}), bias = filled<float>(row, {0, 1, 0});
  for (const bool measure : {false, true}) {
    const c::graph all_rounds = looping(false, 3);
    const auto three = run_both(all_rounds, quick(all_rounds, measure), {&x, &bias});
    EXPECT_EQ(three[0], (std::vector<float>{8, 23, 24}));
    EXPECT_EQ(three[1], (std::vector<float>{1, 2, 3, 2, 5, 6, 4, 11, 12}));
    const c::graph until = looping(true, 1000);
    EXPECT_EQ(run_both(until, quick(until, measure), {&x, &bias})[0], (std::vector<float>{16, 47, 48}));
    const c::graph none = looping(true, 0);
    EXPECT_EQ(run_both(none, quick(none, measure), {&x, &bias})[0], (std::vector<float>{1, 2, 3}));
  }
}

TEST(control, a_loop_that_its_data_end_is_placed_without_being_run) {
  // 2^63 - 1 rounds at most: what a while-loop is exported as. On random data it might never end.
  const c::graph network = looping(true, std::numeric_limits<std::int64_t>::max());
  const c::plan made = quick(network, true);
  EXPECT_TRUE(made.runs.empty());
  const c::tensor x = filled<float>(row, {1, 2, 3}), bias = filled<float>(row, {0, 1, 0});
  EXPECT_EQ(run_both(network, made, {&x, &bias})[0], (std::vector<float>{16, 47, 48}));
}

TEST(control, limits_end_a_loop_between_its_rounds) {
  // With zeros it never ends by its data.
  const c::graph network = looping(true, std::numeric_limits<std::int64_t>::max());
  c::dynamic_context context = c::engine<set>(network, quick(network, false)).context();
  const c::tensor zeros = filled<float>(row, {0, 0, 0}), last(row);
  const auto ends = [&](const c::run_limits& limits) {
    try {
      context.run({zeros, zeros}, {last}, limits);
    } catch (const c::error& e) { return e.kind() == c::error_kind::cancelled; }
    return false;
  };
  EXPECT_TRUE(ends({.seconds = 0.02}));
  std::atomic<bool> stop = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  EXPECT_TRUE(ends({.stop = &stop}));
  other.join();
  // The context and those of the body can run again.
  const c::tensor x = filled<float>(row, {1, 2, 3}), bias = filled<float>(row, {0, 1, 0});
  context.run({x, bias}, {last});
  EXPECT_EQ(last.as<float>()[0], 16);
}

TEST(control, contexts_run_at_once) {
  const c::graph network = looping(false, 20);
  const c::dynamic_engine engine = c::engine<set>(network, quick(network, false));
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (std::size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] {
      c::dynamic_context context = engine.context();
      const auto start = static_cast<float>(t);
      const c::tensor x = filled<float>(row, {start, 0, 1}), bias = filled<float>(row, {0, 0, 0});
      const c::tensor last(row), stack(c::tensor_type{c::dtype::f32, {20, 3}});
      for (int i = 0; i < 200; ++i) {
        context.run({x, bias}, {last, stack});
        right[t] += last.as<float>()[0] == start * 1048576.0F ? 1 : 0;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, std::vector<int>(4, 200));
}

TEST(control, plans_keep_the_placements_of_sub_graphs) {
  const c::graph network = branching();
  const c::plan made = quick(network, true);
  const std::string text = c::to_text(c::plan_to_json(made, network));
  const c::plan read = c::plan_from_json(c::json::parse(text), network, "plan.json");
  ASSERT_TRUE(read.chosen.groups[0].is_control());
  ASSERT_EQ(read.chosen.groups[0].bodies().size(), 2U);
  EXPECT_TRUE(c::same_steps(read.chosen, made.chosen));
  c::json without = c::json::parse(text);
  without["chosen"]["groups"][0]["bodies"].erase(1);
  EXPECT_THROW((void)c::plan_from_json(without, network, "plan.json"), c::error);
}

TEST(control, sub_graphs_are_counted_printed_and_hashed) {
  const c::graph network = branching();
  EXPECT_EQ(c::totals_of(network).nodes, 6U);
  const std::string text = c::to_string(network);
  EXPECT_NE(text.find("choice = branch(condition, x)"), std::string::npos) << text;
  EXPECT_NE(text.find("subgraph 1 of choice"), std::string::npos) << text;
  EXPECT_NE(network.fingerprint(), looping(false, 3).fingerprint());
  EXPECT_NE(looping(false, 3).fingerprint(), looping(true, 3).fingerprint());
}

TEST(control, what_cannot_be_is_refused) {
  c::graph_builder g;
  const c::value condition = g.input("condition", flag);
  const c::value x = g.input("x", {c::dtype::f32, {4}});
  const std::shared_ptr<const c::graph> bodies[] = {side(true), side(false)};
  const c::value operands[] = {condition, x};
  const auto add = [&](std::span<const c::value> given, std::span<const std::shared_ptr<const c::graph>> owned) {
    return message_of([&] { (void)g.add(c::kind_of<decltype(op::branch)>, given, {}, "choice", owned); });
  };
  EXPECT_NE(add(operands, bodies).find("must take the types of the captured values (operand 1)"), std::string::npos);
  EXPECT_NE(add(operands, {bodies, 1}).find("owns 2 subgraphs, not 1"), std::string::npos);
  EXPECT_NE(add({operands, 1}, bodies).find("must have one input for each captured value"), std::string::npos);
}

}  // namespace op_control_test
