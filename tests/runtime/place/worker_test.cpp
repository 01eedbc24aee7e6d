// Measuring in workers: kernels that crash, hang, write where they must not or lie, and all that can go wrong around them.
#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/detail/host_memory.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/measure/drift.hpp>
#include <collage/op/built_in.hpp>
#include <collage/pass/rewrite.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/measuring.hpp>
#include <collage/place/worker.hpp>
#include <collage/run/backend_table.hpp>
#include <place/request.hpp>
#include <place/sub_graph.hpp>
#include <place/wire.hpp>
#include <place/worker_client.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/loops_backend.hpp"
#include "support/messages.hpp"
#include "support/own_kind.hpp"
#include "support/random_graph.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::detail::worker_client;
using collage_test::contains;
using std::string_literals::operator""s;
using collage_test::loops;

constexpr bool is_sanitized = c::detail::is_watched;  // its handlers turn signals into exit statuses

// What a kernel can do to its process ----------------------------------------------------------------------------------

enum class deed : std::size_t {
  none,
  crash_at_build,
  abort_at_build,
  sleep_at_build,
  exit_at_build,
  throw_error_at_build,
  throw_int_at_build,
  kill_at_build,
  crash,
  abort,
  exit,
  hang,
  write_1_after,
  write_64_after,
  write_8192_after,
  write_1_before,
  write_input,
  read_64_after,
  read_8192_after,
  wrong_number,
  unwritten,
  throw_int,
  print,
  crash_in_timing,
  hang_in_timing,
  count,
  garble = count  ///< sends its worker's starter what it likes; asked for on its own
};

void run_into_a_wall() {
  volatile int* volatile nowhere = nullptr;  // so that the compiler does not see what comes
  *nowhere = 1;
}
void sleep_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Sends random packets to whoever started this worker.
void garble(const void* seeds) {
  char line[256] = {};
  std::FILE* const file = std::fopen("/proc/self/cmdline", "r");
  const std::size_t size = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  const int socket = std::atoi(line + std::string(line, size).rfind('\0', size - 2) + 1);
  std::uint64_t seed = 0;
  std::memcpy(&seed, seeds, sizeof seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3; ++i) {
    std::vector<std::uint64_t> words(random() % 40 + 1);
    for (std::uint64_t& w : words) w = random() >> random() % 64;
    if (random() % 8 != 0) words[0] = static_cast<std::uint64_t>(c::detail::message::hello) + random() % 10;
    send(socket, words.data(), words.size() * 8 - (random() % 4 == 0 ? random() % 8 : 0), MSG_NOSIGNAL);
  }
}

/// relu, and the deed.
struct hostile_kernel {
  deed what;
  std::size_t elements;
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);

  void operator()(const c::kernel_call& call) const {
    const int before = calls->fetch_add(1);
    const auto* in = static_cast<const float*>(call.in[0]);
    auto* out = static_cast<float*>(call.out[0]);
    for (std::size_t i = 0; i < elements; ++i) out[i] = std::max(in[i], 0.0F);
    auto* const bytes = reinterpret_cast<volatile char*>(out);
    const std::size_t end = elements * sizeof(float);
    const auto write = [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) bytes[end + i] = 1;
    };
    const auto read = [&](std::size_t count) {
      const auto* const from = reinterpret_cast<const volatile char*>(in);
      int sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += from[end + i];
      static_cast<void>(sum);
    };
    switch (what) {
      case deed::crash: run_into_a_wall(); break;
      case deed::abort: std::abort();
      case deed::exit: std::exit(0);
      case deed::hang: sleep_for_ever(); break;
      case deed::write_1_after: write(1); break;
      case deed::write_64_after: write(64); break;
      case deed::write_8192_after: write(8192); break;
      case deed::write_1_before: *(bytes - 1) = 1; break;
      case deed::write_input: const_cast<volatile float*>(in)[0] = 1; break;
      case deed::read_64_after: read(64); break;
      case deed::read_8192_after: read(8192); break;
      case deed::wrong_number: out[elements / 2] += 1; break;
      case deed::unwritten: out[elements / 2] = std::nanf(""); break;
      case deed::throw_int: throw 1;
      case deed::garble: garble(in); break;
      case deed::print:
        std::puts("a library that prints");
        std::fflush(stdout);
        break;
      case deed::crash_in_timing:
        if (before > 2) run_into_a_wall();
        break;
      case deed::hang_in_timing:
        if (before > 2) sleep_for_ever();
        break;
      default: break;
    }
  }
};

struct hostile : c::backend<"hostile"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static std::size_t choices(const c::match<c::single<op::relu>>&) { return static_cast<std::size_t>(deed::count) + 1; }
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context& context) {
    const auto what = static_cast<deed>(context.choice());
    switch (what) {
      case deed::crash_at_build: run_into_a_wall(); break;
      case deed::abort_at_build: std::abort();
      case deed::sleep_at_build: sleep_for_ever(); break;
      case deed::exit_at_build: std::exit(3);
      case deed::throw_error_at_build: throw std::runtime_error("no");
      case deed::throw_int_at_build: throw 1;
      case deed::kill_at_build: kill(getpid(), SIGKILL); break;
      default: break;
    }
    return {"hostile relu", hostile_kernel{what, static_cast<std::size_t>(m.output().out.elements())}};
  }
};

deed deed_of(const c::place_candidate& k) { return static_cast<deed>(k.configuration.number().value()); }

