// Lower precision as a bounded resource of placing: what a plan rounds keeps the bound on its error.
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/verify.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rounding_backend.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

namespace place_precision_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;

using namespace place_rounding_backend;

/// The error of a plan by its own steps, as docs/precision.md says it: each value once that is stored in bfloat16, and the weights of
/// the products in bfloat16.
double error_of(const c::graph& network, const c::plan& made, const c::rounding_errors& errors) {
  std::vector<bool> counted(network.values().size(), false);
  double sum = 0;
  const auto add = [&](std::uint32_t v) {
    if (!counted[v]) sum += errors.of(v, c::dtype::bf16);
    counted[v] = true;
  };
  for (const c::plan_group& g : made.chosen.groups) {
    if (!g.kernel.ends_with("bf16")) continue;
    add(network.view().output_of(g.nodes[0]));
    if (network.node(g.nodes[0]).kind->id == c::kind_id<struct c::ops::matmul>)
      add(network.view().inputs_of(g.nodes[0])[1]);
  }
  for (const c::plan_conversion& one : made.chosen.conversions)
    if (one.step.to == "plain:bf16") add(one.value);
  return sum;
}

TEST(place_precision, rounds_nothing_unless_asked) {
  const c::graph network = layers(3);
  c::place_options how = collage_test::clock_options(now_ms);
  const c::placed_plan made = c::place<set>(network, how);
  EXPECT_EQ(made.precision, c::fp32);
  EXPECT_EQ(count(made, "product"), 3);
  EXPECT_EQ(made.report.distinct, 2U);  // a product and a relu: kernels that round are not even listed
  // The same without errors of values, with no error allowed, and in float32.
  for (const c::precision_options& given :
       {c::precision_options{c::precisions::bf16, 0.01, nullptr},
        c::precision_options{c::precisions::bf16, 0, equal_errors(network, 0, 0)},
        c::precision_options{c::precisions::f32, 0.01, equal_errors(network, 0, 0)}}) {
    how.precision = given;
    EXPECT_EQ(count(c::place<set>(network, how), "product"), 3);
  }
}

TEST(place_precision, rounds_all_where_it_costs_nothing) {
  const c::graph network = layers(3);
  const c::plan made = c::place<set>(network, options(0.01, equal_errors(network, 0, 0)));
  EXPECT_EQ(made.precision, "bf16, error at most 1 %");
  EXPECT_EQ(count(made, "product in bf16"), 3);
  EXPECT_EQ(made.chosen.conversions.size(), 2U);
  EXPECT_TRUE(made.optimal);
  EXPECT_DOUBLE_EQ(made.runs[0].median_ms, 3 * 1.25 + 2 * 0.125);
  const auto exact = std::ranges::find(made.runs, c::unrounded_run, &c::plan_run::name);
  ASSERT_NE(exact, made.runs.end());  // the best plan in float32 ran beside it
  EXPECT_DOUBLE_EQ(exact->median_ms, 3 * 4.25);
  for (const c::placement& single : made.singles) EXPECT_DOUBLE_EQ(single.cost_ms, 3 * 4.25) << single.name;
}

/// The least cost of a chain of layers whose plan keeps the bound, by trying all of them.
double least_cost(const c::graph& network, const c::rounding_errors& errors, double most) {
  const auto nodes = static_cast<std::uint32_t>(network.nodes().size());
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t which = 0; which < (1U << nodes); ++which) {
    double ms = 0, error = 0;
    bool before = false;  // whether the value lies in bfloat16
    std::uint32_t value = network.inputs()[0];
    for (std::uint32_t n = 0; n < nodes; ++n) {
      const bool is_rounded = (which >> n & 1U) != 0;
      const bool multiplies = network.node(n).kind->id == c::kind_id<struct c::ops::matmul>;
      if (is_rounded != before) ms += 0.125;
      if (is_rounded && !before) error += errors.of(value, c::dtype::bf16);
      value = network.view().output_of(n);
      if (is_rounded) error += errors.of(value, c::dtype::bf16);
      if (is_rounded && multiplies) error += errors.of(network.view().inputs_of(n)[1], c::dtype::bf16);
      ms += multiplies ? (is_rounded ? 1 : 4) : 0.25;
      before = is_rounded;
    }
    if (before) ms += 0.125;
    if (error <= most * most) least = std::min(least, ms);
  }
  return least;
}

