// The order in which points are worth measuring, by a model and without one.
#include <collage/tune/rank.hpp>
#include <collage/tune/winograd.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tune_rank_test {
namespace {

namespace tune = collage::tune;
using space = tune::winograd_space;
using point = tune::point_of<space>;

const space s({.channels = 64, .outputs = 64, .height = 28, .width = 28});

std::vector<point> all_of_it() {
  std::vector<point> points;
  for (const point& p : tune::all_points(s)) points.push_back(p);
  return points;
}

TEST(tune_rank, without_a_model_the_closed_form_decides) {
  const std::vector<point> points = all_of_it();
  const std::vector<std::size_t> order = tune::order_of<space>(s, points, nullptr);
  ASSERT_EQ(order.size(), points.size());
  for (std::size_t i = 1; i < order.size(); ++i)
    EXPECT_LE(s.estimate(points[order[i - 1]]), s.estimate(points[order[i]]));
}

TEST(tune_rank, a_model_decides_if_there_is_one) {
  if (const std::string why = tune::cost_model::refusal(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<point> points = all_of_it();
  tune::training_set set;
  for (const point& p : points) set.add(s.features(p), p[space::tile] == 2 ? 1 : 3, 1);  // against the closed form
  const auto model = tune::cost_model::train(tune::subject_of<space>("conv", "a processor"), set);
  const std::vector<std::size_t> order = tune::order_of<space>(s, points, &model);
  EXPECT_EQ(points[order.front()][space::tile], 2);
  EXPECT_NE(points[order.back()][space::tile], 2);
  EXPECT_NE(points[tune::order_of<space>(s, points, nullptr).front()][space::tile], 2);
}

}  // namespace
}  // namespace tune_rank_test
