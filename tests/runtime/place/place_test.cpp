#include <boost/hana/size.hpp>
#include <collage/backends/portable.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/measure/store.hpp>
#include <collage/place.hpp>
#include <collage/place/backends.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/log.hpp>
#include <collage/run/verify.hpp>
#include <collage/search/checker.hpp>

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/files.hpp"
#include "support/loops_backend.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"
#include "support/random_numbers.hpp"

namespace place_place_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::add_relu;
using collage_test::loops;
using collage_test::message_of;
using collage_test::quick_options;

/// The same kernels as `loops`, but each call first waits: clearly slower, whatever the machine does.
struct slow : c::backend<"slow"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::add>>;
  template <auto K>
  static c::kernel build(const c::match<c::single<K>>& m, c::build_context& context) {
    const c::kernel inner = loops::build(m, context);
    return {"slow " + inner.name(), [inner](const c::kernel_call& call) {
              const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
              while (std::chrono::steady_clock::now() < until) {}
              inner(call);
            }};
  }
};

/// Answers fast and wrongly.
struct liar : c::backend<"liar"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::add>>;
  template <auto K>
  static c::kernel build(const c::match<c::single<K>>&, c::build_context&) {
    return {"nothing", [](const c::kernel_call&) {}};
  }
};

/// Says that it may write over its operand, and clears the output before it reads that.
struct hasty : c::backend<"hasty"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    c::kernel made("clear first", [count](const c::kernel_call& call) {
      const auto* const in = static_cast<const float*>(call.in[0]);
      for (std::size_t i = 0; i < count; ++i) static_cast<float*>(call.out[0])[i] = 0;
      for (std::size_t i = 0; i < count; ++i) static_cast<float*>(call.out[0])[i] += std::max(in[i], 0.0F);
    });
    return std::move(made.may_write_over(0));
  }
};

/// Wrong in the last element of each row.
struct careless : c::backend<"careless"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    const auto row = static_cast<std::size_t>(m.output().out[m.output().out.size() - 1]);
    return {"all but the last", [count, row](const c::kernel_call& call) {
              const auto* const in = static_cast<const float*>(call.in[0]);
              auto* const out = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < count; ++i) out[i] = i % row == row - 1 ? -1 : std::max(in[i], 0.0F);
            }};
  }
};

/// Right for all numbers; of NaN it makes 0, and of an infinity the largest number.
struct finite : c::backend<"finite"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::add>>;
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context&) {
    return collage_test::loop("loses NaN", loops::count(m.output()),
                              [](const c::kernel_call&, float a, std::size_t) { return a > 0 ? a : 0.0F; });
  }
  static c::kernel build(const c::match<c::single<op::add>>& m, c::build_context&) {
    const std::size_t second = collage_test::second_argument(m, m.output());
    return collage_test::loop("loses infinity", loops::count(m.output()),
                              [second](const c::kernel_call& call, float a, std::size_t i) {
                                const float sum = a + static_cast<const float*>(call.in[second])[i];
                                return std::isinf(sum) ? std::copysign(std::numeric_limits<float>::max(), sum) : sum;
                              });
  }
};

/// Refuses when it is asked to build.
struct unable : c::backend<"unable"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>&, c::build_context&) {
    throw c::error(c::error_kind::unsupported, "this processor is too old", "unable");
  }
};

/// Not on this machine.
struct absent : c::backend<"absent"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::probe_result probe() { return {false, "", "", "libabsent.so was not found; install libabsent"}; }
  static c::kernel build(const c::match<c::single<op::relu>>&, c::build_context&) { return {}; }
};

c::graph block(std::int64_t elements = 64) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {elements}});
  const c::value y = g.input("y", {c::dtype::f32, {elements}});
  const c::value r = g(op::relu, g(op::add, x, y));
  const c::value flat = g(op::reshape, r, {.dims = {1, elements}});
  g.output("z", g(op::relu, g(op::reshape, flat, {.dims = {elements}})));
  return g.finish();
}

TEST(place, takes_the_fastest_and_aliases_reshapes) {
  const c::graph network = block();
  const c::plan p = c::place<c::backend_set<slow, loops>>(network, quick_options());
  for (const c::plan_group& g : p.chosen.groups) EXPECT_TRUE(g.backend() == "loops" || g.is_view()) << g.backend();
  EXPECT_TRUE(p.optimal);
  EXPECT_NEAR(p.chosen.cost_ms, p.lower_bound_ms, 1e-8);  // which is in whole picoseconds for each group
  ASSERT_EQ(p.singles.size(), 2U);
  EXPECT_EQ(p.singles[0].name, "slow");
  EXPECT_TRUE(p.singles[0].borrowed.empty());
  EXPECT_GT(p.singles[0].cost_ms, 3 * 0.19);
  ASSERT_EQ(p.runs.size(), 3U);
  EXPECT_EQ(p.runs[0].name, "plan");
}

c::graph joined_halves() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {64}});
  const c::value halves[] = {g(op::slice, x, {.starts = {0}, .steps = {1}, .extents = {32}}),
                             g(op::slice, x, {.starts = {32}, .steps = {1}, .extents = {32}})};
  const c::value turned[] = {g(op::neg, halves[1]), g(op::relu, halves[0])};
  g.output("z", g(op::neg, g(op::concat, turned, {.axis = 0})));
  return g.finish();
}

