// The curve of time over error budgets, and the prices of precision: against all placements of a chain, and by hand.
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/store.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/error_curve.hpp>
#include <collage/place/kept_errors.hpp>
#include <collage/place/precision_prices.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

namespace place_error_curve_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;

/// The time of kernels, on a clock that stands still otherwise; and how many kernels were built.
double now_ms = 0;
std::size_t built = 0;
/// The part of the time that products take in bfloat16.
constexpr double usual_gain = 0.5;
double gain = usual_gain;

using product = c::single<op::matmul>;
using conversion = c::single<op::convert_layout>;
const c::form bf16 = c::form().of(c::dtype::bf16);
constexpr double conversion_ms = 0.125;

/// What a product of [1, width] and [width, columns] takes in float32.
double product_ms(std::int64_t width, std::int64_t columns) { return static_cast<double>(width * columns) / 16; }

/// Products in float32 (choice 0) and in bfloat16 (choice 1), of one row.
struct halver : c::backend<"halver"> {
  using patterns = c::patterns<product, conversion>;

  template <class P>
  static std::size_t choices(const c::match<P>&) {
    return 2;
  }
  static void layouts(const c::match<product>& m, std::size_t choice, c::value_forms& to) {
    if (choice == 0) return;
    to.set(m.record().argument[0], bf16);
    to.set(m.record().output[0], bf16);
  }
  static void layouts(const c::match<conversion>& m, std::size_t choice, c::value_forms& to) {
    to.set(choice == 0 ? m.record().argument[0] : m.record().output[0], bf16);
  }

  static void copy(c::dtype from, const void* source, c::dtype to, void* target, std::size_t count) {
    std::vector<double> numbers(count);
    c::load_elements(from, source, numbers);
    c::store_elements(to, std::span<const double>(numbers), target);
  }
  static c::kernel build(const c::match<product>& m, c::build_context& context) {
    ++built;
    const c::shape& dims = context.network().type_of(m.record().argument[1]).dims;
    const auto width = static_cast<std::size_t>(dims[0]), columns = static_cast<std::size_t>(dims[1]);
    const c::dtype type = context.choice() == 1 ? c::dtype::bf16 : c::dtype::f32;
    std::vector<double> w(width * columns);
    std::vector<std::byte> stored(w.size() * c::size_of(type));
    copy(c::dtype::f32, context.constant<std::byte>(m.record().argument[1]), type, stored.data(), w.size());
    c::load_elements(type, stored.data(), w);
    const double ms = product_ms(dims[0], dims[1]) * (type == c::dtype::f32 ? 1 : gain);
    return {type == c::dtype::f32 ? "product" : "product in bf16", [=](const c::kernel_call& call) {
              std::vector<double> x(width), y(columns);
              c::load_elements(type, call.in[0], x);
              for (std::size_t i = 0; i < w.size(); ++i) y[i % columns] += x[i / columns] * w[i];
              c::store_elements(type, std::span<const double>(y), call.out[0]);
              now_ms += ms;
            }};
  }
  static c::kernel build(const c::match<conversion>& m, c::build_context& context) {
    const bool widens = context.choice() == 0;
    const auto count = static_cast<std::size_t>(context.network().type_of(m.record().argument[0]).dims.elements());
    return {widens ? "widen" : "round", [=](const c::kernel_call& call) {
              const c::dtype from = widens ? c::dtype::bf16 : c::dtype::f32;
              copy(from, call.in[0], widens ? c::dtype::f32 : c::dtype::bf16, call.out[0], count);
              now_ms += conversion_ms;
            }};
  }
};
using set = c::backend_set<halver>;

constexpr std::int64_t widths[] = {8, 12, 4, 16, 6, 10, 8};
constexpr std::uint32_t layers = std::size(widths) - 1;

/// A chain of products of different sizes.
c::graph chain() {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {1, widths[0]}});
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string name = "w" + std::to_string(i);
    x = g(op::matmul, x,
          g.constant(name.c_str(), {c::dtype::f32, {widths[i], widths[i + 1]}}, c::uniform{-0.5F, 0.5F}));
  }
  g.output("y", x);
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

/// Errors that differ by factors of up to a hundred.
std::shared_ptr<c::rounding_errors> various_errors(const c::graph& network) {
  auto made = std::make_shared<c::rounding_errors>();
  for (std::uint32_t v = 0; v < network.values().size(); ++v)
    made->set(v, c::dtype::bf16, 1e-6 * std::pow(10, v * 5 % 13 / 6.0));
  return made;
}

