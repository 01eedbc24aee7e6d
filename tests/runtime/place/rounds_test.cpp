// Races end to end without engines: what is estimated from a log of rounds, and which rounds are wanted.
#include <collage/measure/statistics.hpp>
#include <place/round_estimates.hpp>
#include <place/round_log.hpp>
#include <place/round_quota.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace place_rounds_test {

namespace d = collage::detail;
using d::cache_regime;

constexpr double skipped = d::not_run;

/// Appends a round with the times of placements 0, 1, ...
void append(d::round_log& log, cache_regime regime, std::initializer_list<double> ms) {
  d::race_round round{regime, true, {}};
  for (const double one : ms) round.turns.push_back({one, {}});
  log.append(std::move(round));
}

TEST(round_log, lists_times_of_placements_that_joined_late_or_sat_out) {
  d::round_log log;
  EXPECT_TRUE(log.is_undisturbed());
  EXPECT_TRUE(log.times(0).empty());
  append(log, cache_regime::shared, {2});
  append(log, cache_regime::split, {3, 5});
  append(log, cache_regime::shared, {skipped, 4});
  EXPECT_EQ(log.size(), 3U);
  EXPECT_EQ(log.count(cache_regime::split), 1U);
  EXPECT_EQ(log.turns(0, cache_regime::shared), 1U);
  EXPECT_EQ(log.turns(0, cache_regime::split), 1U);
  EXPECT_EQ(log.turns(1, cache_regime::shared), 1U);
  EXPECT_EQ(log.turns(7, cache_regime::shared), 0U);
  const std::vector<double> late = log.times(1), shared = log.times(0, cache_regime::shared);
  ASSERT_EQ(late.size(), 3U);
  EXPECT_FALSE(d::has_run(late[0]));
  EXPECT_EQ(late[1], 5);
  EXPECT_EQ(shared[0], 2);
  EXPECT_FALSE(d::has_run(shared[1]));
  EXPECT_FALSE(d::has_run(shared[2]));
  d::race_round disturbed;
  disturbed.is_undisturbed = false;
  log.append(disturbed);
  EXPECT_FALSE(log.is_undisturbed());
  log.clear();
  EXPECT_EQ(log.size(), 0U);
  EXPECT_FALSE(log.has(cache_regime::split));
}

TEST(round_estimates, leave_out_disturbed_rounds_where_enough_are_left) {
  d::round_log log;
  for (int k = 0; k < 6; ++k) append(log, cache_regime::shared, {1, 2});
  for (int k = 0; k < 4; ++k) append(log, cache_regime::shared, {1.4, 2});
  EXPECT_EQ(d::time_of(log, 0).median_ms, 1);
  EXPECT_EQ(d::time_of(log, 0).samples, 6U);
  EXPECT_EQ(d::ratio_of(log, 1, 0).median, 2);
  EXPECT_EQ(d::ratio_of(log, 1, 0).rounds, 6U);
  // Two undisturbed rounds are too few: all count.
  d::round_log few;
  for (const double ms : {1.0, 1.0, 2.0, 2.0, 2.0}) append(few, cache_regime::shared, {ms, 1});
  EXPECT_EQ(d::time_of(few, 0).samples, 5U);
  EXPECT_EQ(d::time_of(few, 0).median_ms, 2);
  EXPECT_EQ(d::ratio_of(few, 0, 1).rounds, 5U);
  EXPECT_EQ(d::time_of(few, 9).samples, 0U);
  EXPECT_EQ(d::ratio_of(few, 0, 9).rounds, 0U);
}

TEST(round_estimates, join_both_regimes_once_each_has_enough_rounds) {
  d::round_log log;
  for (int k = 0; k < 5; ++k) append(log, cache_regime::shared, {1, 2});
  for (int k = 0; k < 3; ++k) append(log, cache_regime::split, {2, 16});
  EXPECT_EQ(d::main_regime(log, 0), cache_regime::shared);
  EXPECT_EQ(d::ratio_of(log, 1, 0).median, 2);  // three rounds in split caches are too few
  append(log, cache_regime::split, {2, 16});
  EXPECT_EQ(d::ratio_of(log, 1, 0).median, 4);
  EXPECT_EQ(d::ratio_of(log, 1, 0).rounds, 9U);
  EXPECT_EQ(d::time_of(log, 1).median_ms, 2);
  // A placement that ran in split caches alone has its times from there.
  for (int k = 0; k < 4; ++k) append(log, cache_regime::split, {skipped, skipped, 3});
  EXPECT_EQ(d::main_regime(log, 2), cache_regime::split);
  EXPECT_EQ(d::time_of(log, 2).median_ms, 3);
}

TEST(round_estimates, presume_equal_times_in_a_regime_that_is_still_expected) {
  d::round_log log;
  for (int k = 0; k < 5; ++k) append(log, cache_regime::shared, {1, 1.05});
  EXPECT_TRUE(d::is_slower(log, 1, 2, 5, 1.03, {}));
  EXPECT_FALSE(d::is_slower(log, 0, 2, 5, 1.03, {}));
  EXPECT_FALSE(d::is_slower(log, 1, 2, 6, 1.03, {}));
  EXPECT_FALSE(d::is_slower(log, 1, 2, 5, 1.03, {.split = true}));  // sqrt(1.05) is below 1.03
  EXPECT_TRUE(d::is_slower(log, 1, 2, 5, 1.02, {.split = true}));
  // What ran in split caches alone beats nothing that ran in shared ones.
  for (int k = 0; k < 5; ++k) append(log, cache_regime::split, {skipped, 2, 1});
  EXPECT_FALSE(d::is_slower(log, 1, 3, 5, 1.5, {}));
  EXPECT_FALSE(d::is_slower(log, 2, 3, 5, 1.5, {}));
}

