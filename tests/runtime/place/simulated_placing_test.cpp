// Placing on simulated machines, where all times are exact: the same plan to the last byte, however often it is made,
// whoever is killed while making it and whoever makes it at the same time; and as cheap as if everything were measured.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/detail/host_memory.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/store.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <place/placement_race.hpp>
#include <place/policy.hpp>
#include <place/round_log.hpp>
#include <place/round_quota.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "simulated_backends.hpp"
#include "support/effort.hpp"
#include "support/files.hpp"
#include "support/placing.hpp"
#include "support/random_numbers.hpp"

extern char** environ;

namespace place_simulated_placing_test {

namespace c = collage;
namespace fs = std::filesystem;
using collage_test::fresh_seed;
using collage_test::simulated_machine;
using collage_test::simulated_network;
using collage_test::simulated_set;
using collage_test::simulation;

/// Sums of costs are added in different orders. What costs differ by is at least a tick.
constexpr double rounding = 0.01 / simulated_machine::ticks_per_ms;

std::string text_of(const c::plan& made, const c::graph& network) { return c::to_text(c::plan_to_json(made, network)); }

/// Tests of many networks have twins among the long tests, which try more of them.
class simulated_placing : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return files_.path(name); }

  void is_the_same_to_the_last_byte() const;
  void what_is_predicted_is_what_it_takes() const;
  void neighbours_are_learnt_of() const;
  void a_slow_start_is_measured_again() const;
  void faster_kernels_are_found() const;
  void what_a_store_lacks_is_measured() const;

  std::uint64_t networks_ = collage::detail::is_watched ? 5 : 8;
  const collage_test::temporary_folder files_{collage_test::folder_in_memory()};  // processes die here, no machine does
};
class simulated_placing_long : public simulated_placing {
 protected:
  simulated_placing_long() { networks_ = 20; }
};

std::map<std::string, c::stored_cost> costs_in(const std::string& store) {
  std::map<std::string, c::stored_cost> all;
  if (!fs::exists(store)) return all;
  for (c::stored_entry& e : c::cost_store(store).list())
    if (e.key.backend != "machine") all.emplace(e.id, std::move(e.cost));  // how fast that is may be found out again
  return all;
}

// ---- Exact times ------------------------------------------------------------------------------------------------------

void simulated_placing::is_the_same_to_the_last_byte() const {
  std::size_t fused = 0;
  std::set<std::string> who;
  for (std::uint64_t seed = 0; seed < networks_; ++seed) {
    const c::graph network = simulated_network(seed, 16);
    std::string first;
    for (int turn = 0; turn < 2; ++turn) {
      simulated_machine machine({.seed = seed, .stepped = seed % 2 == 0});
      const c::plan made = c::place<simulated_set>(network, machine.options());
      if (turn == 0) first = text_of(made, network);
      else EXPECT_EQ(text_of(made, network), first) << "network " << seed;
      for (const c::plan_group& g : made.chosen.groups) {
        who.insert(g.backend());
        fused += g.nodes.size() > 1;
      }
    }
  }
  EXPECT_EQ(who.size(), 3U);
  EXPECT_GT(fused, 2 * networks_);  // and so fusing pays here and there
}
TEST_F(simulated_placing, is_the_same_to_the_last_byte) { is_the_same_to_the_last_byte(); }
TEST_F(simulated_placing_long, is_the_same_to_the_last_byte) { is_the_same_to_the_last_byte(); }

void simulated_placing::what_is_predicted_is_what_it_takes() const {
  for (std::uint64_t seed = 0; seed < networks_; ++seed) {
    const c::graph network = simulated_network(seed, 16);
    simulated_machine machine({.seed = seed});
    const c::plan made = c::place<simulated_set>(network, machine.options());
    EXPECT_NEAR(made.runs[0].median_ms, made.chosen.cost_ms, rounding) << seed;
    EXPECT_NEAR(made.first_cost_ms, made.chosen.cost_ms, rounding) << seed;
    EXPECT_EQ(made.origin, "search") << seed;
    double least = 1e300;
    for (const c::placement& single : made.singles) least = std::min(least, single.cost_ms);
    EXPECT_LE(made.chosen.cost_ms, least + rounding) << seed;
  }
}
TEST_F(simulated_placing, what_is_predicted_is_what_it_takes) { what_is_predicted_is_what_it_takes(); }
TEST_F(simulated_placing_long, what_is_predicted_is_what_it_takes) { what_is_predicted_is_what_it_takes(); }

/// Kernels take longer behind those of other backends, which no kernel shows alone.
void place_beside_neighbours(std::size_t networks, simulation how, std::size_t nodes, bool views = false) {
  double before = 0, after = 0;
  std::size_t told = 0, mixed = 0;
  for (std::uint64_t seed = 0; seed < networks; ++seed) {
    const c::graph network = simulated_network(seed, nodes, views);
    how.seed = seed;
    simulated_machine machine(how);
    c::place_options options = machine.options();
    const c::placed_plan made = c::place<simulated_set>(network, options);
    const c::place_report& report = made.report;
    const double took = made.runs[0].median_ms;
    before += std::abs(made.first_cost_ms / took - 1);
    after += std::abs(made.chosen.cost_ms / took - 1);
    for (const c::plan_run& run : made.runs) EXPECT_GE(run.ratio, 0.99) << seed << ": " << run.name;
    double sum = 0;
    for (const c::plan_group& g : made.chosen.groups) {
      sum += g.cost_ms;
      mixed += g.switch_ms > 0;
    }
    EXPECT_NEAR(sum, made.chosen.cost_ms, rounding) << seed;
    EXPECT_LE(made.lower_bound_ms, made.chosen.cost_ms + rounding) << seed;
    told += !report.switches.empty();
    for (const c::place_switch& s : report.switches) {
      EXPECT_GE(s.kernels, 6U);
      if (how.neighbour == 0 && !views)  // which move who runs before whom away from who reads whom
        EXPECT_NEAR(s.ms, static_cast<double>(how.switching) / simulated_machine::ticks_per_ms, rounding)
            << seed << ": " << s.from << " to " << s.to;
    }
  }
  EXPECT_LT(after, before);
  EXPECT_LT(after, static_cast<double>(networks) * (nodes < 20 ? 0.05 : 0.02));
  if (nodes > 20) EXPECT_GT(told, networks / 10);
  std::printf(
      "the sum of costs is off by %.1f %% at first and %.1f %% in the end; in %zu of %zu networks it was told who stands "
      "behind whom, which adds to %zu groups\n",
      100 * before / static_cast<double>(networks), 100 * after / static_cast<double>(networks), told, networks, mixed);
}

