// The exact search moves nodes without producers next to their readers. It returns plans and errors with the caller's numbers.
#include <collage/search/alternatives.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/objective.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "search/close_order.hpp"
#include "search/solve.hpp"
#include "support/random_numbers.hpp"

namespace search_close_order_test {

namespace s = collage::search;
using index_list = std::vector<std::uint32_t>;

/// Layers of a quantised network: node `layer` reads the layer before it and weights that the file prepares, in a chain of two
/// nodes. All weights come first, as quantisers write them. Layers are fused with their weights, and with the layer before.
struct layers {
  explicit layers(std::uint32_t count) {
    p.nodes = 3 * std::size_t{count};
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t scaled = i, swapped = count + i, layer = 2 * count + i;
      p.edges.emplace_back(scaled, swapped);
      p.edges.emplace_back(swapped, layer);
      if (i != 0) p.edges.emplace_back(layer - 1, layer);
      add({scaled}, 2);
      add({swapped}, 2);
      add({layer}, 3);
      add({swapped, layer}, 4);
      add({scaled, swapped, layer}, 5);
      if (i != 0 && i % 3 == 0) add({scaled, scaled - 1, swapped, swapped - 1, layer, layer - 1}, 6);
    }
  }
  void add(s::node_set nodes, double cost) {
    p.candidates.push_back({std::move(nodes), cost, static_cast<std::uint32_t>(p.candidates.size())});
  }
  s::problem p;
};

