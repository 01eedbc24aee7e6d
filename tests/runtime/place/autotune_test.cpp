// The search of whole configuration spaces: what it finds, what it spends measurements on, and what later placings know of it.
// Times are those of a clock that kernels advance.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/measure/store.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/tune/any_space.hpp>
#include <collage/tune/cost_model.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/files.hpp"
#include "support/placing.hpp"

namespace place_autotune_test {
namespace {

namespace c = collage;
namespace op = collage::ops;

using relu = c::single<op::relu>;
using neg = c::single<op::neg>;
using tanh = c::single<op::tanh>;
struct negated_relu : c::pattern<"negated_relu"> {
  static constexpr auto expr = op::neg(op::relu(c::any));
};

double now_ms = 0;
std::vector<std::string> built;  // the texts of kernels, in the order in which they were built

/// Loops of 16 x 16 x 4 configurations, of which some are illegal. One is the best.
struct loop_space {
  static constexpr const char* name = "loop";
  static constexpr int version = 1;
  static constexpr std::array<const char*, 3> parameters = {"unroll", "block", "order"};
  static constexpr std::array<const char*, 4> feature_names = {"unroll", "block", "order", "footprint"};
  using point = std::array<int, 3>;

  std::span<const int> values(std::size_t of) const { return std::span(numbers).first(of == 2 ? 4 : 16); }
  c::detail::sentence conflict(const point& p) const {
    c::detail::sentence why;
    if (p[0] * p[1] > 160) why << "it unrolls too large blocks";
    return why;
  }
  /// Knows the block, and not the rest.
  double estimate(const point& p) const { return std::abs(p[1] - 9); }
  std::array<float, 4> features(const point& p) const {
    return {static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
            static_cast<float>(p[0] * p[1])};
  }
  /// The time of a point, for kernels whose best takes 1.
  static double time(const point& p) {
    return 1 + 0.08 * std::abs(p[0] - 11) + 0.05 * std::abs(p[1] - 10) + 0.3 * std::abs(p[2] - 3);
  }

 private:
  static constexpr std::array numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
};

std::string text_of(const loop_space::point& p) { return c::tune::text_of(loop_space(), p); }

/// What the best kernel of an operator takes.
template <class P>
double best_ms = 0;

template <class P>
c::kernel loop(const c::match<P>& m, const std::string& name, double ms, float (*f)(float)) {
  built.push_back(std::string(P::name) + " " + name);
  const auto result = m.output();
  const auto count = static_cast<std::size_t>(result.out.elements());
  return {name, [=](const c::kernel_call& call) {
            for (std::size_t i = 0; i < count; ++i)
              static_cast<float*>(call.out[0])[i] = f(static_cast<const float*>(call.in[0])[i]);
            now_ms += ms;
          }};
}
float compute(const relu&, float x) { return std::max(x, 0.0F); }
float compute(const neg&, float x) { return -x; }
float compute(const tanh&, float x) { return std::tanh(x); }
float compute(const negated_relu&, float x) { return -std::max(x, 0.0F); }

/// What backends of loops have, whatever their patterns.
struct loop_kernels {
  template <class P>
  static void configurations(const c::match<P>&, c::configuration_list& to) {
    to.add(text_of({4, 4, 1}));
    to.add(text_of({8, 4, 1}));
  }
  template <class P>
  static c::verdict knows(const c::match<P>&, const c::configuration& how) {
    try {
      (void)c::tune::parse_point(loop_space(), how.text());
      return {};
    } catch (const c::error&) { return {false, "it is not of the space"}; }
  }
  template <class P>
  static std::shared_ptr<const c::tune::any_space> search_space(const c::match<P>&, const c::configuration&, int) {
    return std::make_shared<const c::tune::any_space>(loop_space());
  }
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context& context) {
    const std::string text = context.configuration().text();
    const loop_space::point p = c::tune::parse_point(loop_space(), text);
    if (p[0] == 12) throw c::error(c::error_kind::unsupported, "it has too few registers", "this processor");
    return loop<P>(m, text, best_ms<P> * loop_space::time(p), [](float x) { return compute(P(), x); });
  }
};

struct looper : c::backend<"looper">, loop_kernels {
  using patterns = c::patterns<relu, neg>;
};
struct fuser : c::backend<"fuser">, loop_kernels {
  using patterns = c::patterns<negated_relu>;
};

/// Has one way to build each kernel.
struct plainer : c::backend<"plainer"> {
  using patterns = c::patterns<relu, neg, tanh>;
  static inline double ms = 100;
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context&) {
    return loop<P>(m, "plain", ms, [](float x) { return compute(P(), x); });
  }
};

