// Bounded resources: the exact search against trying everything.
#include <collage/error.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "oracle.hpp"
#include "random_resources.hpp"
#include "support/messages.hpp"

namespace search_resources_test {

namespace search = collage::search;
using search_testing::add_random_resources;
using search_testing::describe;
using search_testing::index_list;
using search_testing::narrow;
using search_testing::random_source;

/// A plan, judged by the words of `problem` alone.
struct judged_plan {
  index_list chosen;
  std::int64_t cost = 0;
  std::vector<std::int64_t> amounts;
};

judged_plan judge(const search::problem& p, index_list chosen) {
  judged_plan plan{.chosen = std::move(chosen), .cost = 0, .amounts = std::vector<std::int64_t>(p.resources.size())};
  std::vector<std::uint32_t> by(p.nodes);
  std::set<std::pair<std::uint32_t, std::uint32_t>> items;
  for (const std::uint32_t i : plan.chosen) {
    plan.cost += search::picoseconds(p.candidates[i].cost_ms);
    for (const std::uint32_t n : p.candidates[i].nodes) by[n] = i;
    for (const search::use& u : p.candidates[i].uses)
      if (u.item == search::use::own || items.insert({u.resource, u.item}).second) plan.amounts[u.resource] += u.amount;
  }
  const auto form_of = [&](std::uint32_t i, std::uint32_t v) {
    for (const search::border& b : p.candidates[i].borders)
      if (b.value == v) return b.form;
    return std::uint32_t{0};
  };
  std::set<std::array<std::uint32_t, 3>> conversions, switches;
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    const search::value& at = p.values[v];
    const bool given = at.producer == search::node_set::none;
    const std::uint32_t from = given ? 0 : form_of(by[at.producer], v);
    if (at.is_output) conversions.insert({v, from, 0});
    for (const std::uint32_t reader : at.readers) {
      if (!given && by[reader] == by[at.producer]) continue;
      conversions.insert({v, from, form_of(by[reader], v)});
      if (!given) switches.insert({v, p.candidates[by[at.producer]].runtime, p.candidates[by[reader]].runtime});
    }
  }
  if (p.values.empty())
    for (const auto& [from, to] : p.edges)
      if (by[from] != by[to]) switches.insert({from, p.candidates[by[from]].runtime, p.candidates[by[to]].runtime});
  for (const auto& [v, from, to] : conversions) {
    const search::value& at = p.values[v];
    if (from == to) continue;
    if (!at.convert_ms.empty()) plan.cost += search::picoseconds(at.convert_ms[from * at.forms + to]);
    for (std::size_t r = 0; r < p.resources.size() && !at.convert_amounts.empty(); ++r)
      plan.amounts[r] += at.convert_amounts[(r * at.forms + from) * at.forms + to];
  }
  for (const auto& [v, from, to] : switches)
    if (from != to && !p.switch_ms.empty()) plan.cost += search::picoseconds(p.switch_ms[from * p.runtimes + to]);
  return plan;
}

/// All plans that can be executed.
std::vector<judged_plan> all_plans(const search::problem& p) {
  std::vector<judged_plan> plans;
  std::vector<bool> covered(p.nodes);
  index_list chosen;
  const auto go_on = [&](auto&& self) -> void {
    const auto first = static_cast<std::uint32_t>(std::ranges::find(covered, false) - covered.begin());
    if (first == p.nodes) {
      if (!search::violation(p, std::span<const std::uint32_t>(chosen))) plans.push_back(judge(p, chosen));
      return;
    }
    for (std::uint32_t i = 0; i < p.candidates.size(); ++i) {
      const search::node_set& nodes = p.candidates[i].nodes;
      if (nodes.first() != first || std::ranges::any_of(nodes, [&](std::uint32_t n) { return covered[n]; })) continue;
      for (const std::uint32_t n : nodes) covered[n] = true;
      chosen.push_back(i);
      self(self);
      chosen.pop_back();
      for (const std::uint32_t n : nodes) covered[n] = false;
    }
  };
  go_on(go_on);
  return plans;
}