void simulated_placing::neighbours_are_learnt_of() const {
  place_beside_neighbours(networks_, {.neighbour = 0.3}, 16);
  place_beside_neighbours(networks_, {.neighbour = 0.3}, 60);
  place_beside_neighbours(networks_, {.switching = 200}, 60);
  place_beside_neighbours(networks_, {.switching = 200}, 60, true);
}
TEST_F(simulated_placing, neighbours_that_disturb_each_other_are_learnt_of) { neighbours_are_learnt_of(); }
TEST_F(simulated_placing_long, neighbours_that_disturb_each_other_are_learnt_of) { neighbours_are_learnt_of(); }

/// Compares plans of one network on a machine that is always as fast as now, whatever ran before.
void expect_as_good(const c::plan& one, const c::plan& other) {
  // The same kernels take the same time.
  for (const c::plan_group& g : one.chosen.groups) {
    const auto same = std::ranges::find_if(other.chosen.groups, [&](const c::plan_group& o) {
      return o.nodes == g.nodes && o.kernel == g.kernel && o.backend() == g.backend();
    });
    if (same != other.chosen.groups.end()) EXPECT_NEAR(g.cost_ms, same->cost_ms, rounding);
  }
  // A step is timed by reading the clock, which takes a tick here.
  for (const c::plan* made : {&one, &other}) {
    const auto steps = static_cast<double>(made->chosen.groups.size());
    EXPECT_LE(made->runs[0].median_ms, made->chosen.cost_ms + rounding);
    EXPECT_GE(made->runs[0].median_ms, made->chosen.cost_ms - steps / simulated_machine::ticks_per_ms - rounding);
  }
  // A placement does not run if it is expected to gain too little, and kernels that did not run in the fastest placement count
  // more than they take. Which these are depends on what ran before, and so does a placement that is better by so little.
  const double most = c::detail::thresholds.price.doubt_alone / c::detail::thresholds.trial.telling;
  EXPECT_LE(one.chosen.cost_ms, most * other.chosen.cost_ms);
  EXPECT_LE(other.chosen.cost_ms, most * one.chosen.cost_ms);
  if (!c::same_steps(one.chosen, other.chosen)) return;
  EXPECT_NEAR(one.chosen.cost_ms, other.chosen.cost_ms, rounding);
  EXPECT_NEAR(one.runs[0].median_ms, other.runs[0].median_ms, rounding);
}

/// The machine is slow at first, and nothing is known of how fast it can be: when it gets faster is found out in each part of
/// placing, and no time of the slow part stays in the plan or the store. What is in the store then is all that the next placing
/// asks for.
void simulated_placing::a_slow_start_is_measured_again() const {
  std::mt19937_64 random(fresh_seed());
  std::size_t compared = 0, ties = 0;
  for (std::uint64_t seed = 0; seed < networks_; ++seed) {
    const c::graph network = simulated_network(seed, 16);
    double took_ms = 0;
    c::place_report report;
    const auto place = [&](const std::string& store, double slow_start_ms) {
      simulated_machine machine({.seed = seed, .slow_start_ms = slow_start_ms});
      c::place_options how = machine.options();
      how.store = store;
      how.measuring.timing.rounds = 3;
      const c::placed_plan made = c::place<simulated_set>(network, how);
      report = made.report;
      took_ms = machine.now_ms();
      return made;
    };
    const std::string quick_store = path(std::to_string(seed) + ".quick.db");
    const std::string slow_store = path(std::to_string(seed) + ".slow.db");
    const c::plan quick = place(quick_store, 1e-6);
    const double slow_ms = std::uniform_real_distribution<double>(0.05, 2)(random) * took_ms;
    const c::plan slow = place(slow_store, slow_ms);
    ASSERT_LT(slow_ms, took_ms);
    ASSERT_NO_FATAL_FAILURE(expect_as_good(slow, quick)) << seed;
    // Costs have steps here, so that two placements may cost the same: who ran first stays then.
    ties += !c::same_steps(slow.chosen, quick.chosen);
    const std::map<std::string, c::stored_cost> expected = costs_in(quick_store);
    for (const auto& [id, cost] : costs_in(slow_store))
      if (const auto known = expected.find(id); known != expected.end()) {
        EXPECT_NEAR(cost.median_ms, known->second.median_ms, rounding) << seed << ": " << cost.label;
        ++compared;
      }
    EXPECT_EQ(text_of(place(slow_store, 1e-6), network), text_of(slow, network)) << seed;
    EXPECT_EQ(report.measured, 0U) << seed;
    EXPECT_TRUE(report.compared_before) << seed;
  }
  EXPECT_GT(compared, networks_ * 20);
  EXPECT_LE(ties, 1 + networks_ / 5);
}
TEST_F(simulated_placing, what_a_slow_start_measured_is_measured_again) { a_slow_start_is_measured_again(); }
TEST_F(simulated_placing_long, what_a_slow_start_measured_is_measured_again) { a_slow_start_is_measured_again(); }

