// How idle threads wait, and forks: a child can use the engines and libraries of its parent.
#include <collage/backend_set.hpp>
#include <collage/detail/host_memory.hpp>
#include <collage/error.hpp>
#include <collage/every_backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/match.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/network_source.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/session.hpp>
#include <collage/run/waiting.hpp>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "process/forks.hpp"
#include "process/spread.hpp"

namespace run_waiting_test {

namespace c = collage;
namespace op = collage::ops;
constexpr c::backend_table table = c::table_of<c::every_backend>;

bool is_configured() {
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  const char* spins = std::getenv("GOMP_SPINCOUNT");
  return (policy != nullptr && *policy != '\0') || (spins != nullptr && *spins != '\0');
}

/// Products and element-wise operators. By default they are worth two threads.
c::graph small_network(std::int64_t size = 256) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {192, size}});
  const auto weights = [&](const char* name) { return g.constant(name, {c::dtype::f32, {size, size}}, {-0.1F, 0.1F}); };
  c::value y = g(op::relu, g(op::matmul, x, weights("a")));
  y = g(op::tanh, g(op::matmul, y, weights("b")));
  g.output("y", g(op::softmax, g(op::add, y, x)));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

/// An engine for two threads, placed without measuring; by one backend where it takes every node.
struct made_engine {
  std::string by;
  c::dynamic_engine engine;
};
std::vector<made_engine> made_engines(const c::graph& network, const std::string& by = "") {
  std::vector<made_engine> list;
  for (const c::backend_entry& b : table) {
    if ((!by.empty() && by != b.name) || b.rounds_to || !b.probe().available) continue;
    try {
      const c::placed_plan plan =
          c::place(network, table, {.backends = {b.name, "portable"}, .threads = 2, .costs = c::placing_costs::none});
      list.push_back({b.name, c::dynamic_engine(network, plan.chosen, table, 2)});
    } catch (const c::error&) {}  // names a backend twice, or it has no kernel for the network
  }
  return list;
}

struct runner {
  c::dynamic_context context;
  c::run_buffers memory;
  runner(const c::dynamic_engine& engine, const c::graph& network) : context(engine.context()), memory(network) {
    memory.randomise(1);
  }
  std::vector<float> run() {
    const auto out = memory.out[0].as<float>();
    std::fill(out.begin(), out.end(), -1.0F);
    context.run(memory.inputs, memory.outputs);
    return {out.begin(), out.end()};
  }
};

bool is_same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double process_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// --- waiting --------------------------------------------------------------------------------------------------------

TEST(waiting, policy_is_brief_while_an_object_exists) {
  const std::string before = c::waiting_policy();
  {
    const c::brief_waiting first;
    EXPECT_EQ(first.why_not().empty(), !is_configured() || before == "brief") << first.why_not();
    {
      const c::brief_waiting second;
      EXPECT_EQ(second.why_not(), first.why_not());
    }
    if (is_configured()) {
      EXPECT_EQ(c::waiting_policy(), before);
      EXPECT_TRUE(before == "brief" || first.why_not().find(before) != std::string::npos) << first.why_not();
    } else {
      EXPECT_EQ(c::waiting_policy(), "brief");
    }
  }
  EXPECT_EQ(c::waiting_policy(), before);
}

