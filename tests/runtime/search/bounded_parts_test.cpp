// Bounds couple parts of a graph that are independent without them. Limits and errors of bounded searches.
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
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "oracle.hpp"
#include "random_resources.hpp"
#include "support/messages.hpp"

namespace search_bounded_parts_test {

namespace search = collage::search;
using search_testing::add_random_resources;
using search_testing::describe;
using search_testing::narrow;
using search_testing::random_source;

search::limits exactly() { return {.gap = 0, .bounded_time = std::chrono::hours(1)}; }

/// Nodes behind each other, each with some candidates of its own, and candidates for two nodes of one cell.
struct cell {
  struct way {
    double cost_ms;
    std::int64_t amount;
  };
  std::vector<std::vector<way>> alone, with_next;  ///< by node
};

cell random_cell(random_source& random, std::uint32_t nodes) {
  cell c;
  c.alone.resize(nodes);
  c.with_next.resize(nodes);
  const auto add = [&](std::vector<cell::way>& list, double scale) {
    const double cost = random.number(2, 20) * scale;
    list.push_back({cost, static_cast<std::int64_t>(random.number(0, 40) / cost)});
  };
  for (std::uint32_t n = 0; n < nodes; ++n) {
    for (std::uint32_t ways = random.number(1, 3); ways > 0; --ways) add(c.alone[n], 0.5);
    if (n + 1 < nodes && random.chance(0.7)) add(c.with_next[n], 0.8);
  }
  return c;
}

search::problem chain_of(const std::vector<cell>& cells) {
  search::problem p;
  p.resources = {{"memory", 0}};
  for (const cell& c : cells)
    for (std::size_t n = 0; n < c.alone.size(); ++n) {
      const auto node = narrow(p.nodes++);
      if (node != 0) p.edges.emplace_back(node - 1, node);
      for (const cell::way& w : c.alone[n])
        p.candidates.push_back({.nodes = {node}, .cost_ms = w.cost_ms, .uses = {{0, w.amount}}});
      for (const cell::way& w : c.with_next[n])
        p.candidates.push_back({.nodes = {node, node + 1}, .cost_ms = w.cost_ms, .uses = {{0, w.amount}}});
    }
  return p;
}

/// The least cost for each amount up to `most`, by dynamic programming over nodes.
std::vector<double> least_costs(const std::vector<cell>& cells, std::size_t most) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<double> now(most + 1, 0), before(most + 1, none);
  for (const cell& c : cells) {
    std::vector<std::vector<double>> at(c.alone.size() + 1, std::vector<double>(most + 1, none));
    at[0] = now;
    for (std::size_t n = 0; n < c.alone.size(); ++n) {
      const auto take = [&](const cell::way& w, std::size_t to) {
        for (auto used = static_cast<std::size_t>(w.amount); used <= most; ++used)
          at[to][used] = std::min(at[to][used], at[n][used - static_cast<std::size_t>(w.amount)] + w.cost_ms);
      };
      for (const cell::way& w : c.alone[n]) take(w, n + 1);
      for (const cell::way& w : c.with_next[n]) take(w, n + 2);
    }
    now = at.back();
  }
  return now;
}

/// Without a bound equal cells have equal plans. Under a bound only some of them may take the fast one.
TEST(search_bounded_parts, equal_dynamic_programming) {
  random_source random;
  std::size_t bound = 0, split = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<cell> cells(random.number(1, 8), random_cell(random, random.number(4, 6)));
    if (trial % 2 == 0) cells.push_back(random_cell(random, 5));
    search::problem p = chain_of(cells);
    const std::vector<double> least = least_costs(cells, 1000);
    const auto smallest = static_cast<std::int64_t>(
        std::ranges::find_if(least, [](double cost) { return cost < 1e300; }) - least.begin());
    const auto enough =
        static_cast<std::int64_t>(std::ranges::find(least, *std::ranges::min_element(least)) - least.begin());
    if (enough == smallest) continue;
    p.resources[0].bound =
        random.number(narrow(static_cast<std::size_t>(smallest)), narrow(static_cast<std::size_t>(enough)));
    const double best = least[static_cast<std::size_t>(p.resources[0].bound)];
    const search::placement found = search::exact(p, exactly());
    const auto wrong = search::violation(p, found);
    ASSERT_FALSE(wrong) << *wrong << "\n" << describe(p);
    ASSERT_TRUE(found.optimal);
    ASSERT_NEAR(found.cost_ms, best, 1e-7) << describe(p);
    const search::placement near = search::exact(p);
    ASSERT_LE(near.lower_bound_ms, best + 1e-7);
    ASSERT_LE(near.gap(), search::limits{}.gap + 1e-12);
    ++bound;
    // Whether two equal cells have different plans.
    const std::size_t each = p.candidates.size() / cells.size();
    std::vector<std::uint32_t> of_first, of_last;
    for (const std::uint32_t i : found.chosen) {
      if (i < each) of_first.push_back(i);
      if (cells.size() > 1 && trial % 2 == 1 && i >= p.candidates.size() - each)
        of_last.push_back(i - narrow(p.candidates.size() - each));
    }
    split += !of_last.empty() && of_first != of_last;

    p.resources[0].bound = smallest - 1;
    if (smallest == 0) continue;
    const search::placement none = search::exact(p);
    ASSERT_TRUE(none.lacks && none.lacks->proven);
    EXPECT_EQ(none.lacks->resource, 0U);
    EXPECT_EQ(none.lacks->least, smallest);
    EXPECT_EQ(search::violation(p, none), std::nullopt);
  }
  EXPECT_GT(bound, 30U);
  EXPECT_GT(split, 3U);
}

