// Threads: one is one core, no more than were asked for ever work, and engines in several threads of a process are
// independent of each other and of what their callers have set. Processor time is counted instead of elapsed time, so that
// none of this depends on what else the machine does.
#include "support/plan_making.hpp"

#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/every_backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/limits.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/processor.hpp>
#include <collage/set/candidate.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace run_threads_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::kernel_group;
using collage_test::listed_group;
using collage_test::view_group;

// --- networks -------------------------------------------------------------------------------------------------------

c::value weights(c::graph_builder& g, const char* name, const c::shape& dims) {
  return g.constant(name, {c::dtype::f32, dims}, {-0.2F, 0.2F});
}

c::graph finished(c::graph_builder& g, c::value last) {
  g.output("y", last);
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

/// Convolutions of both sorts, a residual sum, a window.
c::graph convolutions() {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {1, 16, 28, 28}});
  const c::value skip = x;
  x = g(op::relu, g(op::conv, x, weights(g, "a", {32, 16, 3, 3}), weights(g, "a.bias", {32}),
                    {.pads_begin = {1, 1}, .pads_end = {1, 1}}));
  x = g(op::add, g(op::conv, x, weights(g, "b", {16, 32, 1, 1})), skip);
  x = g(op::conv, x, weights(g, "c", {16, 1, 3, 3}), {.groups = 16, .pads_begin = {1, 1}, .pads_end = {1, 1}});
  return finished(g, g(op::max_pool, g(op::relu, x), {.window = {2, 2}, .strides = {2, 2}}));
}

/// Products of several sizes: such as are divided among threads, and smaller ones that a library would divide by itself.
c::graph products() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {48, 80}});
  c::value y = g(op::relu, g(op::matmul, x, weights(g, "a", {80, 80})));
  y = g(op::matmul, g(op::add, y, x), weights(g, "b", {80, 256}));
  y = g(op::matmul, y, weights(g, "c", {256, 96}));
  const c::value row = g(op::reshape, g(op::reduce_mean, y, {.axes = {0}}), {.dims = {1, 96}});
  return finished(g, g(op::softmax, g(op::matmul, row, weights(g, "d", {96, 300}))));
}

/// What reads and writes elements and rows.
c::graph rows() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {256, 384}});
  c::value y = g(op::layer_norm, g(op::add, g(op::tanh, x), x), weights(g, "scale", {384}), weights(g, "shift", {384}));
  y = g(op::softmax, g(op::mul, g(op::sigmoid, y), x));
  return finished(
      g, g(op::sub, g(op::transpose, y, {.permutation = {1, 0}}), g(op::transpose, x, {.permutation = {1, 0}})));
}

struct named_network {
  std::string name;
  c::graph network;
};
std::vector<named_network> networks() {
  std::vector<named_network> list;
  list.push_back({"convolutions", convolutions()});
  list.push_back({"products", products()});
  list.push_back({"rows", rows()});
  return list;
}

// --- placements by hand ---------------------------------------------------------------------------------------------

/// A backend that has no library and no threads, and whose kernel fails.
struct failing : c::backend<"failing"> {
  using patterns = c::patterns<c::single<op::softmax>>;
  static c::kernel build(const c::match<c::single<op::softmax>>&, c::build_context&) {
    return {"fails", [](const c::kernel_call&) { throw c::error(c::error_kind::failure, "it fails", "the test"); }};
  }
};
using set = c::set_union<c::every_backend, c::backend_set<failing>>;
constexpr c::backend_table table = c::table_of<set>;

const c::backend_entry& entry_of(const std::string& name) {
  return *std::find_if(table.begin(), table.end(), [&](const c::backend_entry& b) { return name == b.name; });
}

/// The names of the backends that can run here.
std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const c::backend_entry& b : c::table_of<c::every_backend>)
    if (b.probe().available) names.emplace_back(b.name);
  return names;
}

/// Whether a kernel can be built.
template <class F>
bool is_built(const F& f) {
  try {
    return static_cast<bool>(f());
  } catch (const c::error& refused) {
    if (refused.kind() != c::error_kind::unsupported) throw;
    return false;
  }
}

bool is_plain(const c::pattern_entry& p, const c::graph& network, const c::match_record& record,
              const c::configuration& how) {
  const c::value_forms borders = c::forms_of(p, network.view(), record, how);
  return borders.list().empty();
}