/// A structure counts once, however often it is measured: kernels for which a budget left no time at first come again.
TEST_F(simulated_placing, progress_counts_each_structure_once) {
  std::size_t again = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const c::graph network = simulated_network(seed, 6);
    simulated_machine machine({.seed = seed});
    c::place_options how = machine.options();
    how.budget_s = 20;
    how.measuring.complete = true;
    const c::time_source clock = machine.clock();
    machine.on_build = [&] { clock.sleep_ms(5'000); };  // longer than any structure may take at first
    std::set<std::string> told;
    std::optional<std::size_t> all;
    how.progress = [&](const c::place_progress& now) {
      if (std::string(now.stage) != "measuring") return;
      again += told.insert(now.what).second ? 0 : 1;
      if (!all) all = now.done + now.remaining;
      EXPECT_EQ(now.done + now.remaining, *all) << now.what;
      EXPECT_GE(now.remaining, 1U) << now.what;
      EXPECT_LT(now.done, *all) << now.what;
    };
    (void)c::place<simulated_set>(network, how);
  }
  EXPECT_GT(again, 0U);
}

/// What a placement leaves behind is gone before calls of another one count.
TEST(simulated_comparison, what_ran_before_does_not_count) {
  constexpr double aftermath_ms = 30;
  simulated_machine machine({.aftermath_ms = aftermath_ms});
  const c::graph network = simulated_network(1, 16);
  const c::plan calm = c::place<c::backend_set<collage_test::alpha>>(network, machine.options());
  const c::plan disturbing =
      c::place<c::backend_set<collage_test::beta, collage_test::gamma>>(network, machine.options());
  ASSERT_TRUE(std::ranges::any_of(disturbing.chosen.groups, [](const auto& g) { return g.backend() == "beta"; }));
  const auto compared = [&](double settling_ms) {
    c::detail::placement_race race(network, c::table_of<simulated_set>, 1, 1, std::make_shared<c::packed_weights>(),
                                   nullptr, machine.clock());
    (void)race.add(calm.chosen);
    (void)race.add(calm.chosen, c::detail::race_role::replica);
    (void)race.add(disturbing.chosen);
    c::detail::race_options how;
    how.settling_ms = settling_ms;
    how.least_rounds = how.most_rounds = 12;
    how.beaten = how.behind = 1e9;
    race.run(how);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(race.rounds(i), 12U);
    return std::pair{race.log().times(0), race.log().times(1)};
  };
  const double alone_ms = calm.runs[0].median_ms;
  const auto [first, twin] = compared(aftermath_ms);
  for (const double ms : first) EXPECT_DOUBLE_EQ(ms, alone_ms);
  EXPECT_EQ(first, twin);
  const auto [unsettled, other] = compared(0);
  EXPECT_GT(*std::ranges::max_element(unsettled), 1.05 * alone_ms);
  EXPECT_NE(unsettled, other);  // the order differs from round to round
}

/// What a placement takes on a machine that nothing disturbs.
double undisturbed_ms(const c::graph& network, const c::placement& placed, const simulated_machine& machine) {
  double ticks = 0;
  for (const c::plan_group& g : placed.groups) {
    std::vector<std::uint32_t> nodes = g.nodes;
    std::ranges::sort(nodes);
    ticks += static_cast<double>(machine.ticks_of(network, nodes, g.backend(), g.pattern()) +
                                 machine.cold_ticks_of(network, nodes, g.backend(), g.pattern()));
  }
  return ticks / simulated_machine::ticks_per_ms;
}

/// While another machine is at work on the same cores, which walks through caches tell, turns do not count.
TEST(simulated_comparison, turns_that_were_disturbed_are_taken_again) {
  simulated_machine machine({.period_ms = 400, .slow_ms = 100, .slowness = 1.35});
  const c::graph network = simulated_network(1, 16);
  c::place_options how_placed = machine.options();
  how_placed.comparing.seconds = 3;
  const c::plan made = c::place<c::backend_set<collage_test::alpha>>(network, how_placed);
  const double alone_ms = undisturbed_ms(network, made.chosen, machine);
  const auto slowest = [&](c::drift_monitor* monitor) {
    c::detail::placement_race race(network, c::table_of<simulated_set>, 1, 1, std::make_shared<c::packed_weights>(),
                                   monitor, machine.clock());
    for (int i = 0; i < 3; ++i) (void)race.add(made.chosen, c::detail::race_role::replica);
    c::detail::race_options how;
    how.least_rounds = how.most_rounds = 30;
    race.run(how);
    double most = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(race.rounds(i), 30U);
      const std::vector<double> times = race.log().times(i);
      most = std::max(most, *std::ranges::max_element(times));
    }
    return most / alone_ms;
  };
  EXPECT_GT(slowest(nullptr), 1.3);
  // The clock takes a tick.
  c::drift_monitor monitor({c::drift_work(), c::timed([] {})}, {}, machine.clock());
  EXPECT_LT(slowest(&monitor), 1.01);
  EXPECT_GT(monitor.waited_ms(), 0);
}

/// What it takes while processors are apart.
double apart_ms(const c::graph& network, const c::placement& placed, const simulated_machine& machine) {
  double ticks = 0;
  for (const c::plan_group& g : placed.groups) {
    std::vector<std::uint32_t> nodes = g.nodes;
    std::ranges::sort(nodes);
    ticks += static_cast<double>(machine.apart_ticks_of(network, nodes, g.backend(), g.pattern()));
  }
  return undisturbed_ms(network, placed, machine) + ticks / simulated_machine::ticks_per_ms;
}

constexpr simulation comes_apart{.stepped = false, .apart_period_ms = 900, .apart_ms = 400, .apart = 0.4};

