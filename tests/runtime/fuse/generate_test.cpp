// The generator against lists of all paths, its limits, and its work on graphs with exponentially many paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/dominators.hpp>
#include <collage/fuse/generate.hpp>
#include <collage/fuse/group.hpp>
#include <collage/fuse/rule.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "graphs.hpp"

namespace fuse_generate_test {

using namespace collage_test;
using fuse::group_list;
using fuse::node_set;
using kind = fusion_kind;

/// All nodes on all paths from `from` to `to`, path by path.
std::set<std::uint32_t> on_paths(const fuse::dataflow& flow, std::uint32_t from, std::uint32_t to) {
  std::set<std::uint32_t> all;
  index_list path;
  const std::function<void(std::uint32_t)> walk = [&](std::uint32_t n) {
    path.push_back(n);
    if (n == to) all.insert(path.begin(), path.end());
    else flow.successors(n, [&](std::uint32_t reader, std::uint32_t) { walk(reader); });
    path.pop_back();
  };
  walk(from);
  return all;
}

/// TVM's rule as a table over whole groups: the group behind a node grows post-dominator by post-dominator.
sets by_paths(const fuse::dataflow& flow, const fuse::generate_limits& most) {
  const fuse::dominator_tree tree = fuse::post_dominators(flow);
  sets all;
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    if (flow.kind(n) == kind::opaque) continue;
    node_set last{n};
    const auto fits = [&](const node_set& nodes) {
      return nodes.size() <= most.nodes && (most.arguments == 0 || fuse::argument_count(flow, nodes) <= most.arguments);
    };
    const auto add = [&](const node_set& nodes) { all.insert({nodes.begin(), nodes.end()}); };
    if (!fits(last)) continue;
    add(last);
    for (std::uint32_t sink = tree.parent(n), from = n; sink != fuse::none; from = sink, sink = tree.parent(sink)) {
      const kind so_far = fuse::kind_of_group(flow, last);
      if (so_far > kind::injective && so_far != kind::anchor) break;
      node_set next;
      bool allowed = so_far != kind::anchor || tree.kind(from) == kind::elementwise;
      for (const std::uint32_t m : on_paths(flow, n, sink)) {
        next.insert(m);
        if (m == n) continue;
        if (so_far == kind::anchor) allowed = allowed && flow.kind(m) <= kind::broadcast;
        else if (m == sink && so_far <= kind::broadcast) allowed = allowed && flow.kind(m) <= kind::reduction;
        else allowed = allowed && flow.kind(m) <= kind::injective;
      }
      if (!allowed || !fits(next)) break;
      add(next);
      last = next;
    }
  }
  return all;
}

void compare(std::uint32_t graphs, std::uint32_t most_nodes) {
  fuse_random random;
  std::size_t grown = 0;
  for (std::uint32_t i = 0; i < graphs; ++i) {
    const fuse::dataflow flow = random_flow(random, {.nodes = random.number(1, most_nodes),
                                                     .spaces = random.number(1, 2),
                                                     .opaque = random.number(0, 10),
                                                     .near = random.number(40, 100),
                                                     .outputs = random.number(0, 8)});
    const fuse::generate_limits most{.nodes = random.number(1, most_nodes),
                                     .arguments = random.chance(50) ? 0u : random.number(1, 5)};
    group_list found;
    fuse::generate(flow, fuse::tvm_rule{}, found, most);
    ASSERT_EQ(sets_of(found), by_paths(flow, most)) << describe(flow);
    for (const fuse::group& g : found) {
      ASSERT_EQ(
          fuse::why_invalid(flow, g, {.exits = 1, .nodes = most.nodes, .arguments = most.arguments, .taps = true}), "");
      ASSERT_EQ(g.kind, fuse::kind_of_group(flow, g.nodes));
      grown += g.nodes.size() > 1;
    }
  }
  std::cout << grown << " groups of more than one node\n";
  EXPECT_GT(grown, graphs);
}

TEST(fuse_generate, equals_the_rule_over_all_paths) { compare(2000, 16); }
TEST(fuse_generate_long, equals_the_rule_over_all_paths) { compare(20000, 16); }

/// `count` diamonds, one behind the other; 2^count paths.
fuse::dataflow diamonds(std::uint32_t count) {
  fuse::flow_builder b;
  std::uint32_t v = b.given({4, 0});
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t top = b.node(kind::elementwise, {v}, {4, 0});
    const std::uint32_t left = b.node(kind::elementwise, {top}, {4, 0});
    const std::uint32_t right = b.node(kind::elementwise, {top}, {4, 0});
    v = b.node(kind::broadcast, {left, right}, {4, 0});
  }
  b.output(v);
  return b.finish();
}

std::uint64_t steps(std::uint32_t count, std::size_t most_nodes, std::size_t& groups) {
  group_list found;
  const std::uint64_t taken = fuse::generate(diamonds(count), fuse::tvm_rule{}, found, {.nodes = most_nodes});
  groups = found.size();
  return taken;
}

TEST(fuse_generate, stacked_diamonds_take_linear_work) {
  std::size_t groups60 = 0, groups120 = 0, all = 0;
  const std::uint64_t of60 = steps(60, 16, groups60), of120 = steps(120, 16, groups120);
  // Groups of at most 16 nodes: the same number for each further diamond, and the same work.
  EXPECT_GT(groups60, 60u * 10);
  EXPECT_LE(groups120, 2 * groups60 + 100);
  EXPECT_LE(of120, 2 * of60 + 500);
  // Without a limit there is a group for every pair of a node and one of its post-dominators, each at constant work.
  const std::uint64_t unlimited = steps(60, 0, all);
  EXPECT_GE(all, 60u * 60);
  EXPECT_LE(unlimited, 8 * all);
}