TEST(place, slices_and_concats_of_whole_pieces_cost_nothing) {
  using both = c::backend_set<loops, c::portable>;
  const c::graph network = joined_halves();
  const auto backends_of = [&](const c::plan& p, const char* kind) {
    std::set<std::string> list;
    for (const c::plan_group& g : p.chosen.groups)
      for (const std::uint32_t n : g.nodes)
        if (std::string(network.node(n).kind->name) == kind) list.insert(g.backend());
    return list;
  };
  c::place_options o = quick_options();
  const c::plan p = c::place<both>(network, o);
  EXPECT_EQ(backends_of(p, "concat"), std::set<std::string>{c::view_runner});
  EXPECT_EQ(backends_of(p, "slice"), std::set<std::string>{c::view_runner});
  EXPECT_TRUE(p.optimal);
  EXPECT_EQ(c::verify<both>(network, p).why(), "");
  EXPECT_EQ(c::engine<both>(network, p).steps().size(), 3U);
  // A rule that names who runs it is obeyed; and what was planned before views were known still runs.
  o.rules = {{c::place_rule::action::pin, "portable", "concat"}};
  const c::plan pinned = c::place<both>(network, o);
  EXPECT_EQ(backends_of(pinned, "concat"), std::set<std::string>{"portable"});
  EXPECT_EQ(c::verify<both>(network, pinned).why(), "");
}

TEST(place, refuses_kernels_that_are_wrong_in_place) {
  const c::graph network = block();
  c::place_options o = quick_options();
  const c::placed_plan p = c::place<c::backend_set<hasty, loops>>(network, o);
  const c::place_report& report = p.report;
  for (const c::plan_group& g : p.chosen.groups) EXPECT_TRUE(g.backend() == "loops" || g.is_view()) << g.backend();
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.backend == "hasty" && r.reason.starts_with("wrong result when it runs in place, which it allows: ");
  }));
}

TEST(place, stored_costs_decide_where_there_is_no_time) {
  using set = c::backend_set<slow, loops>;
  const collage_test::temporary_folder here;
  const c::graph network = block();
  c::place_options o = quick_options();
  o.store = here.path("costs.db");
  // Without a comparison, no placement runs.
  o.comparing.seconds = 0;
  const c::placed_plan measured = c::place<set>(network, o);
  EXPECT_GT(measured.report.measured, 0U);
  EXPECT_TRUE(measured.runs.empty());
  EXPECT_EQ(measured.origin, "search");
  o.budget_s = 1e-6;
  const c::placed_plan hasty = c::place<set>(network, o);
  EXPECT_EQ(hasty.report.measured, 0U);
  EXPECT_GT(hasty.report.from_store, 0U);
  EXPECT_DOUBLE_EQ(hasty.first_cost_ms, measured.first_cost_ms);
}

TEST(place, keeps_nan_and_infinity_where_that_is_asked) {
  using set = c::backend_set<finite, slow>;
  const collage_test::temporary_folder here;
  const c::graph network = block();
  c::place_report report;
  c::place_options o = quick_options();
  o.store = here.path("costs.db");
  const auto runs_on = [](const c::plan& p, const std::string& backend) {
    return std::ranges::any_of(p.chosen.groups, [&](const c::plan_group& g) { return g.backend() == backend; });
  };
  c::placed_plan any = c::place<set>(network, o);
  report = any.report;
  EXPECT_EQ(any.precision, "fp32");
  EXPECT_TRUE(runs_on(any, "finite"));
  EXPECT_TRUE(report.refusals.empty());
  EXPECT_EQ(c::verify<set>(network, any).why(), "");  // of numbers it is right

  // What was measured without that does not count, and a previous plan that does not keep them is none.
  o.keep_non_finite = true;
  o.previous = &any;
  for (const bool again : {false, true}) {
    const c::placed_plan kept = c::place<set>(network, o);
    report = kept.report;
    EXPECT_EQ(kept.precision, "fp32 with NaN and infinity kept");
    EXPECT_FALSE(runs_on(kept, "finite"));
    EXPECT_EQ(report.measured == 0, again);
    EXPECT_EQ(report.from_store == 0, !again);
    EXPECT_NE(kept.runs.back().name, "previous");
    std::set<std::string> reasons;
    for (const c::place_refusal& r : report.refusals) reasons.insert(r.backend + ": " + r.reason);
    const std::string how = "finite: NaN and infinity do not pass as in the reference: it has no ";
    EXPECT_EQ(reasons, (std::set<std::string>{how + "NaN where the reference has one",
                                              how + "infinity where the reference has one"}));
    EXPECT_EQ(c::verify<set>(network, kept).why(), "");
    // Such a plan serves where nothing is asked for, and the other does not where something is.
    EXPECT_FALSE(c::misfit_of(kept, network, c::table_of<set>));
    const auto misfit = c::misfit_of(any, network, c::table_of<set>, {.precision = c::fp32_non_finite});
    ASSERT_TRUE(misfit);
    EXPECT_EQ(misfit->what, "is a plan in fp32, not in fp32 with NaN and infinity kept");
  }

  // Verifying sees it where a plan says so and is wrong.
  any.precision = c::fp32_non_finite;
  const std::string why = c::verify<set>(network, any).why();
  EXPECT_NE(why.find("it has no NaN where the reference has one"), std::string::npos) << why;

  o.costs = c::placing_costs::none;
  EXPECT_EQ(message_of([&] { (void)c::place<set>(network, o); }, 2),
            "keep_non_finite: only measuring shows which kernels keep NaN and infinity; measure, or leave it "
            "out");
}

TEST(place, a_previous_plan_whose_kernel_is_wrong_does_not_take_part) {
  using set = c::backend_set<liar, loops>;
  const c::graph network = block();
  c::place_options o = quick_options();
  o.costs = c::placing_costs::none;
  o.check_s = 0;
  const c::plan wrong = c::place<set>(network, o);
  o = quick_options();
  o.previous = &wrong;
  const c::plan p = c::place<set>(network, o);
  EXPECT_NE(p.runs.back().name, "previous");
  EXPECT_NE(p.origin, "previous");
  EXPECT_EQ(c::verify<set>(network, p).why(), "");
}

