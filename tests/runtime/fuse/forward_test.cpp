// Forward fusion on small graphs whose groups are known, and at its limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/fuse/fuse.hpp>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "graphs.hpp"

namespace fuse_forward_test {

using namespace collage_test;
using kind = fusion_kind;
using writer = flow_writer;

groups forward(const fuse::dataflow& flow, const fuse::kernel_limits& most = {}) {
  const fuse::fused result = fuse::fuse_forward(flow, most);
  EXPECT_EQ(fuse::order_violation(flow, result.groups), "");
  return lists(result);
}

TEST(fuse_forward, nothing_and_one_node) {
  EXPECT_EQ(forward(writer().finish()), groups{});
  writer g;
  EXPECT_EQ(forward(g.result(g.conv(g.x))), (groups{{0}}));
}

TEST(fuse_forward, convolution_norm_and_relu) {
  writer g;
  const std::uint32_t w = g.given({8, 5}, true);
  const fuse::dataflow flow = g.result(g.relu(g.add(g.add(g.conv(g.x), w), w)));
  const fuse::fused result = fuse::fuse_forward(flow);
  EXPECT_EQ(lists(result), (groups{{0, 1, 2, 3}}));
  EXPECT_EQ(result.bytes, 128u);  // the input and the output; weights are not counted
  EXPECT_EQ(fuse::unfused(flow).bytes, 4 * 128u);
}

TEST(fuse_forward, a_broadcast_that_enlarges_does_not_follow_a_convolution) {
  writer g;
  const std::uint32_t wide = g.given({640, 3});
  const std::uint32_t c = g.conv(g.x);
  EXPECT_EQ(forward(g.result(g.flow_builder::node(kind::broadcast, {c, wide}, {640, 3}))), (groups{{0}, {1}}));
  writer e;
  const std::uint32_t other = e.given({640, 3});
  const std::uint32_t r = e.relu(e.x);  // but an elementwise operator
  EXPECT_EQ(forward(e.result(e.flow_builder::node(kind::broadcast, {r, other}, {640, 3}))), (groups{{0, 1}}));
}

TEST(fuse_forward, a_convolution_joins_no_group_whose_end_enlarges) {
  writer g;
  const std::uint32_t start = g.relu(g.x);                                                     // 0
  const std::uint32_t sum = g.add(g.conv(g.x), start);                                         // 1 2
  EXPECT_EQ(forward(g.result(g.flow_builder::node(kind::broadcast, {sum, start}, {640, 3}))),  // 3
            (groups{{0, 2, 3}, {1}}));  // which took the sum before the convolution could
  writer e;
  const std::uint32_t low = e.relu(e.x);
  EXPECT_EQ(forward(e.result(e.add(e.add(e.conv(e.x), low), low))), (groups{{0, 1, 2, 3}}));
}

TEST(fuse_forward, residual_block) {
  writer g;
  const std::uint32_t start = g.relu(g.x);                                                  // 0
  const std::uint32_t y = g.conv(g.relu(g.conv(start)));                                    // 1 2 3
  EXPECT_EQ(forward(g.result(g.relu(g.add(y, start)))), (groups{{0}, {1, 2}, {3, 4, 5}}));  // 4 5
}

TEST(fuse_forward, diamond_of_elementwise_operators) {
  writer g;
  const std::uint32_t top = g.conv(g.x);
  EXPECT_EQ(forward(g.result(g.add(g.relu(top), g.relu(top)))), (groups{{0, 1, 2, 3}}));
}

TEST(fuse_forward, two_convolutions_into_one_sum) {
  writer g;
  const std::uint32_t left = g.conv(g.x), right = g.conv(g.x);
  EXPECT_EQ(forward(g.result(g.add(left, right))), (groups{{0, 2}, {1}}));  // the first takes the sum
}

TEST(fuse_forward, inception_concatenates_elementwise_ends_alone) {
  writer g;
  const std::uint32_t left = g.relu(g.conv(g.x)), right = g.relu(g.x);
  const std::uint32_t both = g.flow_builder::node(kind::injective, {left, right}, {128, 2});
  EXPECT_EQ(forward(g.result(both)), (groups{{0, 1}, {2, 3}}));
}

TEST(fuse_forward, tuples) {
  // The tuple is taken by the mover behind it, and then takes movers and elementwise operators; no convolution.
  writer g;
  const std::uint32_t a = g.relu(g.x), b = g.move(g.x), c = g.conv(g.x);
  const std::uint32_t t = g.flow_builder::node(kind::tuple, {a, b, c}, {192, 2}, fuse::node_role::tuple);
  const std::uint32_t joined = g.flow_builder::node(kind::injective, {t}, {192, 2});
  EXPECT_EQ(forward(g.result(joined)), (groups{{0, 1, 3, 4}, {2}}));
  // A tuple that the graph answers is no kernel's.
  writer e;
  const std::uint32_t f = e.relu(e.x);
  EXPECT_EQ(forward(e.result(e.flow_builder::node(kind::tuple, {f}, {64, 2}, fuse::node_role::tuple))),
            (groups{{0}, {1}}));
}

TEST(fuse_forward, reductions_end_a_group) {
  writer g;
  const std::uint32_t s = g.sum(g.relu(g.relu(g.x)));
  const fuse::dataflow flow = [&] {
    g.output(g.flow_builder::node(kind::elementwise, {s}, {4, 1}));
    return g.finish();
  }();
  EXPECT_EQ(forward(flow), (groups{{0, 1, 2}, {3}}));
  writer e;
  EXPECT_EQ(forward(e.result(e.sum(e.conv(e.x)))), (groups{{0}, {1}}));
}

TEST(fuse_forward, opaque_operators_stay_alone) {
  writer g;
  EXPECT_EQ(forward(g.result(g.relu(g.node(kind::opaque, {g.relu(g.x)})))), (groups{{0}, {1}, {2}}));
}

TEST(fuse_forward, fan_out_and_outputs_part_groups) {
  writer g;
  const std::uint32_t r = g.relu(g.x);
  g.output(g.conv(r));
  g.output(g.conv(r));
  EXPECT_EQ(forward(g.finish()), (groups{{0}, {1}, {2}}));
  writer e;
  const std::uint32_t first = e.relu(e.x);
  e.output(first);
  EXPECT_EQ(forward(e.result(e.relu(first))), (groups{{0}, {1}}));
}

TEST(fuse_forward, dead_branches) {
  writer g;
  const std::uint32_t r = g.relu(g.x);
  g.relu(r);  // nobody reads it
  EXPECT_EQ(forward(g.result(g.relu(r))), (groups{{0}, {1}, {2}}));
}

TEST(fuse_forward, movers_wait_for_the_second_phase) {
  writer g;
  const std::uint32_t m = g.move(g.x);
  EXPECT_EQ(forward(g.result(g.add(g.conv(g.x), m))), (groups{{0}, {1, 2}}));
  writer e;
  EXPECT_EQ(forward(e.result(e.relu(e.move(e.move(e.relu(e.x)))))), (groups{{0, 1, 2, 3}}));
}

TEST(fuse_forward, long_chains_are_cut_at_the_limit) {
  writer g;
  std::uint32_t v = g.x;
  for (int i = 0; i < 600; ++i) v = g.relu(v);
  const fuse::dataflow flow = g.result(v);
  const fuse::fused result = fuse::fuse_forward(flow);
  std::size_t largest = 0;
  for (const auto& group : result.groups) largest = std::max(largest, group.size());
  EXPECT_EQ(largest, 256u);
  EXPECT_EQ(result.kernels, 3u);
  EXPECT_EQ(fuse::fuse_forward(flow, {.nodes = 0}).kernels, 1u);
  EXPECT_EQ(fuse::fuse_forward(flow, {.nodes = 1}).kernels, 600u);
}

TEST(fuse_forward, a_limit_takes_all_paths_or_none) {
  writer g;
  const std::uint32_t top = g.relu(g.x);
  const fuse::dataflow flow = g.result(g.add(g.relu(g.relu(top)), g.relu(top)));  // five nodes
  EXPECT_EQ(forward(flow, {.nodes = 5}), (groups{{0, 1, 2, 3, 4}}));
  for (const auto& group : fuse::fuse_forward(flow, {.nodes = 4}).groups)
    EXPECT_FALSE(group.contains(0) && group.size() > 1);
}

TEST(fuse_forward, arguments_are_limited) {
  writer g;
  std::uint32_t v = g.x;
  for (int i = 0; i < 12; ++i) v = g.add(v, g.given({64, 0}, i % 2 == 0));
  const fuse::dataflow flow = g.result(v);
  EXPECT_EQ(fuse::fuse_forward(flow).kernels, 1u);
  const fuse::fused limited = fuse::fuse_forward(flow, {.arguments = 4});
  for (const auto& group : limited.groups) EXPECT_LE(fuse::argument_count(flow, group), 4u);
  EXPECT_EQ(limited.kernels, 4u);  // three operands of its own and the value before
}

}  // namespace fuse_forward_test