using set = c::backend_set<looper, plainer>;

/// Several relu, and one neg: 3 x 10 ms and 0.02 ms at best.
c::graph network() {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {64}});
  for (int i = 0; i < 3; ++i) x = g(op::tanh, g(op::relu, x));
  g.output("y", g(op::neg, x));
  return g.finish();
}

c::place_options options(double seconds = 60) {
  built.clear();
  best_ms<relu> = 10;
  best_ms<neg> = 0.02;
  best_ms<negated_relu> = 10;
  plainer::ms = 100;
  c::place_options how = collage_test::clock_options(now_ms);
  how.autotune.seconds = seconds;
  return how;
}

std::size_t count_built(const std::string& beginning) {
  const std::set<std::string> once(built.begin(), built.end());
  return static_cast<std::size_t>(
      std::ranges::count_if(once, [&](const std::string& one) { return one.starts_with(beginning); }));
}
std::string configuration_of(const c::plan& p, std::size_t group) {
  return std::get<c::kernel_step>(p.chosen.groups[group].step).configuration;
}
double time_of(const std::string& text) { return loop_space::time(c::tune::parse_point(loop_space(), text)); }

TEST(autotune, finds_much_better_configurations_than_were_proposed) {
  const c::placed_plan few = c::place<set>(network(), options(0));
  EXPECT_EQ(configuration_of(few, 0), text_of({8, 4, 1}));
  EXPECT_EQ(few.report.tuning.rounds, 0U);
  EXPECT_EQ(count_built("relu loop"), 2U);

  const c::placed_plan made = c::place<set>(network(), options());
  const c::tuning_report& tuned = made.report.tuning;
  // Of 1,024 combinations, 24 are within 1.2 times the best time.
  EXPECT_LT(time_of(configuration_of(made, 0)), 1.2);
  EXPECT_GT(tuned.rounds, 1U);
  EXPECT_LE(tuned.measured, 200U);
  EXPECT_TRUE(tuned.is_exhausted);
  EXPECT_NEAR(tuned.before_ms, few.chosen.cost_ms, 0.01 * few.chosen.cost_ms);
  EXPECT_NEAR(tuned.after_ms, made.chosen.cost_ms, 0.05 * tuned.after_ms);
  EXPECT_LT(made.chosen.cost_ms, few.chosen.cost_ms - 15);
  EXPECT_EQ(tuned.without_model, c::tune::cost_model::refusal());
  // All relu are one kernel, which is worth more than the neg.
  EXPECT_GT(count_built("relu loop"), 20U);
  EXPECT_LE(count_built("neg loop"), 2U + 8U);
}

TEST(autotune, measures_nothing_where_nothing_can_be_gained) {
  c::place_options how = options();
  plainer::ms = 1;  // no loop of a relu or neg comes near
  best_ms<neg> = 10;
  const c::placed_plan made = c::place<set>(network(), how);
  EXPECT_EQ(made.report.tuning.measured, 0U);
  EXPECT_TRUE(made.report.tuning.is_exhausted);
  EXPECT_EQ(count_built("relu loop"), 2U);
}

TEST(autotune, ends_after_so_many_measurements) {
  c::place_options how = options();
  how.autotune.measurements = 10;
  const c::placed_plan made = c::place<set>(network(), how);
  EXPECT_GE(made.report.tuning.measured, 10U);
  EXPECT_LT(made.report.tuning.measured, 18U);
  EXPECT_FALSE(made.report.tuning.is_exhausted);
}

TEST(autotune, is_the_same_for_the_same_seed_and_times) {
  std::vector<std::vector<std::string>> logs;
  for (const std::uint64_t seed : {7U, 7U, 8U}) {
    c::place_options how = options();
    how.seed = seed;
    now_ms = 0;
    (void)c::place<set>(network(), how);
    logs.push_back(built);
  }
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_NE(logs[0], logs[2]);
}