TEST(search_close_order, sources_come_right_before_their_first_reader) {
  // 0 and 1 are weights, 2 is shared; the longest chain is 1, 4, 6, 7. 0 -> 5; 1 -> 4 -> 6; 2 -> 5, 6; 3 -> 5 -> 6 -> 7.
  s::problem p{.nodes = 8,
               .edges = {{0, 5}, {1, 4}, {4, 6}, {2, 5}, {2, 6}, {3, 5}, {5, 6}, {6, 7}},
               .candidates = {},
               .outputs = {}};
  EXPECT_EQ(s::detail::close_order(p), (index_list{1, 4, 0, 2, 3, 5, 6, 7}));
  p.edges = {{0, 7}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {2, 4}};  // all of them lead to ends
  EXPECT_EQ(s::detail::close_order(p), (index_list{0, 1, 2, 3, 4, 5, 6, 7}));
  p.edges.clear();
  EXPECT_EQ(s::detail::close_order(p), (index_list{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(search_close_order, many_nodes_take_little_time_and_no_deep_stack) {
  s::problem p;
  p.nodes = 200'000;
  for (std::uint32_t i = 1; i < p.nodes; ++i) p.edges.emplace_back(i - 1, i);
  EXPECT_TRUE(std::ranges::is_sorted(s::detail::close_order(p)));
  p.edges.clear();
  const auto last = static_cast<std::uint32_t>(p.nodes - 1);
  for (std::uint32_t i = 0; i < last; ++i) p.edges.emplace_back(i, last);  // all are read by the last one
  EXPECT_EQ(s::detail::close_order(p).size(), p.nodes);
}

TEST(search_close_order, weights_at_the_beginning_take_few_states) {
  layers network(300);
  // Costs between which the bound of the search does not decide at once.
  std::uint32_t i = 0;
  for (s::candidate& c : network.p.candidates) c.cost_ms *= 1 + 0.5 * (i++ * 7919 % 97) / 97;
  const s::placement plan = s::exact(network.p);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(s::violation(network.p, plan), std::nullopt);
  EXPECT_TRUE(std::ranges::is_sorted(plan.chosen, {}, [&](auto k) { return network.p.candidates[k].nodes.first(); }));
  const s::placement as_numbered =
      s::detail::solve(network.p, s::detail::costs_of(network.p), s::check(network.p), {.states = 30 * plan.states});
  EXPECT_FALSE(as_numbered.optimal);  // it is far from done
  EXPECT_LE(as_numbered.lower_bound_ms, plan.cost_ms);

  const s::placement by_rank = s::exact_by_rank(network.p, index_list(network.p.candidates.size()));
  EXPECT_EQ(by_rank.chosen, plan.chosen);
  EXPECT_LE(by_rank.states, 2 * plan.states);
}

TEST(search_close_order, bounds_are_kept) {
  // Half of the cheapest groups fit. The later ones are cheaper.
  layers network(30);
  const index_list order = s::detail::close_order(network.p);
  EXPECT_EQ(index_list(order.begin(), order.begin() + 6), (index_list{0, 30, 60, 1, 31, 61}));
  network.p.resources.push_back({"room", 5});
  std::int64_t count = 0;
  for (s::candidate& c : network.p.candidates) {
    if (c.cost_ms != 6) continue;
    c.cost_ms -= 0.25 * static_cast<double>(count++);
    c.uses.push_back({.resource = 0, .amount = 1});
  }
  const s::placement within = s::exact(network.p, {.gap = 0});
  EXPECT_EQ(s::violation(network.p, within), std::nullopt);
  EXPECT_DOUBLE_EQ(within.cost_ms, 5 * 6.0 - 0.25 * (4 + 5 + 6 + 7 + 8) + 20 * 5.0);
}

/// The plan does not depend on where the caller numbers nodes without producers.
TEST(search_close_order, the_plan_does_not_depend_on_the_numbers) {
  collage_test::random_numbers random;
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::uint32_t>(random.number(low, high));
  };
  int moved = 0;
  for (int round = 0; round < 200; ++round) {
    s::problem p;
    p.nodes = number(2, 12);
    for (std::uint32_t to = 1; to < p.nodes; ++to)
      for (std::uint32_t from = 0; from < to; ++from)
        if (random.chance(0.2)) p.edges.emplace_back(from, to);
    p.runtimes = 2;
    p.switch_ms = {0, random.real(0, 1), random.real(0, 1), 0};
    for (std::uint32_t n = 0; n < p.nodes; ++n)
      for (std::uint32_t runtime = 0; runtime < 2; ++runtime)
        p.candidates.push_back({s::node_set{n}, 0.5 * number(1, 4), n, runtime});
    for (const auto& [from, to] : p.edges)
      if (std::ranges::count(p.edges, from, &std::pair<std::uint32_t, std::uint32_t>::first) == 1)
        p.candidates.push_back({s::node_set{from, to}, 0.5 * number(1, 5), from, number(0, 1)});
    const index_list order = s::detail::close_order(p);
    moved += !std::ranges::is_sorted(order);
    const s::placement here = s::exact(p), there = s::exact(s::detail::in_order(p, order));
    ASSERT_EQ(s::violation(p, here), std::nullopt);
    ASSERT_EQ(here.cost_ms, there.cost_ms);
    index_list ours = here.chosen, theirs = there.chosen;
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    ASSERT_EQ(ours, theirs);
  }
  EXPECT_GT(moved, 50);
}

std::string error_of(const s::problem& p) {
  try {
    s::exact(p);
  } catch (const collage::error& e) { return e.what(); }
  return {};
}

TEST(search_close_order, errors_name_the_numbers_of_the_caller) {
  // 0 is the weight of 3. Nodes 2 and 3 can only be covered in pairs that overlap.
  s::problem p{.nodes = 4, .edges = {{0, 3}, {1, 2}, {2, 3}}, .candidates = {}, .outputs = {}};
  p.candidates = {{{1, 2}, 1, 0}, {{0, 3}, 1, 0}, {{2, 3}, 1, 0}};
  p.candidates[1].nodes = {0, 2, 3};
  EXPECT_EQ(
      error_of(p),
      "search, nodes 0 to 3: no set of candidates covers every node exactly once; give every node a candidate of its own");
  p.names = {9, 10, 12, 20};
  EXPECT_EQ(s::detail::range_of(p, 0, 2), "nodes 9 to 10");
  EXPECT_EQ(s::detail::range_of(p, 1, 4), "nodes 10, 12, 20");
  EXPECT_TRUE(error_of(p).starts_with("search, nodes 9, 10, 12, 20: ")) << error_of(p);
  p.names = {9};
  EXPECT_EQ(error_of(p), "search: 1 names are given for 4 nodes; name each node, or none");
}

}  // namespace search_close_order_test
