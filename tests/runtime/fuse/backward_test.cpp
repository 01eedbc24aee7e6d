// Backward and sibling fusion on small graphs, what one kernel may hold, and graphs of groups under merges.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/error.hpp>
#include <collage/fuse/backward.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/fuse/kernel.hpp>
#include <collage/fuse/merging.hpp>
#include <collage/fuse/quotient.hpp>
#include <collage/fuse/siblings.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graphs.hpp"

namespace fuse_backward_test {

using namespace collage_test;
using kind = fusion_kind;
using writer = flow_writer;

/// d -> n -> m and d -> o -> m, o opaque.
fuse::dataflow around_an_opaque_operator() {
  writer g;
  const std::uint32_t d = g.relu(g.x);
  const std::uint32_t n = g.relu(d);
  const std::uint32_t o = g.node(kind::opaque, {d});
  return g.result(g.add(n, o));
}

TEST(fuse_backward, both_directions_together_would_close_a_cycle) {
  const fuse::dataflow flow = around_an_opaque_operator();
  EXPECT_EQ(lists(fuse::fuse_forward(flow)), (groups{{0}, {1, 3}, {2}}));
  EXPECT_EQ(lists(fuse::fuse_backward(flow)), (groups{{0, 1}, {2}, {3}}));
  const fuse::fused both = fuse::fuse_all(flow);
  EXPECT_EQ(lists(both), (groups{{0}, {1, 3}, {2}}));
  EXPECT_EQ(fuse::order_violation(flow, both.groups), "");

  fuse::quotient q(flow, {0, 1, 2, 1});
  EXPECT_FALSE(q.merge(std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(q.groups(), (index_list{0, 2, 1}));
  EXPECT_TRUE(q.merge(std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(q.groups(), (index_list{0}));
}

TEST(fuse_backward, a_fan_out_is_written_and_read_on) {
  // Pre-activation: the sum is read by the next branch's norm and by the next sum.
  writer g;
  const std::uint32_t w = g.given({4, 2}, true);
  const std::uint32_t sum = g.add(g.conv(g.x), g.x);                     // 0 1
  const std::uint32_t branch = g.conv(g.relu(g.add(g.add(sum, w), w)));  // 2 3 4 5
  const fuse::dataflow flow = g.result(g.add(branch, sum));              // 6
  EXPECT_EQ(lists(fuse::fuse_forward(flow)), (groups{{0, 1}, {2, 3, 4}, {5, 6}}));
  const fuse::fused both = fuse::fuse_all(flow);
  EXPECT_EQ(lists(both), (groups{{0, 1, 2, 3, 4}, {5, 6}}));
  EXPECT_EQ(fuse::fuse_forward(flow).bytes - both.bytes, 64u);  // the sum is not read again
  // Code that writes one value cannot.
  EXPECT_EQ(fuse::fuse_all(flow, {.outputs = 1}).kernels, 3u);
  EXPECT_EQ(fuse::fuse_all(flow, {.nodes = 4}).kernels, 3u);
}

TEST(fuse_backward, weights_as_sources_leave_nothing_to_fuse) {
  writer g;
  const std::uint32_t w = g.given({4, 2}, true);
  const fuse::dataflow flow = g.result(g.add(g.add(g.conv(g.x), w), w));
  EXPECT_EQ(fuse::fuse_backward(flow).kernels, 1u);
  EXPECT_EQ(fuse::fuse_backward(flow, {}, {.weights = true}).kernels, 3u);
}

TEST(fuse_backward, inputs_as_sources) {
  writer g;
  const fuse::dataflow flow = g.result(g.add(g.relu(g.x), g.x));
  EXPECT_EQ(fuse::fuse_backward(flow).kernels, 1u);
  EXPECT_EQ(fuse::fuse_backward(flow, {}, {.inputs = true}).kernels, 2u);
}

TEST(fuse_siblings, readers_of_one_value) {
  writer g;
  g.output(g.relu(g.x));
  g.output(g.relu(g.x));
  g.output(g.conv(g.x));  // reads windows
  const fuse::dataflow flow = g.finish();
  EXPECT_EQ(lists(fuse::fuse_all(flow)), (groups{{0, 1}, {2}}));
  EXPECT_EQ(fuse::fuse_all(flow).bytes, 5 * 64u);
  EXPECT_EQ(fuse::fuse_all(flow, {.outputs = 1}).kernels, 3u);
}

TEST(fuse_siblings, many_become_one) {
  writer g;
  for (int i = 0; i < 6; ++i) g.output(g.relu(g.x));
  const fuse::dataflow flow = g.finish();
  fuse::quotient q(flow);
  EXPECT_EQ(fuse::fuse_siblings(q, {}).merges, 5u);
  EXPECT_EQ(q.groups(), (index_list{0}));
}

TEST(fuse_siblings, convolutions_are_not_tried) {
  writer g;
  for (int i = 0; i < 6; ++i) g.output(g.conv(g.x));
  const fuse::fused result = fuse::fuse_all(g.finish());
  EXPECT_EQ(result.kernels, 6u);
  EXPECT_EQ(result.judged, 0u);
}

TEST(fuse_merging, takes_nothing_that_saves_nothing) {
  writer g;
  const std::uint32_t y = g.given({64, 0});
  g.output(g.relu(g.x));
  g.output(g.relu(g.x));
  g.output(g.relu(y));
  const fuse::dataflow flow = g.finish();
  fuse::quotient q(flow);
  fuse::merging merges(q, {});
  merges.propose({0, 2});
  EXPECT_EQ(merges.commit(), 0u);
  merges.propose({0, 1});
  EXPECT_EQ(merges.commit(), 1u);
  merges.propose({0, 2});  // still not, now that two of them are one
  EXPECT_EQ(merges.commit(), 0u);
  EXPECT_EQ(merges.judged(), 3u);
}

TEST(fuse_merging, takes_the_best_first) {
  // The middle one shares a small value with the first and a large one with the last; at most two nodes fit.
  fuse::flow_builder g;
  const std::uint32_t small = g.given({16, 0}), large = g.given({16'000, 0});
  g.output(g.node(kind::broadcast, {small}, {64, 0}));
  g.output(g.node(kind::broadcast, {small, large}, {64, 0}));
  g.output(g.node(kind::broadcast, {large}, {64, 0}));
  EXPECT_EQ(lists(fuse::fuse_all(g.finish(), {.nodes = 2})), (groups{{0}, {1, 2}}));
}

TEST(fuse_siblings, of_different_shapes_stay_apart) {
  writer g;
  g.output(g.relu(g.x));
  g.output(g.node(kind::injective, {g.x}, 1));
  EXPECT_EQ(fuse::fuse_all(g.finish()).kernels, 2u);
}

TEST(fuse_siblings, do_not_close_a_cycle) {
  // Both read x; the second also what an opaque operator made of the first.
  writer g;
  const std::uint32_t first = g.relu(g.x);
  const fuse::dataflow flow = g.result(g.add(g.node(kind::opaque, {first}), g.x));
  EXPECT_EQ(fuse::fuse_all(flow).kernels, 3u);
}

TEST(fuse_siblings, the_second_of_two_that_close_a_cycle_is_refused) {
  // 1 -> 3 and 2 -> 4 over opaque operators: {1, 4} alone is fine, and so is {2, 3}; not both.
  writer g;
  const std::uint32_t y = g.given({64, 0});
  const std::uint32_t one = g.relu(g.x), two = g.relu(y);
  g.output(g.add(g.node(kind::opaque, {one}), y));
  g.output(g.add(g.node(kind::opaque, {two}), g.x));
  const fuse::dataflow flow = g.finish();
  const fuse::fused result = fuse::fuse_all(flow);
  EXPECT_EQ(result.kernels, 5u);
  EXPECT_EQ(fuse::order_violation(flow, result.groups), "");
}

std::string refusal(const fuse::dataflow& flow, const index_list& nodes, const fuse::kernel_limits& most = {}) {
  fuse::surveyor survey(flow);
  const fuse::kernel_facts facts = survey.measure(nodes);
  return survey.refusal(nodes, most, facts);
}

TEST(fuse_kernel, says_why_not) {
  writer g;
  const std::uint32_t a = g.relu(g.x);                         // 0
  const std::uint32_t c = g.conv(a);                           // 1
  const std::uint32_t b = g.add(c, a);                         // 2
  const std::uint32_t m = g.node(kind::injective, {b}, 1);     // 3
  const std::uint32_t s = g.node(kind::reduction, {a}, 2, 8);  // 4
  const std::uint32_t r = g.node(kind::elementwise, {s}, 2);   // 5
  const std::uint32_t o = g.node(kind::opaque, {b});           // 6
  const std::uint32_t e = g.conv(b);                           // 7
  const std::uint32_t side = g.relu(g.x);                      // 8
  for (const std::uint32_t v : {m, r, o, e, side}) g.output(v);
  const fuse::dataflow flow = g.finish();
  EXPECT_EQ(refusal(flow, {1}), "");
  EXPECT_EQ(refusal(flow, {6}), "");
  EXPECT_EQ(refusal(flow, {1, 2}), "");
  EXPECT_EQ(refusal(flow, {0, 1}), "an operator before an anchor");
  EXPECT_EQ(refusal(flow, {2, 6}), "an opaque operator");
  EXPECT_EQ(refusal(flow, {1, 2, 3}), "elements moved after an output or a row");
  EXPECT_EQ(refusal(flow, {1, 7}), "two anchors or reductions, or one of them with rows");
  EXPECT_EQ(refusal(flow, {4, 5}), "an operator after a reduction");
  EXPECT_EQ(refusal(flow, {4, 5}, {.rows = true}), "");
  EXPECT_EQ(refusal(flow, {0, 4}), "a reduction with other outputs");
  EXPECT_EQ(refusal(flow, {0, 4}, {.rows = true}), "");
  EXPECT_EQ(refusal(flow, {0, 4, 5, 8}, {.rows = true}), "");
  EXPECT_EQ(refusal(flow, {1, 4}, {.rows = true}), "two anchors or reductions, or one of them with rows");
  EXPECT_EQ(refusal(flow, {1, 2, 8}), "an output that does not depend on the anchor");
  EXPECT_EQ(refusal(flow, {5, 8}), "outputs of different shapes");
  EXPECT_EQ(refusal(flow, {2, 3}), "elements moved after an output or a row");
  EXPECT_EQ(refusal(flow, {0, 8}, {.nodes = 1}), "too many nodes");
  EXPECT_EQ(refusal(flow, {0, 8}, {.outputs = 1}), "too many outputs");
  EXPECT_EQ(refusal(flow, {0, 2}, {.arguments = 1}), "too many arguments");
}

TEST(fuse_kernel, behind_a_convolution_shapes_are_kept) {
  writer g;
  const std::uint32_t c = g.conv(g.x);
  g.output(g.node(kind::injective, {g.relu(c)}));
  const fuse::dataflow flow = g.finish();
  EXPECT_EQ(refusal(flow, {0, 1}), "");
  EXPECT_EQ(refusal(flow, {0, 1, 2}), "an operator that is not elementwise after an anchor");
}

TEST(fuse_kernel, rows_are_of_one_length) {
  writer g;
  const std::uint32_t a = g.node(kind::reduction, {g.x}, 1, 4), b = g.node(kind::reduction, {g.x}, 1, 8);
  const std::uint32_t c = g.node(kind::reduction, {g.x}, 1, 4);
  for (const std::uint32_t v : {a, b, c}) g.output(v);
  const fuse::dataflow flow = g.finish();
  EXPECT_EQ(refusal(flow, {0, 1}, {.rows = true}), "operators on different rows");
  EXPECT_EQ(refusal(flow, {0, 2}, {.rows = true}), "");
}

TEST(fuse_kernel, counts_what_crosses_its_border) {
  writer g;
  const std::uint32_t w = g.given({1000, 7}, true);
  const std::uint32_t a = g.add(g.x, w);
  const std::uint32_t b = g.add(a, g.x);
  g.relu(b);  // read by nobody, so nothing is written
  g.output(b);
  const fuse::dataflow flow = g.finish();
  fuse::surveyor survey(flow);
  const fuse::kernel_facts whole = survey.measure(index_list{0, 1, 2});
  EXPECT_EQ(whole.arguments, 2u);
  EXPECT_EQ(whole.outputs, 1u);
  EXPECT_EQ(whole.read_bytes, 64u);
  EXPECT_EQ(whole.written_bytes, 64u);
  EXPECT_EQ(survey.measure(index_list{1}).read_bytes, 128u);
}

TEST(fuse_quotient, refuses_numbers_that_are_no_groups) {
  const fuse::dataflow flow = around_an_opaque_operator();
  for (const std::vector<std::uint32_t>& wrong : {index_list{0, 1, 2}, index_list{0, 1, 2, 4}}) {
    try {
      fuse::quotient(flow, wrong);
      ADD_FAILURE();
    } catch (const collage::error& e) {
      EXPECT_STREQ(e.what(), "fusion: groups need a number for each node, below the number of nodes");
    }
  }
}

bool has_cycle(const fuse::dataflow& flow, const std::vector<std::uint32_t>& group_of) {
  try {
    fuse::quotient(flow, group_of);
    return false;
  } catch (const collage::error& e) {
    EXPECT_STREQ(e.what(), "fusion: the groups depend on each other in a cycle");
    return true;
  }
}

TEST(fuse_quotient, refuses_what_closes_a_cycle_and_nothing_else) {
  fuse_random random;
  std::size_t merged = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const fuse::dataflow flow = random_flow(random, {.nodes = random.number(2, 20), .near = random.number(20, 90)});
    fuse::quotient q(flow);
    std::vector<std::uint32_t> group_of(flow.size());
    for (std::uint32_t n = 0; n < flow.size(); ++n) group_of[n] = n;
    for (std::uint32_t step = random.number(1, 12); step > 0; --step) {
      index_list chosen;
      for (std::uint32_t k = random.number(2, 3); k > 0; --k) {
        const std::uint32_t g = q.group_of(random.number(0, flow.size() - 1));
        if (std::ranges::find(chosen, g) == chosen.end()) chosen.push_back(g);
      }
      if (chosen.size() < 2) continue;
      std::vector<std::uint32_t> after = group_of;
      const std::uint32_t name = *std::ranges::min_element(chosen);
      for (std::uint32_t& g : after)
        if (std::ranges::find(chosen, g) != chosen.end()) g = name;
      const bool cyclic = has_cycle(flow, after);
      ASSERT_EQ(q.merge(chosen), !cyclic) << describe(flow);
      ++(cyclic ? refused : merged);
      if (!cyclic) group_of = after;
      for (std::uint32_t n = 0; n < flow.size(); ++n) ASSERT_EQ(q.group_of(n), group_of[n]);
      ASSERT_EQ(fuse::order_violation(flow, fuse::result_of(q).groups), "") << describe(flow);
      for (const std::uint32_t g : q.groups()) {
        ASSERT_TRUE(std::ranges::is_sorted(q.members(g)));
        ASSERT_EQ(q.members(g).front(), g);
      }
    }
  }
  EXPECT_GT(merged, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(fuse_order, violations_are_named) {
  using fuse::node_set;
  const fuse::dataflow flow = around_an_opaque_operator();
  const auto check = [&](std::vector<node_set> order) { return fuse::order_violation(flow, order); };
  EXPECT_EQ(check({{0}, {2}, {1, 3}}), "");
  EXPECT_EQ(check({{0}, {1, 3}, {2}}), "group 1 reads from a later group");
  EXPECT_EQ(check({{0, 1, 3}, {2}}), "group 0 reads from a later group");
  EXPECT_EQ(check({{0}, {1, 3}}), "node 2 is in no group");
  EXPECT_EQ(check({{0}, {0, 1, 2, 3}}), "node 0 is in two groups");
  EXPECT_EQ(check({{0, 1, 2, 3}, {9}}), "group 1 holds node 9, which does not exist");
}

}  // namespace fuse_backward_test