/// Rounds in which processors are apart are told from others, and count for half of a ratio and for none of a time.
TEST(simulated_comparison, rounds_in_which_processors_are_apart_are_of_a_kind_of_their_own) {
  simulated_machine machine(comes_apart);
  const c::graph network = simulated_network(1, 16);
  const auto place = [&](auto set) { return c::place<decltype(set)>(network, machine.options()).chosen; };
  const c::placement placed[] = {place(c::backend_set<collage_test::alpha>{}),
                                 place(c::backend_set<collage_test::beta, collage_test::gamma>{})};
  double shared[2], apart[2];
  for (int i = 0; i < 2; ++i) {
    shared[i] = undisturbed_ms(network, placed[i], machine);
    apart[i] = apart_ms(network, placed[i], machine);
    ASSERT_GT(apart[i], 1.05 * shared[i]);
  }
  c::drift_monitor monitor({machine.exchange(), c::drift_work()}, {.usual_ms = {0.01, 0}}, machine.clock());
  c::detail::placement_race race(network, c::table_of<simulated_set>, 2, 1, std::make_shared<c::packed_weights>(),
                                 &monitor, machine.clock());
  for (const c::placement& p : placed) (void)race.add(p);
  c::detail::race_options how;
  how.seconds = 0.5;
  how.settling_ms = 1;
  how.beaten = how.behind = 1e9;
  how.splitting_s = 2;
  race.run(how);
  EXPECT_TRUE(race.met_split());
  std::size_t rounds_apart = 0;
  for (std::size_t k = 0; k < race.log().size(); ++k) {
    const bool is_split = race.log().rounds()[k].regime == c::detail::cache_regime::split;
    rounds_apart += is_split;
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(race.log().times(i)[k], is_split ? apart[i] : shared[i], rounding) << k;
  }
  EXPECT_GE(rounds_apart, how.least_rounds);
  EXPECT_GE(race.log().size() - rounds_apart, how.least_rounds);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(race.time_of(i).median_ms, shared[i], rounding);
  EXPECT_NEAR(race.ratio(1, 0).median, std::sqrt(shared[1] / shared[0] * (apart[1] / apart[0])), 1e-6);
  EXPECT_NEAR(race.ratio(0, 1).median * race.ratio(1, 0).median, 1, 1e-6);
  // Steps of the other kind count as if the placement beside took as long as otherwise.
  for (const c::detail::cache_regime regime : c::detail::cache_regimes) {
    double sum = 0;
    for (const c::timing& step : race.steps_of(1, 0, regime)) {
      EXPECT_GT(step.samples, 0U);
      sum += step.median_ms;
    }
    EXPECT_NEAR(sum, regime == c::detail::cache_regime::split ? apart[1] * shared[0] / apart[0] : shared[1],
                0.01 * sum);
  }
  // Alone they can be had, too.
  const std::size_t before = race.log().size();
  how.is_split_alone = true;
  race.run(how);
  ASSERT_GE(race.log().size(), before + how.least_rounds);
  for (std::size_t k = before; k < race.log().size(); ++k)
    EXPECT_EQ(race.log().rounds()[k].regime, c::detail::cache_regime::split);
}

/// Nobody waits for ever for processors to come apart.
TEST(simulated_comparison, parting_ends_where_it_is_in_vain) {
  simulation stays_together = comes_apart;
  stays_together.apart_ms = 0;
  simulated_machine machine(stays_together);
  const c::graph network = simulated_network(1, 16);
  const c::plan made = c::place<c::backend_set<collage_test::alpha>>(network, machine.options());
  c::drift_monitor monitor({machine.exchange(), c::drift_work()}, {.usual_ms = {0.01, 0}}, machine.clock());
  const auto race_of = [&](int threads, c::drift_monitor* watched_by) {
    return c::detail::placement_race(network, c::table_of<simulated_set>, threads, 1,
                                     std::make_shared<c::packed_weights>(), watched_by, machine.clock());
  };
  c::detail::placement_race race = race_of(2, &monitor);
  double most_s = 1;
  EXPECT_FALSE(race.split_caches(most_s));  // nothing keeps them at work
  EXPECT_EQ(most_s, 1);
  (void)race.add(made.chosen);
  c::detail::race_options how;
  how.seconds = 0.2;
  how.settling_ms = 1;
  how.splitting_s = 1.5;
  double start_ms = machine.now_ms();
  race.run(how);
  const double took_ms = machine.now_ms() - start_ms;
  EXPECT_GE(took_ms, 1e3 * how.splitting_s);
  EXPECT_LT(took_ms, 1e3 * (how.splitting_s + 5 * how.seconds));
  EXPECT_FALSE(race.met_split());
  EXPECT_EQ(race.log().turns(0, c::detail::cache_regime::split), 0U);
  EXPECT_GE(race.log().turns(0, c::detail::cache_regime::shared), how.least_rounds);

  most_s = 0.5;
  EXPECT_FALSE(race.split_caches(most_s));
  EXPECT_LE(most_s, 0);
  start_ms = machine.now_ms();
  EXPECT_FALSE(race.split_caches(most_s));  // nothing of it is left
  EXPECT_EQ(machine.now_ms(), start_ms);

  int asked = 0;
  const auto stop = [&asked] { return ++asked == 50; };
  most_s = 1e9;
  EXPECT_FALSE(race.split_caches(most_s, stop));
  EXPECT_EQ(asked, 50);
  EXPECT_GT(most_s, 0.9e9);
  const std::size_t before = race.rounds(0);
  how.splitting_s = 1e9;
  asked = -200;  // more than it has rounds
  race.run(how, stop);
  EXPECT_EQ(asked, 50);
  EXPECT_GE(race.rounds(0), before + how.least_rounds);

  most_s = 1;
  c::detail::placement_race alone = race_of(1, &monitor), unwatched = race_of(2, nullptr);
  for (c::detail::placement_race* other : {&alone, &unwatched}) {
    (void)other->add(made.chosen);
    EXPECT_FALSE(other->split_caches(most_s));
    EXPECT_EQ(most_s, 1);
  }
}

