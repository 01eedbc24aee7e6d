// Boxes of drawings, repeated blocks, and the page of a plan that is written by hand.
#include <gtest/gtest.h>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/plan.hpp>
#include <report/difference.hpp>
#include <report/items.hpp>
#include <report/report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "support/plans_by_hand.hpp"

namespace report_items_test {
namespace {

namespace c = collage;
namespace r = collage::report;
namespace op = collage::ops;

/// A stem, equal residual parts of three nodes each, and a head.
c::graph residual_network(int parts, const std::string& first_name = "x") {
  c::graph_builder g;
  auto x = g(op::relu, g.input(first_name, {c::dtype::f32, {1, 8, 4, 4}}));
  for (int i = 0; i < parts; ++i) x = g(op::add, g(op::sigmoid, g(op::tanh, x)), x);
  g.output("out", g(op::exp, x));
  return g.finish();
}

/// Each node is a group, with a cost that its number determines.
c::placement one_by_one(const c::graph& network) {
  c::placement p;
  p.name = "plan";
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    c::plan_group g = collage_test::group_of_one(network, n);
    g.cost_ms = 0.1 + 0.01 * n;
    g.low_ms = g.cost_ms - 0.01;
    g.high_ms = g.cost_ms + 0.01;
    p.cost_ms += g.cost_ms;
    p.groups.push_back(g);
  }
  return p;
}

c::plan plan_of(const c::graph& network) { return collage_test::plan_by_hand(network, one_by_one(network)); }

TEST(report_items, boxes_are_inputs_groups_and_outputs) {
  const c::graph network = residual_network(2);
  const r::item_graph items = r::items_of(network, one_by_one(network), nullptr);
  ASSERT_EQ(items.items.size(), 1 + network.nodes().size() + 1);
  EXPECT_EQ(items.items.front().what, r::item::kind::input);
  EXPECT_EQ(items.items.back().what, r::item::kind::output);
  ASSERT_EQ(items.nets.size(), 1 + network.nodes().size());
  EXPECT_EQ(items.nets[1].to.size(), 2U);  // relu is read by tanh and by add
}

TEST(report_items, a_conversion_stands_between_its_value_and_the_readers_of_its_form) {
  const c::graph network = residual_network(1);
  c::placement p = one_by_one(network);
  p.groups[1].layout = "blocked-16";  // tanh reads relu's result in another form; add reads it as it is
  p.groups[2].layout = "blocked-16 to plain";
  c::plan_conversion x;
  x.value = network.view().output_of(0);
  x.step = {"plain", "blocked-16", "first", "0"};
  p.conversions.push_back(x);
  const r::item_graph items = r::items_of(network, p, nullptr);
  const auto at = std::ranges::find(items.items, r::item::kind::conversion, &r::item::what);
  ASSERT_NE(at, items.items.end());
  const auto number = static_cast<std::uint32_t>(at - items.items.begin());
  const auto net = std::ranges::find(items.nets, number, &r::item_net::from);
  ASSERT_NE(net, items.nets.end());
  ASSERT_EQ(net->to.size(), 1U);
  EXPECT_EQ(items.items[net->to[0]].number, 1U);
  EXPECT_EQ(net->form, "blocked-16");
}

TEST(report_items, equal_parts_are_found) {
  const c::graph network = residual_network(5);
  const c::placement p = one_by_one(network);
  const r::item_graph items = r::items_of(network, p, nullptr);
  const auto blocks = r::repeated_blocks(network, p, items, 3);
  ASSERT_EQ(blocks.size(), 5U);
  for (std::size_t b = 0; b < 5; ++b) {
    EXPECT_EQ(blocks[b].kind, 0U);
    EXPECT_EQ(blocks[b].which, b);
    EXPECT_EQ(blocks[b].count, 5U);
    EXPECT_EQ(blocks[b].items.size(), 3U);
  }
  const r::item_graph folded = r::collapsed(items, blocks);
  EXPECT_EQ(folded.items.size(), items.items.size() - 5 * 2);
  for (const r::item_net& net : folded.nets)
    for (const std::uint32_t to : net.to) EXPECT_LT(net.from, to);
}

TEST(report_items, different_parts_are_not_equal) {
  c::graph_builder g;
  auto x = g.input("x", {c::dtype::f32, {8}});
  x = g(op::exp, g(op::sigmoid, g(op::tanh, x)));
  x = g(op::relu, g(op::abs, g(op::neg, x)));
  g.output("out", x);
  const c::graph network = g.finish();
  const c::placement p = one_by_one(network);
  EXPECT_TRUE(r::repeated_blocks(network, p, r::items_of(network, p, nullptr), 3).empty());
}

TEST(report_items, extents_of_equal_parts_may_differ) {
  c::graph_builder g;
  auto x = g.input("x", {c::dtype::f32, {2, 8}});
  for (int i = 0; i < 3; ++i) x = g(op::concat, g(op::tanh, g(op::sigmoid, x)), x, {.axis = 1});
  g.output("out", x);
  const c::graph network = g.finish();
  const c::placement p = one_by_one(network);
  EXPECT_EQ(r::repeated_blocks(network, p, r::items_of(network, p, nullptr), 3).size(), 3U);
}

TEST(report_items, parts_with_other_connections_are_not_equal) {
  c::graph_builder g;
  auto x = g.input("x", {c::dtype::f32, {8}});
  for (int i = 0; i < 4; ++i) {
    const auto first = g(op::tanh, x), second = g(op::sigmoid, first);
    x = g(op::add, second, i % 2 == 0 ? first : x);  // the sum skips one operator, or two
  }
  g.output("out", x);
  const c::graph network = g.finish();
  const c::placement p = one_by_one(network);
  const auto blocks = r::repeated_blocks(network, p, r::items_of(network, p, nullptr), 3);
  ASSERT_EQ(blocks.size(), 2U);  // two of the parts together repeat
  EXPECT_EQ(blocks[0].items.size(), 6U);
}

TEST(report_items, a_group_over_all_parts_leaves_no_blocks) {
  const c::graph network = residual_network(4);
  c::placement p = one_by_one(network);
  c::plan_group all = p.groups.front();
  all.step = c::group_step{"second"};
  for (std::uint32_t n = 1; n < network.nodes().size(); ++n) all.nodes.push_back(n);
  p.groups = {all};
  EXPECT_TRUE(r::repeated_blocks(network, p, r::items_of(network, p, nullptr), 3).empty());
}

TEST(report_page, the_same_plan_has_the_same_page) {
  const c::graph network = residual_network(3);
  const c::plan made = plan_of(network);
  r::source from;
  from.network = &network;
  from.made = &made;
  from.name = "plan.json";
  r::summary sizes;
  const std::string page = r::page_of(from, &sizes);
  EXPECT_EQ(page, r::page_of(from));
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(sizes.groups, network.nodes().size());
  EXPECT_NE(page.find("tanh_1"), std::string::npos);
  EXPECT_NE(page.find("id=\"canvas\""), std::string::npos);  // the script and the style sheet are inside
  EXPECT_NE(page.find("function showGroup"), std::string::npos);
}

TEST(report_page, names_never_become_markup) {
  const std::string hostile = "</script><img src=x onerror='a(\"b\")'>\u2028";
  const c::graph network = residual_network(2, hostile);
  c::plan made = plan_of(network);
  made.network = hostile;
  made.chosen.groups[0].kernel = hostile;
  made.chosen.groups[0].why = hostile;
  made.backends[0].details = hostile;
  r::source from;
  from.network = &network;
  from.made = &made;
  from.name = hostile;
  from.refusals = {{&network, {{hostile, hostile, hostile, hostile}}}};
  from.missing.operators = {{hostile, hostile, hostile, 1, 1}};
  const std::string page = r::page_of(from);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("\u2028"), std::string::npos);
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++ends;
  EXPECT_EQ(ends, 2U);  // of the data and of the script
}