/// Spoils the memory of whoever is built after it: the second kernel in a process in which this was built crashes.
bool is_spoilt = false;
struct spoiler : c::backend<"spoiler"> {
  using patterns = c::patterns<c::single<op::sigmoid>>;
  static c::kernel build(const c::match<c::single<op::sigmoid>>& m, c::build_context&) {
    is_spoilt = true;
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"spoiling sigmoid", [count](const c::kernel_call& call) {
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = 1 / (1 + std::exp(-static_cast<const float*>(call.in[0])[i]));
            }};
  }
};
struct victim : c::backend<"victim"> {
  using patterns = c::patterns<c::single<op::sigmoid>>;
  static c::kernel build(const c::match<c::single<op::sigmoid>>& m, c::build_context& context) {
    if (is_spoilt) run_into_a_wall();
    const c::kernel inner = spoiler::build(m, context);
    is_spoilt = false;
    return {"victim", inner};
  }
};

/// A user's kinds: snake is named by a pattern, spread where worker is called, pieces nowhere.
struct waves : c::backend<"waves"> {
  using patterns = c::patterns<c::single<own::snake>>;
  static c::kernel build(const c::match<c::single<own::snake>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    const auto alpha = static_cast<float>(m[own::snake].alpha);
    return {"wave", [=](const c::kernel_call& call) {
              for (std::size_t i = 0; i < count; ++i) {
                const float x = static_cast<const float*>(call.in[0])[i];
                static_cast<float*>(call.out[0])[i] = x + std::sin(alpha * x) * std::sin(alpha * x) / alpha;
              }
            }};
  }
};

/// Has configurations that are texts.
struct wordy : c::backend<"wordy"> {
  using patterns = c::patterns<c::single<op::exp>>;
  static void configurations(const c::match<c::single<op::exp>>&, c::configuration_list& to) {
    for (const char* text : {"loop unroll 1", "loop unroll 4", "loop that is wrong", "loop that crashes"}) to.add(text);
  }
  static bool knows(const c::match<c::single<op::exp>>&, const c::configuration& how) {
    return how.text().starts_with("loop ");
  }
  static c::kernel build(const c::match<c::single<op::exp>>& m, c::build_context& context) {
    const std::string how = context.configuration().text();
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"wordy " + how, [=](const c::kernel_call& call) {
              if (how == "loop that crashes") run_into_a_wall();
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] =
                    std::exp(static_cast<const float*>(call.in[0])[i]) + (how == "loop that is wrong" ? 1.0F : 0.0F);
            }};
  }
};

/// A rule in place of patterns: relus, one after the other.
struct chains : c::backend<"chains"> {
  static bool any_operator(const c::fuse::dataflow&, std::uint32_t) { return true; }
  static constexpr auto rule = c::fuse::by_fusion{any_operator, {.nodes = 3, .outputs = 1}};
  static bool takes(const c::graph& network, std::uint32_t node) { return c::is_kind(network, node, op::relu); }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    const auto count = static_cast<std::size_t>(context.network().type_of(group.outputs[0]).dims.elements());
    return {"chain of " + std::to_string(group.nodes.size()), [count](const c::kernel_call& call) {
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = std::max(static_cast<const float*>(call.in[0])[i], 0.0F);
            }};
  }
};

/// relu of a constant's sum: reads all of its weights.
struct weighing : c::backend<"weighing"> {
  using patterns = c::patterns<c::single<op::add>>;
  static constexpr c::verdict accepts(const c::match<c::single<op::add>>& m) {
    return {m.arguments() == 2 && m.operand(m.output(), 0).out == m.operand(m.output(), 1).out, "of one shape"};
  }
  static c::kernel build(const c::match<c::single<op::add>>& m, c::build_context& context) {
    const auto* const constant = context.constant<float>(m.argument(1).value);
    if (constant == nullptr) throw c::error(c::error_kind::unsupported, "it wants a constant", "weighing");
    const auto packed = context.packed(m.argument(1).value, "weighing", 64,
                                       [&](std::byte* to) { std::memcpy(to, constant, sizeof(float)); });
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    c::kernel k("weighing " + std::to_string(reinterpret_cast<std::uintptr_t>(constant) % 64),
                [count, constant, packed](const c::kernel_call& call) {
                  for (std::size_t i = 0; i < count; ++i)
                    static_cast<float*>(call.out[0])[i] = static_cast<const float*>(call.in[0])[i] + constant[i];
                });
    k.does_not_read(1);
    return k;
  }
};

using test_set = c::backend_set<hostile, spoiler, victim, waves, chains, weighing, wordy, loops, c::portable>;
constexpr c::backend_table table = c::table_of<test_set>;

// What tests measure ---------------------------------------------------------------------------------------------------

struct measurement {
  const c::graph* network = nullptr;
  c::backend_table backends = table;
  c::place_candidates candidates;
  c::packed_weights packed;
  c::measuring_setup setup;

  explicit measurement(const c::graph& of, c::backend_table with = table) : network(&of), backends(with) {
    candidates = c::find_candidates(of, with, std::vector<bool>(with.size(), true));
    setup.packed = &packed;
    setup.timing = {.sample_ms = 0.01, .rounds = 3, .least_rounds = 1, .budget_ms = 5};
  }
  /// The candidates at the example of a structure for which `wanted` is true.
  template <class Wanted>
  std::vector<std::uint32_t> at(std::uint32_t structure, Wanted wanted) const {
    std::vector<std::uint32_t> list;
    for (std::uint32_t i = 0; i < candidates.list.size(); ++i)
      if (candidates.list[i].group == candidates.structures[structure].example && wanted(candidates.list[i]))
        list.push_back(i);
    return list;
  }
  std::string backend_of(std::uint32_t i) const { return backends[candidates.list[i].backend].name; }
  std::vector<c::measured_candidate> in(worker_client& client, const std::vector<std::uint32_t>& asked) const {
    return client.measure(*network, backends, candidates, asked, setup);
  }
  std::vector<c::measured_candidate> here(const std::vector<std::uint32_t>& asked) const {
    return c::measure_candidates(*network, backends, candidates, asked, setup);
  }
};