c::place_options options(std::shared_ptr<const c::rounding_errors> errors, double most_error = 0.01) {
  c::place_options how = collage_test::clock_options(now_ms);
  how.precision = {c::precisions::bf16, most_error, std::move(errors)};
  return how;
}

/// The cost and the squared error of the chain, with these layers in bfloat16.
struct outcome {
  double ms = 0, nmse = 0;
};
outcome outcome_of(const c::graph& network, const c::rounding_errors& errors, std::uint32_t which) {
  outcome sum;
  bool before = false;  // whether the value lies in bfloat16
  std::uint32_t value = network.inputs()[0];
  for (std::uint32_t n = 0; n < layers; ++n) {
    const bool is_rounded = (which >> n & 1U) != 0;
    if (is_rounded != before) sum.ms += conversion_ms;
    if (is_rounded && !before) sum.nmse += errors.of(value, c::dtype::bf16);
    value = network.view().output_of(n);
    if (is_rounded)
      sum.nmse += errors.of(value, c::dtype::bf16) + errors.of(network.view().inputs_of(n)[1], c::dtype::bf16);
    sum.ms += product_ms(widths[n], widths[n + 1]) * (is_rounded ? usual_gain : 1);
    before = is_rounded;
  }
  if (before) sum.ms += conversion_ms;
  return sum;
}
/// The least time within a bound, by trying all.
double least_ms(const c::graph& network, const c::rounding_errors& errors, double most_error) {
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t which = 0; which < (1U << layers); ++which)
    if (const outcome found = outcome_of(network, errors, which); found.nmse <= most_error * most_error)
      least = std::min(least, found.ms);
  return least;
}

TEST(place_error_curve, has_the_fastest_plan_within_each_budget) {
  const c::graph network = chain();
  const auto errors = various_errors(network);
  const c::error_curve curve = c::curve_of_errors(network, c::table_of<set>, options(errors));
  EXPECT_NEAR(curve.exact.cost_ms, least_ms(network, *errors, 0), 1e-9);
  EXPECT_EQ(curve.exact.rounded_groups, 0U);
  EXPECT_EQ(curve.exact.predicted, 0);
  ASSERT_EQ(curve.points.size(), c::usual_budgets);
  EXPECT_NEAR(curve.points.back().cost_ms, outcome_of(network, *errors, (1U << layers) - 1).ms, 1e-9);
  EXPECT_EQ(curve.points.back().rounded_groups, layers);
  double before_ms = curve.exact.cost_ms, before_error = 0;
  std::size_t falls = 0;
  for (const c::error_point& p : curve.points) {
    EXPECT_GT(p.most_error, before_error);
    EXPECT_LE(p.predicted, p.most_error);
    EXPECT_LE(p.cost_ms, before_ms) << "a larger budget gives no slower plan";
    const double least = least_ms(network, *errors, p.most_error);
    EXPECT_GE(p.cost_ms, least - 1e-9);
    EXPECT_LE(p.cost_ms, 1.01 * least);
    EXPECT_LE(p.lower_bound_ms, least + 1e-9);
    EXPECT_LE(p.gap(), 0.01);
    EXPECT_GE(p.gap(), 0);
    EXPECT_NEAR(p.chosen.cost_ms, p.cost_ms, 1e-9);
    EXPECT_GT(p.rounded_share, 0);
    EXPECT_LE(p.rounded_share, 1);
    falls += p.cost_ms < before_ms ? 1 : 0;
    before_ms = p.cost_ms;
    before_error = p.most_error;
  }
  EXPECT_GE(falls, 5U);
  const double saved = curve.exact.cost_ms - curve.points.front().cost_ms;
  EXPECT_GE(saved, 0.02 * (curve.exact.cost_ms - curve.points.back().cost_ms));  // the smallest budget is of use
}

TEST(place_error_curve, measures_each_kernel_once) {
  const c::graph network = chain();
  built = 0;
  (void)c::curve_of_errors(network, c::table_of<set>, options(various_errors(network)));
  EXPECT_EQ(built, 2 * layers);  // in float32 and in bfloat16
}

