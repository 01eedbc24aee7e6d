// Statistics, the drift monitor and races of rivals, on a clock of the test's own.
#include <collage/measure/drift.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/timing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace measure_timing_test {

namespace c = collage;

/// A machine on which time passes when something runs. Some of its time it is slow, and every piece of work takes a little
/// more or less by chance, and now and then much more.
class machine {
 public:
  explicit machine(std::uint64_t seed = 1) : random_(seed) {}

  c::time_source clock() {
    return {[this] { return now_; }, [this](double ms) { now_ += ms; }, [this] { return preemptions_; }};
  }
  void work(double ms) {
    std::normal_distribution<double> noise(1, spread);
    const double pause = std::uniform_real_distribution<double>(0, 1)(random_) < interrupts ? 0.05 : 0;
    now_ += ms * std::max(noise(random_), 0.5) * slowness(now_) + pause;
    if (std::uniform_real_distribution<double>(0, 1)(random_) < 1 - std::exp(-ms * preempted_per_ms)) {
      ++preemptions_;
      now_ += std::uniform_real_distribution<double>(0.5, 4)(random_);
    }
  }
  std::function<void()> rival(double ms) {
    return [this, ms] { work(ms); };
  }
  /// Takes as long whatever happens.
  std::function<void()> steady(double ms) {
    return [this, ms] { now_ += ms; };
  }
  double now() const { return now_; }

  double spread = 0.01;
  double interrupts = 0;
  double preempted_per_ms = 0;  ///< another program wants the processors
  std::function<double(double)> slowness = [](double) { return 1.0; };

 private:
  double now_ = 0;
  std::uint64_t preemptions_ = 0;
  std::mt19937_64 random_;
};

TEST(statistics, median_and_quantiles) {
  EXPECT_EQ(c::summarise({}).samples, 0U);
  const c::timing one = c::summarise({3});
  EXPECT_EQ(one.median_ms, 3);
  EXPECT_EQ(one.sure_low_ms, 3);
  EXPECT_EQ(one.sure_high_ms, 3);
  const c::timing t = c::summarise({5, 1, 4, 2, 3});
  EXPECT_EQ(t.median_ms, 3);
  EXPECT_DOUBLE_EQ(t.low_ms, 1.4);
  EXPECT_DOUBLE_EQ(t.high_ms, 4.6);
  EXPECT_EQ(t.samples, 5U);
}

TEST(statistics, the_mean_of_two_is_of_each_of_their_figures) {
  const c::timing a = c::summarise({1, 2, 3}), b = c::summarise({10, 20, 60, 70});
  const c::timing mean = c::mean_of(a, b);
  EXPECT_DOUBLE_EQ(mean.median_ms, (2 + 40) / 2.0);
  EXPECT_DOUBLE_EQ(mean.low_ms, (a.low_ms + b.low_ms) / 2);
  EXPECT_DOUBLE_EQ(mean.high_ms, (a.high_ms + b.high_ms) / 2);
  EXPECT_DOUBLE_EQ(mean.sure_low_ms, (1 + 10) / 2.0);
  EXPECT_DOUBLE_EQ(mean.sure_high_ms, (3 + 70) / 2.0);
  EXPECT_EQ(mean.samples, 7U);
}

TEST(statistics, ranks_of_the_interval_are_those_of_the_tables) {
  // Conover, table A3 (p = 0.5): the greatest r with P(fewer than r of n below the median) <= 2.5 %.
  const std::pair<std::size_t, std::size_t> ranks[] = {{6, 1},  {8, 1},  {9, 2},  {11, 2},
                                                       {12, 3}, {20, 6}, {25, 8}, {100, 40}};
  for (const auto& [n, rank] : ranks) {
    std::vector<double> samples(n);
    for (std::size_t i = 0; i < n; ++i) samples[i] = static_cast<double>(i + 1);
    const c::timing t = c::summarise(samples);
    EXPECT_EQ(t.sure_low_ms, static_cast<double>(rank)) << n;
    EXPECT_EQ(t.sure_high_ms, static_cast<double>(n + 1 - rank)) << n;
  }
}