c::graph one_relu(std::int64_t elements = 100) {
  c::graph_builder g;
  g.output("z", g(op::relu, g.input("x", {c::dtype::f32, {elements}})));
  return g.finish();
}

/// The hostile backend's deeds, and what is not hostile, for one relu.
std::vector<std::uint32_t> relus_with(const measurement& m, const std::vector<deed>& deeds) {
  return m.at(0, [&](const c::place_candidate& k) {
    const std::string name = m.backends[k.backend].name;
    if (name != "hostile") return name == "loops" || c::is_last_resort(m.backends, k);
    return std::find(deeds.begin(), deeds.end(), deed_of(k)) != deeds.end();
  });
}

std::size_t open_files() {
  std::size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}
bool has_children() { return waitpid(-1, nullptr, WNOHANG) == 0 || errno != ECHILD; }

class worker : public ::testing::Test {
 protected:
  void SetUp() override {
    // The first call of all opens what stays open.
    files_ = open_files();
  }
  void TearDown() override {
    EXPECT_EQ(open_files(), files_);
    EXPECT_FALSE(has_children());
  }

 private:
  std::size_t files_ = 0;
};

TEST_F(worker, what_a_deed_comes_to_and_the_others_are_measured) {
  const std::map<deed, std::pair<std::string, std::string>> told = {
      {deed::none, {"", ""}},
      {deed::crash_at_build, {"crashed with SIGSEGV while it was built", "while it was built"}},
      {deed::abort_at_build, {"crashed with SIGABRT while it was built", "while it was built"}},
      {deed::sleep_at_build, {"returned nothing within 1 s while it was built", "returned nothing"}},
      {deed::exit_at_build, {"ended its process with exit status 3 while it was built", "while it was built"}},
      {deed::throw_error_at_build, {"failed: no", "failed: no"}},
      {deed::throw_int_at_build, {"threw an object that is no std::exception while it was built", "threw"}},
      {deed::kill_at_build, {"was killed by SIGKILL while it was built, three times", "was killed by SIGKILL"}},
      {deed::crash, {"crashed with SIGSEGV at its first call, in guarded memory", "at its first call"}},
      {deed::abort, {"crashed with SIGABRT at its first call, in guarded memory", "at its first call"}},
      {deed::exit, {"ended its process with exit status 0 at its first call, in guarded memory", "at its first call"}},
      {deed::hang, {"returned nothing within 1 s at its first call", "returned nothing within 1 s at its first call"}},
      {deed::write_1_after, {"it writes outside its outputs", "it writes outside its outputs"}},
      {deed::write_64_after, {"it writes outside its outputs", "it writes outside its outputs"}},
      {deed::write_8192_after, {"reads or writes outside its memory", "at its first call"}},
      {deed::write_1_before, {"it writes outside its outputs", "it writes outside its outputs"}},
      {deed::write_input, {"crashed with SIGSEGV at its first call", "at its first call"}},
      {deed::read_64_after, {"", ""}},
      {deed::read_8192_after, {"reads or writes outside its memory", "at its first call"}},
      {deed::wrong_number, {"wrong result", "wrong result"}},
      {deed::unwritten, {"wrong result", "wrong result"}},
      {deed::throw_int, {"at its first call", "at its first call"}},
      {deed::print, {"", ""}},
      {deed::crash_in_timing, {"crashed with SIGSEGV while it was timed", "while it was timed"}},
      {deed::hang_in_timing, {"returned nothing within 1 s while it was timed", "returned nothing"}},
  };
  const c::graph network = one_relu();
  const measurement m(network);
  std::vector<deed> all;
  for (const auto& [what, texts] : told) all.push_back(what);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(deed::count));
  const auto asked = relus_with(m, all);
  ASSERT_EQ(asked.size(), static_cast<std::size_t>(deed::count) + 2);
  worker_client client({.timeout_s = 1});
  const auto found = m.in(client, asked);
  EXPECT_EQ(client.where(), "in a worker");
  EXPECT_GT(client.restarts(), 10U);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const c::place_candidate& k = m.candidates.list[asked[i]];
    if (m.backend_of(asked[i]) == "hostile") {
      const auto& texts = told.at(deed_of(k));
      const std::string& text = is_sanitized ? texts.second : texts.first;
      if (text.empty()) EXPECT_EQ(found[i].refusal, "") << k.configuration.text();
      else EXPECT_TRUE(contains(found[i].refusal, text)) << k.configuration.text() << ": " << found[i].refusal;
    } else if (m.backend_of(asked[i]) == "loops") {
      EXPECT_EQ(found[i].refusal, "");
      EXPECT_EQ(found[i].kernel, "loop relu");
    } else {
      EXPECT_EQ(found[i].refusal, c::needless_fallback);
    }
    EXPECT_EQ(found[i].refusal.empty(), found[i].cost_ms > 0) << k.configuration.text();
    EXPECT_EQ(found[i].refusal.empty(), found[i].time.samples > 0) << k.configuration.text();
  }
}

