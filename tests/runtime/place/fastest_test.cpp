// Which placement is selected by paired rounds.
#include <collage/measure/statistics.hpp>
#include <place/fastest.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace place_fastest_test {

namespace c = collage;

/// What ran, as a table of ratios.
struct table {
  std::vector<bool> running, staying;
  std::map<std::pair<std::size_t, std::size_t>, c::paired_ratio> pairs;

  explicit table(std::size_t count) : running(count, true), staying(count, false) {}
  void set(std::size_t i, std::size_t j, double median, double spread = 0.01, std::size_t rounds = 15) {
    pairs[{i, j}] = {median, median - spread, median + spread, rounds};
    pairs[{j, i}] = {1 / median, 1 / (median + spread), 1 / (median - spread), rounds};
  }
  std::size_t size() const { return running.size(); }
  bool can_run(std::size_t i) const { return running[i]; }
  bool is_baseline(std::size_t i) const { return staying[i]; }
  static c::detail::cache_regime main_regime(std::size_t) { return c::detail::cache_regime::shared; }
  c::paired_ratio ratio(std::size_t i, std::size_t j) const {
    const auto at = pairs.find({i, j});
    return at == pairs.end() ? c::paired_ratio{} : at->second;
  }
  std::size_t found(std::size_t incumbent = 0) const { return c::detail::fastest_of(*this).find(incumbent); }
  std::size_t selected(std::size_t of) const { return c::detail::fastest_of(*this).selected(of); }
};

TEST(fastest, has_the_smallest_worst_ratio) {
  table runs(3);
  runs.set(0, 1, 1.1);
  runs.set(0, 2, 1.2);
  runs.set(1, 2, 1.1);
  EXPECT_EQ(runs.found(), 2U);
  runs.running[2] = false;  // its ratios count, but it cannot be selected
  EXPECT_EQ(runs.found(), 1U);
}

TEST(fastest, incumbent_stays_where_nothing_is_known) {
  table runs(2);
  EXPECT_EQ(runs.found(1), 1U);
  runs.set(0, 1, 1);
  EXPECT_EQ(runs.found(0), 0U);
  EXPECT_EQ(runs.found(1), 1U);
}

/// The time may be up after one round, which may have been disturbed.
TEST(fastest, incumbent_stays_beside_one_that_hardly_ran) {
  table runs(2);
  runs.set(1, 0, 0.9, 0.05, 2);
  EXPECT_EQ(runs.found(0), 0U);
  runs.set(1, 0, 0.9, 0.05, 3);
  EXPECT_EQ(runs.found(0), 1U);
  runs.set(1, 0, 0.5, 0, 1);  // no disturbance is as large
  EXPECT_EQ(runs.found(0), 1U);
  runs.set(1, 0, 0.9, 0.05, 1);
  runs.running[0] = false;
  EXPECT_EQ(runs.found(0), 1U);
}

TEST(fastest, finds_none_that_is_significantly_slower) {
  table runs(3);
  runs.set(0, 1, 1.01, 0.005);  // significantly slower, by little
  runs.set(0, 2, 0.985, 0.04);
  runs.set(1, 2, 1.015, 0.04);  // slower by more, but not significantly
  EXPECT_EQ(runs.found(), 1U);
}

/// Three equal placements have beaten each other in a cycle. A fourth stopped after three rounds, too few for significance.
TEST(fastest, finds_none_that_is_far_behind) {
  table runs(4);
  runs.set(0, 1, 1.01, 0.005);
  runs.set(1, 2, 1.011, 0.005);
  runs.set(2, 0, 1.012, 0.005);
  for (std::size_t i = 0; i < 3; ++i) runs.set(3, i, 2.4, 0.1, 3);
  EXPECT_EQ(runs.found(), 0U);
  EXPECT_EQ(runs.found(3), 0U);
}

TEST(fastest, selects_no_placement_that_is_slower_than_a_baseline) {
  table runs(3);
  runs.set(0, 1, 1.0075, 0.01);  // a single backend
  runs.set(1, 2, 1.02, 0.005);   // which is significantly slower than a third
  runs.set(2, 0, 1.015, 0.005);
  runs.staying[1] = true;
  EXPECT_EQ(runs.found(), 0U);
  EXPECT_EQ(runs.selected(0), 1U);
  EXPECT_EQ(runs.selected(1), 1U);
  runs.set(0, 1, 1.002, 0.01);  // a difference this small is chance
  EXPECT_EQ(runs.selected(0), 0U);
  runs.set(0, 1, 1.2, 0.25, 4);  // and four rounds show nothing if some show the contrary
  EXPECT_EQ(runs.selected(0), 0U);
  runs.set(0, 1, 1.2, 0.05, 4);
  EXPECT_EQ(runs.selected(0), 1U);
  runs.set(0, 1, 1.2, 0, 2);  // two may agree by chance
  EXPECT_EQ(runs.selected(0), 0U);
  runs.set(0, 1, 1.0075, 0.01);
  runs.running[1] = false;
  EXPECT_EQ(runs.selected(0), 0U);
}

}  // namespace place_fastest_test
