// States of sessions: outputs that are inputs of the next run. They agree with inputs that a caller passes on, failures leave them,
// and wrong use has its sentence.
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"

#include <collage/backends/reference.hpp>
#include <collage/ops.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace run_session_state_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::cases;
using collage_test::message_of;
using set = collage_test::session_backends;
using collage_test::unmeasured_plan;

/// A recurrent cell and a cache that grows: h' = relu(h w - x), present = past ++ x. All are float32 with 3 columns.
c::graph cell(std::span<const c::shape> dims) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, dims[0]}), h = g.input("h", {c::dtype::f32, dims[1]}),
                 past = g.input("past", {c::dtype::f32, dims[2]});
  const c::value w = g.constant("w", {c::dtype::f32, {3, 3}}, c::uniform{-1, 1});
  g.output("h_next", g(op::relu, g(op::sub, g(op::matmul, h, w), x)));
  g.output("present", g(op::concat, past, x, {.axis = 0}));
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

const std::vector<c::open_port> cell_inputs = {
    {.name = "x", .dims = {c::unknown, 3}, .symbols = {"batch", ""}},
    {.name = "h", .dims = {c::unknown, 3}, .symbols = {"batch", ""}},
    {.name = "past", .dims = {c::unknown, 3}, .symbols = {"past_length", ""}}};
const std::vector<c::open_port> cell_outputs = {
    {.name = "h_next", .dims = {c::unknown, 3}, .symbols = {"batch", ""}},
    {.name = "present", .dims = {c::unknown, 3}, .symbols = {"past_length + batch", ""}}};

c::session cell_session(std::vector<c::carried_value> carried = {{"h_next", "h"}, {"present", "past"}}) {
  return {c::source_of(cell_inputs, cell_outputs, cell),
          c::table_of<set>,
          unmeasured_plan,
          {.carried = std::move(carried)}};
}

c::tensor random_rows(std::int64_t rows, std::uint64_t seed) {
  c::tensor x(c::tensor_type{c::dtype::f32, {rows, 3}});
  std::mt19937_64 random(seed);
  c::fill_random(x, random);
  return x;
}

c::tensor copy_of(const c::const_tensor_view& from) {
  c::tensor copy(from.type);
  if (copy.bytes() != 0) std::memcpy(copy.data(), from.data, copy.bytes());
  return copy;
}

/// Whether two tensors have the same type and bits.
bool same(const c::const_tensor_view& a, const c::const_tensor_view& b) {
  return a.type == b.type && (a.type.bytes() == 0 || std::memcmp(a.data, b.data, a.type.bytes()) == 0);
}

/// A tensor of zeros with 3 columns.
c::tensor zeros(std::int64_t rows) { return c::tensor(c::tensor_type{c::dtype::f32, {rows, 3}}); }

/// What states have to be, computed in double precision from the states of the last run.
struct expected_states {
  c::tensor h, past;

  /// Compares the outputs of a run with the reference, and goes on from them. Empty if they agree.
  std::string after(const c::const_tensor_view& x, std::span<const c::session_output> outputs) {
    const c::shape dims[] = {x.type.dims, h.type().dims, past.type().dims};
    const std::vector<c::const_tensor_view> inputs{x, h, past};
    const std::vector<c::oracle_value> expected = c::evaluate(cell(dims), inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (outputs[i].contents.type != expected[i].type) return outputs[i].name + " has another type";
      if (const c::agreement a = c::compare(outputs[i].contents, expected[i]); !a)
        return outputs[i].name + ": " + a.why;
    }
    h = copy_of(outputs[0].contents);
    past = copy_of(outputs[1].contents);
    return "";
  }
};

TEST(session_state, says_what_a_run_takes) {
  const c::session session = cell_session();
  ASSERT_EQ(session.inputs().size(), 1U);
  EXPECT_EQ(session.inputs()[0].name, "x");
  ASSERT_EQ(session.states().size(), 2U);
  EXPECT_EQ(session.states()[1].name, "past");
  EXPECT_EQ(session.outputs().size(), 2U);
  c::session_context context = session.context();
  const c::tensor x = random_rows(1, 1);
  EXPECT_EQ(message_of([&] { (void)context.run({x, x, x}); }, 2), "a run: it takes 1 input, not 3");
}

