// Parts of a graph that are equal are solved once, and answered as if each had been solved.
#include <collage/search/checker.hpp>
#include <collage/search/exact.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "support/random_numbers.hpp"

namespace search_repeats_test {

namespace s = collage::search;

struct cell {
  std::uint32_t nodes = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<s::candidate> candidates;
};

/// Every node alone, and neighbouring runs of nodes where they are convex; few different costs, so that there are ties.
cell random_cell(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  cell c;
  c.nodes = 4 + below(6);
  for (std::uint32_t n = 1; n < c.nodes; ++n) {
    c.edges.emplace_back(n - 1 - below(std::min<std::uint32_t>(n, 2)), n);
    if (n > 2 && below(3) == 0) c.edges.emplace_back(below(n - 1), n);
  }
  for (std::uint32_t n = 0; n + 1 < c.nodes; ++n) c.edges.emplace_back(n, c.nodes - 1);  // one value leaves the cell
  for (std::uint32_t n = 0; n < c.nodes; ++n)
    for (std::uint32_t k = 1 + below(2); k > 0; --k) c.candidates.push_back({s::node_set{n}, 1.0 + below(3)});
  for (std::uint32_t k = 0; k < 3 * c.nodes; ++k) {
    const std::uint32_t first = below(c.nodes), size = 2 + below(3);
    s::candidate more{{}, 0.5 * (2 + below(5))};
    for (std::uint32_t n = first; n < std::min(c.nodes, first + size); ++n) more.nodes.insert(n);
    c.candidates.push_back(more);
  }
  return c;
}

/// Copies behind each other.
s::problem chain_of(const cell& c, std::uint32_t copies) {
  s::problem p;
  p.nodes = std::size_t{c.nodes} * copies;
  for (std::uint32_t k = 0; k < copies; ++k) {
    const std::uint32_t base = k * c.nodes;
    for (const auto& [from, to] : c.edges) p.edges.emplace_back(base + from, base + to);
    if (k != 0) p.edges.emplace_back(base - 1, base);
    for (const s::candidate& at : c.candidates) {
      s::candidate moved{{}, at.cost_ms};
      for (const std::uint32_t n : at.nodes) moved.nodes.insert(base + n);
      p.candidates.push_back(std::move(moved));
    }
  }
  return p;
}

TEST(search_repeats, copies_are_answered_like_the_first) {
  std::mt19937_64 random(collage_test::fresh_seed());
  std::size_t with_groups = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const cell c = random_cell(random);
    constexpr std::uint32_t copies = 5;
    const s::placement one = s::exact(chain_of(c, 1));
    const s::problem p = chain_of(c, copies);
    const s::placement all = s::exact(p);
    EXPECT_FALSE(s::violation(p, all).has_value());
    EXPECT_TRUE(all.optimal);
    EXPECT_EQ(s::picoseconds(all.cost_ms), copies * s::picoseconds(one.cost_ms));
    ASSERT_EQ(all.chosen.size(), copies * one.chosen.size());
    for (std::size_t i = 0; i < all.chosen.size(); ++i)
      EXPECT_EQ(all.chosen[i], one.chosen[i % one.chosen.size()] + i / one.chosen.size() * c.candidates.size());
    if (all.repeated == 0) continue;
    ++with_groups;
    EXPECT_LT(all.states, copies * one.states);
    EXPECT_EQ(all.repeated % (copies - 1), 0U);
  }
  EXPECT_GT(with_groups, 100U);
}

TEST(search_repeats, what_differs_is_solved_for_itself) {
  std::mt19937_64 random(collage_test::fresh_seed());
  cell c = random_cell(random);
  s::problem p = chain_of(c, 3);
  const std::size_t repeated = s::exact(p).repeated;
  // The second copy gets one candidate more, for all its nodes, which is worth it.
  s::candidate whole{{}, 0.25};
  for (std::uint32_t n = c.nodes; n < 2 * c.nodes; ++n) whole.nodes.insert(n);
  p.candidates.push_back(whole);
  const s::placement found = s::exact(p);
  EXPECT_LE(found.repeated, repeated);
  EXPECT_NE(std::find(found.chosen.begin(), found.chosen.end(), p.candidates.size() - 1), found.chosen.end());
  EXPECT_FALSE(s::violation(p, found).has_value());
}

/// Of equal costs the first candidates are taken, also where a copy lists them in another order.
TEST(search_repeats, ties_follow_each_copy_s_own_order) {
  s::problem p;
  p.nodes = 8;
  for (std::uint32_t n = 1; n < 8; ++n) p.edges.emplace_back(n - 1, n);
  const auto add = [&](std::uint32_t base, std::initializer_list<std::uint32_t> nodes) {
    s::candidate at{{}, 1};
    for (const std::uint32_t n : nodes) at.nodes.insert(base + n);
    p.candidates.push_back(at);
  };
  // One group of all four nodes holds each cell together, at a price.
  add(0, {0, 1, 2, 3});
  p.candidates.back().cost_ms = 9;
  add(4, {0, 1, 2, 3});
  p.candidates.back().cost_ms = 9;
  add(0, {0, 1}), add(0, {2, 3}), add(0, {0}), add(0, {1, 2, 3});
  add(4, {0}), add(4, {1, 2, 3}), add(4, {0, 1}), add(4, {2, 3});
  const s::placement found = s::exact(p);
  EXPECT_EQ(found.chosen, (std::vector<std::uint32_t>{2, 3, 6, 7}));
  EXPECT_EQ(found.repeated, 0U);
}

}  // namespace search_repeats_test
