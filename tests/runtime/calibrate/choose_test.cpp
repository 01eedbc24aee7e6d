// Methods: each against a straightforward computation on the numbers themselves.
#include <collage/calibrate/choose.hpp>
#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/messages.hpp"

namespace calibrate_choose_test {

namespace c = collage;
using c::quantisation_schema;
using c::range_method;
constexpr quantisation_schema schemas[] = {quantisation_schema::asymmetric, quantisation_schema::symmetric,
                                           quantisation_schema::symmetric_unsigned};

/// Bells, halves of zeros, tails on both sides and on one, and numbers far from zero.
std::vector<float> numbers_of(int sort, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(sort));
  std::normal_distribution<float> bell;
  std::vector<float> list(count);
  for (float& x : list) {
    x = bell(random);
    if (sort == 1) x = std::max(x, 0.0F);
    if (sort == 2) x = x * x * x * x * x;
    if (sort == 3) x = x > 0 ? x * x * x : 0.05F * x;
    if (sort == 4) x = 3 + 0.5F * x;
    if (sort == 5) x = -std::abs(x);
  }
  return list;
}
constexpr int sorts = 6;

c::value_histogram counted(const std::vector<float>& list, std::size_t bins = 4096) {
  c::value_histogram h(bins);
  h.add(list);
  return h;
}

double error_of(const std::vector<float>& list, const c::quantisation& how) {
  double sum = 0;
  for (const float x : list) {
    const double y = static_cast<double>(how.scales[0]) * (c::number_of(x, how) - how.zero_points[0]);
    sum += (static_cast<double>(x) - y) * (static_cast<double>(x) - y);
  }
  return sum / static_cast<double>(list.size());
}

TEST(CalibrateChoose, MinmaxIsWhatWasSeenAndZero) {
  const c::value_histogram h = counted({-1, 4}), far = counted({3, 4}), below = counted({-3, -2});
  const auto of = [](const c::value_histogram& from, quantisation_schema s) {
    return c::chosen_range(from, range_method::minmax, s, 100);
  };
  EXPECT_EQ(of(h, quantisation_schema::asymmetric), (c::interval{-1, 4}));
  EXPECT_EQ(of(h, quantisation_schema::symmetric), (c::interval{-4, 4}));
  EXPECT_EQ(of(h, quantisation_schema::symmetric_unsigned), (c::interval{-4, 4}));
  EXPECT_EQ(of(far, quantisation_schema::asymmetric), (c::interval{0, 4}));
  EXPECT_EQ(of(far, quantisation_schema::symmetric_unsigned), (c::interval{0, 4}));
  EXPECT_EQ(of(below, quantisation_schema::asymmetric), (c::interval{-3, 0}));
  EXPECT_EQ(of(below, quantisation_schema::symmetric), (c::interval{-3, 3}));
}

/// The reach of the numbers that stay if `share` of all are left out: sorted by f, the largest of them.
template <class F>
double sorted_reach(const std::vector<float>& list, double share, F f) {
  std::vector<double> reach;
  for (const float x : list) reach.push_back(f(static_cast<double>(x)));
  std::ranges::sort(reach);
  const auto out = static_cast<std::size_t>(share * static_cast<double>(list.size()));
  return std::max(0.0, reach[reach.size() - 1 - out]);
}

TEST(CalibrateChoose, PercentilesAreWithinABinOfSortedOnes) {
  for (int sort = 0; sort < sorts; ++sort) {
    const std::vector<float> list = numbers_of(sort, 20000);
    const c::value_histogram h = counted(list);
    const bool both = h.seen().low < 0 && h.seen().high > 0;
    for (const double percentile : {100.0, 99.9, 99.0, 90.0})
      for (const quantisation_schema s : schemas) {
        const double share = 1 - percentile / 100;
        const c::interval kept = c::chosen_range(h, range_method::percentile, s, percentile);
        double low = 0, high = 0;
        if (s == quantisation_schema::asymmetric) {
          low = sorted_reach(list, both ? share / 2 : share, [](double x) { return -x; });
          high = sorted_reach(list, both ? share / 2 : share, [](double x) { return x; });
        } else {
          high = sorted_reach(list, share, [](double x) { return std::abs(x); });
          low = s == quantisation_schema::symmetric || h.seen().low < 0 ? high : 0;
        }
        // The numbers next to the one that is left out may lie several bins apart in a tail.
        const double near = 2 * h.width() + 0.03 * (low + high);
        EXPECT_NEAR(kept.high, high, near) << sort << ' ' << percentile << ' ' << c::name_of(s);
        EXPECT_NEAR(-kept.low, low, near) << sort << ' ' << percentile << ' ' << c::name_of(s);
      }
  }
}

