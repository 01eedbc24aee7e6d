// Histograms: they hold what was counted, in one width for all orders, and merging loses nothing.
#include <collage/calibrate/histogram.hpp>
#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/messages.hpp"

namespace calibrate_histogram_test {

namespace c = collage;

/// Numbers of several distributions: bells, tails, halves of zeros, one sign, tiny and huge ones.
std::vector<float> numbers_of(int sort, std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> bell;
  std::vector<float> list(count);
  for (float& x : list) {
    x = bell(random);
    if (sort == 1) x = std::max(x, 0.0F);
    if (sort == 2) x = x * x * x * x * x;
    if (sort == 3) x = 5 + 0.001F * x;
    if (sort == 4) x = -std::exp(3 * x);
    if (sort == 5) x *= 1e-42F;
    if (sort == 6) x *= 1e37F;
  }
  return list;
}
constexpr int sorts = 7;

/// Counts in a map, straightforwardly: the width is the smallest power of two for which the bins suffice.
void expect_brute_force(const c::value_histogram& h, const std::vector<float>& all) {
  const float low = std::min(0.0F, *std::ranges::min_element(all)),
              high = std::max(0.0F, *std::ranges::max_element(all));
  int exponent = -149;
  const auto bin = [&](double x) { return std::floor(std::ldexp(x, -exponent)); };
  while (bin(high) - bin(low) + 1 > static_cast<double>(h.bins())) ++exponent;
  std::map<std::int64_t, std::uint64_t> counts;
  std::uint64_t zeros = 0;
  for (const float x : all) {
    if (x == 0) ++zeros;
    else ++counts[static_cast<std::int64_t>(bin(x))];
  }
  ASSERT_EQ(h.exponent(), exponent);
  EXPECT_EQ(h.count(), all.size());
  EXPECT_EQ(h.zeros(), zeros);
  EXPECT_EQ(h.seen(), (c::interval{*std::ranges::min_element(all), *std::ranges::max_element(all)}));
  const auto list = h.counts();
  ASSERT_EQ(h.first_bin(), counts.begin()->first);
  ASSERT_EQ(h.first_bin() + static_cast<std::int64_t>(list.size()) - 1, counts.rbegin()->first);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto at = counts.find(h.first_bin() + static_cast<std::int64_t>(i));
    ASSERT_EQ(list[i], at == counts.end() ? 0 : at->second) << i;
  }
}

TEST(CalibrateHistogram, CountsAsABruteForceDoes) {
  std::mt19937 random(1);
  for (int sort = 0; sort < sorts; ++sort)
    for (const std::size_t bins : {2U, 16U, 128U, 4096U}) {
      const std::vector<float> all = numbers_of(sort, 700, random);
      c::value_histogram h(bins);
      for (std::size_t at = 0; at < all.size(); at += 70) h.add(std::span(all).subspan(at, 70));
      SCOPED_TRACE(std::to_string(sort) + " " + std::to_string(bins));
      expect_brute_force(h, all);
    }
}

TEST(CalibrateHistogram, OrderAndMergingDoNotMatter) {
  std::mt19937 random(2);
  for (int sort = 0; sort < sorts; ++sort) {
    std::vector<float> all = numbers_of(sort, 900, random);
    c::value_histogram forwards(512), backwards(512), halves(512), other(512);
    forwards.add(all);
    for (std::size_t i = all.size(); i-- > 0;) backwards.add({&all[i], 1});
    halves.add(std::span(all).first(100));
    other.add(std::span(all).subspan(100));
    c::value_histogram turned = other;
    turned.merge(halves);
    halves.merge(other);
    EXPECT_EQ(forwards, backwards) << sort;
    EXPECT_EQ(forwards, halves) << sort;
    EXPECT_EQ(forwards, turned) << sort;
    halves.merge(c::value_histogram(512));
    EXPECT_EQ(forwards, halves) << sort;
  }
}

TEST(CalibrateHistogram, FewerBinsAreAsOfAPassWithFewer) {
  std::mt19937 random(3);
  const std::vector<float> a = numbers_of(0, 500, random), b = numbers_of(2, 500, random);
  c::value_histogram wide(4096), narrow(256), all(256);
  wide.add(a);
  narrow.add(b);
  all.add(a);
  all.add(b);
  c::value_histogram one = wide, two = narrow;
  one.merge(narrow);
  two.merge(wide);
  EXPECT_EQ(one, all);
  EXPECT_EQ(two, all);
}