TEST(report_page, another_plan_is_compared) {
  const c::graph network = residual_network(2);
  const c::plan made = plan_of(network);
  c::plan other = made;
  c::plan_group& joined = other.chosen.groups[1];  // tanh and sigmoid in one kernel
  joined.nodes = {1, 2};
  joined.step = c::kernel_step{"second", "pair", "0"};
  other.chosen.groups.erase(other.chosen.groups.begin() + 2);
  other.chosen.groups[0].cost_ms = 9;
  other.chosen.groups[0].low_ms = 8.5;
  other.chosen.groups[0].high_ms = 9.5;
  const r::difference d = r::compare(made, other);
  ASSERT_EQ(d.other_kernels.size(), 1U);
  EXPECT_EQ(d.other_kernels[0].first.size(), 2U);
  EXPECT_EQ(d.other_kernels[0].second.size(), 1U);
  ASSERT_EQ(d.other_costs.size(), 1U);
  EXPECT_EQ(d.same, network.nodes().size() - 2);
  EXPECT_TRUE(r::compare(made, made).other_kernels.empty());

  r::source from;
  from.network = &network;
  from.made = &made;
  from.against = {&other, "other.json"};
  EXPECT_NE(r::page_of(from).find("other.json"), std::string::npos);
  other.fingerprint ^= 1;
  EXPECT_THROW((void)r::page_of(from), c::error);
}

}  // namespace
}  // namespace report_items_test
