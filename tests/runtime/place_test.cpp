#include <boost/hana/size.hpp>
#include <collage/backends/portable.hpp>
#include <collage/place.hpp>
#include <collage/place/backends.hpp>
#include <collage/search/checker.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "loops_backend.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
using collage_test::add_relu;
using collage_test::loops;

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

c::place_options quick() {
  c::place_options o;
  o.threads = 1;
  o.compare_s = 0.02;
  return o;
}

TEST(place, takes_the_fastest_and_aliases_reshapes) {
  const c::graph network = block();
  const c::plan p = c::place<c::backend_set<slow, loops>>(network, quick());
  for (const c::plan_group& g : p.chosen.groups)
    EXPECT_TRUE(g.backend == "loops" || g.backend == c::alias_backend) << g.backend;
  EXPECT_TRUE(p.optimal);
  EXPECT_EQ(p.chosen.cost_ms, p.lower_bound_ms);
  ASSERT_EQ(p.singles.size(), 2U);
  EXPECT_EQ(p.singles[0].name, "slow");
  EXPECT_TRUE(p.singles[0].borrowed.empty());
  EXPECT_GT(p.singles[0].cost_ms, 3 * 0.19);
  ASSERT_EQ(p.runs.size(), 3U);
  EXPECT_EQ(p.runs[0].name, "plan");
}

TEST(place, runner_up_is_recorded) {
  const c::graph network = block();
  const c::plan p = c::place<c::backend_set<slow, loops>>(network, quick());
  const c::plan_group& last = p.chosen.groups.back();
  ASSERT_EQ(last.runners_up.size(), 1U);
  EXPECT_EQ(last.runners_up[0].backend, "slow");
  EXPECT_GE(last.runners_up[0].cost_ms, 0.19);
}

TEST(place, wrong_results_and_failures_are_refused_with_a_reason) {
  const c::graph network = block();
  c::place_report report;
  c::place_options o = quick();
  o.report = &report;
  const c::plan p = c::place<c::backend_set<liar, unable, absent, loops>>(network, o);
  for (const c::plan_group& g : p.chosen.groups)
    EXPECT_TRUE(g.backend == "loops" || g.backend == c::alias_backend) << g.backend;
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

TEST(place, what_is_refused_is_reported_without_measuring_too) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 8}});
  g.output("y", g(op::relu, g(op::add, x, g.input("row", {c::dtype::f32, {8}}))));
  const c::graph network = g.finish();
  c::place_report report;
  c::place_options o = quick();
  o.report = &report;
  o.measure = false;
  c::place<c::backend_set<absent, unable, loops, c::portable>>(network, o);
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

TEST(place, nodes_that_a_backend_refuses_are_borrowed_and_named) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {8}});
  g.output("y", g(op::neg, g(op::relu, x)));
  const c::graph network = g.finish();
  const c::plan p = c::place<c::backend_set<slow, loops>>(network, quick());
  ASSERT_EQ(p.singles[0].borrowed.size(), 1U);
  EXPECT_EQ(p.singles[0].borrowed[0], "neg_1");
  ASSERT_EQ(p.singles[0].groups.size(), 2U);
  EXPECT_EQ(p.singles[0].groups[0].backend, "slow");
  EXPECT_EQ(p.singles[0].groups[1].backend, "loops");
}

TEST(place, each_distinct_computation_is_measured_once) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {8}});
  for (int i = 0; i < 20; ++i) x = g(op::relu, g(op::neg, x));
  g.output("y", x);
  c::place_report report;
  c::place_options o = quick();
  o.report = &report;
  (void)c::place<c::backend_set<loops>>(g.finish(), o);
  EXPECT_EQ(report.candidates, 40U);
  EXPECT_EQ(report.distinct, 2U);
  EXPECT_EQ(report.measured, 2U);
}

TEST(place, progress_counts_down_and_improves) {
  std::vector<c::place_progress> seen;
  c::place_options o = quick();
  o.progress = [&](const c::place_progress& p) { seen.push_back(p); };
  (void)c::place<c::backend_set<loops>>(block(), o);
  ASSERT_GE(seen.size(), 3U);
  EXPECT_STREQ(seen.front().stage, "measuring");
  EXPECT_EQ(seen.front().done, 0U);
  EXPECT_GT(seen.back().best_ms, 0);
}

template <class F>
std::string message_of(F f, int code) {
  try {
    f();
  } catch (const c::error& e) {
    EXPECT_EQ(e.exit_code(), code) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(place, errors_are_one_sentence) {
  const c::graph network = block();
  c::place_options o = quick();
  o.backends = {"loops", "nobody"};
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<slow, loops>>(network, o); }, 2),
            "backends: there is no backend nobody; this program has slow, loops");
  o.backends = {"absent"};
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<absent, loops>>(network, o); }, 1),
            "backend absent: libabsent.so was not found; install libabsent");
  EXPECT_EQ(message_of([&] { (void)c::place<c::backend_set<absent>>(network, quick()); }, 1),
            "backends: no backend is available; absent: libabsent.so was not found; install libabsent");
}

TEST(place, all_nodes_that_nobody_takes_are_named_at_once) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 8}});
  const c::value y = g.input("y", {c::dtype::f32, {8}});
  g.output("z", g(op::exp, g(op::add, g(op::tanh, x), y)));
  const std::string text = message_of([&] { (void)c::place<c::backend_set<loops>>(g.finish(), quick()); }, 2);
  EXPECT_NE(text.find("tanh_0 (tanh float32[2x8]) is in no backend's patterns"), std::string::npos) << text;
  EXPECT_NE(text.find("add_1 (add float32[2x8] float32[8]), loops refuses: its operands must have one shape"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("exp_2 (exp float32[2x8]) is in no backend's patterns"), std::string::npos) << text;
}

}  // namespace