/// A plan is to be good in both kinds of times, of which each shows other kernels to be the fastest: nearly as good as if each
/// time were half of each.
TEST_F(simulated_placing, plans_suit_times_in_which_processors_are_apart) {
  constexpr std::uint64_t networks = 20;  // fewer say little
  double known = 0, unknown = 0, best = 0;
  for (std::uint64_t seed = 0; seed < networks; ++seed) {
    const c::graph network = simulated_network(seed, 16);
    c::place_report report;
    const auto place = [&](simulation how) {
      how.seed = seed;
      simulated_machine machine(how);
      c::place_options options = machine.options();
      options.threads = 2;
      options.comparing.seconds = 3;
      options.measuring.splits_caches = true;
      options.measuring.drift_works = {machine.exchange(), c::drift_work()};
      options.measuring.drift.usual_ms = {0.01, 0};
      const c::placed_plan made = c::place<simulated_set>(network, options);
      report = made.report;
      const double shared = undisturbed_ms(network, made.chosen, machine);
      if (how.apart_always == 0) EXPECT_NEAR(made.runs[0].median_ms, shared, rounding) << seed;
      return std::sqrt(shared * apart_ms(network, made.chosen, machine));
    };
    simulation calm = comes_apart, mixed = comes_apart;
    calm.apart_ms = mixed.apart_ms = 0;
    mixed.apart_always = 0.5;
    unknown += place(calm);
    EXPECT_EQ(report.rounds_apart, 0U);
    best += place(mixed);
    known += place(comes_apart);
    EXPECT_GT(report.rounds_apart, 0U);
    EXPECT_LT(report.rounds_apart, report.rounds);
  }
  std::printf("the geometric mean of both times is %.2f %% above the best; where one of them is not known, %.2f %%\n",
              100 * (known / best - 1), 100 * (unknown / best - 1));
  EXPECT_LT(known - best, 0.5 * (unknown - best));
}

/// A machine that is so many times slower for a part of each period.
struct slow_times {
  double period_ms, slow_ms, slowness;
  double calm_walk = c::drift_options{}.calm[1];
};
constexpr double anything = 1e9;
/// What the drift monitor notices by exchanges between threads, what by walks through caches alone, and what not at all.
constexpr std::array<slow_times, 2> clearly_slow{{{5000, 1500, 4}, {1300, 300, 4}}},
    somewhat_slow{{{2300, 1000, 1.35}, {700, 300, 1.35}}},
    unnoticed{{{2300, 1000, 1.35, anything}, {700, 300, 1.35, anything}}};

/// What the cheapest placement takes where kernels take up to `cold` longer within a network than alone.
double cheapest_ms(const c::graph& network, std::uint64_t seed, double cold) {
  simulated_machine machine({.seed = seed, .stepped = false, .cold = cold, .always_cold = true});
  c::place_options how = machine.options();
  how.measuring.complete = true;
  return undisturbed_ms(network, c::place<simulated_set>(network, how).chosen, machine);
}

struct noisy_placing {
  double ms = 0;   // undisturbed
  double off = 0;  // by how much of that the sum of costs is wrong
};

/// Places a network while kernels take 2 % more or less, and at times longer.
noisy_placing place_under_noise(const c::graph& network, std::uint64_t seed, std::uint64_t noise, double cold,
                                const slow_times& slow) {
  simulated_machine machine({.seed = seed,
                             .stepped = false,
                             .noise_seed = noise,
                             .spread = 0.02,
                             .cold = cold,
                             .period_ms = slow.period_ms,
                             .slow_ms = slow.slow_ms,
                             .slowness = slow.slowness});
  c::place_options how = machine.options();
  how.comparing.seconds = 3;
  how.measuring.drift.calm[1] = slow.calm_walk;
  const c::plan made = c::place<simulated_set>(network, how);
  const double ms = undisturbed_ms(network, made.chosen, machine);
  return {ms, std::abs(made.chosen.cost_ms / ms - 1)};
}

/// Networks are placed again and again. Plans are to be at most so many times as dear as the cheapest placement.
void place_under_noise(std::uint64_t networks, std::uint64_t times, double most_dear, double cold,
                       const std::array<slow_times, 2>& slow) {
  double worst = 1, widest = 1, off = 0;
  std::size_t equal = 0;
  for (std::uint64_t seed = 0; seed < networks; ++seed) {
    const c::graph network = simulated_network(seed, 16);
    const double best = cheapest_ms(network, seed, cold);
    double least = 1e300, most = 0;
    for (std::uint64_t noise = 0; noise < times; ++noise) {
      const noisy_placing made = place_under_noise(network, seed, noise, cold, slow[noise % 2]);
      least = std::min(least, made.ms);
      most = std::max(most, made.ms);
      equal += made.ms <= best + rounding;
      off += made.off;
    }
    worst = std::max(worst, most / best);
    widest = std::max(widest, most / least);
  }
  const auto all = static_cast<double>(networks * times);
  EXPECT_LE(worst, most_dear);
  EXPECT_LE(off / all, 0.05);
  std::printf(
      "%zu networks, %zu placings of each: apart by %.2f %% at most, dearer than the cheapest by %.2f %% at most, "
      "%.1f %% of them are the cheapest; their costs are off by %.2f %% on average\n",
      static_cast<std::size_t>(networks), static_cast<std::size_t>(times), 100 * (widest - 1), 100 * (worst - 1),
      100 * static_cast<double>(equal) / all, 100 * off / all);
}