TEST(statistics, the_interval_holds_the_median_as_often_as_it_says) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> skewed(0, 1);  // its median is 1
  for (const std::size_t n : {6U, 9U, 18U, 50U, 500U}) {
    int held = 0;
    for (int round = 0; round < 2000; ++round) {
      std::vector<double> samples(n);
      for (double& s : samples) s = skewed(random);
      const c::timing t = c::summarise(samples);
      held += t.sure_low_ms <= 1 && 1 <= t.sure_high_ms;
    }
    EXPECT_GE(held, 1870) << n;  // 95 %, less four times the deviation of the count
  }
}

TEST(statistics, pairs_cancel_what_slows_a_round_and_skip_rounds_without_both) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> a{2, 20, nan, 4, 2, 8, 6}, b{1, 10, 5, 2, nan, 4, 0};
  const c::paired_ratio r = c::compare_paired(a, b);
  EXPECT_EQ(r.median, 2);
  EXPECT_EQ(r.low, 2);
  EXPECT_EQ(r.high, 2);
  EXPECT_EQ(r.rounds, 4U);
  EXPECT_EQ(c::compare_paired({}, b).rounds, 0U);
  EXPECT_EQ(c::compare_paired({}, b).median, 1);
}

TEST(drift, a_slow_minute_is_waited_for) {
  machine m;
  c::drift_monitor monitor(m.rival(0.03), {}, m.clock());
  EXPECT_TRUE(monitor.wait());
  const double start = m.now();
  m.slowness = [start](double now) { return now < start + 500 ? 4.0 : 1.0; };
  EXPECT_FALSE(monitor.is_calm());
  EXPECT_TRUE(monitor.wait());
  EXPECT_GE(m.now(), start + 500);
  EXPECT_LT(m.now(), start + 600);
  EXPECT_NEAR(monitor.waited_ms(), 500, 100);
}

TEST(drift, patience_ends) {
  machine m;
  c::drift_monitor monitor(m.rival(0.03), {.patience_ms = 5000, .part = 1, .longest_wait_ms = 1000}, m.clock());
  m.slowness = [](double) { return 3.0; };
  const double start = m.now();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(monitor.wait());
  EXPECT_LT(m.now() - start, 5500);
  EXPECT_GE(m.now() - start, 4500);
  // Somebody who says stop is heard at once.
  c::drift_monitor other(m.rival(0.03), {}, m.clock());
  m.slowness = [](double) { return 9.0; };
  const double before = m.now();
  EXPECT_FALSE(other.wait([] { return true; }));
  EXPECT_LT(m.now() - before, 10);
}

TEST(drift, waiting_takes_a_small_part_of_the_time) {
  machine m;
  c::drift_monitor monitor(m.rival(0.03), {}, m.clock());
  m.slowness = [](double) { return 3.0; };
  while (m.now() < 100'000) {
    EXPECT_FALSE(monitor.wait());
    m.rival(100)();
    EXPECT_LE(monitor.waited_ms(), 1050 + 0.05 * m.now());
  }
  EXPECT_GE(monitor.waited_ms(), 0.05 * m.now());
}

TEST(drift, a_start_in_a_slow_minute_is_corrected) {
  machine m;
  m.slowness = [](double now) { return now < 2000 ? 4.0 : 1.0; };
  c::drift_monitor monitor(m.rival(0.03), {}, m.clock());
  while (m.now() < 2000) monitor.look();
  for (int i = 0; i < 15; ++i) monitor.look();
  EXPECT_TRUE(monitor.is_calm());
  m.slowness = [](double) { return 4.0; };
  EXPECT_FALSE(monitor.is_calm());
}

TEST(drift, a_start_in_a_slow_minute_is_seen_by_what_is_known) {
  machine m;
  m.slowness = [](double now) { return now < 700 ? 3.0 : 1.0; };
  c::drift_monitor monitor(m.rival(0.03), {.usual_ms = {0.031}}, m.clock());
  EXPECT_FALSE(monitor.is_calm());
  EXPECT_TRUE(monitor.wait());
  EXPECT_GE(m.now(), 700);
  EXPECT_NEAR(monitor.known_ms()[0], 0.03, 0.002);
  // What is slower than the machine is now says nothing.
  machine other;
  c::drift_monitor faster(other.rival(0.03), {.usual_ms = {0.3}}, other.clock());
  EXPECT_NEAR(faster.usual_ms()[0], 0.03, 0.002);
  // Where it does not come back to what was known, the next time begins with what it is.
  machine slower;
  c::drift_monitor never(slower.rival(0.09), {.patience_ms = 1000, .usual_ms = {0.03}}, slower.clock());
  EXPECT_FALSE(never.wait());
  EXPECT_NEAR(never.known_ms()[0], 0.09, 0.005);
}