bool is_allowed(const search::problem& p, const judged_plan& plan) {
  for (std::size_t r = 0; r < p.resources.size(); ++r)
    if (plan.amounts[r] > p.resources[r].bound) return false;
  return std::ranges::none_of(p.excluded, [&](const index_list& set) {
    return std::ranges::all_of(set, [&](std::uint32_t i) { return std::ranges::count(plan.chosen, i) != 0; });
  });
}
std::optional<std::int64_t> least_cost(const search::problem& p, const std::vector<judged_plan>& plans) {
  std::optional<std::int64_t> least;
  for (const judged_plan& plan : plans)
    if (is_allowed(p, plan) && (!least || plan.cost < *least)) least = plan.cost;
  return least;
}

search::limits exactly() { return {.gap = 0, .bounded_time = std::chrono::hours(1)}; }

struct counts {
  std::size_t problems = 0, bound = 0, short_of = 0, joint = 0, with_conversions = 0, branched = 0;
};

/// One problem under one bound: proven, within the default gap, and with excluded sets.
void compare(random_source& random, search::problem p, const std::vector<judged_plan>& plans, counts& seen) {
  const auto least = least_cost(p, plans);
  const search::placement found = search::exact(p, exactly());
  const auto wrong = search::violation(p, found);
  ASSERT_FALSE(wrong) << *wrong << "\n" << describe(p);
  ++seen.problems;
  if (!least) {
    ASSERT_TRUE(found.lacks && found.lacks->proven) << describe(p);
    const std::uint32_t r = found.lacks->resource;
    ASSERT_GT(found.lacks->least, p.resources[r].bound);
    bool each_alone = true;
    for (std::size_t k = 0; k < p.resources.size(); ++k)
      each_alone = each_alone && std::ranges::any_of(plans, [&](const judged_plan& plan) {
                     return plan.amounts[k] <= p.resources[k].bound;
                   });
    seen.joint += each_alone;
    ++seen.short_of;
    if (p.resources.size() == 1) {
      std::int64_t amount = std::numeric_limits<std::int64_t>::max();
      for (const judged_plan& plan : plans) amount = std::min(amount, plan.amounts[0]);
      const bool has_items = std::ranges::any_of(p.candidates, [](const search::candidate& c) {
        return std::ranges::any_of(c.uses, [](const search::use& u) { return u.item != search::use::own; });
      });
      // With items the least amount itself is only bounded.
      if (has_items) {
        ASSERT_GE(found.lacks->least, amount) << describe(p);
      } else {
        ASSERT_EQ(found.lacks->least, amount) << describe(p);
      }
    }
    return;
  }
  ASSERT_FALSE(found.lacks) << describe(p);
  ASSERT_TRUE(found.optimal) << describe(p);
  ASSERT_EQ(search::picoseconds(found.cost_ms), *least) << describe(p);
  search::problem free = p;
  free.resources.clear();
  for (search::candidate& c : free.candidates) c.uses.clear();
  for (search::value& v : free.values) v.convert_amounts.clear();
  const search::placement unbound = search::exact(free);
  seen.bound += unbound.cost_ms < found.cost_ms;
  const search::placement near = search::exact(p);
  const auto fault = search::violation(p, near);
  ASSERT_FALSE(fault) << *fault << "\n" << describe(p);
  ASSERT_FALSE(near.lacks);
  ASSERT_LE(search::picoseconds(near.lower_bound_ms), *least) << describe(p);
  ASSERT_LE(near.gap(), search::limits{}.gap + 1e-12);

  // A caller that finds each plan unfit gets one that does not contain what it excludes.
  for (int round = 0; round < 3; ++round) {
    const search::placement next = search::exact(p, exactly());
    if (next.lacks) break;
    index_list set;
    for (const std::uint32_t i : next.chosen)
      if (random.chance(0.5)) set.push_back(i);
    if (set.empty()) set = next.chosen;
    p.excluded.push_back(std::move(set));
    const auto left = least_cost(p, plans);
    if (!left) break;
    const search::placement other = search::exact(p, exactly());
    const auto why = search::violation(p, other);
    ASSERT_FALSE(why) << *why << "\n" << describe(p);
    ASSERT_EQ(search::picoseconds(other.cost_ms), *left) << describe(p);
    ASSERT_TRUE(other.optimal);
  }
}