TEST(place_error_curve, takes_costs_from_the_store) {
  const collage_test::temporary_folder folder;
  const c::graph network = chain();
  c::place_options how = options(various_errors(network), 1);
  how.store = folder.path("costs.db");
  (void)c::place<set>(network, how);
  built = 0;
  const c::error_curve curve = c::curve_of_errors(network, c::table_of<set>, how, 3);
  EXPECT_EQ(built, 0U);
  EXPECT_EQ(curve.points.size(), 3U);
}

TEST(place_error_curve, is_empty_where_rounding_gains_nothing) {
  const c::graph network = chain();
  const auto errors = various_errors(network);
  gain = 1;
  EXPECT_TRUE(c::curve_of_errors(network, c::table_of<set>, options(errors)).points.empty());
  gain = usual_gain;
  const auto unknown = std::make_shared<c::rounding_errors>();  // no value may be rounded
  const c::error_curve curve = c::curve_of_errors(network, c::table_of<set>, options(unknown));
  EXPECT_TRUE(curve.points.empty());
  EXPECT_NEAR(curve.exact.cost_ms, least_ms(network, *errors, 0), 1e-9);
}

TEST(place_error_curve, needs_errors_and_budgets) {
  const c::graph network = chain();
  EXPECT_EQ(message_of([&] { (void)c::curve_of_errors(network, c::table_of<set>, options(nullptr)); }),
            "precision: a curve over errors needs element types and the errors of rounding to them; measure them with "
            "errors_of_rounding");
  EXPECT_EQ(
      message_of([&] { (void)c::curve_of_errors(network, c::table_of<set>, options(various_errors(network)), 1); }),
      "budgets: a curve needs at least 2 budgets; ask for more");
}

TEST(place_precision_prices, are_those_of_one_group_in_float32) {
  const collage_test::temporary_folder folder;
  const c::graph network = chain();
  const auto errors = various_errors(network);
  c::place_options how = options(errors, 1);
  how.store = folder.path("costs.db");
  const c::plan made = c::place<set>(network, how);
  (void)c::curve_of_errors(network, c::table_of<set>, how);  // so the store has the costs of some conversions
  const c::precision_prices prices = c::prices_of_precision(network, c::table_of<set>, made, how);
  ASSERT_EQ(prices.groups.size(), layers);
  std::size_t exactly = 0;
  const outcome all = outcome_of(network, *errors, (1U << layers) - 1);
  EXPECT_NEAR(prices.nmse.value(), all.nmse, 1e-12);
  EXPECT_NEAR(prices.conversions.value(), errors->of(network.inputs()[0], c::dtype::bf16), 1e-12);
  double before = std::numeric_limits<double>::infinity();
  for (const c::precision_price& p : prices.groups) {
    const std::uint32_t n = made.chosen.groups[p.group].nodes[0];
    const double exact = product_ms(widths[n], widths[n + 1]);
    EXPECT_EQ(p.element, c::dtype::bf16);
    EXPECT_NEAR(p.cost_ms, exact / 2, 1e-9);
    EXPECT_NEAR(p.exact_ms.value(), exact, 1e-9);
    const double of_weight = errors->of(network.view().inputs_of(n)[1], c::dtype::bf16);
    EXPECT_NEAR(p.nmse.value(), of_weight + errors->of(network.view().output_of(n), c::dtype::bf16), 1e-12);
    // Its neighbours stay in bfloat16: conversions are added, and go at the ends of the chain. So do the values rounded there.
    const outcome other = outcome_of(network, *errors, ((1U << layers) - 1) & ~(1U << n));
    ASSERT_TRUE(p.next);
    EXPECT_EQ(p.next->element, c::dtype::f32);
    if (p.next->is_least) EXPECT_LE(p.next->more_ms, other.ms - all.ms);
    else EXPECT_NEAR(p.next->more_ms, other.ms - all.ms, 1e-9);
    exactly += p.next->is_least ? 0 : 1;
    EXPECT_NEAR(p.next->less.value(), all.nmse - other.nmse, 1e-12);
    EXPECT_LE(p.next->error_per_ms(), before);
    before = p.next->error_per_ms();
  }
  EXPECT_GT(exactly, 0U);
}

TEST(place_precision_prices, say_what_is_not_known) {
  const c::graph network = chain();
  const c::plan made = c::place<set>(network, options(various_errors(network), 1));
  c::place_options how = options(nullptr, 1);  // without a store and without errors
  const c::precision_prices prices = c::prices_of_precision(network, c::table_of<set>, made, how);
  ASSERT_EQ(prices.groups.size(), layers);
  EXPECT_FALSE(prices.nmse);
  for (const c::precision_price& p : prices.groups) {
    EXPECT_FALSE(p.exact_ms);
    EXPECT_FALSE(p.nmse);
    EXPECT_FALSE(p.next);
    EXPECT_GT(p.cost_ms, 0);  // the plan has it
  }
  EXPECT_TRUE(
      c::prices_of_precision(network, c::table_of<set>, made, collage_test::clock_options(now_ms)).groups.empty());
}

