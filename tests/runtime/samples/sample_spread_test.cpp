// Which of many samples are used.
#include <gtest/gtest.h>

#include <samples/sample_spread.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

namespace samples_sample_spread_test {

using collage::detail::sample_spread;

TEST(sample_spread, uses_each_of_a_few) {
  for (std::uint64_t all = 0; all <= 128; ++all) {
    const sample_spread spread(all);
    EXPECT_EQ(spread.count(), all);
    EXPECT_EQ(spread.measured() + spread.held_back(), all);
    EXPECT_LE(spread.measured(), spread.held_back());
    std::set<std::uint64_t> places;
    for (std::size_t i = 0; i < spread.count(); ++i) places.insert(spread.place_of(i));
    EXPECT_EQ(places.size(), all) << all;
    EXPECT_TRUE(places.empty() || *places.rbegin() == all - 1);
  }
}

TEST(sample_spread, is_even_over_many) {
  for (const std::uint64_t all : {std::uint64_t{129}, std::uint64_t{300}, std::uint64_t{50000}, std::uint64_t{1} << 40U,
                                  std::numeric_limits<std::uint64_t>::max()}) {
    const sample_spread spread(all);
    EXPECT_EQ(spread.measured(), 8U);
    EXPECT_EQ(spread.held_back(), 120U);
    std::set<std::uint64_t> measured, held_back;
    for (std::size_t i = 0; i < spread.count(); ++i)
      (i < spread.measured() ? measured : held_back).insert(spread.place_of(i));
    EXPECT_EQ(measured.size(), 8U);
    EXPECT_EQ(held_back.size(), 120U);
    for (const std::uint64_t place : held_back) {
      EXPECT_LT(place, all);
      EXPECT_FALSE(measured.contains(place));
    }
    // Both reach into the last fifth, so sorted samples are in both.
    EXPECT_GE(*measured.rbegin(), all - all / 5);
    EXPECT_GE(*held_back.rbegin(), all - all / 5);
    EXPECT_EQ(*measured.begin(), 0U);
    // The first few of those that are held back lie in each quarter.
    std::set<std::uint64_t> quarters;
    for (std::size_t i = 0; i < 8; ++i) quarters.insert(spread.place_of(spread.measured() + i) / (all / 4 + 1));
    EXPECT_EQ(quarters.size(), 4U) << all;
  }
}

}  // namespace samples_sample_spread_test