TEST(CalibrateChoose, APercentileLeavesOutNoMoreThanItsShare) {
  for (int sort = 0; sort < sorts; ++sort) {
    const std::vector<float> list = numbers_of(sort, 20000);
    const c::value_histogram h = counted(list);
    for (const quantisation_schema s : schemas) {
      const c::interval kept = c::chosen_range(h, range_method::percentile, s, 99);
      const auto outside = std::ranges::count_if(list, [&](float x) { return x < kept.low || x > kept.high; });
      EXPECT_LE(outside, 204) << sort << ' ' << c::name_of(s);  // a bin holds several numbers
    }
  }
}

TEST(CalibrateChoose, MeanSquareErrorsAreThoseOfTheNumbers) {
  for (int sort = 0; sort < sorts; ++sort) {
    const std::vector<float> list = numbers_of(sort, 20000);
    const c::value_histogram h = counted(list);
    for (const quantisation_schema s : schemas)
      for (const float part : {1.0F, 0.5F, 0.1F}) {
        const c::quantisation how = c::quantisation_of({part * h.seen().low, part * h.seen().high}, s);
        const double exact = error_of(list, how);
        EXPECT_NEAR(c::mean_square_error(h, how), exact, 0.05 * exact) << sort << ' ' << c::name_of(s) << ' ' << part;
      }
  }
}

TEST(CalibrateChoose, TheErrorIsWithinFivePercentOfTheBestIntervals) {
  for (int sort = 0; sort < sorts; ++sort) {
    const std::vector<float> list = numbers_of(sort, 3000);
    const c::value_histogram h = counted(list);
    for (const quantisation_schema s : schemas) {
      const double found = error_of(list, c::quantisation_of(c::chosen_range(h, range_method::mse, s, 100), s));
      double best = std::numeric_limits<double>::infinity();
      constexpr int steps = 40;
      const bool has_two_ends = s == quantisation_schema::asymmetric && h.seen().low < 0 && h.seen().high > 0;
      for (int i = 1; i <= steps; ++i)
        for (int j = has_two_ends ? 1 : i; j <= (has_two_ends ? steps : i); ++j) {
          const c::interval range{h.seen().low * static_cast<float>(i) / steps,
                                  h.seen().high * static_cast<float>(j) / steps};
          best = std::min(best, error_of(list, c::quantisation_of(range, s)));
        }
      EXPECT_LE(found, 1.05 * best) << sort << ' ' << c::name_of(s);
      EXPECT_LE(found, 1.001 * error_of(list, c::quantisation_of(h.seen(), s))) << sort << ' ' << c::name_of(s);
    }
  }
}

/// TensorRT's computation, written out: P with the outliers in the bins at the ends, Q from merged bins without them.
double plain_divergence(const std::vector<std::uint64_t>& counts, std::size_t from, std::size_t to,
                        std::size_t levels) {
  std::vector<double> p, q;
  for (std::size_t i = from; i < to; ++i) p.push_back(static_cast<double>(counts[i]));
  q.resize(p.size());
  for (std::size_t j = 0; j < levels; ++j) {
    const std::size_t begin = j * p.size() / levels, end = (j + 1) * p.size() / levels;
    double sum = 0, filled = 0;
    for (std::size_t i = begin; i < end; ++i) sum += p[i], filled += p[i] > 0 ? 1 : 0;
    for (std::size_t i = begin; i < end; ++i)
      if (p[i] > 0) q[i] = sum / filled;
  }
  for (std::size_t i = 0; i < from; ++i) p.front() += static_cast<double>(counts[i]);
  for (std::size_t i = to; i < counts.size(); ++i) p.back() += static_cast<double>(counts[i]);
  double all_p = 0, all_q = 0, sum = 0;
  for (const double x : p) all_p += x;
  for (const double x : q) all_q += x;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    if (q[i] == 0) return std::numeric_limits<double>::infinity();
    sum += p[i] / all_p * std::log(p[i] / all_p / (q[i] / all_q));
  }
  return sum;
}

TEST(CalibrateChoose, DivergencesAreThoseOfAStraightforwardComputation) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> counts(1 + random() % 90);
    for (std::uint64_t& n : counts) n = random() % 3 == 0 ? 0 : random() % 1000;
    const std::size_t from = random() % counts.size(), to = from + 1 + random() % (counts.size() - from);
    const std::size_t levels = 1 + random() % 20;
    const double expected = plain_divergence(counts, from, to, levels);
    const double found = c::clipping_divergence(counts, from, to, levels);
    const bool has_none = std::all_of(counts.begin() + static_cast<std::ptrdiff_t>(from),
                                      counts.begin() + static_cast<std::ptrdiff_t>(to), [](auto n) { return n == 0; });
    if (has_none || std::isinf(expected)) EXPECT_TRUE(std::isinf(found)) << round;
    else EXPECT_NEAR(found, expected, 1e-12) << round;
  }
}

