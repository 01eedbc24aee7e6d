// Networks of thousands of operators: the work of listing candidates grows with the network and no faster, and placing and running
// them takes no deep recursion. Work is counted, because times depend on the machine; docs/scale.md has times.
#ifdef COLLAGE_HAS_STACKED
#include <collage/backends/portable.hpp>
#include <collage/backends/stacked.hpp>
#include <collage/collage.hpp>
#include <collage/fuse/from_graph.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/workloads.hpp>
#include <collage/run/engine.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/placing.hpp"

namespace place_large_networks_test {

namespace c = collage;
namespace op = collage::ops;

const c::tensor_type row{c::dtype::f32, {1, 16}};

/// `count` operators, one behind the other: relu, addition of the network's second input, and sigmoid in turn.
c::graph chain(std::size_t count) {
  c::graph_builder g;
  c::value at = g.input("x", row);
  const c::value more = g.input("more", row);
  for (std::size_t i = 0; i < count; ++i)
    at = i % 3 == 0 ? g(op::relu, at) : i % 3 == 1 ? g(op::add, at, more) : g(op::sigmoid, at);
  g.output("y", at);
  return g.finish();
}

/// The same operator `count` times.
c::graph same(std::size_t count) {
  c::graph_builder g;
  c::value at = g.input("x", row);
  for (std::size_t i = 0; i < count; ++i) at = g(op::relu, at);
  g.output("y", at);
  return g.finish();
}

/// Blocks of two operators and an addition of what came before them.
c::graph residual(std::size_t count) {
  c::graph_builder g;
  c::value at = g.input("x", row);
  for (std::size_t i = 0; i < count / 3; ++i) at = g(op::add, at, g(op::sigmoid, g(op::relu, at)));
  g.output("y", at);
  return g.finish();
}

/// Operators beside each other, and a tree of additions.
c::graph tree(std::size_t count) {
  c::graph_builder g;
  const c::value x = g.input("x", row);
  std::vector<c::value> left;
  for (std::size_t i = 0; i < count; ++i) left.push_back(i % 2 == 0 ? g(op::relu, x) : g(op::sigmoid, x));
  while (left.size() > 1) {
    std::vector<c::value> above;
    for (std::size_t i = 0; i + 1 < left.size(); i += 2) above.push_back(g(op::add, left[i], left[i + 1]));
    if (left.size() % 2 == 1) above.push_back(left.back());
    left = std::move(above);
  }
  g.output("y", left[0]);
  return g.finish();
}

/// As many inputs and outputs as operators.
c::graph ports(std::size_t count) {
  c::graph_builder g;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    g.output("y" + number, g(op::relu, g.input("x" + number, row)));
  }
  return g.finish();
}

using network_function = c::graph (*)(std::size_t);
const std::map<std::string, network_function> networks{
    {"chain", chain}, {"same", same}, {"residual", residual}, {"tree", tree}, {"ports", ports}};

using backends = c::backend_set<c::stacked, c::portable>;
c::backend_table table() { return c::table_of<backends>; }

/// The amounts to which the time of listing candidates is proportional.
struct listing_work {
  std::size_t candidates = 0;
  std::size_t members = 0;  ///< nodes of all groups
  std::size_t words = 0;    ///< that describe the groups' workloads
};
listing_work work_of(const c::graph& network) {
  const c::place_candidates found = c::find_candidates(network, table(), {true, true});
  listing_work work{.candidates = found.list.size()};
  c::detail::workload_numbers number_of(network);
  for (const c::place_group& g : found.groups) {
    work.members += g.nodes.size();
    (void)number_of(g.nodes);
  }
  work.words = number_of.work();
  return work;
}

TEST(large_networks, listing_candidates_takes_linear_work) {
  for (const auto& [name, make] : networks) {
    const listing_work small = work_of(make(500)), large = work_of(make(1000));
    const auto is_linear = [](std::size_t of_large, std::size_t of_small) {
      return static_cast<double>(of_large) <= 2.6 * static_cast<double>(of_small);  // if it were quadratic: 4
    };
    EXPECT_PRED2(is_linear, large.candidates, small.candidates) << name;
    EXPECT_PRED2(is_linear, large.members, small.members) << name;
    EXPECT_PRED2(is_linear, large.words, small.words) << name;
  }
}