TEST(place_greedy_steps, begin_where_float32_gives_back_most_error) {
  const collage_test::temporary_folder folder;
  const c::graph network = chain();
  const auto errors = various_errors(network);
  c::place_options how = options(errors, 1);
  how.store = folder.path("costs.db");
  const c::plan made = c::place<set>(network, how);
  (void)c::curve_of_errors(network, c::table_of<set>, how);
  const std::vector<c::greedy_step> steps = c::greedy_steps(network, c::table_of<set>, made, how);
  ASSERT_EQ(steps.size(), layers);
  constexpr std::uint32_t everything = (1U << layers) - 1;
  double before = std::numeric_limits<double>::infinity();
  std::uint32_t left = everything;  // layers that may be in bfloat16
  for (const c::greedy_step& step : steps) {
    const std::uint32_t layer = 1U << made.chosen.groups[step.group].nodes[0];
    const double back = -outcome_of(network, *errors, everything & ~layer).nmse;
    EXPECT_LE(back, before);
    before = back;
    left &= ~layer;
    // The fastest of all placements in which only these layers may round. Some conversions have no cost in the store.
    double most = std::numeric_limits<double>::infinity(), least = most;
    bool has_this_error = false;
    for (std::uint32_t which = left;; which = (which - 1) & left) {
      const outcome one = outcome_of(network, *errors, which);
      double kernels = 0;
      for (std::uint32_t n = 0; n < layers; ++n)
        kernels += product_ms(widths[n], widths[n + 1]) * ((which >> n & 1U) != 0 ? gain : 1);
      most = std::min(most, one.ms);
      least = std::min(least, kernels);
      has_this_error = has_this_error || std::abs(one.nmse - step.nmse) < 1e-12;
      if (which == 0) break;
    }
    EXPECT_LE(step.cost_ms, most + 1e-9);
    EXPECT_GE(step.cost_ms, least - 1e-9);
    EXPECT_TRUE(has_this_error) << step.nmse;
  }
  EXPECT_EQ(steps.back().nmse, 0);
  EXPECT_NEAR(steps.back().cost_ms, outcome_of(network, *errors, 0).ms, 1e-9);
}

TEST(place_greedy_steps, need_costs_and_errors) {
  const c::graph network = chain();
  const c::plan made = c::place<set>(network, options(various_errors(network), 1));
  EXPECT_TRUE(c::greedy_steps(network, c::table_of<set>, made, options(various_errors(network), 1)).empty());
  EXPECT_TRUE(c::greedy_steps(network, c::table_of<set>, made, collage_test::clock_options(now_ms)).empty());
}

TEST(place_kept_errors, are_found_for_a_network) {
  const collage_test::temporary_folder folder;
  const c::graph network = chain();
  c::cost_store store(folder.path("costs.db"));
  EXPECT_EQ(c::kept_errors_of(store, network), nullptr);
  const std::uint64_t contents = c::contents_of_constants(network);
  const auto keep = [&](std::uint64_t of, std::uint64_t samples, const char* rounding, double nmse,
                        std::int64_t when_s) {
    c::value_error e;
    e.nmse = e.worst = nmse;
    e.samples = 1;
    c::stored_cost kept = c::to_stored(e, "w");
    kept.when_s = when_s;
    store.put(c::stored_key_of({network.fingerprint(), of, samples, 3, rounding}), kept);
  };
  keep(contents, 1, "bfloat16", 0.5, 200);
  keep(contents, 2, "bfloat16", 0.25, 100);      // older, of other samples
  keep(contents + 1, 1, "bfloat16", 0.75, 300);  // of other weights
  keep(contents, 1, "uint8 0.5 * (n - 3)", 0.125, 100);
  const auto found = c::kept_errors_of(store, network);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->of(3, c::dtype::bf16), 0.5);
  EXPECT_EQ(found->of(3, c::dtype::u8), 0.125);
  EXPECT_TRUE(std::isinf(found->of(2, c::dtype::bf16)));
}

}  // namespace place_error_curve_test