/// How `backend` runs one node by itself; a group without nodes where it does not.
c::plan_group alone(const c::graph& network, std::uint32_t node, const c::backend_entry& backend) {
  c::packed_weights packed;
  c::build_context context(network, 1, packed);
  const std::uint32_t nodes[] = {node};
  // Compiling a region takes long, and hardly ever fails.
  if (backend.build_group != nullptr && c::takes_node(backend, network, node) &&
      (backend.takes_regions || is_built([&] { return backend.build_group(c::group_of(network, nodes), context); }))) {
    return listed_group({node}, backend.name);
  }
  for (const c::pattern_entry& p : backend.patterns) {
    c::match_record record;
    if (!c::match_at(network.view(), p.nodes, node, record) || record.nodes != 1) continue;
    if (!p.accepts(network.view(), record)) continue;
    // Groups that stand alone read and write plain values.
    const c::configuration_list proposed = c::proposed_for(p, network.view(), record);
    const auto how = std::ranges::find_if(
        proposed, [&](const c::configuration& each) { return is_plain(p, network, record, each); });
    if (how == proposed.end()) continue;
    context.set_configuration(*how);
    if (!is_built([&] { return p.build(network.view(), record, context); })) continue;
    c::plan_group made = kernel_group({node}, backend.name, p.name);
    collage_test::kernel_of(made).configuration = how->text();
    return made;
  }
  return {};
}

/// The whole network as one region; a placement without groups where the backend does not take all of it.
c::placement as_region(const c::graph& network, const c::backend_entry& backend) {
  c::plan_group g = listed_group({}, backend.name);
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    if (c::takes_node(backend, network, n)) g.nodes.push_back(n);
  c::placement made;
  if (g.nodes.size() == network.nodes().size()) made.groups.push_back(std::move(g));
  return made;
}

/// Each node by the first of these backends that runs it, from the next one on after the one that ran the node before;
/// by `portable` where none does.
c::placement in_turns(const c::graph& network, const std::vector<std::string>& names) {
  c::placement made;
  if (names.size() == 1 && entry_of(names[0]).takes_regions) made = as_region(network, entry_of(names[0]));
  if (!made.groups.empty()) return made;
  std::size_t turn = 0;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    c::plan_group g;
    if (c::is_alias(network.view(), n)) g = view_group(n);
    for (std::size_t i = 0; i < names.size() && g.nodes.empty(); ++i) {
      const std::size_t who = (turn + i) % names.size();
      g = alone(network, n, entry_of(names[who]));
      if (!g.nodes.empty()) turn = who + 1;
    }
    if (g.nodes.empty()) g = alone(network, n, entry_of("portable"));
    made.groups.push_back(std::move(g));
  }
  return made;
}

bool runs_on(const c::dynamic_engine& engine, const std::string& backend) {
  return std::ranges::any_of(engine.steps(), [&](const c::step_info& s) { return s.backend == backend; });
}

/// A context and its memory.
struct runner {
  c::dynamic_context context;
  c::run_buffers memory;
  runner(const c::dynamic_engine& engine, const c::graph& network, std::uint64_t seed)
      : context(engine.context()), memory(network) {
    memory.randomise(seed);
  }
  /// What one run writes.
  std::vector<float> run() {
    const auto out = memory.out[0].as<float>();
    std::fill(out.begin(), out.end(), -1.0F);
    context.run(memory.inputs, memory.outputs);
    return {out.begin(), out.end()};
  }
};

// --- processor time -------------------------------------------------------------------------------------------------

double seconds_of(clockid_t clock) {
  timespec t{};
  if (clock_gettime(clock, &t) != 0) return 0;  // a thread that has ended
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double own_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double process_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

/// What each thread of this process has had, by its number.
std::map<int, double> seconds_by_thread() {
  std::map<int, double> seconds;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(task.path().filename());
    // The kernel's number of the clock that counts what a thread has had: pthread_getcpuclockid makes it the same way.
    seconds[thread] = seconds_of(static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3U) | 6U));
  }
  return seconds;
}

const char* const never_sleep = "threads of earlier runs never sleep (OMP_WAIT_POLICY=active)";

/// Threads look for work for some time after they had some. Waits until those of earlier runs sleep; false where they
/// never do.
bool others_sleep() {
  for (int i = 0; i < 1000; ++i) {
    const double before = process_seconds() - own_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (process_seconds() - own_seconds() - before < 5e-5) return true;
  }
  return false;
}

