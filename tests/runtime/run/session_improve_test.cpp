// Sessions whose engines are planned anew while they run.
#include "support/messages.hpp"
#include "support/sessions.hpp"

#include <collage/error.hpp>
#include <collage/ops.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace run_session_improve_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;
using collage_test::tensor_with;
using collage_test::unmeasured_plan;
using collage_test::unmeasured_session;

/// y = 2 x + 1, at any length.
c::session doubling_session(const c::session_options& options = {}) {
  return unmeasured_session(c::source_of({{.name = "x", .dims = {c::unknown}, .symbols = {"n"}}}, {{.name = "y"}},
                                         [](std::span<const c::shape> dims) {
                                           c::graph_builder g;
                                           const c::value x = g.input("x", {c::dtype::f32, dims[0]});
                                           g.output("y", g(op::add, g(op::add, x, x), g.scalar("one", 1)));
                                           return g.finish();
                                         }),
                            options);
}

void run(c::session_context& context, std::size_t length, std::size_t times = 1) {
  const c::tensor x = tensor_with<float>({static_cast<std::int64_t>(length)}, std::vector<float>(length, 3));
  for (; times > 0; --times)
    for (const float y : context.run({x})[0].contents.as<float>()) ASSERT_EQ(y, 7);
}

TEST(session_improve, takes_the_engine_that_ran_most_and_each_once) {
  const c::session session = doubling_session();
  c::session_context context = session.context();
  EXPECT_FALSE(session.improve(unmeasured_plan));  // there is none
  run(context, 2);
  run(context, 5, 9);
  run(context, 3, 4);
  std::vector<std::string> order;
  while (const std::optional<c::improved_engine> done = session.improve(unmeasured_plan)) {
    order.push_back(done->made_for + ", " + std::to_string(done->runs));
    EXPECT_TRUE(done->is_replaced);
    EXPECT_GE(done->seconds, 0);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"x float32[5], 9", "x float32[3], 4", "x float32[2], 1"}));
  EXPECT_EQ(session.state().improved, 3U);
  EXPECT_EQ(session.state().engines, 3U);
  EXPECT_EQ(session.state().made, 6U);
  EXPECT_EQ(session.state().given_back, 0U);
  for (const std::size_t length : {5U, 3U, 2U}) run(context, length);
  EXPECT_EQ(session.state().made, 6U);  // all were found
  run(context, 4);
  EXPECT_TRUE(session.improve(unmeasured_plan));
}

TEST(session_improve, gives_the_planner_the_network_of_the_shapes) {
  const c::session session = doubling_session();
  c::session_context context = session.context();
  run(context, 6);
  bool is_called = false;
  EXPECT_TRUE(session.improve([&](const c::graph& network, const std::shared_ptr<c::packed_weights>& packed) {
    is_called = true;
    EXPECT_EQ(packed, nullptr);
    EXPECT_EQ(network.type_of(network.inputs()[0]), (c::tensor_type{c::dtype::f32, {6}}));
    run(context, 6);  // the session goes on meanwhile
    return unmeasured_plan(network, packed);
  }));
  EXPECT_TRUE(is_called);
}

TEST(session_improve, a_failure_leaves_the_engine) {
  const c::session session = doubling_session();
  c::session_context context = session.context();
  run(context, 3);
  const auto fail = [](const c::graph&, const std::shared_ptr<c::packed_weights>&) -> c::plan {
    throw c::error(c::error_kind::failure, "did not work", "the planner");
  };
  EXPECT_NE(message_of([&] { (void)session.improve(fail); }).find("did not work"), std::string::npos);
  run(context, 3);
  EXPECT_EQ(session.state().improved, 0U);
  EXPECT_FALSE(session.improve(fail)) << "it is not tried again";
  EXPECT_NE(message_of([&] { (void)session.improve({}); }), "");
}

TEST(session_improve, a_cancelled_engine_is_taken_again) {
  const c::session session = doubling_session();
  c::session_context context = session.context();
  run(context, 3);
  const auto cancel = [](const c::graph&, const std::shared_ptr<c::packed_weights>&) -> c::plan {
    throw c::error(c::error_kind::cancelled, "was ended", "the planner");
  };
  EXPECT_NE(message_of([&] { (void)session.improve(cancel); }), "");
  EXPECT_TRUE(session.improve(unmeasured_plan));
  EXPECT_EQ(session.state().improved, 1U);
}

TEST(session_improve, an_engine_that_was_given_back_meanwhile_stays_away) {
  const c::session session = doubling_session({.most_engines = 1});
  c::session_context context = session.context();
  run(context, 3);
  const std::optional<c::improved_engine> done =
      session.improve([&](const c::graph& network, const std::shared_ptr<c::packed_weights>& packed) {
        run(context, 4);
        return unmeasured_plan(network, packed);
      });
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->is_replaced);
  EXPECT_EQ(session.state().improved, 0U);
  EXPECT_EQ(session.state().engines, 1U);
  run(context, 3);
}

TEST(session_improve, other_threads_run_meanwhile) {
  const c::session session = doubling_session();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      c::session_context context = session.context();
      for (std::size_t i = 0; !is_over; ++i) run(context, 1 + (t + i) % 4);
    });
  for (int improved = 0; improved < 4;) improved += session.improve(unmeasured_plan) ? 1 : 0;
  is_over = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(session.state().improved, 4U);
}

}  // namespace run_session_improve_test
