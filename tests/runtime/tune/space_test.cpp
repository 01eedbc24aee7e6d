// Search spaces: points, samples, neighbors, texts; features by numbers that were computed by hand.
#include <collage/error.hpp>
#include <collage/tune/space.hpp>
#include <collage/tune/winograd.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/counting_allocator.hpp"

namespace tune_space_test {
namespace {

namespace c = collage;
namespace tune = collage::tune;
using space = tune::winograd_space;
using point = tune::point_of<space>;

/// Three values for each of two parameters, of which only a few go together.
struct small_space {
  static constexpr const char* name = "small";
  static constexpr int version = 2;
  static constexpr std::array<const char*, 2> parameters = {"left", "right"};
  static constexpr std::array numbers = {1, 2, 3};
  int sum = 4;

  std::span<const int> values(std::size_t) const { return numbers; }
  c::detail::sentence conflict(const std::array<int, 2>& p) const {
    c::detail::sentence why;
    if (p[0] + p[1] != sum) why << p[0] << " and " << p[1] << " do not add up to " << sum;
    return why;
  }
};

std::string refusal_of(const auto& of, std::string_view text) {
  try {
    tune::parse_point(of, text);
    return "";
  } catch (const c::error& why) {
    EXPECT_EQ(why.exit_code(), 2);
    return why.what();
  }
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(tune_space, points_are_in_order_and_legal) {
  std::vector<std::array<int, 2>> found;
  const small_space small;
  for (const auto& p : tune::all_points(small)) found.push_back(p);
  EXPECT_EQ(found, (std::vector<std::array<int, 2>>{{1, 3}, {2, 2}, {3, 1}}));
}

TEST(tune_space, a_space_without_a_legal_point_gives_nothing) {
  const small_space none{100};
  tune::random_source random(1);
  EXPECT_EQ(tune::count_of(none), 0U);
  EXPECT_FALSE(tune::sample(none, random));
  EXPECT_FALSE(tune::mutate(none, {1, 1}, random));
  const space no_task({.channels = 16, .outputs = 17, .height = 8, .width = 8});
  EXPECT_TRUE(no_task.task_fault() ==
              "channels and outputs are multiples of 16 in this family, and here they are 16 and 17");
  EXPECT_EQ(tune::count_of(no_task), 0U);
  EXPECT_FALSE(tune::sample(no_task, random));
  EXPECT_TRUE(has(refusal_of(no_task, "winograd-tiles1 tile 2 vectors 1 block 1 rows 1 unroll 1"),
                  "tile is 2, and no value of it is possible here"));
}

TEST(tune_space, samples_reach_every_point_alike) {
  tune::random_source random(7);
  std::array<int, 3> drawn = {};
  for (int i = 0; i < 3000; ++i) ++drawn[static_cast<std::size_t>((*tune::sample(small_space{}, random))[0] - 1)];
  for (const int count : drawn) {
    EXPECT_GT(count, 900);
    EXPECT_LT(count, 1100);
  }
}

TEST(tune_space, the_same_seed_draws_the_same) {
  const space s({.channels = 64, .outputs = 64, .height = 28, .width = 28});
  tune::random_source a(3), b(3), other(4);
  std::set<std::string> first, second, third;
  for (int i = 0; i < 10; ++i) {
    first.insert(tune::text_of(s, *tune::sample(s, a)));
    second.insert(tune::text_of(s, *tune::sample(s, b)));
    third.insert(tune::text_of(s, *tune::sample(s, other)));
  }
  EXPECT_EQ(first, second);
  EXPECT_NE(first, third);
}

TEST(tune_space, a_neighbor_differs_in_one_parameter) {
  const space s({.channels = 64, .outputs = 64, .height = 28, .width = 28});
  tune::random_source random(5);
  const point from = {4, 2, 16, 8, 4};
  std::set<std::size_t> changed;
  for (int i = 0; i < 200; ++i) {
    const point to = *tune::mutate(s, from, random);
    EXPECT_TRUE(tune::fault_of(s, to).empty());
    std::size_t differ = 0;
    for (std::size_t k = 0; k < to.size(); ++k)
      if (to[k] != from[k]) changed.insert(k), ++differ;
    EXPECT_EQ(differ, 1U);
  }
  EXPECT_EQ(changed.size(), from.size());
}

TEST(tune_space, enumeration_allocates_nothing) {
  const space s({.channels = 64, .outputs = 64, .height = 28, .width = 28});
  tune::random_source random(5);
  const std::size_t before = collage_test::allocations();
  double sum = 0;
  for (const point& p : tune::all_points(s)) sum += s.estimate(p) + s.features(p)[0];
  sum += static_cast<double>(tune::sample(s, random)->front());
  EXPECT_EQ(collage_test::allocations(), before);
  EXPECT_GT(sum, 0);
}

TEST(tune_space, texts_are_read_back) {
  const space s({.channels = 128, .outputs = 64, .height = 14, .width = 28});
  std::set<std::string> texts;
  std::size_t count = 0;
  for (const point& p : tune::all_points(s)) {
    const std::string text = tune::text_of(s, p);
    if (++count % 37 == 0) { EXPECT_EQ(tune::parse_point(s, text), p); }
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), count);
  EXPECT_TRUE(texts.contains("winograd-tiles1 tile 4 vectors 2 block 28 rows 14 unroll 4"));
}

TEST(tune_space, other_texts_are_refused_in_one_sentence) {
  const space s({.channels = 64, .outputs = 64, .height = 28, .width = 28});
  const auto refused = [&](std::string_view text, std::string_view why) {
    const std::string found = refusal_of(s, text);
    EXPECT_TRUE(has(found, why)) << found;
    EXPECT_EQ(std::ranges::count(found, '\n'), 0);
  };
  refused("", "it is not of this space and version");
  refused("winograd-tiles2 tile 4 vectors 2 block 28 rows 14 unroll 4", "it is not of this space and version");
  refused("winograd-tiles1 tile 4 vectors 2 block 28 rows 14", "the parameter unroll is missing");
  refused("winograd-tiles1 tile four vectors 2 block 28 rows 14 unroll 4", "tile is 'four', which is not a number");
  refused("winograd-tiles1 tile 4 vectors 2 block 28 rows 14 unroll 04", "it is written as 'winograd-tiles1");
  refused("winograd-tiles1 tile 4 vectors 2 block 28 rows 14 unroll 4 more", "it is written as 'winograd-tiles1");
  refused("winograd-tiles1 tile 3 vectors 2 block 28 rows 14 unroll 4", "tile is 3, and must be one of 2, 4, 6");
  refused("winograd-tiles1 tile 4 vectors 3 block 28 rows 8 unroll 4", "panels of 3 vectors do not divide 64 outputs");
  refused("winograd-tiles1 tile 4 vectors 4 block 28 rows 14 unroll 4", "needs 60 vector registers, and there are 32");
  refused("winograd-tiles1 tile 4 vectors 2 block 56 rows 14 unroll 4", "more than all 49 of this image");
  refused("winograd-tiles1 tile 4 vectors 2 block 25 rows 14 unroll 4", "a block of 25 tiles is for another tile");
  refused("winograd-tiles1 tile 4 vectors 2 block 8 rows 14 unroll 4", "bands of 14 rows are more than a block of 8");
  const space wide({.channels = 512, .outputs = 512, .height = 56, .width = 56});
  EXPECT_TRUE(has(refusal_of(wide, "winograd-tiles1 tile 6 vectors 2 block 80 rows 14 unroll 4"),
                  "a block takes 20971520 bytes, and at most 8388608 are tried"));
}

double feature(const space& s, const point& p, std::string_view name) {
  const auto at = std::ranges::find(space::feature_names, name);
  EXPECT_NE(at, space::feature_names.end()) << name;
  return s.features(p)[static_cast<std::size_t>(at - space::feature_names.begin())];
}

TEST(tune_space, features_are_those_computed_by_hand) {
  // 28x28 by F(4,3): 7x7 tiles. Blocks of 20: 20, 20 and 9 tiles, in bands of 8: 3 + 3 + 2.
  const space s({.channels = 64, .outputs = 128, .height = 28, .width = 28}, {.threads = 2});
  const point p = {4, 2, 20, 8, 4};
  ASSERT_TRUE(tune::fault_of(s, p).empty());
  const auto expect = [&](std::string_view name, double value) {
    EXPECT_NEAR(feature(s, p, name), value, 1e-5) << name;
  };
  expect("tile", 4);
  expect("rows", 8);
  expect("accumulators", 16);
  expect("share of registers", 18.0 / 32);
  expect("multiply-adds per load", 1.6);
  expect("useful share of blocks", 49.0 / 60);
  expect("useful share of bands", 20.0 / 24);
  expect("last band", 4);
  expect("useful share of tiles", 1);
  expect("useful rows", 49.0 / 64);
  expect("log inputs of a block of L2", std::log2(36.0 * 20 * 64 * 4 / 1048576));
  expect("log block of L3", std::log2(36.0 * 20 * 192 * 4 / (32 * 1048576.0)));
  expect("log left operand of L1", std::log2(20 * 64 * 4 / 32768.0));
  expect("log panel of L1", std::log2(64 * 32 * 4 / 32768.0));
  expect("log register tile of L1", std::log2((64 * 40 + 8 * 32) * 4 / 32768.0));
  expect("log weights of L2", std::log2(36.0 * 64 * 128 * 4 / 1048576));
  expect("log arithmetic per byte", std::log2(2.0 * 36 * 20 * 64 * 128 / (36.0 * 20 * 192 * 4 + 36.0 * 64 * 128 * 4)));
  expect("multiplications of the definition", 9.0 * 784 / (36 * 49));
  expect("blocks", 3);
  expect("balance of threads", 0.75);
  expect("aliasing of inputs", 10);   // 20 * 64 * 4 = 5 * 2^10
  expect("aliasing of outputs", 11);  // 20 * 128 * 4 = 5 * 2^11
  expect("steps left by unrolling", 0);
}

TEST(tune_space, the_closed_form_adds_up) {
  const space s({.channels = 64, .outputs = 128, .height = 28, .width = 28});
  const point p = {4, 2, 20, 8, 4};
  const space::cost cost = s.costs(p);
  // 36 products of 64 x 8 vectors, for 49 tiles and 8 bands.
  EXPECT_NEAR(cost.products, 36 * 64 * 8 * (0.03 * 49 + 0.12 * 8), 1e-6);
  // 3 blocks read 36 * 64 * 128 floats in lines of 16.
  EXPECT_NEAR(cost.weights, 3 * 0.11 * 36 * 64 * 128 / 16, 1e-6);
  // 36 * 20 * 192 floats are 0.527 of the second level, so that a little is spilled.
  const double beyond = std::log2(36.0 * 20 * 192 * 4 / 1048576) + 1;
  EXPECT_NEAR(cost.transforms, 36.0 * 49 / 16 * 192 * (9.5 + 0.87 * beyond), 1e-3);
  EXPECT_NEAR(s.estimate(p), cost.products + cost.weights + cost.transforms, 1e-6);
  // Few accumulators wait for each other: 1x4 of 8.
  EXPECT_NEAR(s.costs({4, 4, 20, 1, 4}).products, 36 * 64 * 8 * (0.03 * 49 * 2 + 0.12 * 49), 1e-6);
}

}  // namespace
}  // namespace tune_space_test