TEST(place_precision, keeps_the_bound) {
  const c::graph network = layers(5);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> between(0, 1);
  auto errors = std::make_shared<c::rounding_errors>();
  for (std::uint32_t v = 0; v < network.values().size(); ++v) errors->set(v, c::dtype::bf16, 1e-4 * between(random));
  double before = std::numeric_limits<double>::infinity();
  std::vector<double> times;
  for (const double most : {0.001, 0.006, 0.01, 0.014, 0.018, 0.024, 0.05}) {
    const c::plan made = c::place<set>(network, options(most, errors));
    EXPECT_LE(error_of(network, made, *errors), most * most * (1 + 1e-9)) << most;
    EXPECT_LE(made.chosen.cost_ms, 1.01 * least_cost(network, *errors, most)) << most;
    EXPECT_GE(made.lower_bound_ms, 0.99 * made.chosen.cost_ms) << most;
    times.push_back(made.runs[0].median_ms);
    EXPECT_LE(times.back(), before) << "a larger bound gives no slower plan";
    before = times.back();
  }
  EXPECT_DOUBLE_EQ(times.front(), 5 * 4.25);  // nothing is within the bound
  EXPECT_DOUBLE_EQ(times.back(), 5 * 1.25 + 2 * 0.125);
  EXPECT_GT(std::ranges::count_if(times, [&](double ms) { return ms < times.front() && ms > times.back(); }), 2);
}

TEST(place_precision, a_value_without_a_known_error_is_not_rounded) {
  const c::graph network = layers(3);
  const auto errors = equal_errors(network, 0, 0);
  const std::uint32_t second = network.view().inputs_of(2)[1];  // the weights of the second product
  errors->set(second, c::dtype::bf16, std::numeric_limits<double>::infinity());
  const c::plan made = c::place<set>(network, options(0.01, errors));
  EXPECT_EQ(count(made, "product in bf16"), 2);
  EXPECT_EQ(count(made, "product"), 1);
}

TEST(place_precision, plans_in_files_keep_it) {
  const c::graph network = layers(2);
  c::plan made = c::place<set>(network, options(0.02, equal_errors(network, 0, 0)));
  made.error = c::plan_error{0.02, 0.01, 0.011, 0.0125, 7};
  const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "a file");
  EXPECT_EQ(read.error, made.error);
  EXPECT_EQ(read.precision, "bf16, error at most 2 %");
  EXPECT_TRUE(c::verify<set>(network, read)) << c::verify<set>(network, read).why();
}

TEST(place_precision, contradicts_other_options) {
  const c::graph network = layers(2);
  c::place_options how = options(0.01, equal_errors(network, 0, 0));
  how.keep_non_finite = true;
  EXPECT_EQ(message_of([&] { (void)c::place<set>(network, how); }),
            "precision: kernels that round values need not keep NaN and infinity; leave keep_non_finite out");
  how.keep_non_finite = false;
  how.costs = c::placing_costs::none;
  EXPECT_EQ(message_of([&] { (void)c::place<set>(network, how); }),
            "precision: only measuring shows whether lower precision pays; measure, or place in fp32");
}

// ---- Confirmed plans ----------------------------------------------------------------------------------------------------

c::placed_within_error within(double most, const c::graph& network, const c::sample_source& samples) {
  return c::place_within_error(network, c::table_of<set>, options(most, nullptr), samples);
}