/// Runs until the calling thread has had `seconds`.
template <class F>
void work_for(double seconds, const F& f) {
  for (const double start = own_seconds(); own_seconds() - start < seconds;) f();
}

/// How many threads of the process work while f runs, those apart that get little of the time: OpenMP lets threads go where a
/// region is smaller and makes others for the next, and to come and to go takes time, too.
template <class F>
std::size_t threads_at_work(const F& f) {
  const std::map<int, double> before = seconds_by_thread();
  f();
  std::vector<double> gained;
  for (const auto& [thread, seconds] : seconds_by_thread()) {
    const auto known = before.find(thread);
    gained.push_back(seconds - (known == before.end() ? 0 : known->second));
  }
  const double most = *std::ranges::max_element(gained);
  return static_cast<std::size_t>(std::ranges::count_if(gained, [&](double s) { return s > most / 5; }));
}

TEST(threads, what_other_threads_do_is_seen) {
  if (!others_sleep()) GTEST_SKIP() << never_sleep;
  std::atomic<bool> done = false, seen = false;
  std::thread other;
  const double before = process_seconds() - own_seconds();
  const std::size_t working = threads_at_work([&] {
    other = std::thread([&] {
      work_for(0.02, [] {});
      for (done = true; !seen;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    work_for(0.02, [] {});
    while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_GE(process_seconds() - own_seconds() - before, 0.02);
  EXPECT_EQ(working, 2U);
  seen = true;
  other.join();
}

// --- how many work --------------------------------------------------------------------------------------------------

/// A network and how backends share it.
struct shared_network {
  std::string title;
  c::graph network;
  c::placement by;
  std::vector<std::string> names;
};

/// Each network by each backend alone, and by all in turns, which stand last.
std::vector<shared_network> shared_networks() {
  const std::vector<std::string> all = backends();
  std::vector<std::vector<std::string>> teams;
  for (const std::string& name : all) teams.push_back({name});
  teams.push_back(all);
  std::vector<shared_network> list;
  for (const auto& [title, network] : networks())
    for (const std::vector<std::string>& names : teams)
      list.push_back(
          {title + " by " + (names.size() == 1 ? names[0] : "all in turns"), network, in_turns(network, names), names});
  return list;
}

TEST(threads, one_is_one_core) {
  if (!others_sleep()) GTEST_SKIP() << never_sleep;
  std::map<std::string, std::size_t> ran;
  for (const auto& [title, network, by, names] : shared_networks()) {
    const c::dynamic_engine engine(network, by, table, 1);
    for (const std::string& name : names) ran[name] += runs_on(engine, name) ? 1U : 0U;
    runner r(engine, network, 1);
    (void)r.run();
    if (!others_sleep()) GTEST_SKIP() << never_sleep;
    const double own = own_seconds(), all = process_seconds();
    work_for(0.005, [&] { (void)r.run(); });
    const double others = process_seconds() - all - (own_seconds() - own);
    EXPECT_LT(others, 2e-4) << title;
  }
  for (const auto& [name, count] : ran) EXPECT_GT(count, 1U) << name << " ran next to nothing";
}

TEST(threads, no_more_work_than_were_asked_for) {
  if (!others_sleep()) GTEST_SKIP() << never_sleep;
  const std::vector<shared_network> list = shared_networks();
  for (const std::size_t threads : {2U, 3U})
    for (const auto& [title, network, by, names] : list) {
      const c::dynamic_engine engine(network, by, table, static_cast<int>(threads));
      runner r(engine, network, 1);
      (void)r.run();
      if (!others_sleep()) GTEST_SKIP() << never_sleep;
      // A library with a pool of its own has threads besides those of the team, though not at the same time.
      const bool two_pools = names.size() > 1 && runs_on(engine, "openvino");
      const std::size_t most = two_pools ? 2 * threads - 1 : threads;
      std::size_t working = most + 1;
      for (int attempt = 0; attempt < 10 && working > most; ++attempt)
        working = threads_at_work([&] { work_for(0.005, [&] { (void)r.run(); }); });
      EXPECT_LE(working, most) << title << " with " << threads << " threads";
    }
}

TEST(threads, no_more_are_available_than_processors_that_may_be_used) {
  if (std::getenv("OMP_PROC_BIND") != nullptr || std::getenv("OMP_PLACES") != nullptr)
    GTEST_SKIP() << "OpenMP has bound this thread";
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    const double quota = std::ceil(c::process_limits().processors());
    EXPECT_EQ(c::available_threads(), std::min<double>(CPU_COUNT(&allowed), quota));
    for (int last = CPU_SETSIZE; CPU_COUNT(&allowed) > 1; --last) CPU_CLR(last - 1, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(c::available_threads(), 1);
  }).join();
}

// --- several engines in several threads -------------------------------------------------------------------------------

/// An engine, and what it answers alone.
struct known_engine {
  std::string title;
  const shared_network* of;
  c::dynamic_engine engine;
  std::vector<std::vector<float>> alone;  ///< by seed

  known_engine(const shared_network& shared, int threads)
      : title(shared.title + " with " + std::to_string(threads) + " threads"),
        of(&shared),
        engine(shared.network, shared.by, table, threads) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) alone.push_back(runner(engine, of->network, seed).run());
  }
  runner context(std::uint64_t seed) const { return {engine, of->network, seed}; }
};
std::vector<known_engine> known_engines(const std::vector<shared_network>& list) {
  std::vector<known_engine> engines;
  for (const shared_network& shared : list)
    for (const int threads : {1, 2, 3})
      if (threads == 2 || shared.names.size() > 1) engines.emplace_back(shared, threads);
  return engines;
}

/// Whether every bit is the same.
bool is_same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Several threads, each of which calls f with its number; what one throws is a failure of the test.
template <class F>
void at_once(std::size_t count, const F& f) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t)
    threads.emplace_back([&f, t] {
      try {
        f(t);
      } catch (const std::exception& e) { ADD_FAILURE() << "thread " << t << ": " << e.what(); }
    });
  for (std::thread& t : threads) t.join();
}