TEST(place, runner_up_is_recorded) {
  const c::graph network = block();
  const c::plan p = c::place<c::backend_set<slow, loops>>(network, quick_options());
  const c::plan_group& last = p.chosen.groups.back();
  ASSERT_EQ(last.runners_up.size(), 1U);
  EXPECT_EQ(last.runners_up[0].backend, "slow");
  EXPECT_GE(last.runners_up[0].cost_ms, 0.19);
}

TEST(place, wrong_results_and_failures_are_refused_with_a_reason) {
  const c::graph network = block();
  c::place_options o = quick_options();
  const c::placed_plan p = c::place<c::backend_set<liar, unable, absent, loops>>(network, o);
  const c::place_report& report = p.report;
  for (const c::plan_group& g : p.chosen.groups) EXPECT_TRUE(g.backend() == "loops" || g.is_view()) << g.backend();
  const auto told = [&](const std::string& backend, const std::string& text) {
    for (const c::place_refusal& r : report.refusals)
      if (r.backend == backend && r.reason.find(text) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(told("liar", "wrong result"));
  EXPECT_TRUE(told("unable", "this processor is too old"));
  EXPECT_TRUE(told("absent", "libabsent.so was not found"));
}

TEST(place, the_backends_of_a_set_are_visited_in_order) {
  using set = c::backend_set<absent, loops>;
  std::string told;
  std::size_t patterns = 0;
  c::for_each_backend<set>([&](auto type) {
    using backend = typename decltype(type)::type;
    told += std::string(backend::name) + (c::probe_of<backend>().available ? " is here; " : " is not; ");
    patterns += c::declaration_of<backend>.patterns.size();
  });
  EXPECT_EQ(told, "absent is not; loops is here; ");
  EXPECT_EQ(patterns, 5U);
  c::for_each_backend<c::backend_set<>>([](auto) { FAIL() << "there is none"; });
  static_assert(decltype(boost::hana::size(c::backend_types<set>))::value == 2);
}

TEST(place, a_thread_with_too_little_stack_is_refused) {
  const c::graph network = block();
  std::string why;
  struct call {
    const c::graph* network;
    std::string* why;
  } given{&network, &why};
  const auto place_in_thread = [&](std::size_t stack) {
    pthread_attr_t small;
    EXPECT_EQ(pthread_attr_init(&small), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&small, stack), 0);
    pthread_t thread;
    const int failed = pthread_create(
        &thread, &small,
        [](void* data) -> void* {
          const auto& its = *static_cast<call*>(data);
          *its.why = message_of([&] {
            (void)c::place<c::backend_set<loops>>(*its.network,
                                                  {.threads = 1, .costs = c::placing_costs::none, .check_s = 0});
          });
          return nullptr;
        },
        &given);
    if (failed == 0) pthread_join(thread, nullptr);
    pthread_attr_destroy(&small);
    return failed == 0;
  };
  // The variables of libraries lie in the stack, too: a program that is linked with many cannot start a thread with less.
  constexpr std::size_t kib = 1024;
  for (std::size_t stack = 64 * kib; !place_in_thread(stack); stack += 16 * kib) ASSERT_LT(stack, 512 * kib);
  EXPECT_NE(why.find("KiB of stack left, and placing needs 112; call it in a thread with a stack of at least 128 KiB"),
            std::string::npos)
      << why;
  EXPECT_TRUE(place_in_thread(1024 * kib));
  EXPECT_EQ(why, "no error");
}

TEST(place, wrong_kernels_are_refused_without_measuring_too) {
  using set = c::backend_set<liar, hasty, loops>;
  const collage_test::temporary_folder folder;
  const c::graph network = block();
  c::place_options o;
  o.threads = 1;
  o.costs = c::placing_costs::none;
  o.store = folder.path("costs.db");
  const auto place_once = [&] {
    c::placed_plan p = c::place<set>(network, o);
    for (const c::plan_group& g : p.chosen.groups) EXPECT_TRUE(g.backend() == "loops" || g.is_view()) << g.backend();
    const auto wrong = [&](const std::string& backend, const std::string& why) {
      return std::ranges::any_of(p.report.refusals, [&](const c::place_refusal& r) {
        return r.backend == backend && r.reason.find(why) != std::string::npos;
      });
    };
    EXPECT_TRUE(wrong("liar", "wrong result"));
    EXPECT_TRUE(wrong("hasty", "wrong result when it runs in place"));
    EXPECT_EQ(p.report.unstored, "");
    return p.report;
  };
  // Kernels are compared when their turn comes. An operator of the loops never has one: a larger group has its node.
  EXPECT_EQ(place_once().checked, 5U);
  EXPECT_EQ(place_once().checked, 0U) << "the store has the results";
  // Measuring does not take these results for costs.
  o.costs = c::placing_costs::measured;
  o.comparing.seconds = 0.02;
  EXPECT_GT(c::place<set>(network, o).report.measured, 0U);
  // Without time, kernels are used as they are.
  o.costs = c::placing_costs::none;
  o.store = "";
  o.check_s = 0;
  const c::placed_plan p = c::place<set>(network, o);
  EXPECT_EQ(p.chosen.groups[0].backend(), "liar");
  EXPECT_EQ(p.report.checked, 0U);
  EXPECT_EQ(p.report.unchecked, 2U);
}

TEST(place, of_large_results_some_elements_are_compared) {
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, {1, 16, 300, 301}})));
  const c::graph network = g.finish();
  c::place_options o;
  o.threads = 1;
  o.costs = c::placing_costs::none;
  for (const double seconds : {0.005, 2.0}) {  // all elements take longer than the first
    o.check_s = seconds;
    const c::placed_plan p = c::place<c::backend_set<careless, loops>>(network, o);
    EXPECT_EQ(p.chosen.groups[0].backend(), "loops");
    EXPECT_TRUE(std::ranges::any_of(p.report.refusals, [](const c::place_refusal& r) {
      return r.backend == "careless" && r.reason.find("wrong result") != std::string::npos;
    }));
    EXPECT_EQ(p.report.checked + p.report.unchecked, 2U);
    if (seconds > 1) EXPECT_EQ(p.report.checked, 2U);
  }
}