TEST(session_state, runs_agree_with_the_reference) {
  const c::session session = cell_session();
  const auto seed = collage_test::fresh_seed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases(6); ++i) {
    // The start of h has the batch of x; that of past is empty, because the length has another symbol afterwards.
    const auto batch = static_cast<std::int64_t>(random() % 4);
    c::session_context context = session.context();
    expected_states states{zeros(batch), zeros(0)};
    for (int n = 0; n < 6; ++n) {
      const c::tensor x = random_rows(batch, random());
      ASSERT_EQ(states.after(x, context.run({x})), "") << "seed " << seed << ", run " << n;
      ASSERT_TRUE(same(context.state("h"), states.h) && same(context.state("past"), states.past)) << "seed " << seed;
    }
    context.reset();
    const c::tensor x = random_rows(batch + 1, random());
    states = {zeros(batch + 1), zeros(0)};
    ASSERT_EQ(states.after(x, context.run({x})), "") << "seed " << seed;
  }
}

TEST(session_state, can_be_set_and_read_and_started) {
  const c::session session = cell_session();
  c::session_context context = session.context();
  context.start("past", {4, 3});
  context.set_state("h", random_rows(2, 5));
  expected_states states{random_rows(2, 5), zeros(4)};
  EXPECT_TRUE(same(context.state("h"), states.h) && same(context.state("past"), states.past));
  const c::tensor x = random_rows(2, 6);
  EXPECT_EQ(states.after(x, context.run({x})), "");
  // From one state to another, and from an output to a state.
  context.set_state("past", context.state("h"));
  states.past = copy_of(states.h);
  context.set_state("h", context.run({x})[0].contents);
  EXPECT_EQ(message_of([&] { (void)context.run({x}); }), "no error");
  context.set_state("past", states.past);
  context.set_state("h", states.h);
  context.set_state("h", context.state("h"));
  EXPECT_EQ(states.after(x, context.run({x})), "");
  context.reset();
  EXPECT_TRUE(same(context.state("past"), zeros(4)));
  EXPECT_EQ(message_of([&] { (void)context.state("h"); }, 2),
            "state h: has no contents before the first run, because its shape is not known; give it a start shape");
}

TEST(session_state, a_run_that_fails_leaves_it) {
  const auto source = c::source_of(cell_inputs, cell_outputs, [](std::span<const c::shape> dims) {
    if (dims[0][0] == 4) throw c::error(c::error_kind::unsupported, "cannot have 4 rows", "network");
    return cell(dims);
  });
  const c::session session(source, c::table_of<set>, unmeasured_plan,
                           {.carried = {{"h_next", "h"}, {"present", "past"}}});
  c::session_context context = session.context();
  const c::tensor bad = random_rows(4, 1);
  EXPECT_EQ(message_of([&] { (void)context.run({bad}); }, 2), "network: cannot have 4 rows");
  expected_states states{zeros(2), zeros(0)};
  for (std::uint64_t n = 0; n < 4; ++n) {
    const c::tensor x = random_rows(2, n), other = random_rows(2, n + 100);
    // Twice each: the second could write over what the first has left alone.
    for (int twice = 0; twice < 2; ++twice) {
      EXPECT_EQ(message_of([&] { (void)context.run({bad}); }, 2), "network: cannot have 4 rows");
      const std::atomic<bool> stop = true;
      EXPECT_THROW((void)context.run({other}, {.stop = &stop}), c::error);
      // The outputs do not fit the memory for them, which shows when all has been computed.
      const c::tensor small = zeros(1);
      const std::vector<c::const_tensor_view> in{other};
      const std::vector<c::tensor_view> out{small, {}};
      EXPECT_NE(message_of([&] { context.run(in, out); }, 2), "no error");
      if (n == 0) continue;
      EXPECT_TRUE(same(context.state("h"), states.h) && same(context.state("past"), states.past)) << n;
    }
    EXPECT_EQ(states.after(x, context.run({x})), "") << n;
  }
}

TEST(session_state, stays_when_outputs_go_to_the_caller) {
  const c::session session = cell_session();
  c::session_context context = session.context();
  expected_states states{zeros(2), zeros(0)};
  for (std::int64_t n = 1; n <= 4; ++n) {
    const c::tensor x = random_rows(2, static_cast<std::uint64_t>(n)), h = zeros(2), present = zeros(2 * n);
    const std::vector<c::const_tensor_view> in{x};
    // Memory for the cache is given every second time.
    std::vector<c::tensor_view> out{h, {}};
    if (n % 2 == 0) out[1] = present;
    context.run(in, out);
    if (n % 2 == 0) EXPECT_TRUE(same(context.state("past"), present));
    const std::vector<c::session_output> now{{"h_next", copy_of(h)}, {"present", context.state("past")}};
    EXPECT_TRUE(same(context.state("h"), h));
    EXPECT_EQ(states.after(x, std::vector<c::session_output>{{"h_next", h}, now[1]}), "") << n;
    std::fill_n(h.as<float>().data(), 6, 1e9F);  // the caller's memory is the caller's
    std::fill_n(present.as<float>().data(), 6 * n, 1e9F);
  }
}

