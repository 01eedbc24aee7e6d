// Who is handed out, by what paired rounds have shown.
#include <collage/measure/statistics.hpp>
#include <place/fastest.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace {

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
  bool stays(std::size_t i) const { return staying[i]; }
  static bool counts_apart(std::size_t) { return false; }
  c::paired_ratio ratio(std::size_t i, std::size_t j) const {
    const auto at = pairs.find({i, j});
    return at == pairs.end() ? c::paired_ratio{} : at->second;
  }
  std::size_t found(std::size_t incumbent = 0) const { return c::detail::fastest_of(*this).find(incumbent); }
  std::size_t handed_out(std::size_t of) const { return c::detail::fastest_of(*this).handed_out(of); }
};

TEST(fastest, loses_least) {
  table runs(3);
  runs.set(0, 1, 1.1);
  runs.set(0, 2, 1.2);
  runs.set(1, 2, 1.1);
  EXPECT_EQ(runs.found(), 2U);
  runs.running[2] = false;  // it counts, and cannot be it
  EXPECT_EQ(runs.found(), 1U);
}

TEST(fastest, incumbent_stays_where_nothing_is_known) {
  table runs(2);
  EXPECT_EQ(runs.found(1), 1U);
  runs.set(0, 1, 1);
  EXPECT_EQ(runs.found(0), 0U);
  EXPECT_EQ(runs.found(1), 1U);
}

TEST(fastest, nobody_who_surely_lost_to_another) {
  table runs(3);
  runs.set(0, 1, 1.01, 0.005);  // surely slower, by little
  runs.set(0, 2, 0.985, 0.04);
  runs.set(1, 2, 1.015, 0.04);  // slower by more, but that is not sure
  EXPECT_EQ(runs.found(), 1U);
}

/// Three that are as good as each other have beaten each other in a circle, and a fourth stopped after three rounds, which are
/// too few to be sure of anything.
TEST(fastest, nobody_who_is_far_behind) {
  table runs(4);
  runs.set(0, 1, 1.01, 0.005);
  runs.set(1, 2, 1.011, 0.005);
  runs.set(2, 0, 1.012, 0.005);
  for (std::size_t i = 0; i < 3; ++i) runs.set(3, i, 2.4, 0.1, 3);
  EXPECT_EQ(runs.found(), 0U);
  EXPECT_EQ(runs.found(3), 0U);
}

TEST(fastest, nobody_is_handed_out_who_is_behind_what_ran_all_the_time) {
  table runs(3);
  runs.set(0, 1, 1.0075, 0.01);  // a single backend
  runs.set(1, 2, 1.02, 0.005);   // which surely lost to a third
  runs.set(2, 0, 1.015, 0.005);
  runs.staying[1] = true;
  EXPECT_EQ(runs.found(), 0U);
  EXPECT_EQ(runs.handed_out(0), 1U);
  EXPECT_EQ(runs.handed_out(1), 1U);
  runs.set(0, 1, 1.002, 0.01);  // so little is chance
  EXPECT_EQ(runs.handed_out(0), 0U);
  runs.set(0, 1, 1.2, 0.01, 4);  // and so few rounds say nothing
  EXPECT_EQ(runs.handed_out(0), 0U);
  runs.set(0, 1, 1.0075, 0.01);
  runs.running[1] = false;
  EXPECT_EQ(runs.handed_out(0), 0U);
}

}  // namespace