TEST(threads, engines_run_side_by_side) {
  const std::vector<shared_network> list = shared_networks();
  const std::vector<known_engine> engines = known_engines(list);
  // Every thread runs engines of its own, in an order of its own, and one that all share; each with its own inputs.
  const known_engine& shared = engines.back();
  at_once(4, [&](std::size_t t) {
    const std::uint64_t seed = t % 3;
    runner together = shared.context(seed);
    for (std::size_t turn = 0; turn < engines.size(); ++turn) {
      const known_engine& e = engines[(turn + t * engines.size() / 4) % engines.size()];
      runner own = e.context(seed);
      for (int i = 0; i < 8; ++i)
        if (!is_same(own.run(), e.alone[seed])) ADD_FAILURE() << e.title << ", thread " << t << ", run " << i;
      if (!is_same(together.run(), shared.alone[seed])) ADD_FAILURE() << shared.title << ", shared, thread " << t;
    }
  });
}

TEST(threads, engines_come_and_go_while_others_run) {
  const std::vector<shared_network> list = shared_networks();
  const std::vector<known_engine> engines = known_engines(list);
  std::atomic<int> coming_and_going = 2;
  at_once(4, [&](std::size_t t) {
    const std::uint64_t seed = t % 3;
    const auto packed = std::make_shared<c::packed_weights>();
    for (std::size_t turn = 0; t < 2 ? turn < engines.size() : coming_and_going > 0; ++turn) {
      const known_engine& e = engines[(turn + t * engines.size() / 2) % engines.size()];
      if (t < 2) {
        const c::dynamic_engine again(e.of->network, e.of->by, table, e.engine.threads(), packed);
        if (!is_same(runner(again, e.of->network, seed).run(), e.alone[seed]))
          ADD_FAILURE() << e.title << ", made again by thread " << t;
      } else if (!is_same(e.context(seed).run(), e.alone[seed])) {
        ADD_FAILURE() << e.title << ", thread " << t;
      }
    }
    --coming_and_going;
  });
}

// --- what the caller has set --------------------------------------------------------------------------------------

/// How many threads OpenBLAS would take for its caller, and has memory for; 0 where it is not loaded.
int openblas_threads() {
  void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto get = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_num_threads"));
  const int threads = get != nullptr ? get() : 0;
  dlclose(library);
  return threads;
}