TEST(fuse_generate, passes_through_tuples_and_ends_in_a_reduction) {
  fuse::flow_builder b;
  const std::uint32_t x = b.given({64, 0});
  const std::uint32_t left = b.node(kind::elementwise, {x}, {64, 0});                                 // 0
  const std::uint32_t right = b.node(kind::injective, {x}, {64, 0});                                  // 1
  const std::uint32_t both = b.node(kind::tuple, {left, right}, {128, 1}, fuse::node_role::tuple);    // 2
  const std::uint32_t together = b.node(kind::injective, {both}, {128, 1});                           // 3
  const std::uint32_t half = b.node(kind::broadcast, {together}, {128, 1});                           // 4
  const std::uint32_t sum = b.node(kind::reduction, {half}, {4, 2}, fuse::node_role::operation, 32);  // 5
  b.output(b.node(kind::elementwise, {sum}, {4, 2}));                                                 // 6
  const fuse::dataflow flow = b.finish();
  // An elementwise group takes the tuple and what reads it; a mover among them keeps a reduction out, and nothing
  // follows one.
  EXPECT_EQ(sets_of(fuse::list(fuse::grown{fuse::tvm_rule{}}, flow)), (sets{{0},
                                                                            {0, 2, 3},
                                                                            {0, 2, 3, 4},
                                                                            {1},
                                                                            {1, 2, 3},
                                                                            {1, 2, 3, 4},
                                                                            {2, 3},
                                                                            {2, 3, 4},
                                                                            {3},
                                                                            {3, 4},
                                                                            {4},
                                                                            {4, 5},
                                                                            {5},
                                                                            {6}}));
  // Row by row a reduction over rows is one operator among others, and what follows it too.
  const sets rows = sets_of(fuse::list(fuse::grown{fuse::row_rule{}}, flow));
  EXPECT_TRUE(rows.contains({3, 4, 5, 6}));
  EXPECT_TRUE(rows.contains({5, 6}));
  EXPECT_TRUE(sets_of(fuse::list(fuse::grown{fuse::row_rule{.movers = false}}, flow)).contains({4, 5, 6}));
  EXPECT_FALSE(sets_of(fuse::list(fuse::grown{fuse::row_rule{.movers = false}}, flow)).contains({3, 4}));
}

/// Grows where it is told of a tuple's edge.
struct over_tuples {
  bool accepts(const fuse::dataflow&, std::uint32_t) const { return true; }
  bool grows(const fuse::growth& g) const { return g.edge == kind::tuple && g.way.size() == 1; }
};

TEST(fuse_generate, tells_of_the_edges_into_a_tuple) {
  fuse::flow_builder b;
  const std::uint32_t first = b.node(kind::elementwise, {b.given({64, 0})}, {64, 0});
  const std::uint32_t t = b.node(kind::tuple, {first}, {64, 0}, fuse::node_role::tuple);
  const std::uint32_t moved = b.node(kind::injective, {t}, {64, 0});
  b.output(b.node(kind::elementwise, {moved}, {64, 0}));
  EXPECT_EQ(sets_of(fuse::list(fuse::grown{over_tuples{}}, b.finish())), (sets{{0}, {0, 1, 2}, {2}, {3}}));
}

/// A backend that declares a rule and no pattern: convolutions, with up to two elementwise operators behind each.
struct short_chains {
  bool accepts(const fuse::dataflow& flow, std::uint32_t node) const { return flow.kind(node) == kind::anchor; }
  bool grows(const fuse::growth& g) const {
    return g.way.size() <= 1 && g.each([](kind k, bool) { return k == kind::elementwise; });
  }
};
struct backend {
  static constexpr auto rule = fuse::only_valid{fuse::limits{.nodes = 3}, fuse::grown{short_chains{}}};
};

static_assert(fuse::declares_rule<backend> && !fuse::declares_rule<short_chains>);

TEST(fuse_generate, a_backend_declares_a_rule) {
  fuse::flow_builder b;
  std::uint32_t v = b.node(kind::anchor, {b.given({64, 0})}, {64, 0});
  for (int i = 0; i < 3; ++i) v = b.node(kind::elementwise, {v}, {64, 0});
  b.output(v);
  EXPECT_EQ(sets_of(fuse::list(backend::rule, b.finish())), (sets{{0}, {0, 1}, {0, 1, 2}}));
}

TEST(fuse_generate, operators_are_checked_everywhere) {
  constexpr auto without_reductions = fuse::for_operators{
      [](const fuse::dataflow& flow, std::uint32_t n) { return flow.kind(n) != kind::reduction; }, fuse::tvm_rule{}};
  fuse::flow_builder b;
  const std::uint32_t first = b.node(kind::elementwise, {b.given({64, 0})}, {64, 0});
  const std::uint32_t second = b.node(kind::elementwise, {first}, {64, 0});
  b.output(b.node(kind::reduction, {second}, {4, 1}));
  const fuse::dataflow flow = b.finish();
  EXPECT_EQ(sets_of(fuse::list(fuse::grown{without_reductions}, flow)), (sets{{0}, {0, 1}, {1}}));
  EXPECT_EQ(sets_of(fuse::list(fuse::grown{fuse::single_rule{}}, flow)), (sets{{0}, {1}, {2}}));
  EXPECT_EQ(sets_of(fuse::list(fuse::grown{fuse::tvm_rule{}}, flow)), (sets{{0}, {0, 1}, {0, 1, 2}, {1}, {1, 2}, {2}}));
}

}  // namespace fuse_generate_test