TEST_F(worker, each_deed_on_its_own_leaves_the_worker_or_a_new_one_behind) {
  const c::graph network = one_relu(16);
  const measurement m(network);
  worker_client client({.timeout_s = 0.3});
  for (std::size_t what = 0; what < static_cast<std::size_t>(deed::count); ++what) {
    const auto asked = m.at(0, [&](const c::place_candidate& k) {
      return std::string(m.backends[k.backend].name) == "hostile" && deed_of(k) == static_cast<deed>(what);
    });
    const auto found = m.in(client, asked);
    const bool is_good =
        what == 0 || static_cast<deed>(what) == deed::read_64_after || static_cast<deed>(what) == deed::print;
    EXPECT_EQ(found[0].refusal.empty(), is_good) << what << ": " << found[0].refusal;
    const auto good = relus_with(m, {});
    const auto after = m.in(client, good);
    EXPECT_EQ(after[0].refusal, "") << what;
    EXPECT_GT(after[0].cost_ms, 0.0);
    EXPECT_EQ(client.where(), "in a worker");
  }
}

TEST_F(worker, the_last_resort_is_tried_where_all_others_bring_workers_down) {
  const c::graph network = one_relu();
  const measurement m(network);
  const auto asked = m.at(0, [&](const c::place_candidate& k) {
    const std::string name = m.backends[k.backend].name;
    return c::is_last_resort(m.backends, k) ||
           (name == "hostile" && (deed_of(k) == deed::crash || deed_of(k) == deed::crash_in_timing));
  });
  ASSERT_EQ(asked.size(), 3U);
  worker_client client;
  const auto found = m.in(client, asked);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(found[i].refusal.empty(), c::is_last_resort(table, m.candidates.list[asked[i]])) << found[i].refusal;
}

TEST_F(worker, nobody_is_refused_for_what_another_did) {
  c::graph_builder g;
  g.output("z", g(op::sigmoid, g.input("x", {c::dtype::f32, {8}})));
  const c::graph network = g.finish();
  const measurement m(network);
  const auto asked = m.at(0, [&](const c::place_candidate& k) {
    const std::string name = m.backends[k.backend].name;
    return name == "spoiler" || name == "victim" || c::is_last_resort(m.backends, k);
  });
  ASSERT_EQ(asked.size(), 3U);
  worker_client client;
  const auto found = m.in(client, asked);
  EXPECT_EQ(found[0].refusal, "");
  EXPECT_EQ(found[1].refusal, "");
  EXPECT_GT(found[1].cost_ms, 0.0);
  EXPECT_EQ(found[2].refusal, c::needless_fallback);
}

/// Kernels and refusals, in a worker and here.
void expect_the_same(worker_client& client, const measurement& m) {
  for (std::uint32_t s = 0; s < m.candidates.structures.size(); ++s) {
    const auto asked =
        m.at(s, [&](const c::place_candidate& k) { return std::string(m.backends[k.backend].name) != "hostile"; });
    if (asked.empty()) continue;
    const auto there = m.in(client, asked);
    EXPECT_EQ(client.where(), "in a worker") << m.candidates.structures[s].label;
    const auto here = m.here(asked);
    ASSERT_EQ(there.size(), here.size());
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_EQ(there[i].refusal, here[i].refusal) << m.candidates.structures[s].label;
      EXPECT_EQ(there[i].kernel, here[i].kernel) << m.candidates.structures[s].label;
      EXPECT_EQ(there[i].cost_ms > 0, here[i].cost_ms > 0);
    }
  }
}

TEST_F(worker, measures_random_networks_as_this_process_does) {
  collage_test::generator random(collage_test::seed_or(1));
  worker_client client;
  const c::backend_table peaceful = c::table_of<c::backend_set<chains, weighing, loops, c::portable>>;
  for (int round = 0; round < 12; ++round) {
    c::graph network = collage_test::random_graph(random, {.nodes = 10});
    c::fill_constants(network);
    expect_the_same(client, measurement(network, peaceful));
  }
  EXPECT_EQ(client.restarts(), 0U);
}

TEST_F(worker, finds_kinds_of_the_users_own_and_measures_here_what_it_does_not_know) {
  c::graph_builder g;
  const c::value x = g.input("x", {4, 6});
  const c::value named_by_a_pattern = g(own::snake, x, {.alpha = 2});
  const c::value named_in_main = g(own::spread, named_by_a_pattern, {.axis = 1, .lag = {0, 1}, .weights = {2, {1, 2}}});
  g.output("z", g(own::pieces, named_in_main, {.count = 2}));
  const c::graph network = g.finish();
  const measurement m(network);
  worker_client client;
  for (std::uint32_t s = 0; s < m.candidates.structures.size(); ++s) {
    const auto asked = m.at(s, [](const c::place_candidate&) { return true; });
    const auto there = m.in(client, asked);
    const std::string label = m.candidates.structures[s].label;
    if (contains(label, "pieces"))
      EXPECT_TRUE(contains(client.where(), "in this process (") && contains(client.where(), "not known to workers"))
          << client.where();
    else EXPECT_EQ(client.where(), "in a worker") << label;
    const auto here = m.here(asked);
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_EQ(there[i].refusal, here[i].refusal) << label;
      EXPECT_EQ(there[i].kernel, here[i].kernel) << label;
    }
  }
}

