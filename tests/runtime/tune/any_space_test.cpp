// Spaces whose type is hidden: they have the points, texts and features of the space that they hide.
#include <collage/error.hpp>
#include <collage/tune/any_space.hpp>
#include <collage/tune/random.hpp>
#include <collage/tune/winograd.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace tune_any_space_test {
namespace {

namespace c = collage;
namespace tune = collage::tune;
using space = tune::winograd_space;
using point = tune::point_of<space>;

const space typed({.channels = 64, .outputs = 64, .height = 28, .width = 28});

std::vector<point> points_of_typed() {
  std::vector<point> points;
  for (const point& p : tune::all_points(typed)) points.push_back(p);
  return points;
}

std::string in_brackets(const space& s, const point& p) { return "[" + tune::text_of(s, p) + "]"; }

/// Reads texts, and counts how often.
struct counting_text {
  int* reads;
  std::string operator()(const space& s, const point& p) const { return in_brackets(s, p); }
  std::optional<point> parse(const space& s, std::string_view words) const {
    ++*reads;
    if (!words.starts_with('[') || !words.ends_with(']')) return {};
    return tune::own_text().parse(s, words.substr(1, words.size() - 2));
  }
};

TEST(tune_any_space, points_have_the_numbers_texts_and_features_of_the_space) {
  const std::vector<point> points = points_of_typed();
  const tune::any_space any(typed);
  ASSERT_EQ(any.size(), points.size());
  EXPECT_EQ(any.feature_count(), space::feature_names.size());
  for (std::uint32_t i = 0; i < points.size(); i += 17) {
    EXPECT_EQ(any.text(i), tune::text_of(typed, points[i]));
    EXPECT_EQ(any.estimate(i), typed.estimate(points[i]));
  }
  const std::array<std::uint32_t, 2> two = {100, 7};
  const std::vector<point> same = {points[100], points[7]};
  EXPECT_EQ(any.features(two), tune::features_of<space>(typed, same));
  EXPECT_EQ(any.subject("conv", "a processor"), tune::subject_of<space>("conv", "a processor"));
}

TEST(tune_any_space, texts_are_found) {
  int reads = 0;
  const tune::any_space own(typed), indexed(typed, in_brackets), read(typed, counting_text{&reads});
  for (std::uint32_t i = 0; i < own.size(); i += 1 + i / 8) {
    EXPECT_EQ(own.find(own.text(i)), i);
    EXPECT_EQ(indexed.text(i), "[" + own.text(i) + "]");
    EXPECT_EQ(indexed.find(indexed.text(i)), i);
    EXPECT_EQ(read.find(indexed.text(i)), i);
  }
  EXPECT_GT(reads, 0);
  for (const tune::any_space& any : {own, indexed, read}) {
    EXPECT_FALSE(any.find("")) << "no text";
    EXPECT_FALSE(any.find("[winograd-tiles1 tile 5 vectors 1 block 1 rows 1 unroll 1]")) << "no such tile";
    EXPECT_FALSE(any.find("[winograd-tiles1 tile 2 vectors 4 block 56 rows 14 unroll 1]")) << "60 registers";
  }
  EXPECT_FALSE(own.find(indexed.text(3)));
  EXPECT_FALSE(indexed.find(own.text(3)));
}

/// In how many parameters two points differ.
std::size_t distance(const point& a, const point& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

TEST(tune_any_space, neighbours_differ_by_one_step_of_one_parameter) {
  const std::vector<point> points = points_of_typed();
  const tune::any_space any(typed);
  tune::random_source random(5);
  for (int n = 0; n < 50; ++n) {
    const auto number = static_cast<std::uint32_t>(random.below(points.size()));
    const point& here = points[number];
    const std::vector<std::uint32_t> list = any.neighbours(number);
    EXPECT_FALSE(list.empty());
    for (const std::uint32_t other : list) {
      EXPECT_EQ(distance(points[other], here), 1U);
      const std::vector<std::uint32_t> back = any.neighbours(other);
      EXPECT_TRUE(std::ranges::find(back, number) != back.end());
      // No point lies between them.
      for (std::size_t i = 0; i < here.size(); ++i)
        for (const int value : typed.values(i)) {
          point between = here;
          between[i] = value;
          if (std::min(here[i], points[other][i]) < value && value < std::max(here[i], points[other][i])) {
            EXPECT_FALSE(tune::fault_of(typed, between).empty()) << any.text(number);
          }
        }
    }
    // Each parameter has a neighbour on each side where there is a point.
    std::size_t sides = 0;
    for (std::size_t i = 0; i < here.size(); ++i) {
      bool below = false, above = false;
      for (const int value : typed.values(i)) {
        point other = here;
        other[i] = value;
        if (!tune::fault_of(typed, other).empty()) continue;
        below = below || value < here[i];
        above = above || value > here[i];
      }
      sides += (below ? 1U : 0U) + (above ? 1U : 0U);
    }
    EXPECT_EQ(list.size(), sides) << any.text(number);
  }
}

TEST(tune_any_space, the_order_is_that_of_the_typed_space) {
  const std::vector<point> points = points_of_typed();
  const tune::any_space any(typed);
  std::vector<std::uint32_t> numbers(points.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  const std::vector<std::size_t> expected = tune::order_of<space>(typed, points, nullptr);
  EXPECT_TRUE(std::ranges::equal(tune::order_of(any, numbers, nullptr), expected));
  const std::array<std::uint32_t, 3> some = {static_cast<std::uint32_t>(expected[20]),
                                             static_cast<std::uint32_t>(expected[500]),
                                             static_cast<std::uint32_t>(expected[3])};
  EXPECT_EQ(tune::order_of(any, some, nullptr), (std::vector<std::uint32_t>{some[2], some[0], some[1]}));
}

TEST(tune_any_space, a_space_may_be_empty_and_has_no_further_point) {
  const tune::any_space none(space({.channels = 63, .outputs = 64, .height = 28, .width = 28}));
  EXPECT_EQ(none.size(), 0U);
  EXPECT_FALSE(none.find("winograd-tiles1 tile 2 vectors 2 block 56 rows 14 unroll 1"));
  EXPECT_THROW(none.text(0), c::error);
  const tune::any_space any(typed);
  EXPECT_THROW(any.estimate(static_cast<std::uint32_t>(any.size())), c::error);
}

}  // namespace
}  // namespace tune_any_space_test
