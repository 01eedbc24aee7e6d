// Confirmation on held-out samples: metrics, bounds, and what they are worth.
#include <gtest/gtest.h>

#include <collage/calibrate/confirm.hpp>
#include <collage/collage.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "calibrate/distributions.hpp"
#include "support/messages.hpp"

namespace calibrate_confirm_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;

TEST(calibrate_confirm, quantiles_are_those_of_tables) {
  EXPECT_NEAR(c::detail::student_quantile(0.95, 1), 6.313752, 1e-5);
  EXPECT_NEAR(c::detail::student_quantile(0.95, 4), 2.131847, 1e-5);
  EXPECT_NEAR(c::detail::student_quantile(0.975, 30), 2.042272, 1e-5);
  EXPECT_NEAR(c::detail::student_quantile(0.99, 1000), 2.330083, 1e-5);
  EXPECT_NEAR(c::detail::beta_quantile(0.95, 1, 30), 1 - std::pow(0.05, 1.0 / 30), 1e-9);
  EXPECT_NEAR(c::detail::beta_quantile(0.5, 3, 3), 0.5, 1e-9);
}

TEST(calibrate_confirm, bounds_of_shares_are_clopper_and_pearsons) {
  EXPECT_NEAR(c::upper_bound_of_share(0, 30, 0.95), 0.095034, 1e-5);
  EXPECT_NEAR(c::upper_bound_of_share(3, 100, 0.95), 0.075712, 1e-5);
  EXPECT_EQ(c::upper_bound_of_share(5, 5, 0.95), 1);
  EXPECT_EQ(c::upper_bound_of_share(0, 0, 0.95), 1);
}

/// How often the bound of the mean is at least the mean, over many draws of `count` samples, and the middle bound over the mean.
struct bounds_seen {
  double covered = 0, excess = 0;
};
template <class Draw>
bounds_seen bounds_of(std::size_t count, double mean, Draw draw) {
  std::mt19937_64 random(count);
  constexpr std::size_t draws = 200;
  std::vector<double> bounds(draws);
  for (double& b : bounds) {
    std::vector<double> samples(count);
    for (double& x : samples) x = draw(random);
    b = c::upper_bound_of_mean(samples, 0.95) / mean;
  }
  std::ranges::sort(bounds);
  const auto covered = static_cast<double>(std::ranges::count_if(bounds, [](double b) { return b >= 1; }));
  return {covered / draws, bounds[draws / 2]};
}

TEST(calibrate_confirm, bounds_of_means_hold_as_often_as_they_say) {
  // Of 200 draws, two standard deviations are 3 %.
  for (const std::size_t count : {2U, 5U, 20U})
    for (const double spread : {0.3, 1.0}) {
      const double mean = std::exp(-8 + spread * spread / 2);
      const bounds_seen seen = bounds_of(count, mean, std::lognormal_distribution<double>(-8, spread));
      EXPECT_GE(seen.covered, 0.92) << count << ' ' << spread;
    }
}

TEST(calibrate_confirm, bounds_of_means_are_of_use_where_some_samples_hardly_err) {
  // The squared error of a probability that is near 0 or 1 for most samples.
  const auto saturated = [](std::mt19937_64& random) {
    std::normal_distribution<double> logit(0, 4), change(0, 0.3);
    const double z = logit(random), before = 1 / (1 + std::exp(-z)), after = 1 / (1 + std::exp(-z - change(random)));
    return std::pow(after - before, 2) + 1e-20;
  };
  std::mt19937_64 random(1);
  double mean = 0;
  constexpr int many = 400'000;
  for (int i = 0; i < many; ++i) mean += saturated(random) / many;
  for (const std::size_t count : {32U, 120U}) {
    const bounds_seen seen = bounds_of(count, mean, saturated);
    EXPECT_GE(seen.covered, 0.9) << count;
    EXPECT_LE(seen.excess, 9) << count;
  }
}

TEST(calibrate_confirm, few_samples_say_little) {
  const std::vector<double> one = {0.01}, two = {0.01, 0.02};
  EXPECT_EQ(c::upper_bound_of_mean(one, 0.95), std::numeric_limits<double>::infinity());
  EXPECT_GT(c::upper_bound_of_mean(two, 0.95), 0.04);
  const std::vector<double> zeros(10, 0.0);
  EXPECT_EQ(c::upper_bound_of_mean(zeros, 0.95), 0);
}

// ---- Whole runs ------------------------------------------------------------------------------------------------------

/// x and y, two rows of three.
c::graph two_outputs() {
  c::graph_builder g;
  const c::tensor_type type{c::dtype::f32, {2, 3}};
  const c::value x = g.input("x", type);
  g.output("first", g(op::relu, x));
  g.output("second", g(op::neg, x));
  return g.finish();
}