TEST(autotune, keeps_what_it_found_for_later_placings_and_for_estimates) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  c::place_options how = options();
  how.store = here.path("costs.db");
  const c::placed_plan first = c::place<set>(net, how);
  const std::string found = configuration_of(first, 0);
  EXPECT_LT(time_of(found), 1.2);

  how = options(0);
  how.store = here.path("costs.db");
  const c::placed_plan second = c::place<set>(net, how);
  EXPECT_EQ(configuration_of(second, 0), found);
  EXPECT_EQ(second.report.measured, 0U);
  EXPECT_TRUE(second.report.compared_before);
  EXPECT_EQ(c::to_text(c::plan_to_json(second, net)), c::to_text(c::plan_to_json(first, net)));

  how.costs = c::placing_costs::estimated;
  EXPECT_EQ(configuration_of(c::place<set>(net, how), 0), found);

  // Another network with the same kernels has them, too.
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, {64}})));
  how.costs = c::placing_costs::measured;
  const c::placed_plan other = c::place<set>(g.finish(), how);
  EXPECT_EQ(configuration_of(other, 0), found);
  EXPECT_EQ(other.report.measured, 0U);

  // They are no costs of kernels.
  std::size_t kept = 0;
  for (const c::stored_entry& e : c::cost_store(how.store).list({.backend = "looper"})) {
    if (!e.key.pattern.starts_with("space of ")) continue;
    ++kept;
    EXPECT_TRUE(c::configuration::of(e.cost.kernel)) << e.cost.kernel;
  }
  EXPECT_GE(kept, 4U);
}

TEST(autotune, goes_on_where_it_ended) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  c::place_options how = options();
  how.store = here.path("costs.db");
  how.autotune.measurements = 8;
  const c::placed_plan first = c::place<set>(net, how);
  how = options();
  how.store = here.path("costs.db");
  const c::placed_plan second = c::place<set>(net, how);
  EXPECT_LT(time_of(configuration_of(second, 0)), 1.2);
  EXPECT_LT(second.report.tuning.before_ms, first.report.tuning.before_ms - 1) << "what the first one found was lost";
}

TEST(autotune, searches_kernels_of_fused_groups) {
  using fused = c::backend_set<fuser, plainer>;
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {64}});
  for (int i = 0; i < 2; ++i) x = g(op::tanh, g(op::neg, g(op::relu, x)));
  g.output("y", x);
  const c::graph net = g.finish();
  const c::placed_plan made = c::place<fused>(net, options());
  ASSERT_EQ(made.chosen.groups.size(), 4U);
  EXPECT_LT(time_of(configuration_of(made, 0)), 1.2);
  EXPECT_EQ(configuration_of(made, 0), configuration_of(made, 2)) << "the groups are equal";
  EXPECT_GT(count_built("negated_relu loop"), 20U);
}

TEST(autotune, cancelled_in_the_search_keeps_what_it_measured) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  c::place_options how = options();
  how.store = here.path("costs.db");
  how.cancel = [] { return count_built("relu loop") >= 20; };
  const c::placed_plan some = c::place<set>(net, how);
  EXPECT_TRUE(some.report.interrupted);
  EXPECT_FALSE(some.report.tuning.is_exhausted);
  EXPECT_LT(some.report.tuning.measured, 20U);
  const std::size_t first = count_built("relu loop");
  EXPECT_GE(first, 20U);
  EXPECT_LE(some.chosen.cost_ms, some.report.tuning.before_ms * 1.001);
  const std::set<std::string> before(built.begin(), built.end());

  how = options();
  how.store = here.path("costs.db");
  const c::placed_plan whole = c::place<set>(net, how);
  EXPECT_LT(time_of(configuration_of(whole, 0)), 1.2);
  // The last one may have been built and not measured. The fastest are timed again.
  const std::set<std::string> after(built.begin(), built.end());
  const auto again = std::ranges::count_if(before, [&](const std::string& one) { return after.contains(one); });
  EXPECT_LE(again, 10) << "configurations were measured again";
}

TEST(autotune, plans_of_it_are_loaded_and_run) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  const c::placed_plan made = c::place<set>(net, options());
  c::save_plan(made, net, here.path("plan"));
  const c::plan read = c::load_plan<set>(here.path("plan"), net);
  EXPECT_EQ(configuration_of(read, 0), configuration_of(made, 0));
}

}  // namespace
}  // namespace place_autotune_test