/// A machine whose exchange between threads never tells anything, and whose walks through caches do.
c::drift_monitor watching_walks(machine& m) {
  return c::drift_monitor({c::timed(m.steady(0.01)), c::timed(m.rival(0.03))}, {}, m.clock());
}

TEST(drift, what_only_the_walk_tells_is_waited_for) {
  machine m;
  c::drift_monitor monitor = watching_walks(m);
  EXPECT_TRUE(monitor.wait());
  const double start = m.now();
  m.slowness = [start](double now) { return now < start + 300 ? 1.3 : 1.0; };
  EXPECT_FALSE(monitor.is_calm());
  EXPECT_TRUE(monitor.wait());
  EXPECT_GE(m.now(), start + 300);
  EXPECT_LT(m.now(), start + 400);
  // What lasts for a moment was left by what ran before.
  const double then = m.now();
  m.slowness = [then](double now) { return now < then + 1 ? 1.3 : 1.0; };
  EXPECT_TRUE(monitor.is_calm());
  // A start in such a time is corrected, too, and only then is the machine faster than it was.
  machine other;
  other.slowness = [](double now) { return now < 500 ? 1.3 : 1.0; };
  c::drift_monitor late = watching_walks(other);
  const auto before = late.usual_ms();
  EXPECT_FALSE(late.is_faster_than(before));
  while (other.now() < 520) late.look();
  EXPECT_TRUE(late.is_faster_than(before));
  EXPECT_NEAR(late.usual_ms()[1], 0.03, 0.002);
}

TEST(drift, processors_that_share_no_cache_are_told_from_slow_minutes) {
  machine m;
  double exchange = 0.01, walk = 0.03;
  const auto takes = [](const double& ms) { return [&ms](const c::time_source&) { return ms; }; };
  c::drift_monitor monitor({takes(exchange), takes(walk)}, {}, m.clock());
  EXPECT_FALSE(monitor.is_apart());
  exchange = 0.03;
  EXPECT_TRUE(monitor.is_apart());
  EXPECT_FALSE(monitor.is_calm());
  walk = 0.034;  // a processor that is at work all the time may be somewhat slower
  EXPECT_TRUE(monitor.is_apart());
  walk = 0.09;  // all is slow
  EXPECT_FALSE(monitor.is_apart());
  walk = 0.03;
  exchange = 0.1;  // one of them is somebody else's
  EXPECT_FALSE(monitor.is_apart());
  exchange = 0.015;
  EXPECT_FALSE(monitor.is_apart());
}

std::vector<std::function<void()>> rivals(machine& m, std::initializer_list<double> times) {
  std::vector<std::function<void()>> list;
  for (const double ms : times) list.push_back(m.rival(ms));
  return list;
}

TEST(race, finds_the_fastest_and_stops_early_with_those_far_behind) {
  machine m;
  const auto all = rivals(m, {0.3, 0.1, 5.0, 0.301});
  const c::rival_times found = c::time_rivals(all, {}, nullptr, m.clock());
  EXPECT_EQ(found.fastest, 1U);
  EXPECT_NEAR(found.cost_ms[0] / found.cost_ms[1], 3, 0.1);
  EXPECT_NEAR(found.cost_ms[2] / found.cost_ms[1], 50, 2);
  EXPECT_EQ(found.samples[2].size(), 1U);
  EXPECT_EQ(found.samples[3].size(), 3U);
  EXPECT_EQ(found.samples[1].size(), 9U);
}

TEST(race, samples_are_bundles_of_short_calls) {
  machine m;
  int calls = 0;
  const std::vector<std::function<void()>> one{[&] {
    ++calls;
    m.work(0.001);
  }};
  const c::rival_times found = c::time_rivals(one, {}, nullptr, m.clock());
  EXPECT_NEAR(found.times[0].median_ms, 0.001, 0.0001);
  EXPECT_GE(calls, 9 * 150);
}

TEST(race, as_good_as_each_other_costs_the_same_whoever_was_ahead) {
  int same = 0;
  constexpr int races = 200;
  for (int seed = 0; seed < races; ++seed) {
    machine m(static_cast<std::uint64_t>(seed));
    m.spread = 0.02;
    const auto all = rivals(m, {0.1, 0.1005, 0.0998, 0.13});
    const c::rival_times found = c::time_rivals(all, {}, nullptr, m.clock());
    same += found.cost_ms[0] == found.cost_ms[1] && found.cost_ms[0] == found.cost_ms[2];
    EXPECT_GT(found.cost_ms[3], 1.2 * found.cost_ms[0]);
  }
  EXPECT_GE(same, races * 9 / 10);
}