/// Copies without edges between them.
search::problem copies_of(const search::problem& one, std::uint32_t count) {
  search::problem p = one;
  for (std::uint32_t k = 1; k < count; ++k) {
    const auto base = narrow(p.nodes), values = narrow(p.values.size());
    p.nodes += one.nodes;
    for (const auto& [from, to] : one.edges) p.edges.emplace_back(base + from, base + to);
    for (const std::uint32_t n : one.outputs) p.outputs.push_back(base + n);
    for (search::value v : one.values) {
      if (v.producer != search::node_set::none) v.producer += base;
      for (std::uint32_t& reader : v.readers) reader += base;
      p.values.push_back(std::move(v));
    }
    for (search::candidate c : one.candidates) {
      search::node_set nodes;
      for (const std::uint32_t n : c.nodes) nodes.insert(base + n);
      c.nodes = std::move(nodes);
      for (search::border& b : c.borders) b.value += values;
      p.candidates.push_back(std::move(c));
    }
  }
  return p;
}

void compare_with_brute_force(std::uint32_t problems) {
  random_source random;
  counts seen;
  for (std::uint32_t i = 0; i < problems; ++i) {
    search_testing::random_shape shape{.most_nodes = 7, .forms = i % 3 == 0 ? 1U : 3U, .ties = i % 4 == 1};
    shape.runtimes = i % 5 == 0 ? 2 : 1;
    shape.groups_per_node = 2;
    const bool repeated = i % 4 >= 2;
    if (repeated) shape.most_nodes = 3;
    search::problem p = random_bordered_problem(random, shape);
    add_random_resources(random, p, 1 + i % 2, i % 4 == 1);
    if (repeated) p = copies_of(p, p.nodes == 3 ? 2 : random.number(2, 4));
    const std::vector<judged_plan> plans = all_plans(p);
    std::vector<std::int64_t> least, most;
    for (std::size_t r = 0; r < p.resources.size(); ++r) {
      least.push_back(std::numeric_limits<std::int64_t>::max());
      most.push_back(0);
      for (const judged_plan& plan : plans) {
        least[r] = std::min(least[r], plan.amounts[r]);
        most[r] = std::max(most[r], plan.amounts[r]);
      }
    }
    for (int bounds = 0; bounds < 3; ++bounds) {
      for (std::size_t r = 0; r < p.resources.size(); ++r) {
        const double part = random.chance(0.1) ? -0.1 : random.real(0, 0.6);
        const auto room = static_cast<double>(most[r] - least[r]);
        p.resources[r].bound = std::max<std::int64_t>(0, least[r] + static_cast<std::int64_t>(part * room - 0.5));
        if (random.chance(0.05)) p.resources[r].bound = 0;
      }
      compare(random, p, plans, seen);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  std::cout << seen.problems << " bounded problems; of " << seen.bound
            << " the bound makes the best plan cost more, of " << seen.short_of << " no plan keeps the bounds, of "
            << seen.joint << " only not all of them\n";
  EXPECT_GT(seen.bound, seen.problems / 4);
  EXPECT_GT(seen.short_of, seen.problems / 50);
}

TEST(search_resources, equal_brute_force) { compare_with_brute_force(400); }
TEST(search_long, resources_equal_brute_force) { compare_with_brute_force(4000); }

}  // namespace search_resources_test