TEST_F(simulated_placing, noise_and_slow_minutes_change_little) {
  place_under_noise(2, 4, 1.02, 0, clearly_slow);
  place_under_noise(2, 4, 1.02, 0.15, clearly_slow);
  place_under_noise(2, 4, 1.02, 0, somewhat_slow);
  place_under_noise(2, 4, 1.03, 0, unnoticed);
}
TEST_F(simulated_placing_long, noise_and_slow_minutes_change_little) {
  place_under_noise(20, 20, 1.02, 0, clearly_slow);
  place_under_noise(20, 20, 1.02, 0.15, clearly_slow);
  place_under_noise(20, 20, 1.02, 0, somewhat_slow);
  place_under_noise(20, 20, 1.03, 0, unnoticed);
}

/// Single backends that stopped running early, in these two placings, and were beaten by placements that were released since.
TEST_F(simulated_placing, who_was_beaten_is_not_handed_out) {
  for (const auto& [seed, noise] : {std::pair{15U, 4U}, std::pair{19U, 14U}}) {
    const c::graph network = simulated_network(seed, 16);
    const double ms = place_under_noise(network, seed, noise, 0, unnoticed[noise % 2]).ms;
    EXPECT_LE(ms, 1.02 * cheapest_ms(network, seed, 0)) << seed;
  }
}

/// What kernels take within the network is not what they take alone: those that may be faster there are found.
void simulated_placing::faster_kernels_are_found() const {
  double worst = 1, alone = 1;
  for (std::uint64_t seed = 0; seed < networks_; ++seed) {
    const c::graph network = simulated_network(seed, 24);
    const auto place = [&](const simulation& how, double seconds) {
      simulated_machine machine(how);
      c::place_options options = machine.options();
      options.comparing.seconds = seconds;
      options.measuring.complete = how.always_cold;
      return undisturbed_ms(network, c::place<simulated_set>(network, options).chosen, machine);
    };
    const simulation cold{.seed = seed, .stepped = false, .cold = 0.15};
    simulation always = cold, never = cold;
    always.always_cold = true;
    never.cold = 0;
    const double best = place(always, 0.1);
    worst = std::max(worst, place(cold, 3) / best);
    // What is the best by what kernels take alone.
    simulated_machine machine(cold);
    simulated_machine warm(never);
    const c::plan by_alone = c::place<simulated_set>(network, warm.options());
    alone = std::max(alone, undisturbed_ms(network, by_alone.chosen, machine) / best);
  }
  EXPECT_LE(worst, 1.01);
  EXPECT_GT(alone, worst);
  std::printf("dearer than the cheapest by %.2f %% at most, by what kernels take alone by %.2f %%\n", 100 * (worst - 1),
              100 * (alone - 1));
}
TEST_F(simulated_placing, kernels_that_are_faster_within_the_network_are_found) { faster_kernels_are_found(); }
TEST_F(simulated_placing_long, kernels_that_are_faster_within_the_network_are_found) { faster_kernels_are_found(); }

/// On a clock that stands still otherwise: what a kernel leaves in the caches for the one behind it.
double clock_ms = 0;
enum class left_behind : std::uint8_t { something, little, much } caches = left_behind::something;

template <c::fixed_string Name>
struct backend_with_caches : c::backend<Name> {
  using patterns = c::patterns<c::single<collage::ops::relu>, c::single<collage::ops::neg>>;
  static constexpr bool is_slow = std::string_view(Name.text) == "slow";

  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.graph().values[m.record().output[0]].type.dims.elements());
    return {"loop", [count](const c::kernel_call& call) {
              constexpr bool is_relu = std::is_same_v<P, c::single<collage::ops::relu>>;
              const auto* from = static_cast<const float*>(call.in[0]);
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = is_relu ? std::max(from[i], 0.0F) : -from[i];
              if (is_relu) clock_ms += is_slow ? 50 : 10;
              else if (!is_slow) clock_ms += 8;
              else clock_ms += caches == left_behind::much ? 5 : caches == left_behind::little ? 12 : 8.2;
              caches = !is_relu ? left_behind::something : is_slow ? left_behind::little : left_behind::much;
            }};
  }
};
struct quick_backend : backend_with_caches<"quick"> {};
struct slow_backend : backend_with_caches<"slow"> {};

/// A kernel that ran within the network only in a placement that is far slower than the fastest, where it took long.
TEST(simulated_comparison, what_ran_in_slow_placements_alone_is_tried) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {4}});
  for (int i = 0; i < 3; ++i) x = g(collage::ops::relu, x);
  g.output("y", g(collage::ops::neg, x));
  const c::plan made =
      c::place<c::backend_set<quick_backend, slow_backend>>(g.finish(), collage_test::clock_options(clock_ms, 1));
  EXPECT_EQ(made.chosen.groups.back().backend(), "slow");
  EXPECT_NEAR(made.runs[0].median_ms, 3 * 10 + 5, 1e-6);
  EXPECT_NEAR(made.chosen.cost_ms, 3 * 10 + 5, 1e-6);
}

/// Part of what is known is forgotten: it alone is measured again, beside at most one of its group that is known.
void simulated_placing::what_a_store_lacks_is_measured() const {
  std::mt19937_64 random(fresh_seed());
  for (std::uint64_t seed = 0; seed < networks_; ++seed) {
    const c::graph network = simulated_network(seed, 14);
    simulated_machine machine({.seed = seed});
    std::set<std::uint64_t> raced;
    machine.on_race = [&](const collage_test::simulated_kernel& kernel) { raced.insert(kernel.name); };
    c::place_options how = machine.options();
    how.store = path(std::to_string(seed) + ".db");
    how.comparing.recheck = true;  // kernels are measured for the comparison, too
    const std::string first = text_of(c::place<simulated_set>(network, how), network);
    const std::size_t all = raced.size();
    for (const std::uint64_t part : {1U, 2U, 10U}) {
      raced.clear();
      std::set<std::uint64_t> forgotten;
      std::set<std::vector<std::uint64_t>> groups;
      {
        c::cost_store store(how.store);
        EXPECT_EQ(store.list().size(), all);
        for (const c::stored_entry& e : store.list()) {
          if (random() % part != 0) continue;
          EXPECT_EQ(store.remove({.text = e.id}).costs, 1U);
          forgotten.insert(simulated_machine::name_of(e.key.computes, e.key.backend, e.key.pattern));
          groups.insert(e.key.computes);
        }
      }
      EXPECT_EQ(text_of(c::place<simulated_set>(network, how), network), first) << seed;
      EXPECT_TRUE(std::ranges::includes(raced, forgotten)) << seed;
      EXPECT_LE(raced.size(), forgotten.size() + groups.size()) << seed;
    }
    const c::placed_plan again = c::place<simulated_set>(network, how);
    EXPECT_EQ(text_of(again, network), first) << seed;
    EXPECT_EQ(again.report.measured, 0U) << seed;
  }
}
TEST_F(simulated_placing, what_a_store_lacks_is_measured_and_the_plan_is_the_same) { what_a_store_lacks_is_measured(); }
TEST_F(simulated_placing_long, what_a_store_lacks_is_measured_and_the_plan_is_the_same) {
  what_a_store_lacks_is_measured();
}