/// The reference writes the input to both outputs; the candidate writes it changed to the second.
template <class Change>
c::confirmation confirm_change(Change change, const c::confirm_options& options, std::size_t count = 20) {
  const auto copy = [](auto inputs, auto outputs) {
    for (const c::tensor_view& o : outputs)
      std::copy_n(static_cast<const float*>(inputs[0].data), 6, static_cast<float*>(o.data));
  };
  const c::sample_source samples = [count](std::size_t which, std::span<const c::tensor_view> inputs) {
    auto* x = static_cast<float*>(inputs[0].data);
    for (int i = 0; i < 6; ++i) x[i] = static_cast<float>(1 + (i + static_cast<int>(which)) % 6);
    return which < count;
  };
  const c::network_run changed = [&](auto inputs, auto outputs) {
    copy(inputs, outputs);
    change(static_cast<float*>(outputs[1].data));
  };
  return c::confirm(two_outputs(), copy, changed, samples, options);
}

TEST(calibrate_confirm, relative_error_is_that_of_the_worst_output) {
  const auto larger = [](float* y) {
    for (int i = 0; i < 6; ++i) y[i] *= 1.01F;
  };
  const c::confirmation found = confirm_change(larger, {});
  EXPECT_EQ(found.output, "second");
  EXPECT_EQ(found.samples, 20U);
  ASSERT_EQ(found.each.size(), 20U);
  EXPECT_NEAR(found.each[3], 1e-4, 1e-7);
  EXPECT_NEAR(found.value, 0.01, 1e-5);
  EXPECT_NEAR(found.upper, 0.01, 1e-4);  // all samples err alike
  EXPECT_GE(found.upper, found.value);
  EXPECT_EQ(confirm_change(larger, {.samples = 7}, 20).samples, 7U);
}

TEST(calibrate_confirm, other_metrics) {
  const auto larger = [](float* y) {
    for (int i = 0; i < 6; ++i) y[i] *= 2;
  };
  EXPECT_NEAR(confirm_change(larger, {.metric = c::error_metric::cosine}).value, 0, 1e-9);
  const auto turned = [](float* y) {
    for (int i = 0; i < 6; ++i) y[i] = -y[i];
  };
  EXPECT_NEAR(confirm_change(turned, {.metric = c::error_metric::cosine}).value, 2, 1e-9);
  const auto first_row = [](float* y) { y[std::max_element(y, y + 3) - y] = 0; };
  const c::confirmation top = confirm_change(first_row, {.metric = c::error_metric::top_1});
  EXPECT_DOUBLE_EQ(top.value, 0.5);
  EXPECT_NEAR(top.upper, c::upper_bound_of_share(10, 20, 0.95), 1e-12);
  EXPECT_EQ(confirm_change(larger, {.metric = c::error_metric::top_1}).value, 0);
  c::confirm_options own;
  own.callback = [](auto right, auto changed) {
    return std::abs(static_cast<double>(static_cast<const float*>(right[1].data)[0]) -
                    static_cast<double>(static_cast<const float*>(changed[1].data)[0]));
  };
  const c::confirmation by_callback = confirm_change([](float* y) { y[0] += 0.5F; }, own);
  EXPECT_NEAR(by_callback.value, 0.5, 1e-9);
  EXPECT_EQ(by_callback.output, "");
}

TEST(calibrate_confirm, what_is_not_finite_is_never_confirmed) {
  const auto spoil = [](float* y) { y[2] = std::numeric_limits<float>::quiet_NaN(); };
  EXPECT_EQ(confirm_change(spoil, {}).upper, std::numeric_limits<double>::infinity());
  EXPECT_EQ(confirm_change(spoil, {.metric = c::error_metric::cosine}).value, 2);
}

TEST(calibrate_confirm, mistakes_are_sentences) {
  const auto nothing = [](float*) {};
  EXPECT_EQ(message_of([&] { confirm_change(nothing, {}, 0); }), "confirmation: has no samples; give at least two");
  EXPECT_EQ(message_of([&] { confirm_change(nothing, {.confidence = 1}); }),
            "confidence 1.000000: is not between 0 and 1; give one such as 0.95");
  const auto nan = [](auto, auto outputs) {
    for (const c::tensor_view& o : outputs) std::fill_n(static_cast<float*>(o.data), 6, std::nanf(""));
  };
  const c::sample_source samples = [](std::size_t which, auto) { return which < 3; };
  EXPECT_EQ(message_of([&] { c::confirm(two_outputs(), nan, nan, samples); }),
            "output first: has NaN or infinity for sample 0 in the reference, so that no error can be measured; leave "
            "that sample out");
}

}  // namespace calibrate_confirm_test