TEST(place, what_is_refused_is_reported_without_measuring_too) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 8}});
  g.output("y", g(op::relu, g(op::add, x, g.input("row", {c::dtype::f32, {8}}))));
  const c::graph network = g.finish();
  c::place_options o = quick_options();
  o.costs = c::placing_costs::none;
  const c::place_report report = c::place<c::backend_set<absent, unable, loops, c::portable>>(network, o).report;
  const auto told = [&](const std::string& backend, const std::string& pattern, const std::string& text) {
    for (const c::place_refusal& r : report.refusals)
      if (r.backend == backend && r.pattern == pattern && r.reason.find(text) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(told("absent", "", "libabsent.so was not found"));          // by probe
  EXPECT_TRUE(told("unable", "relu", "this processor is too old"));       // by build
  EXPECT_TRUE(told("loops", "add", "its operands must have one shape"));  // by accepts
  EXPECT_EQ(report.measured, 0U);
}

/// A refusal of the machine counts once, however many subgraphs there are.
TEST(place, what_is_refused_in_a_subgraph_is_reported) {
  c::graph_builder side;
  const c::value s = side.input("s", {c::dtype::f32, {2, 8}});
  side.output("t", side(op::add, s, side.input("row", {c::dtype::f32, {8}})));
  const auto body = std::make_shared<const c::graph>(side.finish());
  c::graph_builder g;
  const c::value wanted = g.input("wanted", {c::dtype::boolean, {}});
  const std::vector<c::value> operands{wanted, g.input("x", {c::dtype::f32, {2, 8}}),
                                       g.input("row", {c::dtype::f32, {8}})};
  const std::vector bodies{body, body};
  g.output("y", g.add(c::kind_of<decltype(op::branch)>, operands, {}, "branch", bodies));
  const c::graph network = g.finish();
  c::place_options o = quick_options();
  for (const c::placing_costs costs : {c::placing_costs::none, c::placing_costs::measured}) {
    o.costs = costs;
    std::size_t absent_ones = 0, of_add = 0;
    for (const c::merged_refusal& r :
         c::merged(c::place<c::backend_set<absent, loops, c::portable>>(network, o).report.refusals)) {
      if (r.backend == "absent") absent_ones += r.places;
      if (r.backend == "loops" && r.pattern == "add") of_add += r.places;
    }
    EXPECT_EQ(absent_ones, 1U);
    EXPECT_EQ(of_add, 2U) << "one in each subgraph";
  }
}

TEST(place, nodes_that_a_backend_refuses_are_borrowed_and_named) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {8}});
  g.output("y", g(op::neg, g(op::relu, x)));
  const c::graph network = g.finish();
  const c::plan p = c::place<c::backend_set<slow, loops>>(network, quick_options());
  ASSERT_EQ(p.singles[0].borrowed.size(), 1U);
  EXPECT_EQ(p.singles[0].borrowed[0], "neg_1");
  ASSERT_EQ(p.singles[0].groups.size(), 2U);
  EXPECT_EQ(p.singles[0].groups[0].backend(), "slow");
  EXPECT_EQ(p.singles[0].groups[1].backend(), "loops");
}

TEST(place, each_distinct_computation_is_measured_once) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {8}});
  for (int i = 0; i < 20; ++i) x = g(op::relu, g(op::neg, x));
  g.output("y", x);
  c::place_options o = quick_options();
  const c::place_report report = c::place<c::backend_set<loops>>(g.finish(), o).report;
  EXPECT_EQ(report.candidates, 40U);
  EXPECT_EQ(report.distinct, 2U);
  EXPECT_EQ(report.measured, 2U);
  EXPECT_EQ(report.conversions, 0U);
}

TEST(place, progress_counts_down_and_improves) {
  std::vector<c::place_progress> seen;
  c::place_options o = quick_options();
  o.progress = [&](const c::place_progress& p) { seen.push_back(p); };
  (void)c::place<c::backend_set<loops>>(block(), o);
  ASSERT_GE(seen.size(), 3U);
  EXPECT_STREQ(seen.front().stage, "measuring");
  EXPECT_EQ(seen.front().done, 0U);
  EXPECT_GT(seen.back().best_ms, 0);
  for (const c::place_progress& p : seen) EXPECT_GE(p.remaining, 1U) << p.stage << " " << p.what;
}

TEST(place, errors_are_one_sentence) {
  const c::graph network = block();
  c::place_options o = quick_options();
  o.backends = {"loops", "nobody"};
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<slow, loops>>(network, o); }, 2),
            "backends: there is no backend nobody; this program has slow, loops");
  o.backends = {"absent"};
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<absent, loops>>(network, o); }, 1),
            "backend absent: libabsent.so was not found; install libabsent");
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<absent>>(network, quick_options()); }, 1),
            "backends: no backend is available; absent: libabsent.so was not found; install libabsent");
}