TEST_F(worker, gives_constants_as_they_are) {
  const auto list = [] {
    std::vector<float> numbers(40);
    std::iota(numbers.begin(), numbers.end(), 1.0F);
    return numbers;
  }();
  worker_client client;
  for (const int how : {0, 1, 2}) {
    c::graph_builder g;
    const c::tensor_type type{c::dtype::f32, {40}};
    c::value w;
    if (how == 0) {
      w = g.constant("w", type);
    } else if (how == 1) {
      w = g.constant("w", type, c::uniform{1, 2});
    } else {
      const auto bytes = c::allocate_bytes(160);
      std::memcpy(bytes.get(), list.data(), 160);
      w = g.constant("w", type, bytes);
    }
    g.output("z", g(op::add, g(op::reshape, g.input("x", {8, 5}), g.integers("shape", {40})), w));
    g.output("half", g(op::mul, w, g.scalar("factor", 0.5)));
    c::graph network = g.finish();
    if (how == 0) network.bind("w", list);
    c::fill_constants(network);
    const measurement m(network);
    for (std::uint32_t s = 0; s < m.candidates.structures.size(); ++s) {
      const auto asked = m.at(s, [](const c::place_candidate&) { return true; });
      const auto there = m.in(client, asked);
      const auto here = m.here(asked);
      EXPECT_EQ(client.where(), "in a worker");
      for (std::size_t i = 0; i < here.size(); ++i) {
        EXPECT_EQ(there[i].refusal, here[i].refusal);
        EXPECT_EQ(there[i].kernel, here[i].kernel);  // the name of weighing's says how its constant is aligned
      }
    }
  }
}

TEST_F(worker, takes_large_constants) {
  c::graph_builder g;
  const c::value x = g.input("x", {1, 4096});
  g.output("z", g(op::matmul, x, g.constant("w", {4096, 4096}, c::uniform{-1, 1})));
  c::graph network = g.finish();
  c::fill_constants(network);
  const measurement m(network);
  const auto asked = m.at(0, [](const c::place_candidate&) { return true; });
  ASSERT_FALSE(asked.empty());
  worker_client client;
  const auto found = m.in(client, asked);
  EXPECT_EQ(client.where(), "in a worker");
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const auto& f) { return f.cost_ms > 0; }));
}

TEST_F(worker, ends_timing_when_it_is_told) {
  const c::graph network = one_relu();
  measurement m(network);
  m.setup.timing = {.sample_ms = 1, .rounds = 1U << 19, .least_rounds = 1U << 19, .budget_ms = 1e9};
  const auto start = std::chrono::steady_clock::now();
  const auto passed_s = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  m.setup.stop = [&] { return passed_s() > 0.4; };
  std::size_t notes = 0;
  m.setup.note = [&](std::size_t, c::measuring_step) { ++notes; };
  worker_client client({.timeout_s = 2});
  const auto found = m.in(client, relus_with(m, {deed::none}));
  EXPECT_GT(passed_s(), 0.3);
  EXPECT_LT(passed_s(), 60.0);  // all rounds take 500 s
  EXPECT_EQ(notes, 5U);         // two are built and called, all are timed
  EXPECT_GT(found[0].time.samples, 0U);
  EXPECT_GT(found[0].cost_ms, 0.0);
  EXPECT_EQ(client.restarts(), 0U);
  m.setup.stop = [] { return true; };
  EXPECT_GT(m.in(client, relus_with(m, {deed::none}))[0].cost_ms, 0.0);
}

TEST_F(worker, builds_no_more_kernels_than_one_when_time_is_up) {
  const c::graph network = one_relu();
  measurement m(network);
  m.setup.stop = [] { return true; };
  const auto found = m.here(relus_with(m, {deed::none}));
  const auto count = [&](const std::string& refusal) {
    return std::ranges::count(found, refusal, &c::measured_candidate::refusal);
  };
  EXPECT_EQ(count(""), 1);
  EXPECT_EQ(count(c::no_time_for_it), 1);
  EXPECT_EQ(count(c::needless_fallback), 1);
  for (const auto& f : found) EXPECT_EQ(f.passing, f.refusal == c::no_time_for_it);
}

TEST_F(worker, builds_no_more_kernels_than_one_when_its_slot_is_over) {
  const c::graph network = one_relu();
  measurement m(network);
  m.setup.slot_ms = 1e-6;
  worker_client client;
  for (const bool needs_all : {false, true}) {
    m.setup.needs_all = needs_all;
    for (const auto& found : {m.here(relus_with(m, {deed::none})), m.in(client, relus_with(m, {deed::none}))}) {
      EXPECT_EQ(std::ranges::count(found, "", &c::measured_candidate::refusal), needs_all ? 2 : 1);
      for (const auto& f : found)
        if (f.refusal.empty()) EXPECT_EQ(f.time.samples, m.setup.timing.least_rounds);
    }
  }
  EXPECT_EQ(client.where(), "in a worker");
}

TEST_F(worker, is_given_up_once_for_all_candidates) {
  const c::graph network = one_relu();
  measurement m(network);
  const auto start = std::chrono::steady_clock::now();
  m.setup.give_up = [start] { return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(300); };
  worker_client client;
  const auto found = m.in(client, relus_with(m, {deed::none, deed::sleep_at_build, deed::hang}));
  ASSERT_EQ(found.size(), 5U);
  for (const auto& f : found) EXPECT_TRUE(f.refusal.starts_with("the time was up ")) << f.refusal;
  EXPECT_EQ(client.restarts(), 0U);  // no request is written again for those that are left
  EXPECT_EQ(client.process(), 0);
  m.setup.give_up = {};
  EXPECT_GT(m.in(client, relus_with(m, {deed::none}))[0].cost_ms, 0.0);
}

TEST_F(worker, is_ended_where_the_caller_throws) {
  const c::graph network = one_relu();
  measurement m(network);
  m.setup.timing = {.sample_ms = 1, .rounds = 1U << 19, .least_rounds = 1U << 19, .budget_ms = 1e9};
  struct enough {};
  int calls = 0;
  m.setup.stop = [&]() -> bool {
    if (++calls == 5) throw enough();
    return false;
  };
  worker_client client;
  EXPECT_THROW((void)m.in(client, relus_with(m, {deed::none})), enough);
  EXPECT_EQ(client.process(), 0);
  // The client works on, with another worker.
  m.setup.timing = {};
  m.setup.stop = {};
  EXPECT_GT(m.in(client, relus_with(m, {deed::none}))[0].cost_ms, 0.0);
  EXPECT_EQ(client.where(), "in a worker");
}