/// Many equal cells, of which a third may be fast. The search must not try which.
TEST(search_bounded_parts, many_equal_cells_come_close) {
  search::problem p;
  p.resources = {{"memory", 0}};
  constexpr std::uint32_t cells = 90;
  p.nodes = 2 * cells;
  for (std::uint32_t n = 0; n < 2 * cells; ++n) {
    if (n != 0) p.edges.emplace_back(n - 1, n);
    p.candidates.push_back({.nodes = {n}, .cost_ms = 1, .uses = {{0, 4}}});
    p.candidates.push_back({.nodes = {n}, .cost_ms = n % 2 == 0 ? 0.55 : 0.8, .uses = {{0, n % 2 == 0 ? 11 : 7}}});
  }
  // 212 units more than the least: 66 of the second kind and two of the first.
  p.resources[0].bound = 8 * cells + 212;
  constexpr double best = 2 * cells - 66 * 0.2 - 2 * 0.45;
  const search::placement found = search::exact(p);
  EXPECT_EQ(search::violation(p, found), std::nullopt);
  EXPECT_GE(found.cost_ms, best - 1e-7);
  EXPECT_LE(found.lower_bound_ms, best + 1e-7);
  EXPECT_LE(found.gap(), 0.005);
  EXPECT_LT(found.states, 200'000U);
}

TEST(search_bounded_parts, a_small_network) {
  // Two convolutions. Fast kernels need transformed weights, and both share those of item 0.
  search::problem p{.nodes = 3, .edges = {{0, 1}, {1, 2}}, .candidates = {}, .outputs = {}};
  p.resources = {{.name = "memory", .bound = 100}};
  p.candidates = {
      {.nodes = {0}, .cost_ms = 4.0, .uses = {{.resource = 0, .amount = 20}}},
      {.nodes = {0}, .cost_ms = 2.0, .uses = {{.resource = 0, .amount = 60, .item = 0}}},
      {.nodes = {1}, .cost_ms = 4.0, .uses = {{.resource = 0, .amount = 20}}},
      {.nodes = {1}, .cost_ms = 2.0, .uses = {{.resource = 0, .amount = 60, .item = 0}}},
      {.nodes = {2}, .cost_ms = 3.0, .uses = {{.resource = 0, .amount = 30}}},
      {.nodes = {2}, .cost_ms = 1.0, .uses = {{.resource = 0, .amount = 50}}},
  };
  const search::placement best = search::exact(p);
  EXPECT_EQ(best.chosen, (std::vector<std::uint32_t>{1, 3, 4}));  // item 0 counts once: 60 + 30
  EXPECT_EQ(best.amounts, (std::vector<std::int64_t>{90}));
  p.excluded = {{1, 3}};  // the caller found this pair unfit
  EXPECT_EQ(search::exact(p).chosen, (std::vector<std::uint32_t>{0, 2, 5}));
  p.resources[0].bound = 50;
  EXPECT_EQ(search::exact(p).lacks->least, 70);  // and the placement is the one that uses so little
}

/// Packed constants that many kernels share: all of them or none pay.
TEST(search_bounded_parts, shared_items_count_once) {
  search::problem p;
  p.nodes = 6;
  p.resources = {{"memory", 10}};
  for (std::uint32_t n = 0; n < 6; ++n) {
    if (n != 0) p.edges.emplace_back(n - 1, n);
    p.candidates.push_back({.nodes = {n}, .cost_ms = 2});
    p.candidates.push_back({.nodes = {n}, .cost_ms = 1, .uses = {{0, 10, n / 5}}});
  }
  const search::placement found = search::exact(p, exactly());
  EXPECT_EQ(found.chosen, (std::vector<std::uint32_t>{1, 3, 5, 7, 9, 10}));
  EXPECT_EQ(found.amounts, (std::vector<std::int64_t>{10}));
  EXPECT_TRUE(found.optimal);
  p.resources[0].bound = 9;
  EXPECT_EQ(search::exact(p, exactly()).cost_ms, 12);
  EXPECT_EQ(search::exact(p, exactly()).amounts, (std::vector<std::int64_t>{0}));
}

TEST(search_bounded_parts, bounds_that_do_not_bind_change_nothing) {
  random_source random;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const search_testing::random_shape shape{.most_nodes = 14, .forms = 1 + i % 3, .ties = i % 2 == 0, .window = 6};
    const search::problem free = random_bordered_problem(random, shape);
    search::problem p = free;
    add_random_resources(random, p, 2, true);
    for (search::resource& r : p.resources) r.bound = std::numeric_limits<std::int64_t>::max();
    const search::placement one = search::exact(free), other = search::exact(p);
    ASSERT_EQ(one.chosen, other.chosen);
    ASSERT_EQ(one.cost_ms, other.cost_ms);
    ASSERT_EQ(one.states, other.states);
    ASSERT_EQ(one.transitions, other.transitions);
    ASSERT_TRUE(one.amounts.empty());
    ASSERT_EQ(other.amounts, search::amounts_of(p, other.chosen));
    ASSERT_TRUE(other.optimal);
  }
}

