// The figures of a report, from plans that are written by hand.
#include <gtest/gtest.h>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/plan.hpp>
#include <report/facts.hpp>
#include <report/report.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/plans_by_hand.hpp"

namespace report_facts_test {
namespace {

namespace c = collage;
namespace r = collage::report;
namespace op = collage::ops;

const c::tensor_type type{c::dtype::f32, {1, 8, 4, 4}};

/// Nodes in a row.
c::graph chain(int nodes) {
  c::graph_builder g;
  auto x = g.input("x", type);
  for (int i = 0; i < nodes; ++i) x = i % 2 == 0 ? g(op::tanh, x) : g(op::sigmoid, x);
  g.output("out", x);
  return g.finish();
}

/// A branch with a chain on each side; then another operator.
c::graph branching() {
  const std::shared_ptr<const c::graph> sides[] = {std::make_shared<const c::graph>(chain(2)),
                                                   std::make_shared<const c::graph>(chain(3))};
  c::graph_builder g;
  const c::value operands[] = {g.input("condition", {c::dtype::boolean, {}}), g.input("x", type)};
  const auto y = g.add(c::kind_of<decltype(op::branch)>, operands, {}, "choice", {sides, 2});
  g.output("z", g(op::tanh, y));
  return g.finish();
}

/// Each node is a group that takes a millisecond.
c::placement one_by_one(const c::graph& network) {
  c::placement p;
  p.name = "plan";
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    c::plan_group g = collage_test::group_of_one(network, n);
    g.cost_ms = g.low_ms = g.high_ms = g.alone_ms = 1;
    std::vector<c::placement> bodies;
    for (const auto& body : network.bodies_of(n)) bodies.push_back(one_by_one(*body));
    if (!bodies.empty()) g.step = c::control_step{bodies};
    p.cost_ms += g.cost_ms;
    p.groups.push_back(g);
  }
  return p;
}

c::plan plan_of(const c::graph& network) { return collage_test::plan_by_hand(network, one_by_one(network)); }

r::source source_of(const c::graph& network, const c::plan& made) {
  r::source from;
  from.network = &network;
  from.made = &made;
  return from;
}

c::placement& side(c::plan& of, std::size_t which) {
  return std::get<c::control_step>(of.chosen.groups[0].step).bodies[which];
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++found;
  return found;
}

TEST(report_facts, groups_in_subgraphs_are_compared) {
  const c::graph network = branching();
  const c::plan made = plan_of(network);
  c::plan other = made;
  side(other, 0).groups[1].kernel = "other loops";
  c::placement& second = side(other, 1);
  second.groups[0].nodes = {0, 1};
  second.groups.erase(second.groups.begin() + 1);
  second.groups[1].low_ms = second.groups[1].high_ms = 2;
  r::source from = source_of(network, made);
  from.against = {&other, "other.json"};
  const r::facts all(from);
  ASSERT_EQ(all.other.other_kernels.size(), 2U);
  EXPECT_EQ(all.other.other_costs.size(), 1U);
  EXPECT_EQ(all.other.same, 4U);  // the branch, the operator after it, and one on each side
  std::vector<std::string> numbers;
  for (const r::compared_region& region : all.other.other_kernels)
    for (const std::uint32_t g : region.first) numbers.push_back(all.groups[g].number);
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, (std::vector<std::string>{"1.1.2", "1.2.1", "1.2.2"}));
  const std::string page = r::page_of(from);
  EXPECT_NE(page.find("other kernels run the nodes at 2 places"), std::string::npos);
  EXPECT_EQ(count(page, "\"other\":{"), 3U);  // the boxes of these groups
}

TEST(report_facts, refusals_belong_to_the_nodes_of_their_graph) {
  const c::graph network = branching();
  const c::plan made = plan_of(network);
  const c::graph& inner = *network.bodies_of(0)[0];
  const std::string name = network.node_name(1);
  ASSERT_EQ(inner.node_name(0), "tanh_0");
  ASSERT_EQ(inner.node_name(1), "sigmoid_1");
  r::source from = source_of(network, made);
  from.refusals = {
      {&network, {{"second", "tanh", name, "the outer reason"}, {"second", "sigmoid", "sigmoid_1", "elsewhere"}}},
      {&inner, {{"second", "tanh", "tanh_0", "the inner reason"}}},
      {network.bodies_of(0)[1].get(), {}}};
  const r::facts all(from);
  for (const r::group_facts& g : all.groups) {
    const bool is_outer = g.number == "2", is_inner = g.number == "1.1.1";
    ASSERT_EQ(g.refusals.size(), is_outer || is_inner ? 1U : 0U) << g.number;
    if (g.refusals.empty()) continue;
    EXPECT_EQ(all.refusals[g.refusals[0]].reason, is_outer ? "the outer reason" : "the inner reason");
  }
  const std::string page = r::page_of(from);
  EXPECT_EQ(count(page, "<td>the inner reason</td>"), 1U);
  EXPECT_EQ(count(page, "<td>the outer reason</td>"), 1U);
}

TEST(report_facts, conversions_in_subgraphs_have_rows) {
  const c::graph network = branching();
  c::plan made = plan_of(network);
  const auto convert = [](c::placement& in, std::uint32_t value, double ms) {
    c::plan_conversion x;
    x.value = value;
    x.step = {"plain", "blocked-16", "first", "0"};
    x.kernel = "moves";
    x.cost_ms = ms;
    in.conversions.push_back(x);
  };
  const c::graph& inner = *network.bodies_of(0)[0];
  convert(side(made, 0), inner.view().output_of(0), 0.5);
  EXPECT_EQ(count(r::page_of(source_of(network, made)), "<td>moves</td>"), 1U);
  convert(made.chosen, network.view().output_of(0), 4);
  EXPECT_EQ(count(r::page_of(source_of(network, made)), "<td>moves</td>"), 2U);
  EXPECT_EQ(r::facts(source_of(network, made)).longest_ms, 4);
}