TEST_F(worker, takes_longer_than_its_patience_where_signs_of_life_come) {
  const c::graph network = one_relu();
  measurement m(network);
  m.setup.timing = {.sample_ms = 20, .rounds = 40, .least_rounds = 40, .budget_ms = 1e9};
  worker_client client({.timeout_s = 0.5});
  const auto found = m.in(client, relus_with(m, {}));
  EXPECT_EQ(found[0].refusal, "");
  EXPECT_GE(found[0].time.samples, 40U);
  EXPECT_EQ(client.restarts(), 0U);
}

TEST_F(worker, is_told_from_the_program_that_the_user_started) {
  const char* const words[] = {"program", "--collage-worker", "7"};
  EXPECT_TRUE(c::is_worker(3, words));
  EXPECT_FALSE(c::is_worker(2, words));
  EXPECT_FALSE(c::is_worker(1, words));
}

TEST_F(worker, watches_the_machine_where_it_is_watched) {
  const c::graph network = one_relu();
  measurement m(network);
  // It is never calm. Patience alone ends the waiting: on a busy machine one reading may take longer than a short limit, and then
  // there is no waiting at all.
  c::drift_monitor monitor([] {}, {.calm = {0}, .patience_ms = 30});
  m.setup.monitor = &monitor;
  m.setup.threads = 2;
  worker_client client;
  EXPECT_EQ(m.in(client, relus_with(m, {}))[0].refusal, "");
  EXPECT_GT(client.waited_ms(), 1.0);
}

TEST_F(worker, survives_that_it_is_killed_at_random_moments) {
  const c::graph network = one_relu(5000);
  measurement m(network);
  const auto asked = relus_with(m, {deed::none});
  std::mt19937_64 random(collage_test::seed_or(3));
  worker_client client;
  std::atomic<int> process{0};
  m.setup.note = [&](std::size_t, c::measuring_step) { process = client.process(); };
  std::size_t killed = 0;
  for (int round = 0; round < 60; ++round) {
    process = client.process();
    std::thread killer([&, pause = random() % 25000] {
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
      if (const int victim = process; victim > 0 && kill(victim, SIGKILL) == 0) ++killed;
    });
    const auto found = m.in(client, asked);
    EXPECT_EQ(client.where(), "in a worker");
    EXPECT_EQ(found[0].refusal, "");
    EXPECT_EQ(found[1].refusal, "");
    EXPECT_GT(found[0].cost_ms, 0.0);
    killer.join();
  }
  EXPECT_GT(killed, 20U);
  EXPECT_GT(client.restarts(), 20U);
}

TEST_F(worker, gives_up_after_three_failures_in_a_row) {
  const c::graph network = one_relu();
  measurement m(network);
  m.setup.timing.sample_ms = 100;  // so that timing is not over before its worker is killed
  worker_client client;
  m.setup.note = [&](std::size_t, c::measuring_step step) {
    if (step == c::measuring_step::timing && client.process() > 0) kill(client.process(), SIGKILL);
  };
  const auto found = m.in(client, relus_with(m, {deed::none}));
  EXPECT_EQ(client.where(),
            "in this process (three workers in a row have failed, the last: was killed by SIGKILL while it was timed)");
  EXPECT_EQ(found[0].refusal, "");
  EXPECT_GT(found[0].cost_ms, 0.0);
}

TEST_F(worker, is_replaced_where_the_thread_that_started_it_has_ended) {
  const c::graph network = one_relu();
  const measurement m(network);
  const auto asked = relus_with(m, {deed::none});
  worker_client client;
  for (int i = 0; i < 5; ++i) {
    std::thread([&] { EXPECT_GT(m.in(client, asked)[0].cost_ms, 0.0); }).join();
    EXPECT_EQ(client.where(), "in a worker");
  }
}

TEST_F(worker, lets_who_started_it_decide_about_interrupts) {
  const c::graph network = one_relu();
  measurement m(network);
  worker_client client;
  m.setup.note = [&](std::size_t, c::measuring_step) { kill(client.process(), SIGINT); };
  EXPECT_GT(m.in(client, relus_with(m, {deed::none}))[0].cost_ms, 0.0);
  EXPECT_EQ(client.restarts(), 0U);
}

TEST_F(worker, crashes_are_told_where_nobody_hears_of_ended_children) {
  const c::graph network = one_relu();
  const measurement m(network);
  const auto before = signal(SIGCHLD, SIG_IGN);
  {
    worker_client client;
    const auto found = m.in(client, relus_with(m, {deed::none, deed::crash}));
    EXPECT_EQ(found[0].refusal, "");
    EXPECT_EQ(found[1].refusal, "ended its process at its first call, in guarded memory");
  }
  signal(SIGCHLD, before);
}