/// Processor time of runs with pauses of a millisecond between them. In the pauses a waiting thread has nothing to do.
double seconds_with_pauses(runner& r) {
  (void)r.run();
  const double start = process_seconds();
  for (int i = 0; i < 100; ++i) {
    (void)r.run();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return process_seconds() - start;
}

TEST(waiting, threads_that_wait_briefly_take_no_processor_time) {
  if (is_configured()) GTEST_SKIP() << "the environment sets how threads wait";
  if (c::available_threads() < 2) GTEST_SKIP() << "there is one processor, and no team";
  const c::graph network = small_network(16);  // its pauses are longer than its runs, also under a sanitizer
  const c::placed_plan plan =
      c::place(network, table, {.backends = {"portable"}, .threads = 2, .costs = c::placing_costs::none});
  const c::dynamic_engine engine(network, plan.chosen, table, 2);
  runner r(engine, network);
  const std::vector<float> known = r.run();
  double best = 1e9, worst = 0;
  for (int attempt = 0; attempt < 5 && best > 0.8 * worst; ++attempt) {
    worst = std::max(worst, seconds_with_pauses(r));
    const c::brief_waiting brief;
    best = std::min(best, seconds_with_pauses(r));
    EXPECT_TRUE(is_same(r.run(), known));
  }
  EXPECT_LT(best, 0.8 * worst);
}

TEST(waiting, one_processor_has_no_team) {
  const c::graph network = small_network();
  std::thread([&] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(c::concurrent_threads(3), c::allowed_processors() == 1 ? 1 : 3);
    for (int last = CPU_SETSIZE; CPU_COUNT(&allowed) > 1; --last) CPU_CLR(last - 1, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    if (c::allowed_processors() != 1) GTEST_SKIP() << "OpenMP has bound this thread";
    EXPECT_EQ(c::concurrent_threads(3), 1);
    const c::placed_plan plan =
        c::place(network, table, {.backends = {"portable"}, .threads = 2, .costs = c::placing_costs::none});
    EXPECT_EQ(plan.threads, 1);
    EXPECT_EQ(c::dynamic_engine(network, plan.chosen, table, 2).threads(), 1);
  }).join();
}

cpu_set_t set_of(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int p : processors) CPU_SET(static_cast<std::size_t>(p), &set);
  return set;
}

TEST(waiting, threads_of_a_team_are_kept_apart) {
  const cpu_set_t allowed = set_of({0, 1, 5, 7});
  struct known {
    std::vector<int> at;
    std::vector<int> apart;  ///< of the last thread; none: it stays
  };
  for (const auto& [at, apart] : std::vector<known>{{{0, 1}, {}},
                                                    {{0, 0}, {1, 5, 7}},
                                                    {{5, 1, 1}, {0, 7}},
                                                    {{5, 1, 5}, {0, 7}},
                                                    {{0, 1, 5, 7, 7}, {}},
                                                    {{3, 3}, {0, 1, 5, 7}},
                                                    {{-1, -1}, {}}}) {
    const auto found = c::detail::processors_apart(allowed, at, at.size() - 1);
    const cpu_set_t wanted = set_of(apart);
    EXPECT_EQ(found.has_value(), !apart.empty());
    if (found) EXPECT_TRUE(CPU_EQUAL(&*found, &wanted));
  }
  EXPECT_FALSE(c::detail::processors_apart(allowed, std::vector<int>{0}, 0));
}

TEST(waiting, a_caller_stays_on_all_its_processors) {
  const c::graph network = small_network(16);
  const c::placed_plan plan =
      c::place(network, table, {.backends = {"portable"}, .threads = 2, .costs = c::placing_costs::none});
  const c::dynamic_engine engine(network, plan.chosen, table, 2);
  runner r(engine, network);
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  for (int i = 0; i < 5; ++i) {
    (void)r.run();
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // it looks now and then
  }
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// --- forks ----------------------------------------------------------------------------------------------------------

/// Forks, and returns how the child ended: 0 if `f` returned true there; 1 if false or it threw; 128 and a signal's number, as
/// SIGALRM's for a child that hangs.
template <class F>
int in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool is_right = false;
    try {
      is_right = f();
    } catch (...) {}
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Forks after running, and while another thread runs. OpenVINO cannot go on in a child, and says so.
void fork_often(int times) {
  const c::graph network = small_network();
  const c::brief_waiting brief;
  for (made_engine& e : made_engines(network)) {
    runner used(e.engine, network);
    const std::vector<float> known = used.run();
    std::atomic<bool> done = false;
    std::thread other;
    // The address sanitizer's own locks do not survive a fork while another thread allocates, as one does that begins or ends.
    if (!c::detail::is_watched)
      other = std::thread([&] {
        for (runner mine(e.engine, network); !done;) (void)mine.run();
      });
    const auto is_right = [&](const auto& run) {
      try {
        return is_same(run(), known) && e.by != "openvino";
      } catch (const c::error& refused) { return e.by == "openvino" && refused.kind() == c::error_kind::environment; }
    };
    const auto run_again = [&] { return used.run(); };
    const auto run_anew = [&] { return runner(e.engine, network).run(); };
    const auto make_anew = [&] {
      for (made_engine& again : made_engines(network, e.by)) return runner(again.engine, network).run();
      throw c::error(c::error_kind::environment, "it has no engine", e.by);
    };
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(in_child([&] { return is_right(run_again); }), 0) << e.by << " with the parent's context";
      EXPECT_EQ(in_child([&] { return is_right(run_anew); }), 0) << e.by << " with a context of its own";
      // Placing leaves a backend out that cannot go on.
      EXPECT_EQ(in_child([&] {
                  const std::vector<float> found = make_anew();
                  return e.by == "openvino" || is_same(found, known);
                }),
                0)
          << e.by << " with an engine of its own";
      EXPECT_TRUE(is_same(used.run(), known)) << e.by << " in the parent";
    }
    done = true;
    if (other.joinable()) other.join();
  }
}

