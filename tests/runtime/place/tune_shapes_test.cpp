// Tuning for many shapes: values of extents, which shapes are tuned, what estimates lose afterwards, and its ends.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/tune_shapes.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

namespace place_tune_shapes_test {

namespace c = collage;
namespace op = collage::ops;
using c::extent_values;
using collage_test::message_of;

double now_ms = 0;

c::kernel relu_taking(const c::bound_value& result, double launch_ms, double element_ms) {
  const auto count = static_cast<std::size_t>(result.out.elements());
  return {"relu", [=](const c::kernel_call& call) {
            const auto* in = static_cast<const float*>(call.in[0]);
            for (std::size_t i = 0; i < count; ++i) static_cast<float*>(call.out[0])[i] = in[i] > 0 ? in[i] : 0.0F;
            now_ms += launch_ms + element_ms * static_cast<double>(count);
          }};
}
struct eager : c::backend<"eager"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context&) {
    return relu_taking(m.output(), 0.01, 1e-3);
  }
};
struct steady : c::backend<"steady"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context&) {
    return relu_taking(m.output(), 1, 1e-4);
  }
};
using both = c::backend_set<eager, steady>;

double best_ms(std::int64_t elements) {
  const auto count = static_cast<double>(elements);
  return std::min(0.01 + 1e-3 * count, 1 + 1e-4 * count);
}

c::graph network(std::span<const std::int64_t> extents) {
  c::graph_builder g;
  c::shape dims{64};
  for (const std::int64_t e : extents) dims.push_back(e);
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, dims})));
  return g.finish();
}

class tune_shapes : public testing::Test {
 protected:
  c::shape_tuning_options options() const {
    c::shape_tuning_options how;
    how.how = collage_test::clock_options(now_ms);
    how.how.store = files_.path("costs.db");
    return how;
  }
  /// The worst time of plans by estimates, divided by the best possible.
  double worst_of_estimates(std::span<const std::vector<std::int64_t>> shapes) const {
    c::place_options how = options().how;
    how.costs = c::placing_costs::estimated;
    how.check_s = 0;
    double worst = 1;
    for (const std::vector<std::int64_t>& extents : shapes) {
      const c::graph at = network(extents);
      const c::plan made = c::place<both>(at, how);
      const auto count = static_cast<double>(at.type_of(at.inputs()[0]).dims.elements());
      const double ms = made.chosen.groups[0].backend() == "eager" ? 0.01 + 1e-3 * count : 1 + 1e-4 * count;
      worst = std::max(worst, ms / best_ms(static_cast<std::int64_t>(count)));
    }
    return worst;
  }
  const collage_test::temporary_folder files_;
};

TEST(extent_values, of_ranges_and_lists) {
  const extent_values plain = extent_values::range(1, 512), steps = extent_values::range(20, 100, 8),
                      list = extent_values::list({64, 16, 64});
  EXPECT_EQ(plain.count(), 512);
  EXPECT_EQ(plain.at(511), 512);
  EXPECT_EQ(plain.text(), "1..512");
  EXPECT_EQ(steps.at(0), 24);
  EXPECT_EQ(steps.at(steps.count() - 1), 96);
  EXPECT_EQ(steps.text(), "24..96/8");
  EXPECT_EQ(list.count(), 2);
  EXPECT_EQ(list.text(), "16,64");
  EXPECT_FALSE(list.is_range());
  EXPECT_EQ(extent_values::range(0, 0).count(), 1);
  EXPECT_THROW(extent_values::range(5, 4), c::error);
  EXPECT_THROW(extent_values::range(-1, 4), c::error);
  EXPECT_THROW(extent_values::range(1, 4, 0), c::error);
  EXPECT_THROW(extent_values::range(9, 15, 8), c::error);
  EXPECT_THROW(extent_values::range(0, INT64_MAX), c::error);
  EXPECT_THROW(extent_values::range(1, INT64_MIN), c::error);
  EXPECT_THROW(extent_values::list({}), c::error);
  EXPECT_THROW(extent_values::list({1, -1}), c::error);
  const std::int64_t most = (std::int64_t{1} << 62) - 1;
  EXPECT_EQ(extent_values::range(most - 3, most).count(), 4);
  EXPECT_THROW(extent_values::range(most - 1, most, most - 3), c::error);
}