TEST(report_facts, boxes_have_a_greatest_height) {
  const c::graph network = branching();
  c::plan made = plan_of(network);
  side(made, 0).groups[0].cost_ms = 1000;  // as in a loop that never runs
  made.chosen.groups[1].cost_ms = 2;
  const std::string page = r::page_of(source_of(network, made)), part = "\" rx=\"", start = "height=\"";
  double least = 1e9, greatest = 0;
  for (std::size_t at = page.find("<rect class=\"f\""); at != std::string::npos;
       at = page.find("<rect class=\"f\"", at + 1)) {
    const std::size_t text = page.find(start, at) + start.size();
    ASSERT_LT(text, page.find(part, at));
    const double height = std::stod(page.substr(text));
    least = std::min(least, height);
    greatest = std::max(greatest, height);
  }
  EXPECT_LT(least, 50);
  EXPECT_EQ(greatest, 144);
}

TEST(report_facts, times_that_cannot_be_added_are_bounded) {
  const c::graph network = chain(20);
  c::plan made = plan_of(network);
  for (c::plan_group& g : made.chosen.groups) g.cost_ms = g.low_ms = g.high_ms = g.alone_ms = 1e308;
  made.chosen.groups[1].cost_ms = 1e-308;  // of some work, so that its rate would be infinite
  made.singles = {made.chosen};
  c::plan_run run;
  run.name = "plan";
  run.median_ms = run.low_ms = run.high_ms = 1e308;
  made.runs = {run, run};
  r::source from = source_of(network, made);
  from.against = {&made, "the same"};
  const r::facts all(from);
  double sum = 0;
  for (const r::share& s : all.shares) sum += s.cost_ms;
  EXPECT_TRUE(std::isfinite(sum));
  EXPECT_TRUE(std::isfinite(all.alone_ms));
  EXPECT_TRUE(std::isfinite(all.longest_ms));
  const std::string page = r::page_of(from);
  for (const char* number : {"\"inf", " inf", "\"nan", " nan", "\"-nan", ":null"})
    EXPECT_EQ(page.find(number), std::string::npos) << number;
}

TEST(report_facts, times_that_can_be_added_stay) {
  const c::graph network = chain(2);
  c::plan made = plan_of(network);
  made.chosen.groups[0].cost_ms = 1e12;
  const r::facts all(source_of(network, made));
  EXPECT_EQ(&all.made, &made);
  EXPECT_EQ(all.longest_ms, 1e12);
}

/// A plan whose first group is a region.
c::plan with_region(const c::graph& network, std::uint32_t nodes) {
  c::plan made = plan_of(network);
  std::vector<c::plan_group>& groups = made.chosen.groups;
  groups[0].step = c::group_step{"second"};
  groups[0].nodes.resize(nodes);
  std::iota(groups[0].nodes.begin(), groups[0].nodes.end(), 0U);
  groups[0].kernel = "compiled";
  groups.erase(groups.begin() + 1, groups.begin() + nodes);
  return made;
}

TEST(report_facts, large_regions_have_drawings_of_their_nodes) {
  const c::graph network = chain(20);
  const c::plan made = with_region(network, 18);
  const r::source from = source_of(network, made);
  const r::facts all(from);
  ASSERT_EQ(all.scenes.size(), 2U);
  const r::scene& opened = all.scenes[1];
  EXPECT_EQ(opened.name, "group 1, its nodes");
  ASSERT_EQ(opened.items.items.size(), 1U + 18 + 1);
  EXPECT_EQ(opened.items.nets.size(), 19U);
  EXPECT_EQ(opened.network->value_name(opened.network->inputs()[0]), "x");
  ASSERT_EQ(all.groups.size(), 3U + 18);
  EXPECT_FALSE(all.groups[0].is_part);
  for (std::uint32_t n = 0; n < 18; ++n) {
    EXPECT_TRUE(all.groups[3 + n].is_part);
    EXPECT_EQ(all.groups[3 + n].label, network.node_name(n));
  }
  // The nodes are in no table and take no time: only the drawing and its panel have them.
  EXPECT_EQ(all.rows.size(), 3U);
  EXPECT_EQ(all.longest_ms, 1);
  const std::string page = r::page_of(from);
  EXPECT_EQ(count(page, "<svg class=\"net\""), 2U);
  EXPECT_NE(page.find("<option value=\"part1\">group 1, its nodes</option>"), std::string::npos);
  EXPECT_EQ(count(page, "<text class=\"r\""), count(page, " \u00b7 1.000 ms</text>") + 18);
  EXPECT_EQ(count(page, "\"part\":1"), 18U);
}

TEST(report_facts, small_regions_and_kernels_stay_closed) {
  const c::graph network = chain(20);
  EXPECT_EQ(r::facts(source_of(network, with_region(network, 12))).scenes.size(), 1U);
  c::plan made = with_region(network, 18);
  made.chosen.groups[0].step = c::kernel_step{"second", "pattern", "0"};
  EXPECT_EQ(r::facts(source_of(network, made)).scenes.size(), 1U);
}

}  // namespace
}  // namespace report_facts_test