// ---- What is not measured ---------------------------------------------------------------------------------------------

/// Where no group is cheaper than docs/measuring.md says of what is not measured, leaving it out costs nothing.
void lazy_is_complete(std::uint64_t seed, std::size_t networks) {
  std::size_t skipped = 0, distinct = 0, compared = 0, dearer = 0;
  double most = 1;
  for (std::uint64_t i = 0; i < networks; ++i) {
    const bool is_bounded = i % 8 != 7;
    const c::graph network = simulated_network(seed + i, 6 + (seed + i) % 14);
    simulated_machine machine({.seed = seed + i, .bounded = is_bounded});
    c::place_options how = machine.options();
    const c::placed_plan lazy = c::place<simulated_set>(network, how);
    const c::place_report& report = lazy.report;
    how.measuring.complete = true;
    const c::placed_plan complete = c::place<simulated_set>(network, how);
    const c::place_report& all = complete.report;
    ASSERT_EQ(all.skipped, 0U) << seed + i;
    ASSERT_EQ(all.measured + all.refused, all.distinct) << seed + i;
    skipped += report.skipped;
    distinct += report.distinct;
    if (is_bounded) {
      ++compared;
      ASSERT_NEAR(lazy.first_cost_ms, complete.first_cost_ms, rounding) << seed + i;
      ASSERT_NEAR(lazy.chosen.cost_ms, complete.chosen.cost_ms, rounding) << seed + i;
    } else {
      ASSERT_GE(lazy.first_cost_ms, complete.first_cost_ms - rounding) << seed + i;
      dearer += lazy.first_cost_ms > complete.first_cost_ms + rounding;
      most = std::max(most, lazy.first_cost_ms / complete.first_cost_ms);
    }
  }
  std::printf(
      "%zu networks within the bounds: each placement costs what it does when everything is measured.\n"
      "%zu networks beyond them: %zu placements are dearer, by %.1f %% at most. %zu of %zu candidates were skipped (%.1f "
      "%%).\n",
      compared, networks - compared, dearer, 100 * (most - 1), skipped, distinct,
      100.0 * static_cast<double>(skipped) / static_cast<double>(distinct));
  EXPECT_GT(skipped, 0U);
}

TEST_F(simulated_placing, costs_the_same_as_if_everything_were_measured) {
  lazy_is_complete(fresh_seed(), collage_test::cases(40));
}
TEST_F(simulated_placing_long, costs_the_same_as_if_everything_were_measured) { lazy_is_complete(fresh_seed(), 2000); }

// ---- Processes that are killed, and several at once --------------------------------------------------------------------