TEST_F(tune_shapes, measures_a_few_shapes_of_a_range_for_all) {
  const extent_values open[] = {extent_values::range(1, 512)};
  c::shape_tuning_options how = options();
  std::size_t begun = 0, ended = 0;
  how.begins = [&](std::span<const std::int64_t>) { ++begun; };
  how.tuned = [&](const c::tuned_shape&) { ++ended; };
  const c::shape_tuning made = c::tune_shapes(open, network, c::table_of<both>, how);
  EXPECT_TRUE(made.is_complete);
  EXPECT_EQ(made.parts_left, 0U);
  EXPECT_EQ(made.shapes[0].extents[0], 512);
  EXPECT_FALSE(made.shapes[0].loss.has_value());  // the store was empty
  EXPECT_EQ(made.shapes[1].extents[0], 1);
  EXPECT_LE(made.shapes.size(), 12U);
  EXPECT_EQ(begun, made.shapes.size());
  EXPECT_EQ(ended, made.shapes.size());
  for (const c::tuned_shape& t : made.shapes) {
    EXPECT_NEAR(t.median_ms, best_ms(64 * t.extents[0]), 1e-6);
    EXPECT_FALSE(t.is_interrupted);
  }
  EXPECT_TRUE(made.shapes[2].loss.has_value());
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t e = 1; e <= 512; e += 3) all.push_back({e});
  EXPECT_LE(worst_of_estimates(all), 1.1);
  EXPECT_TRUE(c::tune_shapes(open, network, c::table_of<both>, options()).is_complete);
}

TEST_F(tune_shapes, measures_every_value_of_lists) {
  const extent_values open[] = {extent_values::list({1, 4, 40}), extent_values::list({1, 3})};
  const c::shape_tuning made = c::tune_shapes(open, network, c::table_of<both>, options());
  std::set<std::vector<std::int64_t>> shapes;
  for (const c::tuned_shape& t : made.shapes) shapes.insert(t.extents);
  EXPECT_EQ(shapes, (std::set<std::vector<std::int64_t>>{{1, 1}, {1, 3}, {4, 1}, {4, 3}, {40, 1}, {40, 3}}));
  EXPECT_EQ(made.shapes.size(), 6U);
  EXPECT_TRUE(made.is_complete);
}

TEST_F(tune_shapes, divides_two_ranges) {
  const extent_values open[] = {extent_values::range(1, 40), extent_values::range(4, 64, 4)};
  const c::shape_tuning made = c::tune_shapes(open, network, c::table_of<both>, options());
  EXPECT_TRUE(made.is_complete);
  EXPECT_LE(made.shapes.size(), 40U);
  std::set<std::vector<std::int64_t>> shapes;
  for (const c::tuned_shape& t : made.shapes) {
    EXPECT_TRUE(shapes.insert(t.extents).second);
    EXPECT_EQ(t.extents[1] % 4, 0);
  }
  for (const std::vector<std::int64_t>& corner : {std::vector<std::int64_t>{1, 4}, {40, 4}, {1, 64}, {40, 64}})
    EXPECT_EQ(shapes.count(corner), 1U);
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t a = 1; a <= 40; a += 4)
    for (std::int64_t b = 4; b <= 64; b += 12) all.push_back({a, b});
  EXPECT_LE(worst_of_estimates(all), 1.15);
}

TEST_F(tune_shapes, divides_where_there_is_something_between) {
  // The wider dimension by its logarithms has no value in the middle.
  const extent_values open[] = {extent_values::range(1, 2), extent_values::range(500, 502)};
  c::shape_tuning_options how = options();
  how.tolerance = -1;  // divides whatever it finds
  const c::shape_tuning made = c::tune_shapes(open, network, c::table_of<both>, how);
  EXPECT_TRUE(made.is_complete);
  EXPECT_LE(made.shapes.size(), 6U);
}