TEST(forks, a_child_can_run_engines_of_its_parent) { fork_often(3); }
TEST(forks_long, a_child_can_run_engines_of_its_parent) { fork_often(50); }

/// Memory that a child shares with its parent.
class shared_floats {
 public:
  explicit shared_floats(std::size_t count)
      : bytes_(count * sizeof(float)),
        at_(static_cast<float*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~shared_floats() { munmap(at_, bytes_); }
  shared_floats(const shared_floats&) = delete;
  shared_floats& operator=(const shared_floats&) = delete;

  void set(const std::vector<float>& from) const { std::copy(from.begin(), from.end(), at_); }
  std::vector<float> get() const { return {at_, at_ + bytes_ / sizeof(float)}; }

 private:
  std::size_t bytes_;
  float* at_;
};

TEST(forks, a_child_can_run_engines_that_never_ran) {
  const c::graph network = small_network();
  for (made_engine& e : made_engines(network)) {
    const shared_floats first(std::size_t{192} * 256);
    const int ended = in_child([&] {
      try {
        first.set(runner(e.engine, network).run());
        return e.by != "openvino";
      } catch (const c::error& refused) { return e.by == "openvino" && refused.kind() == c::error_kind::environment; }
    });
    EXPECT_EQ(ended, 0) << e.by;
    const std::vector<float> known = runner(e.engine, network).run();
    if (e.by != "openvino") EXPECT_TRUE(is_same(first.get(), known)) << e.by;
  }
}

/// A kernel that forks once it is armed. The child goes on with the run.
struct forking : c::backend<"forking"> {
  static inline bool is_armed = false;
  static inline pid_t child = -1;  ///< 0 in the child
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"forks", [count](const c::kernel_call& call) {
              const auto* const in = static_cast<const float*>(call.in[0]);
              for (std::size_t i = 0; i < count; ++i) static_cast<float*>(call.out[0])[i] = std::max(in[i], 0.0F);
              if (std::exchange(is_armed, false)) child = fork();
            }};
  }
};