TEST(race, slow_minutes_do_not_change_who_wins) {
  for (int seed = 0; seed < 100; ++seed) {
    machine m(static_cast<std::uint64_t>(seed));
    m.interrupts = 0.001;
    c::drift_monitor monitor(m.rival(0.03), {}, m.clock());
    const double period = 3 + seed % 7, offset = seed;
    m.slowness = [=](double now) { return std::fmod(now + offset, 2 * period) < period ? 1.0 : 4.0; };
    const auto all = rivals(m, {0.11, 0.1, 0.12});
    const c::rival_times found = c::time_rivals(all, {}, &monitor, m.clock());
    EXPECT_EQ(found.fastest, 1U) << seed;
    EXPECT_NEAR(found.cost_ms[1], 0.1, 0.01) << seed;
    EXPECT_NEAR(found.cost_ms[0] / found.cost_ms[1], 1.1, 0.04) << seed;
  }
}

TEST(race, moments_that_are_a_third_slower_do_not_add_to_costs) {
  for (int seed = 0; seed < 100; ++seed) {
    machine m(static_cast<std::uint64_t>(seed));
    c::drift_monitor monitor = watching_walks(m);
    const double period = 20 + 10 * (seed % 7), offset = 3 * seed;
    m.slowness = [=](double now) { return std::fmod(now + offset, 2 * period) < period ? 1.0 : 1.35; };
    const auto all = rivals(m, {0.11, 0.1, 0.12});
    const c::rival_times found = c::time_rivals(all, {}, &monitor, m.clock());
    EXPECT_EQ(found.fastest, 1U) << seed;
    EXPECT_NEAR(found.cost_ms[1], 0.1, 0.002) << seed;
  }
}

TEST(race, samples_during_which_others_ran_are_taken_again) {
  for (int seed = 0; seed < 100; ++seed) {
    machine m(static_cast<std::uint64_t>(seed));
    m.preempted_per_ms = 0.8;  // as seen with one other busy program on two processors
    const auto all = rivals(m, {0.11, 0.1, 0.12});
    const c::rival_times found = c::time_rivals(all, {}, nullptr, m.clock());
    EXPECT_EQ(found.fastest, 1U) << seed;
    EXPECT_NEAR(found.cost_ms[1], 0.1, 0.003) << seed;
    EXPECT_NEAR(found.cost_ms[0] / found.cost_ms[1], 1.1, 0.03) << seed;
  }
}

TEST(race, a_machine_that_stays_slow_is_measured_by_pairs_and_it_is_said) {
  machine m;
  c::drift_monitor monitor(m.rival(0.03), {.patience_ms = 100, .longest_wait_ms = 50}, m.clock());
  m.slowness = [](double now) { return 3 + std::sin(now); };
  const auto all = rivals(m, {0.1, 0.2});
  const c::rival_times found = c::time_rivals(all, {}, &monitor, m.clock());
  EXPECT_FALSE(found.calm);
  EXPECT_EQ(found.fastest, 0U);
  EXPECT_GE(found.samples[0].size(), 3U);
}

TEST(race, stop_ends_it_after_the_round_under_way) {
  machine m;
  const auto all = rivals(m, {1, 1});
  const c::rival_times found = c::time_rivals(all, {}, nullptr, m.clock(), [] { return true; });
  EXPECT_EQ(found.samples[0].size(), 1U);
  EXPECT_EQ(found.samples[1].size(), 1U);
  // Also where the first round had to be discarded.
  machine slow;
  c::drift_monitor monitor(slow.rival(0.03), {}, slow.clock());
  slow.slowness = [](double) { return 5.0; };
  const auto again = rivals(slow, {1, 1});
  EXPECT_GE(c::time_rivals(again, {}, &monitor, slow.clock(), [] { return true; }).samples[0].size(), 1U);
}

TEST(race, nobody_is_no_error) {
  const c::rival_times none = c::time_rivals({});
  EXPECT_TRUE(none.samples.empty());
  EXPECT_TRUE(none.cost_ms.empty());
}

}  // namespace measure_timing_test