TEST_F(tune_shapes, goes_on_where_it_ended) {
  const extent_values open[] = {extent_values::range(1, 512)};
  c::shape_tuning_options how = options();
  const c::shape_tuning first = c::tune_shapes(open, network, c::table_of<both>, how);
  ASSERT_TRUE(first.is_complete);
  // What came to its end is not measured again, and has the loss that was found.
  const double clock = now_ms;
  const c::shape_tuning again = c::tune_shapes(open, network, c::table_of<both>, how);
  EXPECT_EQ(now_ms, clock);
  ASSERT_EQ(again.shapes.size(), first.shapes.size());
  for (std::size_t i = 0; i < first.shapes.size(); ++i) {  // files have rounded numbers
    EXPECT_EQ(again.shapes[i].extents, first.shapes[i].extents);
    if (first.shapes[i].loss) { EXPECT_NEAR(again.shapes[i].loss.value_or(-1), *first.shapes[i].loss, 1e-3); }
  }
  how.how.comparing.recheck = true;
  (void)c::tune_shapes(open, network, c::table_of<both>, how);
  EXPECT_GT(now_ms, clock);
}

TEST_F(tune_shapes, ends_when_it_is_told_to) {
  const extent_values open[] = {extent_values::range(1, 512)};
  c::shape_tuning_options how = options();
  std::size_t ended = 0;
  how.tuned = [&](const c::tuned_shape&) { ++ended; };
  how.how.stop = [&] { return ended >= 2; };
  const c::shape_tuning made = c::tune_shapes(open, network, c::table_of<both>, how);
  EXPECT_FALSE(made.is_complete);
  EXPECT_EQ(made.shapes.size(), 2U);
  EXPECT_EQ(made.parts_left, 1U);
  EXPECT_EQ(made.shapes_left, 0U);
  how.how.stop = {};
  how.how.cancel = [] { return true; };
  EXPECT_TRUE(c::tune_shapes(open, network, c::table_of<both>, how).shapes.empty());
  // A budget that is nearly nothing still ends.
  how.how.cancel = {};
  how.how.budget_s = 1e-3;
  const c::shape_tuning none = c::tune_shapes(open, network, c::table_of<both>, how);
  EXPECT_FALSE(none.is_complete);
  EXPECT_EQ(none.shapes_left, 2U);
}

TEST_F(tune_shapes, wrong_use_is_told) {
  const extent_values open[] = {extent_values::range(1, 4)};
  const auto told = [&](std::span<const extent_values> which, const c::shape_tuning_options& how) {
    return message_of([&] { (void)c::tune_shapes(which, network, c::table_of<both>, how); });
  };
  EXPECT_EQ(told({}, options()), "tuning for several shapes: no extent is open; name a list or a range for one");
  c::shape_tuning_options how = options();
  how.how.store.clear();
  EXPECT_EQ(told(open, how), "tuning for several shapes: its results are kept in a store; name a file for it");
  how = options();
  how.how.costs = c::placing_costs::none;
  EXPECT_EQ(told(open, how), "tuning for several shapes: its results are measured costs; place by measuring");
  std::vector<std::int64_t> many;
  for (std::int64_t i = 0; i < 40; ++i) many.push_back(i);
  const extent_values lists[] = {extent_values::list(many), extent_values::list(many)};
  EXPECT_EQ(told(lists, options()),
            "tuning for several shapes: the lists have more than 1,000 combinations; write "
            "ranges in place of lists, as in 16..640/8");
  // What the network says about a shape comes through.
  const auto picky = [](std::span<const std::int64_t> extents) {
    if (extents[0] == 1) throw c::error(c::error_kind::invalid_argument, "has no room", "the network");
    return network(extents);
  };
  EXPECT_EQ(message_of([&] { (void)c::tune_shapes(open, picky, c::table_of<both>, options()); }),
            "the network: has no room");
}

}  // namespace place_tune_shapes_test