TEST(forks, a_child_of_a_fork_within_a_run_completes_the_run) {
  constexpr c::backend_table with_forks = c::table_of<c::set_union<c::backend_set<forking>, c::every_backend>>;
  const c::graph network = small_network();
  for (const char* const others : {"portable", "onednn", "openblas", "eigen"}) {
    c::placed_plan plan;
    try {
      plan = c::place(network, with_forks,
                      {.backends = {"forking", others, "portable"}, .threads = 2, .costs = c::placing_costs::none});
    } catch (const c::error&) { continue; }  // not in this build, or named twice
    const c::dynamic_engine engine(network, plan.chosen, with_forks, 2);
    ASSERT_TRUE(std::ranges::any_of(engine.steps(), [](const c::step_info& s) { return s.kernel == "forks"; }));
    runner r(engine, network);
    const std::vector<float> known = r.run();
    forking::is_armed = true;
    const std::vector<float> found = r.run();
    if (forking::child == 0) {
      alarm(60);
      _exit(is_same(found, known) && is_same(r.run(), known) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(forking::child, &status, 0), forking::child);
    EXPECT_EQ(status, 0) << others;
    EXPECT_TRUE(is_same(found, known)) << others;
    EXPECT_TRUE(is_same(r.run(), known)) << others;
  }
}

TEST(forks, a_child_can_run_after_its_parent_only_measured) {
  const c::graph network = small_network();
  // In a process of its own: engines of other tests would prepare for forks.
  c::place_options how{.backends = {"portable"}, .threads = 2, .costs = c::placing_costs::measured};
  how.comparing.seconds = 0;
  how.measuring.workers = false;
  how.measuring.timing = {.sample_ms = 0.01, .rounds = 3, .least_rounds = 1, .budget_ms = 5};
  const c::placed_plan plan = c::place(network, table, how);
  EXPECT_GT(plan.report.measured, 0U);
  EXPECT_EQ(in_child([&] {
              const c::dynamic_engine engine(network, plan.chosen, table, 2);
              runner r(engine, network);
              return is_same(r.run(), r.run());
            }),
            0);
}

TEST(forks, a_child_of_a_child_can_too) {
  const c::graph network = small_network(16);  // its pauses are longer than its runs, also under a sanitizer
  const c::placed_plan plan =
      c::place(network, table, {.backends = {"portable"}, .threads = 2, .costs = c::placing_costs::none});
  const c::dynamic_engine engine(network, plan.chosen, table, 2);
  runner r(engine, network);
  const std::vector<float> known = r.run();
  EXPECT_EQ(in_child([&] {
              return is_same(r.run(), known) && in_child([&] { return is_same(r.run(), known); }) == 0 &&
                     is_same(r.run(), known);
            }),
            0);
}

/// A session of which the engine for three numbers takes some time to make, in a thread that makes it now.
class making {
 public:
  explicit making(std::chrono::milliseconds time)
      : session_(c::source_of({{.name = "x", .dims = {c::unknown}, .symbols = {"n"}}}, {{.name = "y"}}, positives),
                 table, [this, time](const c::graph& network, const auto&) { return plan_of(network, time); }) {
    maker_ = std::thread([this] { (void)is_right(3); });
    while (!has_begun_) std::this_thread::yield();
  }
  ~making() { maker_.join(); }

  bool is_right(std::int64_t n) const {
    c::session_context context = session_.context();
    const std::vector<float> x(static_cast<std::size_t>(n), 2);
    const c::const_tensor_view input{x.data(), {c::dtype::f32, {n}}};
    return static_cast<const float*>(context.run(std::span(&input, 1))[0].contents.data)[n - 1] == 2;
  }
  std::size_t made() const { return session_.state().made; }

 private:
  static c::graph positives(std::span<const c::shape> dims) {
    c::graph_builder g;
    g.output("y", g(c::ops::relu, g.input("x", {c::dtype::f32, dims[0]})));
    return g.finish();
  }
  c::plan plan_of(const c::graph& network, std::chrono::milliseconds time) {
    if (!has_begun_.exchange(true)) std::this_thread::sleep_for(time);
    return c::place(network, table, {.backends = {"portable"}, .threads = 1, .costs = c::placing_costs::none});
  }

  std::atomic<bool> has_begun_ = false;
  c::session session_;
  std::thread maker_;
};

TEST(forks, waits_for_engines_that_are_made) {
  // The fork comes when the engine is made, as the other thread goes on: there the sanitizer's own locks can be taken.
  if (c::detail::is_watched)
    GTEST_SKIP() << "the address sanitizer's locks do not survive a fork while a thread allocates";
  const making session(std::chrono::milliseconds(300));
  EXPECT_EQ(in_child([&] { return session.is_right(3) && session.is_right(4) && session.made() == 2; }), 0);
  EXPECT_TRUE(session.is_right(4));
}

TEST(forks, stops_only_long_work_while_it_waits) {
  std::atomic<int> held = 0;
  std::atomic<bool> is_passed = false, has_forked = false;
  std::thread maker([&] {
    const c::detail::no_fork_scope whole;
    ++held;
    for (int i = 0; i < 1000 && !is_passed; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (held == 0) std::this_thread::yield();
  std::thread forking([&] {
    EXPECT_EQ(in_child([] { return c::detail::no_fork_scope(), c::detail::brief_no_fork_scope(), true; }), 0);
    has_forked = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits for the maker now
  {
    const c::detail::brief_no_fork_scope look;
    const c::detail::no_fork_scope inner;  // counts as the outer one
    EXPECT_FALSE(has_forked);
  }
  is_passed = true;
  maker.join();
  forking.join();
}

TEST(forks, does_not_wait_for_ever) {
  const making session(std::chrono::milliseconds(3500));
  EXPECT_EQ(in_child([&] { return session.is_right(4) && session.made() == 1; }), 0);
}

}  // namespace run_waiting_test