/// Whether a process, which need not be a child of this one, ends within a few seconds.
bool ends_soon(int process) {
  for (int i = 0; i < 500; ++i) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    if (text.empty() || contains(text, ") Z")) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(worker, ends_with_who_started_it) {
  const c::graph network = one_relu();
  measurement m(network);
  for (const deed what : {deed::none, deed::hang}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t starter = fork();
    if (starter == 0) {
      worker_client client;
      const auto tell_and_end = [&] {
        const int process = client.process();
        if (write(ends[1], &process, sizeof process) < 0) _exit(2);
        _exit(0);  // without a word to the worker
      };
      m.setup.note = [&](std::size_t, c::measuring_step step) {
        if (what == deed::hang && step == c::measuring_step::first_call) tell_and_end();
      };
      m.in(client, m.at(0, [&](const c::place_candidate& k) {
        return std::string(m.backends[k.backend].name) == "hostile" && deed_of(k) == what;
      }));
      tell_and_end();
    }
    int process = 0;
    ASSERT_EQ(read(ends[0], &process, sizeof process), static_cast<ssize_t>(sizeof process));
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(waitpid(starter, nullptr, 0), starter);
    EXPECT_GT(process, 0);
    EXPECT_TRUE(ends_soon(process));
  }
}

TEST_F(worker, prints_nothing_where_the_program_does) {
  const c::graph network = one_relu();
  const measurement m(network);
  testing::internal::CaptureStdout();
  {
    worker_client client;
    EXPECT_EQ(m.in(client, relus_with(m, {deed::print}))[0].refusal, "");
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(worker, believes_no_message) {
  const c::graph network = one_relu(64);
  measurement m(network);
  const auto asked = m.at(0, [&](const c::place_candidate& k) {
    const std::string name = m.backends[k.backend].name;
    return name == "loops" || (name == "hostile" && deed_of(k) == deed::garble);
  });
  ASSERT_EQ(asked.size(), 2U);
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    m.setup.seed = seed;
    worker_client client({.timeout_s = 1});
    const auto found = m.in(client, asked);
    ASSERT_EQ(found.size(), 2U);
    refused += found[0].refusal.empty() ? 0U : 1U;
    EXPECT_EQ(client.where(), "in a worker");
  }
  EXPECT_GT(refused, 20U);
}

/// A request as a worker gets it.
struct request_bytes {
  std::shared_ptr<std::byte> owner;
  std::span<std::byte> bytes;
  std::size_t head = 0;

  explicit request_bytes(const measurement& m, const std::vector<std::uint32_t>& asked) {
    auto group = c::detail::sub_graph_maker(*m.network, m.backends, m.candidates, asked).make();
    c::detail::measuring_request request{std::move(*group), m.setup,
                                         c::drift_options{.patience_ms = 7, .part = 0.25, .usual_ms = {0.25, 0.5}}};
    const c::detail::request_file file = c::detail::write_request(request, m.backends);
    owner = c::allocate_bytes(file.size);
    bytes = {owner.get(), file.size};
    head = file.head.size();
    std::memset(owner.get(), 0, file.size);
    std::memcpy(owner.get(), file.head.data(), head);
    for (const auto& part : file.parts) std::memcpy(owner.get() + part.at, part.bytes.data(), part.bytes.size());
  }
  c::detail::measuring_request read() const {
    const c::detail::kind_finder find = [](std::uint64_t id) -> const c::kind_info* {
      for (std::size_t i = 0; i < c::built_in_kinds.size(); ++i)
        if (c::built_in_kinds[i]->id == id) return c::built_in_kinds[i];
      return nullptr;
    };
    return c::detail::request_reader(bytes, owner, table, find).read();
  }
};

c::graph for_requests() {
  c::graph_builder g;
  const c::value x = g.input("x", {1, 2, 6, 6});
  const c::value w = g.constant("w", {4, 2, 3, 3}, c::uniform{-1, 1});
  const c::value y = g(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}});
  const c::value r = g(op::relu, g(op::add, y, y));
  g.output("z", g(op::transpose, r, {.permutation = {0, 2, 3, 1}}));
  g.output("flat", g(op::reshape, r, g.integers("shape", {4, 36})));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

TEST_F(worker, reads_what_it_is_asked) {
  const c::graph network = for_requests();
  const measurement m(network);
  for (std::uint32_t s = 0; s < m.candidates.structures.size(); ++s) {
    const auto asked = m.at(s, [](const c::place_candidate&) { return true; });
    const auto made = c::detail::sub_graph_maker(network, table, m.candidates, asked).make();
    ASSERT_TRUE(made);
    const c::detail::measuring_request read = request_bytes(m, asked).read();
    EXPECT_EQ(read.group.network.fingerprint(), made->network.fingerprint());
    EXPECT_EQ(read.group.candidates.list.size(), asked.size());
    EXPECT_EQ(read.setup.seed, m.setup.seed);
    EXPECT_EQ(read.setup.timing.rounds, m.setup.timing.rounds);
    ASSERT_TRUE(read.drift);
    EXPECT_EQ(read.drift->calm, c::drift_options{}.calm);
    EXPECT_EQ(read.drift->patience_ms, 7);
    EXPECT_EQ(read.drift->part, 0.25);
    EXPECT_EQ(read.drift->usual_ms, (std::array<double, c::drift_signs>{0.25, 0.5}));
    for (std::uint32_t v = 0; v < made->network.values().size(); ++v) {
      EXPECT_EQ(read.group.network.value_name(v), made->network.value_name(v));
      EXPECT_EQ(read.group.network.at(v).is_output, made->network.at(v).is_output);
      EXPECT_EQ(read.group.network.at(v).has_scalar, made->network.at(v).has_scalar);
      if (made->network.at(v).role == c::value_role::constant) {
        EXPECT_TRUE(std::ranges::equal(read.group.network.bytes_of(v), made->network.bytes_of(v)));
      }
    }
  }
}

TEST_F(worker, measures_configurations_that_are_texts) {
  c::graph_builder g;
  g.output("z", g(op::exp, g.input("x", {c::dtype::f32, {100}})));
  const c::graph network = g.finish();
  measurement m(network);
  const auto asked = m.at(0, [&](const c::place_candidate& k) { return m.backends[k.backend].name == "wordy"s; });
  ASSERT_EQ(asked.size(), 4U);
  worker_client client;
  const auto found = m.in(client, asked);
  EXPECT_EQ(client.where(), "in a worker");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(found[i].kernel, "wordy " + m.candidates.list[asked[i]].configuration.text());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].refusal, "");
    EXPECT_GT(found[i].cost_ms, 0.0);
  }
  EXPECT_TRUE(contains(found[2].refusal, "wrong result")) << found[2].refusal;
  EXPECT_TRUE(contains(found[3].refusal, "at its first call")) << found[3].refusal;
  const c::detail::measuring_request read = request_bytes(m, asked).read();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(read.group.candidates.list[i].configuration, m.candidates.list[asked[i]].configuration);
}