TEST(large_networks, groups_of_a_fusion_rule_are_limited) {
  const c::place_candidates found = c::find_candidates(chain(12'000), table(), {true, true});
  EXPECT_LE(found.groups.size(), c::stacked_groups::most_grown + 30'000);
  const auto largest = std::ranges::max(found.groups, {}, [](const c::place_group& g) { return g.nodes.size(); });
  EXPECT_EQ(largest.nodes.size(), c::stacked_groups::most.nodes);  // forward fusion lists it
  EXPECT_TRUE(std::ranges::any_of(found.refusals, [](const c::place_refusal& r) {
    return r.reason.find("lists more groups than its limit allows") != std::string::npos;
  }));
}

TEST(large_networks, a_caller_can_end_the_listing_of_groups) {
  const c::graph network = chain(3000);
  std::size_t called = 0;
  c::listing_watch watch;
  watch.stop = [] { return true; };
  watch.progress = [&](const char*, std::size_t done, std::size_t all) {
    ++called;
    EXPECT_LE(done, all);
  };
  const c::place_candidates found = c::find_candidates(network, table(), {true, true}, watch);
  EXPECT_GT(called, 0u);
  EXPECT_LT(found.groups.size(), 3000u + c::stacked_groups::most.nodes * 1024 + 3000u);
  std::vector<bool> covered(network.nodes().size());
  for (const c::place_candidate& one : found.list)
    if (!one.is_by_rule()) covered[one.root] = true;
  EXPECT_TRUE(std::ranges::all_of(covered, [](bool is) { return is; }));
  EXPECT_TRUE(std::ranges::any_of(
      found.refusals, [](const c::place_refusal& r) { return r.reason.find("the time was up") != std::string::npos; }));
}

TEST(large_networks, workloads_are_equal_where_structure_keys_are) {
  for (const auto& [name, make] : networks) {
    const c::graph network = make(60);
    const c::place_candidates found = c::find_candidates(network, table(), {true, true});
    c::detail::workload_numbers number_of(network);
    std::map<std::vector<std::uint64_t>, std::uint32_t> by_key;
    for (const c::place_group& g : found.groups) {
      const std::uint32_t number = number_of(g.nodes);
      const auto [known, is_new] = by_key.emplace(c::detail::structure_key(network, g.nodes), number);
      EXPECT_EQ(known->second, number) << name;
      EXPECT_EQ(number_of.count(), by_key.size()) << name;
    }
  }
}

/// Places without measuring, runs, and returns the first element of each output.
std::vector<float> run(const c::graph& network, float input) {
  c::place_options how;
  how.threads = 1;
  how.costs = c::placing_costs::none;
  const c::placed_plan made = c::place(network, table(), how);
  const c::dynamic_engine engine(network, made.chosen, table(), made.threads);
  EXPECT_EQ(c::fault_of(engine.code()), "");
  std::vector<std::vector<float>> in(network.inputs().size(), std::vector<float>(16, input));
  std::vector<std::vector<float>> out(network.outputs().size(), std::vector<float>(16));
  std::vector<c::const_tensor_view> inputs;
  std::vector<c::tensor_view> outputs;
  for (const std::vector<float>& one : in) inputs.push_back({one.data(), row});
  for (std::vector<float>& one : out) outputs.push_back({one.data(), row});
  engine.context().run(inputs, outputs);
  std::vector<float> first;
  for (const std::vector<float>& one : out) first.push_back(one[0]);
  return first;
}

TEST(large_networks, are_placed_and_run) {
  EXPECT_EQ(run(same(2000), 3), std::vector<float>{3});
  EXPECT_EQ(run(ports(2000), 3), std::vector<float>(2000, 3));
  EXPECT_NEAR(run(tree(1000), 0)[0], 250, 0.1);
}

TEST(large_networks_long, of_100_000_operators_are_placed_and_run) {
  EXPECT_EQ(run(same(100'000), 3), std::vector<float>{3});
  EXPECT_EQ(run(chain(100'000), 0).size(), 1u);
  EXPECT_EQ(run(residual(100'000), 0).size(), 1u);
  EXPECT_EQ(run(ports(20'000), 3), std::vector<float>(20'000, 3));
}

}  // namespace place_large_networks_test
#endif