/// A sum and its relu in one kernel that writes both, and two operators that share what they read.
struct joiner : c::backend<"joiner"> {
  struct both : c::pattern<"both"> {
    static constexpr auto expr = op::relu(op::add(c::any, c::any).as<"sum">().escaping());
  };
  struct siblings : c::pattern<"siblings"> {
    static constexpr auto expr = c::outputs(op::relu(c::any.as<"x">()).as<"positive">(), op::neg(c::same<"x">()));
  };
  using patterns = c::patterns<both, siblings>;
  static c::kernel build(const c::match<both>& m, c::build_context&) {
    const std::size_t count = loops::count(m.output()), second = m.arguments() - 1;
    return {"both", [count, second, two = m.outputs() > 1](const c::kernel_call& call) {
              const auto *a = static_cast<const float*>(call.in[0]), *b = static_cast<const float*>(call.in[second]);
              for (std::size_t i = 0; i < count; ++i) {
                static_cast<float*>(call.out[0])[i] = std::max(a[i] + b[i], 0.0F);
                if (two) static_cast<float*>(call.out[1])[i] = a[i] + b[i];
              }
            }};
  }
  static c::kernel build(const c::match<siblings>& m, c::build_context&) {
    return {"siblings", [count = loops::count(m.output())](const c::kernel_call& call) {
              const auto* x = static_cast<const float*>(call.in[0]);
              for (std::size_t i = 0; i < count; ++i) {
                static_cast<float*>(call.out[0])[i] = std::max(x[i], 0.0F);
                static_cast<float*>(call.out[1])[i] = -x[i];
              }
            }};
  }
};

TEST(place, groups_with_several_exits_run_and_agree) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {64}}), y = g.input("y", {c::dtype::f32, {64}});
  const c::value sum = g(op::add, x, y);
  const c::value positive = g(op::relu, sum);
  const c::value negative = g(op::neg, positive);
  g.output("a", g(op::add, negative, g(op::relu, positive)));
  g.output("sum", sum);
  const c::graph network = g.finish();
  using only = c::backend_set<joiner, loops>;
  const c::place_candidates found = c::find_candidates(network, c::table_of<only>, {true, false});
  ASSERT_EQ(found.list.size(), 2U);
  c::place_options unmeasured = quick_options();
  unmeasured.costs = c::placing_costs::none;  // by the order of the set: joiner takes what it can
  const c::plan p = c::place<only>(network, unmeasured);
  std::size_t joined = 0;
  for (const c::plan_group& group : p.chosen.groups) joined += group.backend() == "joiner";
  EXPECT_EQ(joined, 2U);
  const c::verification checked = c::verify<only>(network, p);
  for (const c::verified_placement& each : checked.placements) EXPECT_TRUE(each.passed()) << each.name << each.why();
  const c::plan measured = c::place<only>(network, quick_options());
  EXPECT_TRUE(measured.optimal);
  for (const c::verified_placement& each : c::verify<only>(network, measured).placements)
    EXPECT_TRUE(each.passed()) << each.name << each.why();
}

/// Takes relu of what the network is given, and nothing else; has no way to build neg.
struct picky : c::backend<"picky"> {
  struct first_relu : c::pattern<"first_relu"> {
    static constexpr auto expr = op::relu(c::input);
  };
  using patterns = c::patterns<first_relu, c::single<op::neg>>;
  static std::size_t choices(const c::match<c::single<op::neg>>&) { return 0; }
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context&) {
    return collage_test::loop("picky", loops::count(m.output()),
                              [](const c::kernel_call&, float a, std::size_t) { return std::max(a, 0.0F); });
  }
};

TEST(place, places_that_differ_in_what_a_pattern_looks_at_are_measured_apart) {
  c::graph_builder g;
  g.output(g(op::relu, g(op::relu, g.input("x", {c::dtype::f32, {64}}))));
  const c::graph network = g.finish();
  const c::plan p = c::place<c::backend_set<picky, loops>>(network, quick_options());
  EXPECT_EQ(p.chosen.groups.size(), 2U);
  const c::place_candidates found =
      c::find_candidates(network, c::table_of<c::backend_set<picky, loops>>, {true, true});
  EXPECT_EQ(found.structures.size(), 2U);
  EXPECT_EQ(found.list.size(), 3U);
}

TEST(place, a_match_without_a_way_to_build_it_is_a_refusal) {
  c::graph_builder g;
  g.output(g(op::neg, g.input("x", {c::dtype::f32, {64}})));
  const std::string text = message_of([&] { (void)c::place<c::backend_set<picky>>(g.finish(), quick_options()); }, 2);
  EXPECT_NE(text.find("neg_0 (neg float32[64]), picky refuses: its choices() returned 0 variants"), std::string::npos)
      << text;
}

namespace another {
struct slope {
  double below = 0.1;
  static constexpr void visit(auto& self, auto&& see) { see("below", self.below); }
};
inline constexpr struct relu : c::kind<relu> {
  using attributes = slope;
  static constexpr char name[] = "relu";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} relu{};
struct leaky : c::backend<"leaky"> {
  using patterns = c::patterns<c::single<relu>>;
  static constexpr bool accepts(const c::match<c::single<relu>>& m) { return m[relu].below > 0; }
  static c::kernel build(const c::match<c::single<relu>>&, c::build_context&) { return {}; }
};
}  // namespace another

TEST(place, refuses_a_kind_of_the_name_of_another) {
  EXPECT_EQ(
      message_of([&] { (void)c::place<c::backend_set<another::leaky>>(block(), quick_options()); }, 2),
      "pattern relu of backend leaky: the network has another operator kind called (relu), and kinds are identified "
      "by name; give one of them another name");
}

TEST(place, all_nodes_that_nobody_takes_are_named_at_once) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 8}});
  const c::value y = g.input("y", {c::dtype::f32, {8}});
  g.output("z", g(op::exp, g(op::add, g(op::tanh, x), y)));
  const std::string text = message_of([&] { (void)c::place<c::backend_set<loops>>(g.finish(), quick_options()); }, 2);
  EXPECT_NE(text.find("no backend runs tanh_0 (tanh float32[2x8]): no backend has a pattern for it; add_1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("add_1 (add float32[2x8] float32[8]), loops refuses: its operands must have one shape"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          "exp_2 (exp float32[2x8]): no backend has a pattern for it; add a backend that runs them, such as portable"),
      std::string::npos)
      << text;
}