TEST_F(worker, refuses_configurations_that_it_does_not_know) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {100}});
  g.output("y", g(op::exp, x));
  g.output("z", g(op::relu, x));
  const c::graph network = g.finish();
  for (const auto& [backend, text] :
       {std::pair{"wordy", "spiral 3"}, {"wordy", "4"}, {"hostile", "99"}, {"hostile", "loop"}}) {
    measurement m(network);
    for (std::uint32_t i = 0; i < m.candidates.list.size(); ++i) {
      if (m.backend_of(i) != backend) continue;
      m.candidates.list[i].configuration = *c::configuration::of(text);
      EXPECT_EQ(
          collage_test::message_of([&] { (void)request_bytes(m, {i}).read(); }, c::error_kind::unsupported),
          "pattern " + std::string(backend == "wordy"s ? "exp" : "relu") + " of backend " + backend +
              ": its configuration is not known to workers; call collage::worker with the same backends as place");
      break;
    }
  }
}

TEST_F(worker, refuses_garbled_requests) {
  const c::graph network = for_requests();
  const measurement m(network);
  std::mt19937_64 random(collage_test::seed_or(5));
  std::size_t refused = 0, rounds = 0;
  for (std::uint32_t s = 0; s < m.candidates.structures.size(); ++s) {
    const auto asked = m.at(s, [](const c::place_candidate&) { return true; });
    const request_bytes whole(m, asked);
    const std::vector<std::byte> good(whole.bytes.begin(), whole.bytes.end());
    for (int round = 0; round < 1000; ++round, ++rounds) {
      std::ranges::copy(good, whole.bytes.begin());
      request_bytes garbled = whole;
      for (std::size_t i = random() % 3 + 1; i > 0; --i) {
        const std::size_t at = random() % garbled.head / 8 * 8;
        std::uint64_t word = random() >> random() % 64;
        if (random() % 3 == 0) {
          std::memcpy(&word, garbled.bytes.data() + at, 8);
          word ^= std::uint64_t{1} << random() % 64;
        } else if (random() % 3 == 0) {
          std::memcpy(&word, garbled.bytes.data() + random() % garbled.head / 8 * 8, 8);
        }
        std::memcpy(garbled.bytes.data() + at, &word, 8);
      }
      if (random() % 8 == 0) garbled.bytes = garbled.bytes.first(random() % garbled.bytes.size());
      const bool is_sealed = random() % 8 != 0;  // the checksum hides what the other checks are for
      if (is_sealed && garbled.bytes.size() >= garbled.head) {
        const std::uint64_t sum = c::detail::checksum(garbled.bytes.subspan(16, garbled.head - 16));
        std::memcpy(garbled.bytes.data() + 8, &sum, 8);
      }
      try {
        const c::detail::measuring_request read = garbled.read();
        EXPECT_FALSE(read.group.candidates.list.empty());
      } catch (const std::exception& e) {
        ++refused;
        EXPECT_NE(std::string(e.what()), "");
      }
    }
  }
  EXPECT_GT(refused, rounds / 2);
}

TEST_F(worker, refuses_garbled_results) {
  c::measured_candidate good;
  good.kernel = "conv jit";
  good.time = {1, 2, 3, 4, 5, 6};
  good.cost_ms = 7;
  c::detail::byte_writer to;
  put(to, good);
  const std::vector<std::byte> whole(to.bytes().begin(), to.bytes().end());
  c::detail::byte_reader all(whole);
  EXPECT_EQ(c::detail::get_measured(all).kernel, "conv jit");
  std::mt19937_64 random(collage_test::seed_or(7));
  std::size_t refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::byte> bytes = whole;
    for (std::size_t i = random() % 3 + 1; i > 0; --i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() & 0xFF);
    bytes.resize(bytes.size() - random() % 4 / 3 * (random() % bytes.size()));
    bytes.shrink_to_fit();
    try {
      c::detail::byte_reader from(bytes);
      const c::measured_candidate read = c::detail::get_measured(from);
      from.expect_end();
      EXPECT_GE(read.cost_ms, 0.0);
      EXPECT_LE(read.kernel.size(), whole.size());
    } catch (const c::error& e) {
      ++refused;
      EXPECT_TRUE(contains(e.what(), "message of a worker: ")) << e.what();
    }
  }
  EXPECT_GT(refused, 200U);
}

TEST_F(worker, long_reasons_are_cut) {
  c::measured_candidate good;
  good.refusal = std::string(100000, 'x');
  c::detail::byte_writer to;
  put(to, good);
  EXPECT_LT(to.size(), c::detail::most_message_bytes);
  c::detail::byte_reader from(to.bytes());
  EXPECT_EQ(c::detail::get_measured(from).refusal.size(), c::detail::most_text_bytes);
}

}  // namespace

// The worker is this program started again.
int main(int argc, char** argv) {
  if (c::worker<test_set, struct own::spread>(argc, argv)) return 0;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