TEST(place_within_error, what_kernels_may_round) {
  const c::graph network = layers(2);
  std::vector<c::rounded_value> wanted{{network.inputs()[0], c::dtype::bf16}};
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    wanted.push_back({network.view().output_of(n), c::dtype::bf16});
    if (n % 2 == 0) wanted.push_back({network.view().inputs_of(n)[1], c::dtype::bf16});
  }
  std::ranges::sort(wanted);
  EXPECT_EQ(c::rounded_values(network, c::table_of<set>, options(0.01, nullptr)), wanted);
  const c::plan all = c::place<set>(network, options(0.01, equal_errors(network, 0, 0)));
  // The last relu may be in float32, at the same cost.
  const std::vector<c::rounded_value> rounded = c::rounded_in(network, c::table_of<set>, all.chosen);
  EXPECT_TRUE(std::ranges::includes(wanted, rounded));
  EXPECT_GE(rounded.size() + 1, wanted.size());
}

TEST(place_within_error, takes_the_fastest_plan_where_it_passes) {
  const c::graph network = layers(3);
  const c::placed_within_error made = within(0.05, network, samples_of(16));
  EXPECT_EQ(made.turns, 1U);  // without errors of single values
  EXPECT_EQ(count(made, "product in bf16"), 3);
  ASSERT_TRUE(made.error);
  EXPECT_GT(made.error->measured, 1e-4);
  EXPECT_LE(made.error->measured, made.error->upper);
  EXPECT_LE(made.error->upper, 0.05);
  EXPECT_EQ(made.error->samples, 8U);
}

TEST(place_within_error, rounds_less_within_a_smaller_bound) {
  const c::graph network = layers(5);
  const double all = within(0.05, network, samples_of(16)).error->upper;
  bool is_mixed = false;
  for (const double part : {0.9, 0.7, 0.5, 0.3}) {
    const c::placed_within_error made = within(part * all, network, samples_of(16));
    EXPECT_LT(count(made, "product in bf16"), 5) << part;
    if (!made.error) continue;
    is_mixed = true;
    EXPECT_LE(made.error->upper, part * all) << part;
    EXPECT_LT(made.runs[0].median_ms, 5 * 4.25) << part;
    EXPECT_GT(made.turns, 1U) << part;
    EXPECT_EQ(made.precision, c::precision_text({c::precisions::bf16, part * all, nullptr}));
  }
  EXPECT_TRUE(is_mixed);
}

TEST(place_within_error, is_in_float32_where_nothing_passes) {
  const c::graph network = layers(2);
  const c::placed_within_error made = within(1e-7, network, samples_of(8));
  EXPECT_EQ(made.precision, c::fp32);
  EXPECT_FALSE(made.error);
  EXPECT_EQ(count(made, "product"), 2);
  EXPECT_FALSE(made.why_unrounded.empty());
  const c::placed_within_error none = within(0, network, samples_of(8));
  EXPECT_EQ(none.why_unrounded, "no error is allowed");
  EXPECT_EQ(count(none, "product"), 2);
}

TEST(place_within_error, has_a_whole_plan_where_no_turn_is_left) {
  const c::graph network = layers(2);
  c::within_error_options one;
  one.most_turns = 1;
  const c::sample_source samples = samples_of(16);
  const c::placed_within_error made =
      c::place_within_error(network, c::table_of<set>, options(1e-7, nullptr), samples, one);
  EXPECT_EQ(made.precision, c::fp32);
  EXPECT_EQ(count(made, "product"), 2);
  // The errors of single values take longer than there is time.
  c::place_options hurried = options(1e-7, nullptr);
  hurried.budget_s = 0.05;
  const c::sample_source slow = [&](std::size_t which, std::span<const c::tensor_view> inputs) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return samples(which, inputs);
  };
  const c::placed_within_error late = c::place_within_error(network, c::table_of<set>, hurried, slow);
  EXPECT_EQ(late.precision, c::fp32);
  EXPECT_EQ(count(late, "product"), 2);
  EXPECT_FALSE(late.why_unrounded.empty());
}

TEST(place_within_error, needs_samples) {
  const c::graph network = layers(2);
  EXPECT_EQ(
      message_of([&] { (void)within(0.01, network, samples_of(2)); }),
      "samples: there are 2 samples, and the error of lower precision needs at least 3: one is measured with, two are "
      "held back; give more samples");
  EXPECT_NO_THROW((void)within(0.05, network, samples_of(3)));  // two say little, so the plan may be in float32
}

}  // namespace place_precision_test