TEST(place, an_optional_store_that_cannot_be_used_is_left_out) {
  const collage_test::temporary_folder here;
  const c::graph network = block();
  c::place_options o = quick_options();
  const std::string missing = here.path("none/costs.db"), text = here.write("no store", "text.db");
  for (const std::string& store : {here.path(), missing, text}) {
    o.store = store;
    o.store_is_optional = false;
    EXPECT_THROW((void)(c::place<c::backend_set<slow, loops>>(network, o)), c::error);
    o.store_is_optional = true;
    const c::place_report report = c::place<c::backend_set<slow, loops>>(network, o).report;
    EXPECT_GT(report.measured, 0U);
    EXPECT_TRUE(report.unstored.starts_with(store)) << report.unstored;
  }
}

TEST(place, what_a_store_has_is_not_measured_again) {
  const collage_test::temporary_folder here;
  const c::graph network = block();
  c::place_report first, second;
  c::place_options o = quick_options();
  o.store = here.path("costs.db");
  const c::placed_plan before = c::place<c::backend_set<slow, liar, loops>>(network, o);
  first = before.report;
  EXPECT_GT(first.measured, 0U);
  EXPECT_EQ(first.from_store, 0U);
  EXPECT_EQ(first.unstored, "");
  const c::placed_plan after = c::place<c::backend_set<slow, liar, loops>>(network, o);
  second = after.report;
  EXPECT_EQ(second.measured, 0U);
  EXPECT_EQ(second.from_store, first.measured);
  EXPECT_EQ(second.refused, first.refused);  // liar's wrong results are not found out twice
  EXPECT_EQ(second.skipped, first.skipped);
  for (const c::place_report& r : {first, second})
    EXPECT_EQ(r.distinct, r.measured + r.from_store + r.skipped + r.refused);
  // Nothing runs again either, unless that is asked for.
  EXPECT_FALSE(first.compared_before);
  EXPECT_TRUE(second.compared_before);
  EXPECT_EQ(c::to_text(c::plan_to_json(after, network)), c::to_text(c::plan_to_json(before, network)));
  o.comparing.recheck = true;
  second = c::place<c::backend_set<slow, liar, loops>>(network, o).report;
  EXPECT_FALSE(second.compared_before);
  EXPECT_EQ(second.measured, 0U);
  o.comparing.recheck = false;
  // A previous plan takes part where it did not yet.
  c::plan previous = after;
  previous.chosen = after.singles[0];
  o.previous = &previous;
  second = c::place<c::backend_set<slow, liar, loops>>(network, o).report;
  EXPECT_TRUE(second.compared_before);  // a single backend did
  c::place_options pinned = quick_options();
  pinned.rules = {{c::place_rule::action::pin, "slow", "add"}};
  previous = c::place<c::backend_set<slow, liar, loops>>(network, pinned);
  second = c::place<c::backend_set<slow, liar, loops>>(network, o).report;
  EXPECT_FALSE(second.compared_before);
  o.previous = nullptr;
  // Another number of threads is another measurement.
  o.threads = 2;
  second = c::place<c::backend_set<slow, liar, loops>>(network, o).report;
  EXPECT_EQ(second.from_store, 0U);
  // A file that is no store is told before anything is measured.
  std::ofstream(here.path("text")) << "no store";
  o.store = here.path("text");
  EXPECT_NE(message_of([&] { (void)c::place<c::backend_set<loops>>(network, o); }, 2).find(o.store), std::string::npos);
}

TEST(place, a_backend_that_joins_is_measured_against_what_is_known) {
  const collage_test::temporary_folder here;
  const c::graph network = block();
  c::place_report report;
  c::place_options o = quick_options();
  o.store = here.path("costs.db");
  report = c::place<c::backend_set<loops>>(network, o).report;
  const std::size_t known = report.measured;
  const c::placed_plan both = c::place<c::backend_set<slow, loops>>(network, o);
  report = both.report;
  EXPECT_EQ(report.from_store, known);
  EXPECT_GT(report.measured, 0U);
  for (const c::plan_group& g : both.chosen.groups) EXPECT_NE(g.backend(), "slow");
}

TEST(place, ends_when_it_is_told_to_with_the_best_so_far) {
  const c::graph network = block();
  c::place_report report;
  c::place_options o = quick_options();
  o.stop = [] { return true; };
  const c::placed_plan p = c::place<c::backend_set<slow, loops>>(network, o);
  report = p.report;
  EXPECT_TRUE(report.interrupted);
  // Nothing is measured. Each operator has the first kernel that can be built, at a price of the model, and nothing is compared.
  EXPECT_EQ(report.measured, 0U);
  EXPECT_GT(report.skipped, 0U);
  EXPECT_TRUE(p.runs.empty());
  EXPECT_GT(p.chosen.cost_ms, 0);
  EXPECT_NO_THROW(c::dynamic_engine(network, p.chosen, c::table_of<c::backend_set<slow, loops>>, 1));
  // Stopped later, what was measured counts, and the rest has prices of the model.
  for (const int after : {1, 3, 10, 30}) {
    int calls = 0;
    o.stop = [&] { return ++calls > after; };
    const c::placed_plan some = c::place<c::backend_set<slow, loops>>(network, o);
    EXPECT_TRUE(some.report.interrupted) << after;
    EXPECT_EQ(some.report.distinct, some.report.measured + some.report.skipped + some.report.refused) << after;
    EXPECT_NO_THROW(c::dynamic_engine(network, some.chosen, c::table_of<c::backend_set<slow, loops>>, 1)) << after;
  }
  o.stop = {};
  o.budget_s = 1e-9;
  report = c::place<c::backend_set<slow, loops>>(network, o).report;
  EXPECT_TRUE(report.interrupted);
  o.budget_s = 3600;
  report = c::place<c::backend_set<slow, loops>>(network, o).report;
  EXPECT_FALSE(report.interrupted);
}