/// A placement that cannot become the plan beats no other, but its times stay known.
TEST(round_estimates, leave_out_a_placement) {
  d::round_log log;
  for (int k = 0; k < 5; ++k) append(log, cache_regime::shared, {1, 2});
  EXPECT_TRUE(d::is_slower(log, 1, 2, 5, 1.5, {}));
  log.leave_out(0);
  EXPECT_FALSE(d::is_slower(log, 1, 2, 5, 1.5, {}));
  EXPECT_EQ(d::ratio_of(log, 1, 0).rounds, 0U);
  EXPECT_EQ(d::time_of(log, 0).median_ms, 1);
}

TEST(round_estimates, scale_steps_by_whole_runs_and_by_the_placement_beside) {
  d::round_log log;
  for (int k = 0; k < 6; ++k) append(log, cache_regime::shared, {10, 20});
  // One traced round at half the speed: it counts in proportion to its whole run.
  d::race_round slow{cache_regime::shared, true, {{20, {{8, 12}}}, {40, {}}}};
  log.append(slow);
  std::vector<collage::timing> steps = d::steps_in(log, 0, 2, 1, cache_regime::shared);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_DOUBLE_EQ(steps[0].median_ms, 4);
  EXPECT_DOUBLE_EQ(steps[1].median_ms, 6);
  // Split caches: too few rounds, and then scaled as if placement 1 took 20 there, too.
  d::race_round split{cache_regime::split, true, {{15, {{6, 9}}}, {30, {}}}};
  for (int k = 0; k < 3; ++k) log.append(split);
  EXPECT_EQ(d::steps_in(log, 0, 2, 1, cache_regime::split)[0].samples, 0U);
  log.append(split);
  steps = d::steps_in(log, 0, 2, 1, cache_regime::split);
  EXPECT_EQ(steps[0].samples, 4U);
  EXPECT_DOUBLE_EQ(steps[0].median_ms, 4);
  EXPECT_DOUBLE_EQ(steps[1].median_ms, 6);
}

TEST(round_quota, wants_rounds_by_time_and_by_number) {
  d::round_quota quota({.seconds = 1, .least_rounds = 3, .most_rounds = 6});
  EXPECT_FALSE(quota.has_any());
  for (int k = 0; k < 3; ++k) {
    EXPECT_TRUE(quota.is_due());
    quota.count({}, 5000);  // over its time, but there are to be three
  }
  EXPECT_TRUE(quota.has_any());
  EXPECT_FALSE(quota.is_due());
  d::round_quota quick({.seconds = 1, .least_rounds = 3, .most_rounds = 6});
  for (int k = 0; k < 6; ++k) {
    EXPECT_TRUE(quick.is_due());
    quick.count({}, 1);
  }
  EXPECT_FALSE(quick.is_due());
}

TEST(round_quota, takes_split_rounds_that_come_until_there_are_enough) {
  const d::planned_round split{cache_regime::split, true, true};
  d::round_quota quota({.seconds = 1, .least_rounds = 2, .most_rounds = 3});
  EXPECT_TRUE(quota.wants_split());
  for (int k = 0; k < 3; ++k) {
    EXPECT_TRUE(quota.takes_split());
    quota.count(split, 1);
  }
  EXPECT_FALSE(quota.takes_split());
  EXPECT_FALSE(quota.wants_split());
  EXPECT_TRUE(quota.is_due()) << "they take nothing from the other rounds";
  d::round_quota slow({.seconds = 1, .least_rounds = 2, .most_rounds = 3});
  slow.count(split, 3000);
  EXPECT_FALSE(slow.takes_split()) << "three times the time of the race";
  EXPECT_TRUE(slow.wants_split());
  d::round_quota alone({.seconds = 1, .least_rounds = 2, .most_rounds = 3, .is_split_alone = true});
  EXPECT_FALSE(alone.is_due());
  EXPECT_TRUE(alone.wants_split());
}

TEST(round_quota, repeats_rounds_until_as_much_time_is_lost_as_there_is) {
  const d::planned_round usual{}, split{cache_regime::split, true, true};
  d::round_quota quota({.seconds = 1});
  EXPECT_TRUE(quota.may_repeat(usual));
  EXPECT_TRUE(quota.repeat(usual, 600));
  EXPECT_TRUE(quota.may_repeat(usual));
  EXPECT_TRUE(quota.repeat(usual, 600));
  EXPECT_FALSE(quota.may_repeat(usual)) << "it counts as it is";
  // A split round that came together never counts, and is given up instead.
  EXPECT_TRUE(quota.may_repeat(split));
  EXPECT_TRUE(quota.repeat(split, 1)) << "other rounds are due";
  EXPECT_FALSE(quota.takes_split());
  d::round_quota alone({.seconds = 1, .is_split_alone = true});
  EXPECT_TRUE(alone.repeat(split, 600));
  EXPECT_FALSE(alone.repeat(split, 600)) << "nothing else is wanted";
}

}  // namespace place_rounds_test
