// The exact search against an integer program.
#ifdef COLLAGE_HAS_CBC
#include <collage/error.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>
#include <collage/search/resources.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>

#include "oracle.hpp"
#include "random_resources.hpp"
#include "support/integer_program.hpp"
#include "support/messages.hpp"

namespace search_integer_program_test {

namespace search = collage::search;
using search_testing::describe;
using search_testing::integer_program;
using search_testing::random_source;

/// Whole microseconds: exact in the arithmetic of both.
void round_costs(search::problem& p) {
  const auto round = [](double& ms) { ms = std::round(ms * 1000) / 1000; };
  for (search::candidate& c : p.candidates) round(c.cost_ms);
  for (search::value& v : p.values)
    for (double& ms : v.convert_ms) round(ms);
  for (double& ms : p.switch_ms) round(ms);
}

void compare(std::uint32_t problems) {
  random_source random;
  std::size_t cut = 0, with_borders = 0, nodes = 0;
  double ours_ms = 0, theirs_ms = 0;
  const auto timed = [](double& sum, auto call) {
    const auto begin = std::chrono::steady_clock::now();
    const search::placement plan = call();
    sum += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return plan;
  };
  for (std::uint32_t i = 0; i < problems; ++i) {
    search_testing::random_shape shape{.least_nodes = 10,
                                       .most_nodes = 40,
                                       .ties = i % 4 == 0,
                                       .window = 8,
                                       .most_density = 0.3,
                                       .listed_borders = 0.3,
                                       .groups_per_node = 3};
    // The integer program takes long where there are many of both.
    shape.forms = i % 5 == 0 ? 1 : i % 5 == 1 ? 4 : random.number(2, 3);
    shape.runtimes = i % 5 == 0 ? random.number(1, 3) : i % 5 == 2 ? 2 : 1;
    search::problem p = random_bordered_problem(random, shape);
    round_costs(p);
    const search::placement ours = timed(ours_ms, [&] { return search::exact(p); });
    const search::placement theirs = timed(theirs_ms, [&] { return integer_program(p); });
    for (const search::placement* plan : {&ours, &theirs}) {
      ASSERT_TRUE(plan->optimal);
      const auto wrong = search::violation(p, *plan);
      ASSERT_FALSE(wrong) << *wrong << "\n" << describe(p);
    }
    ASSERT_EQ(ours.cost_ms, theirs.cost_ms) << describe(p);
    double groups = 0;
    for (const std::uint32_t c : ours.chosen) groups += p.candidates[c].cost_ms;
    with_borders += ours.cost_ms > groups + 1e-6;
    cut += theirs.states > 1;
    nodes += p.nodes;
  }
  std::cout << problems << " problems of " << nodes / problems << " nodes on average, " << cut
            << " of which groups that wait for each other had to be cut off, " << with_borders
            << " whose best plan pays at borders; exact " << ours_ms << " ms, integer program " << theirs_ms << " ms\n";
  EXPECT_GT(with_borders, problems / 2);
  EXPECT_GT(cut, problems / 100);
}

TEST(integer_program, equals_exact) { compare(200); }
TEST(integer_program_long, equals_exact) { compare(2000); }

/// Whether a search finds a plan. It throws where there is none.
bool possible(auto find) {
  try {
    find();
    return true;
  } catch (const collage::error& e) {
    EXPECT_EQ(e.kind(), collage::error_kind::unsupported);
    return false;
  }
}

/// Bounds between the least that a resource can do with and what the best plan without bounds uses.
void compare_bounded(std::uint32_t problems) {
  random_source random;
  std::size_t compared = 0, dearer = 0;
  double ours_ms = 0, theirs_ms = 0;
  for (std::uint32_t i = 0; i < problems; ++i) {
    search_testing::random_shape shape{.least_nodes = 8,
                                       .most_nodes = 20,
                                       .ties = i % 4 == 0,
                                       .window = 6,
                                       .most_density = 0.3,
                                       .listed_borders = 0.3,
                                       .groups_per_node = 2};
    shape.forms = i % 3 == 0 ? 1 : 2;
    shape.runtimes = i % 5 == 0 ? 2 : 1;
    search::problem p = random_bordered_problem(random, shape);
    round_costs(p);
    search_testing::add_random_resources(random, p, 1 + i % 2, i % 4 == 0);
    const search::limits exactly{.gap = 0, .bounded_time = std::chrono::hours(1)};
    const search::placement least = search::exact(p);  // the bounds are 0
    search::problem free = p;
    for (search::resource& r : free.resources) r.bound = std::int64_t{1} << 60;
    const search::placement most = search::exact(free);
    for (std::size_t r = 0; r < p.resources.size(); ++r) {
      const auto room = static_cast<double>(most.amounts[r] - least.amounts[r]);
      p.resources[r].bound =
          std::max<std::int64_t>(0, least.amounts[r] + static_cast<std::int64_t>(random.real(0, 1) * room));
    }
    if (i % 3 == 0) p.excluded = {{most.chosen.front(), most.chosen.back()}};
    const auto begin = std::chrono::steady_clock::now();
    search::placement ours;
    const bool kept = possible([&] { ours = search::exact(p, exactly); });
    const auto between = std::chrono::steady_clock::now();
    search::placement theirs;
    const bool within = possible([&] { theirs = integer_program(p); });
    const auto end = std::chrono::steady_clock::now();
    ours_ms += std::chrono::duration<double, std::milli>(between - begin).count();
    theirs_ms += std::chrono::duration<double, std::milli>(end - between).count();
    if (!kept) {  // each plan contains the excluded set, whatever the bounds
      for (search::resource& r : p.resources) r.bound = std::int64_t{1} << 60;
      ASSERT_FALSE(possible([&] { integer_program(p); })) << describe(p);
      continue;
    }
    ASSERT_EQ(within, !ours.lacks) << describe(p);
    ASSERT_EQ(search::violation(p, ours), std::nullopt) << describe(p);
    if (!within) continue;
    theirs.amounts = search::amounts_of(p, theirs.chosen);
    ASSERT_EQ(search::violation(p, theirs), std::nullopt) << describe(p);
    ASSERT_TRUE(ours.optimal);
    ASSERT_EQ(ours.cost_ms, theirs.cost_ms) << describe(p);
    ++compared;
    dearer += ours.cost_ms > most.cost_ms;
  }
  std::cout << problems << " bounded problems, " << compared << " with a plan, " << dearer
            << " of which the bounds make cost more; exact " << ours_ms << " ms, integer program " << theirs_ms
            << " ms\n";
  EXPECT_GT(dearer, problems / 2);
}

TEST(integer_program, equals_exact_within_bounds) { compare_bounded(40); }
TEST(integer_program_long, equals_exact_within_bounds) { compare_bounded(400); }

TEST(integer_program, small_cases) {
  EXPECT_TRUE(integer_program({}).optimal);
  // Groups that wait for each other are the cheapest, and cannot be.
  search::problem p{.nodes = 4, .edges = {{0, 2}, {1, 3}}, .candidates = {}, .outputs = {}};
  p.candidates = {{{0}, 1, 0}, {{1}, 1, 0}, {{2}, 1, 0}, {{3}, 1, 0}, {{0, 3}, 1, 0}, {{1, 2}, 1.5, 0}};
  const search::placement plan = integer_program(p);
  EXPECT_EQ(plan.cost_ms, 3);
  EXPECT_EQ(plan.states, 2U);
  EXPECT_EQ(search::violation(p, plan), std::nullopt);
}

TEST(integer_program, errors) {
  const auto message = [](const search::problem& p, const search::limits& l) {
    return collage_test::message_of([&] { integer_program(p, l); });
  };
  search::problem p{.nodes = 3, .edges = {{0, 1}, {1, 2}}, .candidates = {{{0, 1}, 1}, {{1, 2}, 1}}, .outputs = {}};
  EXPECT_EQ(
      message(p, {}),
      "integer program: no set of candidates covers every node exactly once; give every node a candidate of its own");
  p.candidates.push_back({{0}, 1});
  EXPECT_EQ(message(p, {}), "no error");
  EXPECT_EQ(message(p, {.time = std::chrono::nanoseconds(0)}),
            "integer program: the limit ended it before a solution was proven best; raise the limit, or take another "
            "search");
  p.candidates[0].cost_ms = -1;
  EXPECT_EQ(message(p, {}),
            "candidate 0 (tag 0): its cost is negative; leave out candidates that could not be measured");
}

}  // namespace search_integer_program_test
#endif