/// Cancels placing at the call of this number, and returns the plan; nothing if there was none yet.
template <class Set = c::backend_set<slow, loops>>
std::optional<c::placed_plan> cancelled_at(const c::graph& network, c::place_options o, std::size_t call) {
  std::size_t calls = 0, better = 0;
  o.cancel = [&] { return ++calls >= call; };
  o.improved = [&](const c::plan& p) {
    ++better;
    EXPECT_NO_THROW(c::dynamic_engine(network, p.chosen, c::table_of<Set>, 1));
  };
  try {
    c::placed_plan made = c::place<Set>(network, o);
    EXPECT_TRUE(made.report.interrupted || calls < call);
    EXPECT_NO_THROW(c::dynamic_engine(network, made.chosen, c::table_of<Set>, 1));
    return made;
  } catch (const c::error& e) {
    EXPECT_EQ(e.kind(), c::error_kind::cancelled) << e.what();
    EXPECT_NE(std::string(e.what()).find("before every node had a measured kernel"), std::string::npos) << e.what();
    EXPECT_EQ(better, 0U);
    return {};
  }
}

/// How many kernels have times in a store. Checks that it is whole.
std::size_t times_in(const std::string& store) {
  const c::cost_store opened(store);
  EXPECT_EQ(opened.check().problems, std::vector<std::string>{});
  const std::vector<c::stored_entry> all = opened.list();
  return static_cast<std::size_t>(std::ranges::count_if(
      all, [](const c::stored_entry& e) { return e.key.backend != "machine" && e.cost.refusal.empty(); }));
}

TEST(place, can_be_cancelled_at_any_moment) {
  const c::graph network = block();
  const collage_test::temporary_folder files(collage_test::folder_in_memory());
  c::place_options o = quick_options();
  o.store = files.path("costs.db");
  std::size_t without = 0, uncompared = 0, compared = 0;
  bool is_whole = false;
  for (std::size_t call = 1; call < 1'000'000 && !is_whole; call += 1 + call) {
    std::error_code ignored;
    std::filesystem::remove(o.store, ignored);
    const std::optional<c::placed_plan> made = cancelled_at(network, o, call);
    is_whole = made && !made->report.interrupted;
    ++(!made ? without : made->runs.empty() ? uncompared : compared);
    if (made && !made->runs.empty()) { EXPECT_EQ(made->runs[0].name, "plan"); }
    // What was measured is in the store, and the next call goes on with it.
    const std::size_t kept = times_in(o.store);
    if (made) { EXPECT_GE(kept, made->report.measured); }
    const c::place_report next = c::place<c::backend_set<slow, loops>>(network, o).report;
    EXPECT_EQ(next.unstored, "");
    EXPECT_TRUE(kept == 0 || next.from_store > 0);
  }
  EXPECT_GT(without, 0U);
  EXPECT_GT(uncompared, 0U);
  EXPECT_GT(compared, 1U);
}

double clock_ms = 0;  // of the kernels of `ticking`

/// Kernels that take a known time by the clock of the test.
template <int Microseconds>
struct ticking : c::backend<Microseconds == 10 ? "tick10" : "tick30"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::add>>;
  template <auto K>
  static c::kernel build(const c::match<c::single<K>>& m, c::build_context& context) {
    const c::kernel inner = loops::build(m, context);
    return {inner.name(), [inner](const c::kernel_call& call) {
              clock_ms += Microseconds * 1e-3;
              inner(call);
            }};
  }
};

/// By a clock of its own, placing asks the same questions each time. Each of them is cancelled once; with sanitizers, each seventh from
/// a random one on.
TEST(place, cancelling_at_each_call_loses_no_measured_cost) {
  using set = c::backend_set<ticking<10>, ticking<30>>;
  const c::graph network = block();
  const collage_test::temporary_folder files(collage_test::folder_in_memory());
  c::place_options o = collage_test::clock_options(clock_ms, 0.01);
  bool is_whole = false;
  const std::size_t stride = c::detail::is_watched ? 7 : 1;
  std::size_t call = collage_test::fresh_seed() % stride, most = 0;
  for (; call < 5'000 && !is_whole; call += stride) {
    o.store = files.path(std::to_string(call) + ".db");
    const std::optional<c::placed_plan> made = cancelled_at<set>(network, o, call + 1);
    is_whole = made && !made->report.interrupted;
    if (!made) continue;
    EXPECT_GE(times_in(o.store), made->report.measured) << call;
    most = std::max(most, made->report.measured);
    for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(o.store + part);
  }
  EXPECT_TRUE(is_whole);
  EXPECT_GE(most, 4U);  // two kernels for each of two kinds of operators
  std::cout << call << " calls\n";
}

TEST(place, can_be_cancelled_without_measuring) {
  c::place_options o;
  o.threads = 1;
  o.costs = c::placing_costs::none;
  std::size_t calls = 0;
  o.cancel = [&] { return ++calls >= 2; };
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<loops>>(block(), o); }, c::error_kind::cancelled),
            "network: placing was cancelled before there was a plan; let it run longer");
}