TEST(CalibrateChoose, EntropyOfOneSideIsTheBestOfAllWindows) {
  for (const int sort : {0, 1, 2}) {
    std::vector<float> list = numbers_of(sort, 50000);
    const c::value_histogram h = counted(list, 1024);
    std::vector<std::uint64_t> magnitudes;
    for (const float x : list) {
      if (x == 0) continue;
      const auto bin = static_cast<std::size_t>(std::abs(x) / h.width());
      magnitudes.resize(std::max(magnitudes.size(), bin + 1));
      ++magnitudes[bin];
    }
    const bool is_unsigned = sort == 1;
    const std::size_t levels = is_unsigned ? 256 : 128;
    std::size_t best = magnitudes.size();
    for (std::size_t end = magnitudes.size(); end >= levels; --end)
      if (plain_divergence(magnitudes, 0, end, levels) < plain_divergence(magnitudes, 0, best, levels) - 1e-13)
        best = end;
    const c::interval kept = c::chosen_range(h, range_method::entropy, quantisation_schema::symmetric_unsigned, 100);
    const double reach =
        std::min(static_cast<double>(best) * h.width(), static_cast<double>(std::max(-h.seen().low, h.seen().high)));
    EXPECT_FLOAT_EQ(kept.high, static_cast<float>(reach)) << sort;
    EXPECT_FLOAT_EQ(kept.low, is_unsigned ? 0 : -kept.high) << sort;
  }
}

TEST(CalibrateChoose, TailsAreClippedAndBellsAreNot) {
  const c::value_histogram tails = counted(numbers_of(2, 50000)), one = counted(numbers_of(3, 50000));
  for (const range_method m : {range_method::percentile, range_method::entropy, range_method::mse}) {
    const c::interval kept = c::chosen_range(tails, m, quantisation_schema::asymmetric, 99.9);
    const float part = m == range_method::mse ? 0.98F : 0.9F;  // a number that is clipped by much has a large square
    EXPECT_LT(kept.high, part * tails.seen().high) << c::name_of(m);
    // The short side of a distribution with one tail is kept while the long one is clipped.
    const c::interval half = c::chosen_range(one, m, quantisation_schema::asymmetric, 99.9);
    EXPECT_LT(half.high, part * one.seen().high) << c::name_of(m);
    EXPECT_GT(-half.low, -0.2F * one.seen().low) << c::name_of(m);
  }
  const c::value_histogram even = counted({-1, -0.5F, 0.5F, 1});
  for (const range_method m : {range_method::minmax, range_method::percentile, range_method::entropy}) {
    const c::interval kept = c::chosen_range(even, m, quantisation_schema::asymmetric, 99.99);
    EXPECT_NEAR(kept.low, -1, 1e-6) << c::name_of(m);
    EXPECT_NEAR(kept.high, 1, 1e-6) << c::name_of(m);
  }
}

TEST(CalibrateChoose, EveryMethodServesEveryHistogram) {
  const std::vector<std::vector<float>> lists = {{1},       {-1},       {1e-45F},    {3e38F, -3e38F}, {0, 0, 0, 1e-3F},
                                                 {5, 5, 5}, {-1, 1e6F}, {1, 1.0001F}};
  for (const auto& list : lists)
    for (const quantisation_schema s : schemas)
      for (const range_method m :
           {range_method::minmax, range_method::percentile, range_method::entropy, range_method::mse})
        for (const std::size_t bins : {128U, 4096U}) {
          const c::value_histogram h = counted(list, bins);
          const c::interval kept = c::chosen_range(h, m, s, 50);
          EXPECT_LE(kept.low, 0);
          EXPECT_GE(kept.high, 0);
          EXPECT_LT(kept.low, kept.high) << c::name_of(m) << ' ' << c::name_of(s) << ' ' << list[0];
          EXPECT_LE(kept.high, std::max(-h.seen().low, h.seen().high));
          EXPECT_NO_THROW(c::quantisation_of(kept, s));
        }
}

TEST(CalibrateChoose, NumbersThatCannotBeRightAreRefused) {
  using collage_test::message_of;
  const c::value_histogram h = counted({1, 2}), zero = counted({0, 0});
  for (const double p : {0.0, -1.0, 100.5, std::nan("")})
    EXPECT_EQ(message_of([&] { c::chosen_range(h, range_method::percentile, quantisation_schema::symmetric, p); }, 2),
              "percentile: must be above 0 and at most 100");
  EXPECT_EQ(message_of([&] { c::chosen_range(zero, range_method::mse, quantisation_schema::symmetric, 99); }, 2),
            "histogram of a value: has no number but 0");
}

}  // namespace calibrate_choose_test