/// Another process. Killed when this is destroyed.
class process {
 public:
  explicit process(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = ::posix_spawn(&id_, words[0].c_str(), &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error(words[0] + " cannot be started");
  }
  process(process&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  process& operator=(process&&) = delete;
  ~process() {
    if (id_ > 0) (void)die();
  }
  /// Its exit status, or 1000 and the signal that ended it.
  int end() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {}
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  int die() {
    ::kill(id_, SIGKILL);
    return end();
  }

 private:
  pid_t id_ = 0;
};

void sleep_ms(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

/// A kernel, and what it computes.
using kernel_name = std::pair<std::uint64_t, std::uint64_t>;

/// The races that began, in the order in which processes told of them.
std::vector<kernel_name> races_in(const std::string& log) {
  std::vector<kernel_name> list;
  std::ifstream file(log);
  for (std::string kernel, computes; file >> kernel >> computes;)
    list.emplace_back(std::stoull(kernel, nullptr, 16), std::stoull(computes, nullptr, 16));
  return list;
}

std::set<std::uint64_t> kernels_in(const std::string& store) {
  std::set<std::uint64_t> all;
  if (!fs::exists(store)) return all;
  for (const c::stored_entry& e : c::cost_store(store).list())
    all.insert(simulated_machine::name_of(e.key.computes, e.key.backend, e.key.pattern));
  return all;
}

void expect_sound(const std::string& store) {
  const c::store_report report = c::cost_store(store).check();
  EXPECT_EQ(report.problems, std::vector<std::string>{});
  EXPECT_EQ(report.damaged, 0U);
}

#ifdef COLLAGE_SIMULATED_PLACE

std::vector<std::string> placing(std::uint64_t network, const std::string& store, const std::string& plan,
                                 const std::string& log) {
  return {COLLAGE_SIMULATED_PLACE, std::to_string(network), "20", store, plan, log};
}

/// Starts and kills until so many were killed, each network until its plan is there.
void kill_while_placing(const std::string& folder, std::size_t kills) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  std::size_t killed = 0, networks = 0, repeated = 0, lost = 0, hit = 0;
  for (std::uint64_t network = seed; killed < kills; ++network, ++networks) {
    const std::string name = folder + "/" + std::to_string(network) + ".";
    const std::string store = name + "db", plan = name + "plan", log = name + "log", calm = name + "calm.";
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(process(placing(network, calm + "db", calm + "plan", calm + "log")).end(), 0);
    const double took_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    for (bool is_done = false; !is_done;) {
      const std::set<std::uint64_t> before = kernels_in(store);
      const std::size_t races = races_in(log).size();
      process placer(placing(network, store, plan, log));
      if (killed < kills) {
        sleep_ms(std::min(took_ms, 500.0) * std::uniform_real_distribution<double>(0.2, 0.9)(random));
        const int end = placer.die();
        is_done = end == 0;
        killed += !is_done;
        ASSERT_TRUE(end == 0 || end == 1000 + SIGKILL) << end;
      } else {
        ASSERT_EQ(placer.end(), 0);
        is_done = true;
      }
      // What the store has is not measured again, but for one kernel of a group whose others are not there. What was
      // measured is in the store, but for the group under way.
      const std::set<std::uint64_t> after = kernels_in(store);
      const std::vector<kernel_name> all = races_in(log);
      std::set<std::uint64_t> under_way;
      std::size_t again = 0;
      for (std::size_t i = races; i < all.size(); ++i) {
        again += before.count(all[i].first);
        if (after.count(all[i].first) == 0) under_way.insert(all[i].second);
      }
      EXPECT_LE(again, 1U);
      EXPECT_LE(under_way.size(), is_done ? 0U : 1U);
      EXPECT_TRUE(std::ranges::includes(after, before));
      repeated += again;
      lost += under_way.size();
      hit += !is_done && all.size() > races;
    }
    EXPECT_EQ(c::read_file(plan), c::read_file(calm + "plan")) << "network " << network;
    expect_sound(store);
    EXPECT_EQ(kernels_in(store), kernels_in(calm + "db"));
    // Once more: everything is known.
    const std::size_t races = races_in(log).size();
    ASSERT_EQ(process(placing(network, store, plan, log)).end(), 0);
    EXPECT_EQ(races_in(log).size(), races);
    EXPECT_EQ(c::read_file(plan), c::read_file(calm + "plan")) << "network " << network;
  }
  std::printf(
      "%zu killed, %zu of them while or after measuring, over %zu networks: %zu groups under way were lost, %zu "
      "kernels ran again beside others of their group\n",
      killed, hit, networks, lost, repeated);
}

TEST_F(simulated_placing, is_killed_and_goes_on) { kill_while_placing(files_.folder().string(), 10); }
TEST_F(simulated_placing_long, is_killed_and_goes_on) { kill_while_placing(files_.folder().string(), 200); }

TEST_F(simulated_placing, four_processes_share_what_they_measure) {
  const std::uint64_t seed = fresh_seed();
  for (std::uint64_t network = seed; network < seed + 3; ++network) {
    const std::string name = path(std::to_string(network)) + ".";
    ASSERT_EQ(process(placing(network, name + "alone.db", name + "alone.plan", name + "alone.log")).end(), 0);
    std::vector<process> all;
    for (int i = 0; i < 4; ++i)
      all.emplace_back(placing(network, name + "db", name + std::to_string(i) + ".plan", name + "log"));
    for (process& one : all) EXPECT_EQ(one.end(), 0);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(c::read_file(name + std::to_string(i) + ".plan"), c::read_file(name + "alone.plan"));
    expect_sound(name + "db");
    EXPECT_EQ(kernels_in(name + "db"), kernels_in(name + "alone.db"));
    // Every kernel was measured by one of them, and by no other.
    std::map<std::uint64_t, int> count;
    for (const kernel_name& race : races_in(name + "log")) ++count[race.first];
    EXPECT_EQ(count.size(), kernels_in(name + "db").size());
    for (const auto& [kernel, times] : count) EXPECT_EQ(times, 1);
  }
}

#endif
#ifdef COLLAGE_PROGRAM

/// The program itself, its workers and its real times: what was in the store stays there as it was.
void kill_while_tuning(const std::string& folder, int kills) {
  std::mt19937_64 random(fresh_seed());
  const std::string store = folder + "/costs.db";
  std::size_t most = 0;
  for (int i = 0; i < kills; ++i) {
    const std::map<std::string, c::stored_cost> before = costs_in(store);
    process tuning({COLLAGE_PROGRAM, "tune", i % 2 == 0 ? "zoo:mobilenet-v2" : "zoo:bert-paper", "--store", store,
                    "--plan", folder + "/plan.json", "--quiet"});
    // On a busy machine it first waits for a better moment: most kills are put off until something was measured.
    const bool waits = i % 3 != 2;
    for (int turn = 0; waits && turn < 600 && costs_in(store).size() <= before.size(); ++turn) sleep_ms(100);
    sleep_ms(std::uniform_real_distribution<double>(0, 1500)(random));
    (void)tuning.die();
    if (fs::exists(store)) { EXPECT_EQ(process({COLLAGE_PROGRAM, "store", "check", "--store", store}).end(), 0); }
    const std::map<std::string, c::stored_cost> after = costs_in(store);
    for (const auto& [id, cost] : before) {
      const auto now = after.find(id);
      ASSERT_TRUE(now != after.end()) << cost.label;
      EXPECT_EQ(now->second, cost) << cost.label;
    }
    most = after.size();
  }
  EXPECT_GT(most, 0U);
  std::printf("%d killed; the store has %zu costs\n", kills, most);
}

TEST_F(simulated_placing, the_program_is_killed_and_its_store_is_sound) {
  kill_while_tuning(files_.folder().string(), 3);
}
TEST_F(simulated_placing_long, the_program_is_killed_and_its_store_is_sound) {
  kill_while_tuning(files_.folder().string(), 50);
}

#endif

}  // namespace place_simulated_placing_test