TEST(session_state, an_input_that_is_passed_on_is_copied) {
  const auto source = c::source_of(
      {{.name = "a", .dims = {2}}, {.name = "before", .dims = {2}}},
      {{.name = "kept", .dims = {2}}, {.name = "difference", .dims = {2}}}, [](std::span<const c::shape> dims) {
        c::graph_builder g;
        const c::value a = g.input("a", {c::dtype::f32, dims[0]}), b = g.input("before", {c::dtype::f32, dims[1]});
        g.output("kept", a);
        g.output("difference", g(op::sub, a, b));
        return g.finish();
      });
  const c::session session(source, c::table_of<set>, unmeasured_plan, {.carried = {{"kept", "before"}}});
  c::session_context context = session.context();
  EXPECT_EQ(context.state("before").as<float>()[1], 0);  // all extents are known, so that it has a start
  const c::tensor a(c::tensor_type{c::dtype::f32, {2}}), kept(a.type()), difference(a.type());
  for (int n = 1; n <= 6; ++n) {
    a.as<float>()[0] = static_cast<float>(n * n);
    if (n % 2 == 0) {
      const std::vector<c::const_tensor_view> in{a};
      const std::vector<c::tensor_view> out{kept, difference};
      context.run(in, out);
      EXPECT_EQ(kept.as<float>()[0], static_cast<float>(n * n));
      EXPECT_EQ(difference.as<float>()[0], static_cast<float>(2 * n - 1));
    } else {
      EXPECT_EQ(context.run({a})[1].contents.as<float>()[0], static_cast<float>(2 * n - 1));
    }
    a.as<float>()[0] = kept.as<float>()[0] = -7;
  }
}

/// next = 2 s + x, of which an operator between stages computes the product; it is the last of the source's only stage.
class late_source final : public c::network_source {
 public:
  std::span<const c::open_port> inputs() const override { return inputs_; }
  std::span<const c::open_port> outputs() const override { return outputs_; }
  c::network_stage make(const c::network_stage*, std::span<const c::given_value>) const override {
    c::network_stage stage;
    c::graph_builder g;
    g.output("half", g(op::add, g.input("x", {c::dtype::f32, {2}}), g.input("s", {c::dtype::f32, {2}})));
    stage.network = g.finish();
    stage.late = {{"Twice late", {"half"}, {"next"}}};
    stage.results = {"next"};
    return stage;
  }
  std::vector<c::tensor> compute(const c::network_stage&, std::size_t,
                                 std::span<const c::const_tensor_view> operands) const override {
    c::tensor twice(operands[0].type);
    for (std::size_t i = 0; i < 2; ++i) twice.as<float>()[i] = 2 * operands[0].as<float>()[i];
    std::vector<c::tensor> made;
    made.push_back(std::move(twice));
    return made;
  }

 private:
  std::vector<c::open_port> inputs_ = {{.name = "x", .dims = {2}}, {.name = "s", .dims = {2}}};
  std::vector<c::open_port> outputs_ = {{.name = "next", .dims = {2}}};
};

TEST(session_state, may_come_from_an_operator_between_stages) {
  const c::session session(std::make_shared<late_source>(), c::table_of<set>, unmeasured_plan,
                           {.carried = {{"next", "s"}}});
  c::session_context context = session.context();
  const c::tensor x(c::tensor_type{c::dtype::f32, {2}});
  float expected = 0;
  for (int n = 0; n < 8; ++n) {
    x.as<float>()[1] = static_cast<float>(n);
    expected = 2 * (expected + static_cast<float>(n));
    EXPECT_EQ(context.run({x})[0].contents.as<float>()[1], expected);
    EXPECT_EQ(context.state("s").as<float>()[1], expected);
  }
}