TEST(place, logs_refusals_and_a_summary) {
  std::vector<std::string> notes;
  c::set_log(
      [](void* to, c::log_level level, const char* text) {
        if (level == c::log_level::note) static_cast<std::vector<std::string>*>(to)->emplace_back(text);
      },
      &notes);
  const auto place = [] { (void)c::place<c::backend_set<liar, loops>>(block(), quick_options()); };
  place();
  c::set_log(nullptr);
  const std::size_t before = notes.size();
  place();
  EXPECT_EQ(notes.size(), before);
  ASSERT_GE(notes.size(), 2U);
  EXPECT_NE(notes[0].find("network: liar "), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("cannot be used at"), std::string::npos) << notes[0];
  EXPECT_NE(notes.back().find(" kernels, "), std::string::npos) << notes.back();
}

TEST(place, rules_pin_and_exclude) {
  const c::graph network = block();
  using set = c::backend_set<slow, loops>;
  const auto who_runs = [&](const c::plan& p, const std::string& kind) {
    std::string who;
    for (const c::plan_group& g : p.chosen.groups)
      for (const std::uint32_t n : g.nodes)
        if (network.node(n).kind->name == kind) who += g.backend() + " ";
    return who;
  };
  c::place_options o = quick_options();
  o.rules = {{c::place_rule::action::pin, "slow", "relu"}};
  const c::plan pinned = c::place<set>(network, o);
  EXPECT_NE(who_runs(pinned, "relu").find("slow"), std::string::npos);
  EXPECT_EQ(who_runs(pinned, "relu").find("loops"), std::string::npos);
  o.rules = {{c::place_rule::action::exclude, "loops", "relu"}};
  EXPECT_EQ(who_runs(c::place<set>(network, o), "relu").find("loops"), std::string::npos);
  o.rules = {{c::place_rule::action::exclude, "loops", "add_relu"}};
  for (const c::plan_group& g : c::place<set>(network, o).chosen.groups) EXPECT_NE(g.pattern(), "add_relu");
  o.rules = {{c::place_rule::action::pin, "slow", "nothing_of_that_name"}};
  EXPECT_EQ(
      message_of([&] { (void)c::place<set>(network, o); }, 2),
      "pin nothing_of_that_name: is neither a node nor an operator of the network, nor a pattern of slow; see `collage "
      "inspect` and `collage backends`");
  o.rules = {{c::place_rule::action::exclude, "nobody", "relu"}};
  EXPECT_EQ(message_of([&] { (void)c::place<set>(network, o); }, 2),
            "exclude relu: there is no backend nobody; name one of this program");
}

TEST(place, rules_hold_at_the_nodes_that_they_name_alone) {
  const c::graph network = block();
  std::vector<std::uint32_t> relus;  // two of one structure
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    if (std::string(network.node(n).kind->name) == "relu") relus.push_back(n);
  ASSERT_EQ(relus.size(), 2U);
  for (const std::uint32_t pinned : relus) {
    c::place_options o = quick_options();
    o.rules = {{c::place_rule::action::pin, "slow", network.node_name(pinned)}};
    for (o.measuring.complete = false;; o.measuring.complete = true) {
      const c::plan p = c::place<c::backend_set<slow, loops>>(network, o);
      for (const c::plan_group& g : p.chosen.groups)
        if (!g.is_view()) {
          const bool has = std::find(g.nodes.begin(), g.nodes.end(), pinned) != g.nodes.end();
          EXPECT_EQ(g.backend(), has ? "slow" : "loops");
        }
      if (o.measuring.complete) break;
    }
  }
}

TEST(place, kernels_of_a_previous_plan_are_measured) {
  const collage_test::temporary_folder here;
  const c::graph network = block();
  c::place_options o = quick_options();
  o.rules = {{c::place_rule::action::pin, "loops", "add_relu"}};
  const c::plan fused = c::place<c::backend_set<loops>>(network, o);
  o.rules.clear();
  o.store = here.path("costs.db");
  o.previous = &fused;
  (void)c::place<c::backend_set<slow, loops>>(network, o);
  for (const c::stored_entry& e : c::cost_store(o.store).list())
    if (e.key.backend != "machine")
      EXPECT_TRUE(!e.cost.refusal.empty() || (e.cost.median_ms > 0 && !e.cost.kernel.empty()));
}

TEST(place, the_previous_plan_takes_part) {
  const c::graph network = block();
  using set = c::backend_set<slow, loops>;
  c::plan previous = c::place<set>(network, quick_options());
  previous.chosen = previous.singles[0];  // of slow: it must not win
  c::place_options o = quick_options();
  o.previous = &previous;
  const c::plan p = c::place<set>(network, o);
  ASSERT_EQ(p.runs.back().name, "previous");
  EXPECT_GT(p.runs.back().ratio, 1);
  EXPECT_NE(p.origin, "previous");
  // One of another network is left out, and one that cannot be built any more.
  std::get<c::kernel_step>(previous.chosen.groups[0].step).pattern = "gone";
  EXPECT_NE(c::place<set>(network, o).runs.back().name, "previous");
  previous.fingerprint ^= 1;
  EXPECT_NE(c::place<set>(network, o).runs.back().name, "previous");
}

TEST(place, groups_say_what_would_run_instead) {
  const c::plan p = c::place<c::backend_set<slow, loops>>(block(), quick_options());
  bool any = false;
  for (const c::plan_group& g : p.chosen.groups) {
    if (g.is_view()) continue;
    EXPECT_FALSE(g.why.empty());
    any = any || g.regret_ms >= 0;
    EXPECT_EQ(g.regret_ms >= 0, !g.instead.empty());
    EXPECT_LE(g.low_ms, g.cost_ms + 1e-12);
    EXPECT_GE(g.high_ms, g.cost_ms - 1e-12);
  }
  EXPECT_TRUE(any);
}

}  // namespace place_place_test