TEST(CalibrateHistogram, NothingIsCountedWhereANumberIsNotFinite) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  c::value_histogram h(128);
  const std::vector<float> first = {1, 2};
  EXPECT_FALSE(h.add(first).has_value());
  const c::value_histogram before = h;
  for (const float bad : {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> list = {7, 8, bad, 9};
    EXPECT_EQ(h.add(list), std::optional<std::size_t>(2));
  }
  EXPECT_EQ(h, before);
  EXPECT_FALSE(h.add({}).has_value());
  EXPECT_EQ(h, before);
}

TEST(CalibrateHistogram, ZerosOfBothSignsNeedNoBins) {
  c::value_histogram h(128);
  const std::vector<float> zeros = {0.0F, -0.0F, 0.0F};
  h.add(zeros);
  EXPECT_EQ(h.zeros(), 3U);
  EXPECT_TRUE(h.counts().empty());
  EXPECT_EQ(h.bytes(), 0U);
  const std::vector<float> one = {1};
  h.add(one);
  EXPECT_EQ(h.count(), 4U);
  EXPECT_EQ(h.seen(), (c::interval{0, 1}));
}

TEST(CalibrateHistogram, MemoryDoesNotGrow) {
  std::mt19937 random(4);
  c::value_histogram h(1024);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> list = numbers_of(i % sorts, 100, random);
    h.add(list);
    EXPECT_LE(h.bytes(), 1024 * sizeof(std::uint64_t));
  }
  EXPECT_EQ(std::accumulate(h.counts().begin(), h.counts().end(), h.zeros()), 20000U);
}

c::value_histogram::parts parts_of(const c::value_histogram& h) {
  return {
      h.bins(), h.seen(), h.count(), h.zeros(), h.exponent(), h.first_bin(), {h.counts().begin(), h.counts().end()}};
}

TEST(CalibrateHistogram, PartsMakeTheSameHistogram) {
  std::mt19937 random(5);
  for (int sort = 0; sort < sorts; ++sort) {
    c::value_histogram h(256);
    h.add(numbers_of(sort, 300, random));
    const auto made = c::value_histogram::of(parts_of(h));
    ASSERT_TRUE(made.has_value()) << sort;
    EXPECT_EQ(*made, h);
  }
  const c::value_histogram none(256);
  EXPECT_EQ(c::value_histogram::of(parts_of(none)), none);
}

TEST(CalibrateHistogram, PartsThatAreNoneAreRefused) {
  std::mt19937 random(6);
  c::value_histogram h(256);
  h.add(numbers_of(0, 300, random));
  const auto expect_refused = [&](auto change) {
    c::value_histogram::parts p = parts_of(h);
    change(p);
    EXPECT_FALSE(c::value_histogram::of(p).has_value());
  };
  using parts = c::value_histogram::parts;
  expect_refused([](parts& p) { ++p.count; });
  expect_refused([](parts& p) { ++p.zeros; });
  expect_refused([](parts& p) { ++p.exponent; });
  expect_refused([](parts& p) { ++p.first_bin; });
  expect_refused([](parts& p) { p.counts.push_back(0); });
  expect_refused([](parts& p) { p.bins = 1; });
  expect_refused([](parts& p) { p.bins = 512; });
  expect_refused([](parts& p) { std::swap(p.seen.low, p.seen.high); });
  expect_refused([](parts& p) { p.seen.high *= 4; });
  expect_refused([](parts& p) { p.seen.high = std::numeric_limits<float>::infinity(); });
  expect_refused([](parts& p) { p.counts.clear(); });
}

TEST(CalibrateHistogram, BinsFitTheBytes) {
  EXPECT_EQ(c::bins_for(1, 1U << 20U), 4096U);
  EXPECT_EQ(c::bins_for(256, 8U << 20U), 4096U);
  EXPECT_EQ(c::bins_for(257, 8U << 20U), 2048U);
  EXPECT_EQ(c::bins_for(8192, 8U << 20U), 128U);
  EXPECT_EQ(collage_test::message_of([] { c::bins_for(8193, 8U << 20U); }, c::error_kind::unsupported),
            "calibration: has 8193 float32 values, and histograms of all of them would take more than 8 MB; choose the "
            "method minmax, which keeps no histograms");
}

}  // namespace calibrate_histogram_test