TEST(session_state, belongs_to_a_context) {
  const c::session session = cell_session();
  std::vector<std::string> wrong(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      c::session_context context = session.context();
      expected_states states{zeros(2), zeros(0)};
      for (std::uint64_t n = 0; n < 8 && wrong[t].empty(); ++n) {
        const c::tensor x = random_rows(2, 10 * n + t);
        wrong[t] = states.after(x, context.run({x}));
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

TEST(session_state, an_output_that_does_not_fit_is_refused) {
  const auto source = c::source_of({{.name = "x", .dims = {c::unknown, 3}}}, {{.name = "y", .has_rank = false}},
                                   [](std::span<const c::shape> dims) {
                                     c::graph_builder g;
                                     const c::value x = g.input("x", {c::dtype::f32, dims[0]});
                                     g.output("y", g(op::concat, x, x, {.axis = dims[0][0] < 4 ? 0 : 1}));
                                     return g.finish();
                                   });
  const c::session session(source, c::table_of<set>, unmeasured_plan, {.carried = {{"y", "x"}}});
  c::session_context context = session.context();
  EXPECT_EQ(message_of([&] { (void)context.run({}); }, 2),
            "state x: has no start, and nothing says what its extent 0 is; give it a start shape");
  context.set_state("x", random_rows(3, 1));
  (void)context.run({});
  EXPECT_EQ(context.state("x").type.dims, (c::shape{6, 3}));
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(message_of([&] { (void)context.run({}); }, 2),
              "output y: is float32[6x6] at these shapes, and cannot be carried to input x");
    EXPECT_EQ(context.state("x").type.dims, (c::shape{6, 3}));
  }
}

TEST(session_state, says_what_cannot_be_carried) {
  const auto message = [](std::vector<c::carried_value> carried) {
    return message_of([&] { (void)cell_session(std::move(carried)); }, 2);
  };
  EXPECT_EQ(message({{"h_next", "g"}}),
            "input g: is carried, and the network has no such input; name one of x, h, past");
  EXPECT_EQ(message({{"h_new", "h"}}),
            "output h_new: is carried, and the network has no such output; name one of h_next, present");
  EXPECT_EQ(message({{"h_next", "h"}, {"h_next", "h"}}), "input h: two outputs are carried to it");
  EXPECT_EQ(message({{"h_next", "h"}, {"h_next", "past"}}), "no error");
  const auto message_for = [](const c::open_port& input, const c::open_port& output) {
    return message_of(
        [&] {
          const c::session made(c::source_of({input}, {output}, cell), c::table_of<set>, unmeasured_plan,
                                {.carried = {{"b", "a"}}});
        },
        2);
  };
  EXPECT_EQ(message_for({.name = "a", .dims = {2, c::unknown}}, {.name = "b", .type = c::dtype::f16, .dims = {2, 3}}),
            "output b: is float16, and input a, to which it is carried, is float32");
  EXPECT_EQ(message_for({.name = "a", .dims = {2, c::unknown}}, {.name = "b", .dims = {3, 3}}),
            "output b: is declared as 3x3, and input a, to which it is carried, as 2x?");
  EXPECT_EQ(message_for({.name = "a", .dims = {2, c::unknown}}, {.name = "b", .dims = {2}}),
            "output b: is declared as 2, and input a, to which it is carried, as 2x?");
}

TEST(session_state, says_what_is_wrong_with_a_state) {
  const c::session session = cell_session();
  c::session_context context = session.context();
  const c::tensor whole(c::tensor_type{c::dtype::i64, {2, 3}});
  EXPECT_EQ(message_of([&] { context.set_state("h", whole); }, 2),
            "state h: is given as int64, and the network takes float32");
  EXPECT_EQ(message_of([&] { context.start("h", {2, 4}); }, 2),
            "state h: is given as 2x4, but the network declares ?x3");
  EXPECT_EQ(message_of([&] { context.start("h", {c::unknown, 3}); }, 2),
            "state h: is given with an extent that is not known");
  EXPECT_EQ(message_of([&] { context.set_state("h", c::const_tensor_view(nullptr, {c::dtype::f32, {1, 3}})); }, 2),
            "state h: is given without memory");
  EXPECT_EQ(message_of([&] { (void)context.state("x"); }, 2), "state x: there is no such state; name one of h, past");
  c::session_context without = cell_session({}).context();
  EXPECT_EQ(message_of([&] { without.start("h", {1, 3}); }, 2),
            "state h: there is no such state; carry an output to that input");
  // The same symbol before and after a run, and no input that has it: nothing says what it is.
  const c::session alone(c::source_of({{.name = "h", .dims = {c::unknown}, .symbols = {"n"}}},
                                      {{.name = "next", .dims = {c::unknown}, .symbols = {"n"}}},
                                      [](std::span<const c::shape>) { return c::graph(); }),
                         c::table_of<set>, unmeasured_plan, {.carried = {{"next", "h"}}});
  c::session_context of_alone = alone.context();
  EXPECT_EQ(message_of([&] { (void)of_alone.run({}); }, 2),
            "state h: has no start, and nothing says what its extent 0, n, is; give it a start shape");
}

}  // namespace run_session_state_test
