// Ranges: scales and zero points of the schemas, weights, biases, and rounding.
#include <gtest/gtest.h>

#include <collage/calibrate/ranges.hpp>
#include <collage/error.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace calibrate_ranges_test {

namespace c = collage;
using schema = c::quantisation_schema;

std::string refusal(const auto& call) {
  try {
    call();
  } catch (const c::error& e) { return e.what(); }
  return "nothing was thrown";
}

TEST(CalibrateRanges, SchemasMakeScalesAndZeroPoints) {
  const c::quantisation a = c::quantisation_of({-1, 2}, schema::asymmetric);
  EXPECT_EQ(a.element, c::dtype::u8);
  EXPECT_FLOAT_EQ(a.scales[0], 3.0F / 255);
  EXPECT_EQ(a.zero_points[0], 85);
  const c::quantisation s = c::quantisation_of({-1, 2}, schema::symmetric);
  EXPECT_EQ(s.element, c::dtype::i8);
  EXPECT_FLOAT_EQ(s.scales[0], 2.0F / 127);
  EXPECT_EQ(s.zero_points[0], 0);
  EXPECT_EQ(c::quantisation_of({-1, 2}, schema::symmetric_unsigned), s);
  const c::quantisation u = c::quantisation_of({0.5F, 2}, schema::symmetric_unsigned);
  EXPECT_EQ(u.element, c::dtype::u8);
  EXPECT_FLOAT_EQ(u.scales[0], 2.0F / 255);
  EXPECT_EQ(c::quantisation_of({0.5F, 2}, schema::symmetric).element, c::dtype::i8);
}

TEST(CalibrateRanges, ZeroIsExactAndRoundingIsWithinHalfAStep) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-3, 3);
  for (int i = 0; i < 200; ++i) {
    float low = draw(random), high = draw(random);
    if (low > high) std::swap(low, high);
    for (const schema which : {schema::asymmetric, schema::symmetric, schema::symmetric_unsigned}) {
      const c::quantisation how = c::quantisation_of({low, high}, which);
      float zero = 0;
      c::round_to(how, {&zero, 1}, {});
      EXPECT_EQ(zero, 0);
      // The zero point is rounded, so that the numbers may end half a step before the interval.
      for (float x = low; x <= high; x += (high - low) / 37 + 1e-6F) {
        float y = x;
        c::round_to(how, {&y, 1}, {});
        EXPECT_LE(std::abs(x - y), how.scales[0] * (which == schema::asymmetric ? 1.001F : 0.501F))
            << low << ' ' << high;
      }
    }
  }
}

TEST(CalibrateRanges, NumbersEndAtTheLimitsAndTiesGoToEven) {
  const c::quantisation how{c::dtype::i8, -1, {0.5F}, {0}};
  EXPECT_EQ(c::number_of(1e30F, how), 127);
  EXPECT_EQ(c::number_of(-std::numeric_limits<float>::infinity(), how), -127);
  EXPECT_EQ(c::number_of(0.25F, how), 0);
  EXPECT_EQ(c::number_of(0.75F, how), 2);
  const c::quantisation wide{c::dtype::i32, -1, {1e-9F}, {0}};
  EXPECT_EQ(c::number_of(1e9F, wide), std::numeric_limits<std::int32_t>::max());
}

TEST(CalibrateRanges, WeightsHaveAScaleForEachChannel) {
  const std::vector<float> w = {1, -2, 3, 0, 0, 0, 4, -8, 2, 1, 1, 1};  // 2 x 3 x 2
  const c::quantisation one = c::weight_quantisation(w, {2, 3, 2}, -1);
  EXPECT_EQ(one.axis, -1);
  ASSERT_EQ(one.scales.size(), 1U);
  EXPECT_FLOAT_EQ(one.scales[0], 8.0F / 127);
  const c::quantisation middle = c::weight_quantisation(w, {2, 3, 2}, 1);
  ASSERT_EQ(middle.scales.size(), 3U);
  EXPECT_FLOAT_EQ(middle.scales[0], 8.0F / 127);
  EXPECT_FLOAT_EQ(middle.scales[1], 3.0F / 127);
  EXPECT_FLOAT_EQ(middle.scales[2], 1.0F / 127);
  std::vector<float> rounded = w;
  c::round_to(middle, rounded, {2, 3, 2});
  for (std::size_t i = 0; i < w.size(); ++i)
    EXPECT_LE(std::abs(w[i] - rounded[i]), middle.scales[i / 2 % 3] * 0.501F) << i;

  const c::quantisation zeros = c::weight_quantisation(std::vector<float>(4), {2, 2}, 0);
  EXPECT_EQ(zeros.scales, std::vector<float>({1, 1}));

  const c::quantisation bias = c::bias_quantisation(c::quantisation_of({0, 255}, schema::asymmetric), middle);
  EXPECT_EQ(bias.element, c::dtype::i32);
  EXPECT_EQ(bias.scales, middle.scales);
}

TEST(CalibrateRanges, WhatCannotBeRightIsRefused) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const auto of = [](float low, float high) {
    return refusal([&] { c::quantisation_of({low, high}, schema::asymmetric); });
  };
  EXPECT_EQ(of(0, 0), "interval: is empty: both ends are 0");
  EXPECT_EQ(of(0, infinite), "interval: its ends are not two finite numbers in order");
  EXPECT_EQ(of(1, 0), "interval: its ends are not two finite numbers in order");
  EXPECT_EQ(refusal([] { c::weight_quantisation(std::vector<float>(4), {2, 2}, 2); }),
            "quantisation: has no dimension 2 for scales: its shape is 2x2");
  EXPECT_EQ(refusal([] { c::weight_quantisation(std::vector<float>{1, infinite}, {2}, 0); }),
            "weights: contain NaN or infinity");
  std::vector<float> four(4);
  EXPECT_EQ(refusal([&] { c::round_to({c::dtype::i8, 0, {1, 1, 1}, {0, 0, 0}}, four, {2, 2}); }),
            "quantisation: has 3 scales for 2 indices");
  EXPECT_EQ(refusal([] { c::bias_quantisation({c::dtype::u8, 0, {1, 1}, {0, 0}}, {c::dtype::i8, -1, {1}, {0}}); }),
            "quantisation of a bias: the input must have one scale");
}

TEST(CalibrateRanges, SubnormalAndHugeIntervalsHaveUsableScales) {
  for (const c::interval range : {c::interval{0, 1e-44F}, c::interval{-3e38F, 3e38F}})
    for (const schema which : {schema::asymmetric, schema::symmetric}) {
      const c::quantisation how = c::quantisation_of(range, which);
      EXPECT_TRUE(std::isnormal(how.scales[0]));
      float x = range.high;
      c::round_to(how, {&x, 1}, {});
      EXPECT_TRUE(std::isfinite(x));
    }
}

TEST(CalibrateRanges, RangesAreFoundByValue) {
  c::graph_ranges all;
  for (const std::uint32_t v : {2U, 5U, 9U}) {
    c::value_range range;
    range.value = v;
    range.name = "v" + std::to_string(v);
    all.values.push_back(range);
  }
  EXPECT_EQ(c::find_range(all, 5)->name, "v5");
  EXPECT_EQ(c::find_range(all, 4), nullptr);
  EXPECT_EQ(c::find_range(all, 10), nullptr);
}

}  // namespace calibrate_ranges_test