TEST(threads, what_the_caller_has_set_stays) {
  const auto expect = [](int threads, int dynamic, const std::string& after) {
    EXPECT_EQ(omp_get_max_threads(), threads) << after;
    EXPECT_EQ(omp_get_dynamic(), dynamic) << after;
  };
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  const std::vector<shared_network> list = shared_networks();
  expect(5, 0, "asking which backends are there");
  omp_set_num_threads(before);
  const int of_openblas = openblas_threads();
  at_once(2, [&](std::size_t t) {
    const int threads = t == 0 ? 5 : 4, dynamic = t == 0 ? 0 : 1;
    omp_set_num_threads(threads);
    omp_set_dynamic(dynamic);
    for (const shared_network& shared : list) {
      const c::dynamic_engine engine(shared.network, shared.by, table, t == 0 ? 3 : 2);
      expect(threads, dynamic, "building " + shared.title);
      for (int i = 0; i < 2; ++i) (void)runner(engine, shared.network, 1).run();
      expect(threads, dynamic, "running " + shared.title);
    }
  });
  EXPECT_EQ(openblas_threads(), of_openblas);
}

TEST(threads, what_the_caller_has_set_stays_where_a_kernel_throws) {
  const c::graph network = products();
  c::placement by = in_turns(network, backends());
  by.groups.back() = alone(network, by.groups.back().nodes[0], entry_of("failing"));
  const c::dynamic_engine engine(network, by, table, 2);
  at_once(2, [&](std::size_t t) {
    const int mine = t == 0 ? 5 : 1;
    omp_set_num_threads(mine);
    runner r(engine, network, t);
    for (int i = 0; i < 20; ++i) {
      EXPECT_THROW((void)r.run(), c::error);
      EXPECT_EQ(omp_get_max_threads(), mine);
    }
  });
}

TEST(threads, a_caller_may_have_a_team_of_its_own) {
  // Inside of it there is one thread for each caller, whatever an engine was built for.
  const std::vector<shared_network> list = shared_networks();
  for (const known_engine& e : known_engines(list)) {
    bool same[2] = {};
#pragma omp parallel num_threads(2)
    {
      const auto t = static_cast<std::size_t>(omp_get_thread_num());
      same[t] = is_same(e.context(t).run(), e.alone[t]);
    }
    EXPECT_TRUE(same[0] && same[1]) << e.title;
  }
}

TEST(threads, a_caller_may_leave_the_number_to_openmp) {
  // OMP_DYNAMIC=true: a region has fewer threads than were asked for where the machine is busy or has not as many.
  const std::vector<shared_network> list = shared_networks();
  const int threads = omp_get_num_procs() + 1;
  for (const shared_network& shared : list) {
    const known_engine e(shared, threads);
    omp_set_dynamic(1);
    const bool same = is_same(e.context(1).run(), e.alone[1]);
    const known_engine built(shared, threads);
    omp_set_dynamic(0);
    EXPECT_TRUE(same) << e.title;
    EXPECT_TRUE(is_same(built.alone[1], e.alone[1])) << e.title << ", built so";
  }
}

/// Our own backends promise the same bits however their work is divided. Libraries may add in another order.
bool promises_the_same_bits(const shared_network& shared) {
  return std::ranges::all_of(shared.names, [](const std::string& name) {
    return name == "portable" || name == "reference" || name == "stacked" || name == "jit";
  });
}

TEST(threads, results_are_those_of_one_thread) {
  // Started with OMP_THREAD_LIMIT=1 or OMP_MAX_ACTIVE_LEVELS=0, too: then there are fewer threads than were asked for.
  std::size_t compared = 0;
  for (const shared_network& shared : shared_networks()) {
    const std::vector<float> one = known_engine(shared, 1).alone[0];
    for (const int threads : {2, 3, 5}) {
      const std::vector<float> several = known_engine(shared, threads).alone[0];
      ASSERT_EQ(one.size(), several.size());
      if (promises_the_same_bits(shared)) {
        EXPECT_TRUE(is_same(one, several)) << shared.title << " with " << threads << " threads";
        ++compared;
        continue;
      }
      for (std::size_t i = 0; i < one.size(); ++i)
        ASSERT_NEAR(one[i], several[i], 1e-4 * (1 + std::abs(one[i]))) << shared.title << ", element " << i;
    }
  }
  EXPECT_GE(compared, 3U * 3U * 2U);  // every build has portable and the reference
}

}  // namespace run_threads_test
