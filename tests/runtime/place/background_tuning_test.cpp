// Tuning the engines of a session in a thread of its own.
#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/sessions.hpp"

#include <collage/ops.hpp>
#include <collage/place/background_tuning.hpp>
#include <collage/place/cost_index.hpp>

#include <gtest/gtest.h>
#if defined(__linux__)
#include <sched.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace place_background_tuning_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;
using collage_test::tensor_with;

c::session doubling_session() {
  return collage_test::unmeasured_session(
      c::source_of({{.name = "x", .dims = {c::unknown}}}, {{.name = "y"}}, [](std::span<const c::shape> dims) {
        c::graph_builder g;
        const c::value x = g.input("x", {c::dtype::f32, dims[0]});
        g.output("y", g(op::add, x, x));
        return g.finish();
      }));
}

void run(const c::session& session, std::int64_t length) {
  c::session_context context = session.context();
  const c::tensor x = tensor_with<float>({length}, std::vector<float>(static_cast<std::size_t>(length), 3));
  for (const float y : context.run({x})[0].contents.as<float>()) EXPECT_EQ(y, 6);
}

/// Waits, at most for five minutes: idle threads hardly run beside other tests.
void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 30000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(holds());
}

c::plan quick(const c::graph& network, const std::function<bool()>&) {
  return collage_test::unmeasured_plan(network, nullptr);
}

TEST(background_tuning, replaces_all_engines_and_waits_for_more) {
  const c::session session = doubling_session();
  run(session, 2);
  run(session, 3);
  const c::background_tuning tuning(session, quick);
  wait_until([&] { return tuning.state().improved == 2; });
  run(session, 4);
  wait_until([&] { return tuning.state().improved == 3; });
  EXPECT_EQ(session.state().improved, 3U);
  EXPECT_EQ(tuning.state().failed, 0U);
  EXPECT_EQ(tuning.state().last_failure, "");
  for (const std::int64_t length : {2, 3, 4}) run(session, length);
}

TEST(background_tuning, says_what_it_tunes_and_why_it_failed) {
  const c::session session = doubling_session();
  run(session, 5);
  std::atomic<bool> goes_on = false;
  const c::background_tuning tuning(session, [&](const c::graph&, const std::function<bool()>&) -> c::plan {
    while (!goes_on) std::this_thread::yield();
    throw c::error(c::error_kind::failure, "did not work", "the planner");
  });
  wait_until([&] { return tuning.state().tuning == "x float32[5]"; });
  goes_on = true;
  wait_until([&] { return tuning.state().failed == 1; });
  EXPECT_NE(tuning.state().last_failure.find("did not work"), std::string::npos);
  EXPECT_EQ(tuning.state().tuning, "");
  run(session, 5);
}

TEST(background_tuning, ends_what_is_under_way) {
  const c::session session = doubling_session();
  run(session, 5);
  bool was_cancelled = false;
  {
    std::atomic<bool> has_begun = false;
    c::background_tuning tuning(session, [&](const c::graph& network, const std::function<bool()>& cancel) {
      has_begun = true;
      while (!cancel()) std::this_thread::yield();
      was_cancelled = true;
      return quick(network, cancel);
    });
    wait_until([&] { return has_begun.load(); });
    const c::background_tuning moved = std::move(tuning);
    EXPECT_EQ(moved.state().tuning, "x float32[5]");
  }
  EXPECT_TRUE(was_cancelled);
  EXPECT_EQ(session.state().improved, 0U);
}

#if defined(__linux__)
TEST(background_tuning, is_of_idle_priority) {
  bool is_allowed = false;
  std::thread([&] {
    const sched_param none = {};
    is_allowed = sched_setscheduler(0, SCHED_IDLE, &none) == 0;
  }).join();
  if (!is_allowed) GTEST_SKIP() << "the system does not give SCHED_IDLE";
  const c::session session = doubling_session();
  run(session, 5);
  std::atomic<int> policy = -1, policy_of_a_team = -1;
  const c::background_tuning tuning(session, [&](const c::graph& network, const std::function<bool()>& cancel) {
    policy = sched_getscheduler(0);
    std::thread([&] { policy_of_a_team = sched_getscheduler(0); }).join();
    return quick(network, cancel);
  });
  wait_until([&] { return tuning.state().improved == 1; });
  EXPECT_EQ(policy, SCHED_IDLE);
  EXPECT_EQ(policy_of_a_team, SCHED_IDLE);
  EXPECT_NE(sched_getscheduler(0), SCHED_IDLE);
}
#endif

/// A child runs the session and destroys the tuning, whose thread it does not have.
void fork_and_end(std::unique_ptr<c::background_tuning>& tuning, const c::session& session) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs ends with a signal
    run(session, 5);
    const bool is_empty = tuning->state().tuning.empty();
    tuning.reset();
    _exit(is_empty && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
TEST(background_tuning, does_nothing_in_a_forked_child) {
  const c::session session = doubling_session();
  run(session, 5);
  std::atomic<bool> has_begun = false;
  auto tuning = std::make_unique<c::background_tuning>(
      session, [&](const c::graph& network, const std::function<bool()>& cancel) {
        has_begun = true;
        while (!cancel()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return quick(network, cancel);
      });
  wait_until([&] { return has_begun.load(); });
  fork_and_end(tuning, session);
}
TEST(background_tuning, that_waits_does_nothing_in_a_forked_child) {
  const c::session session = doubling_session();
  run(session, 5);
  auto tuning = std::make_unique<c::background_tuning>(session, quick);
  wait_until([&] { return tuning->state().improved == 1; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fork_and_end(tuning, session);
}

TEST(background_tuning, measures_and_keeps_the_costs) {
  const collage_test::temporary_folder folder;
  const std::string store = folder.path("costs.db");
  using set = collage_test::session_backends;
  const c::session session = doubling_session();
  run(session, 100);
  c::place_options how;
  how.threads = 1;
  how.store = store;
  how.comparing.seconds = 0.02;
  how.measuring.workers = false;
  const c::background_tuning tuning = c::tune_in_background<set>(session, how);
  wait_until([&] { return tuning.state().improved + tuning.state().failed == 1; });
  EXPECT_EQ(tuning.state().last_failure, "");
  EXPECT_EQ(tuning.state().improved, 1U);
  run(session, 100);
  EXPECT_GT(c::cost_index(store).size(), 0U);
}

TEST(background_tuning, refuses_what_it_cannot_do) {
  using set = collage_test::session_backends;
  const c::session session = doubling_session();
  c::place_options how;
  how.costs = c::placing_costs::estimated;
  EXPECT_NE(message_of([&] { (void)c::tune_in_background<set>(session, how); }).find("costs must be measured"),
            std::string::npos);
  how = {};
  how.packed = std::make_shared<c::packed_weights>();
  EXPECT_NE(message_of([&] { (void)c::tune_in_background<set>(session, how); }).find("no previous plan"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)c::background_tuning(session, {}); }), "");
}

}  // namespace place_background_tuning_test