TEST(search_bounded_parts, limits_give_a_legal_plan_with_a_bound) {
  random_source random;
  std::size_t unproven = 0;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const search_testing::random_shape shape{
        .least_nodes = 20, .most_nodes = 40, .forms = 3, .window = 8, .most_density = 0.3, .listed_borders = 0.3};
    search::problem p = random_bordered_problem(random, shape);
    add_random_resources(random, p, 1 + i % 2, false);
    const search::placement none = search::exact(p);
    ASSERT_EQ(search::violation(p, none), std::nullopt);
    for (std::size_t r = 0; r < p.resources.size(); ++r) p.resources[r].bound = none.amounts[r] * 5 / 4;
    for (search::limits l : {search::limits{.bounded_time = std::chrono::nanoseconds(0)},
                             search::limits{.gap = 0, .bounded_time = std::chrono::milliseconds(1)},
                             search::limits{.time = std::chrono::nanoseconds(0)}}) {
      const search::placement found = search::exact(p, l);
      ASSERT_EQ(search::violation(p, found), std::nullopt);
      ASSERT_FALSE(found.lacks && found.lacks->proven && p.resources.size() == 1);
      unproven += !found.optimal;
    }
    const search::limits few{.states = 3000, .gap = 0, .bounded_time = std::chrono::hours(1)};
    const search::placement found = search::exact(p, few), again = search::exact(p, few);
    ASSERT_EQ(search::violation(p, found), std::nullopt);
    ASSERT_EQ(found.chosen, again.chosen);
    ASSERT_EQ(found.lower_bound_ms, again.lower_bound_ms);
  }
  EXPECT_GT(unproven, 6U);
}

TEST(search_bounded_parts, errors) {
  const search::problem good = [] {
    search::problem p{.nodes = 2, .edges = {{0, 1}}, .candidates = {}, .outputs = {}};
    p.resources = {{"memory", 5}};
    p.candidates = {{.nodes = {0}, .cost_ms = 1, .tag = 7, .uses = {{0, 3}}},
                    {.nodes = {1}, .cost_ms = 1, .tag = 8, .uses = {{0, 2, 4}}}};
    return p;
  }();
  const auto message = [&](auto change) {
    search::problem p = good;
    change(p);
    return collage_test::message_of([&] { search::exact(p); });
  };
  EXPECT_EQ(message([](search::problem&) {}), "no error");
  EXPECT_EQ(message([](search::problem& p) { p.resources[0].bound = -1; }), "resource memory: its bound is negative");
  EXPECT_EQ(message([](search::problem& p) { p.candidates[0].uses[0].resource = 1; }),
            "candidate 0 (tag 7): it uses resource 1, which does not exist");
  EXPECT_EQ(message([](search::problem& p) { p.candidates[0].uses[0].amount = -1; }),
            "candidate 0 (tag 7): an amount of a resource is negative");
  EXPECT_EQ(message([](search::problem& p) { p.candidates[0].uses[0].amount = std::int64_t{1} << 60; }),
            "candidate 0 (tag 7): an amount of a resource is too large to be added exactly; count in larger units");
  EXPECT_EQ(message([](search::problem& p) { p.candidates[0].uses.push_back({0, 3, 4}); }),
            "candidate 1 (tag 8): it gives item 4 another amount of memory than a candidate before");
  EXPECT_EQ(message([](search::problem& p) { p.candidates[1].uses.push_back({0, 2, 4}); }),
            "candidate 1 (tag 8): it names item 4 twice");
  EXPECT_EQ(message([](search::problem& p) {
              p.values = {{.producer = 0, .readers = {1}, .forms = 2, .convert_amounts = {0, 1}}};
            }),
            "value 0: the amounts of conversions have 2 entries, not 4; give resources * forms * forms entries");
  EXPECT_EQ(message([](search::problem& p) { p.excluded = {{2}}; }),
            "search: an excluded set names candidate 2, which does not exist");
  EXPECT_EQ(message([](search::problem& p) { p.excluded = {{}}; }),
            "search: an excluded set is empty; name at least one candidate");
  EXPECT_EQ(message([](search::problem& p) { p.excluded = {{0, 1}}; }),
            "search: each plan contains an excluded set of candidates; exclude fewer sets");
}

}  // namespace search_bounded_parts_test
