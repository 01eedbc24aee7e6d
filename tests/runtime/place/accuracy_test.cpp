// Errors of kernels, and which algorithms are accurate.
#include <collage/place/accuracy.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/tensor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace accuracy_test {

namespace c = collage;

TEST(accuracy, errors_are_relative_to_the_root_mean_square) {
  const std::vector<double> expected{3, -4, 0, 5}, actual{3, -4.5, 0.25, 5};
  EXPECT_DOUBLE_EQ(c::detail::error_of<double>(actual, expected), 0.5 / std::sqrt(50.0 / 4));
  EXPECT_EQ(c::detail::error_of<double>(expected, expected), 0);
  EXPECT_EQ(c::detail::error_of<double>({}, {}), 0);
  // NaN and infinity do not count.
  std::vector<float> many(1001, 2.0F);
  std::vector<double> reference(1001, 2.0);
  many[1000] = 2.5F;
  many[7] = std::numeric_limits<float>::quiet_NaN();
  reference[8] = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(c::detail::error_of<float>(many, reference), 0.5 / std::sqrt(999 * 4.0 / 1001), 1e-12);
  const std::vector<double> zeros(4);
  EXPECT_TRUE(std::isinf(c::detail::error_of<double>(actual, zeros)));
}

TEST(accuracy, channels_are_scaled_by_powers_of_ten) {
  const c::tensor t(c::tensor_type{c::dtype::f32, {2, 300, 3, 1}});
  std::ranges::fill(t.as<float>(), 1.0F);
  std::mt19937_64 random(1);
  c::detail::scale_channels(t, 1, random);
  float least = 1, most = 1;
  for (std::size_t channel = 0; channel < 300; ++channel) {
    const float factor = t.as<float>()[channel * 3];
    least = std::min(least, factor);
    most = std::max(most, factor);
    for (std::size_t image = 0; image < 2; ++image)
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(t.as<float>()[(image * 300 + channel) * 3 + i], factor);
  }
  EXPECT_GE(least, 1e-2F);
  EXPECT_LE(most, 1e2F);
  EXPECT_LT(least, 2e-2F);
  EXPECT_GT(most, 5e1F);
}

constexpr c::kernel_algorithm other{.name = "F(4,3)", .direct_error = 1e-6};

TEST(accuracy, algorithms_may_err_twice_as_much_as_direct_kernels) {
  c::detail::accuracy_judge judge;
  EXPECT_EQ(judge.judge({{}, {1e-6, 3e-6}}), "");
  EXPECT_EQ(judge.judge({{}, {2e-6, 1e-6}}), "");
  EXPECT_EQ(judge.judge({other, {4e-6, 6e-6}}), "");
  EXPECT_EQ(judge.known(other), "");
  EXPECT_EQ(judge.judge({other, {4.4e-6, 1e-6}}),
            "the algorithm F(4,3) errs 2.20 times as much as the definition, and accurate algorithms at most twice");
  const std::string why = judge.judge({other, {1e-6, 9e-6}});
  EXPECT_EQ(why,
            "the algorithm F(4,3) errs 3.00 times as much as the definition where channels differ in size, and "
            "accurate algorithms at most twice");
  EXPECT_EQ(judge.known(other), why);
  EXPECT_EQ(judge.known({}), "");
  EXPECT_EQ(judge.known({.name = "F(2,3)"}), "");
}

TEST(accuracy, without_direct_kernels_the_expected_error_is_the_measure) {
  c::detail::accuracy_judge judge;
  EXPECT_EQ(judge.judge({other, {2e-6, 2e-6}}), "");
  EXPECT_NE(judge.judge({other, {3e-6, 0}}), "");
}

TEST(accuracy, names) {
  for (const auto& [which, name] : c::algorithms_names) {
    EXPECT_EQ(c::algorithms_named(name), which);
    EXPECT_STREQ(c::name_of(which), name);
  }
  EXPECT_FALSE(c::algorithms_named("exact"));
}

}  // namespace accuracy_test
