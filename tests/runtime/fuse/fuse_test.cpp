// Fusion as a whole: random graphs, the table of networks, growth, graphs of the run time, and candidates for a
// backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <collage/error.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/from_graph.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/graph/graph.hpp>
#include <collage/zoo/all.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "graphs.hpp"

namespace fuse_fuse_test {

using namespace collage_test;
using fuse::node_set;
using kind = fusion_kind;

std::size_t outputs_of(const fuse::dataflow& flow, const node_set& group) {
  std::size_t count = 0;
  for (const std::uint32_t n : group) {
    const fuse::flow_node& node = flow.node(n);
    for (std::uint32_t v = node.first_output; v < node.first_output + node.outputs; ++v) {
      const auto readers = flow.readers(v);
      count +=
          flow.at(v).is_output || std::ranges::any_of(readers, [&](std::uint32_t r) { return !group.contains(r); });
    }
  }
  return count;
}

std::size_t exits_of(const fuse::dataflow& flow, const node_set& group) {
  return static_cast<std::size_t>(std::ranges::count_if(
      group.begin(), group.end(), [&](std::uint32_t n) { return fuse::is_exit(flow, group, n); }));
}

/// Nodes that read what another group computes.
std::size_t entries_of(const fuse::dataflow& flow, const node_set& group) {
  std::size_t count = 0;
  for (const std::uint32_t n : group) {
    bool enters = false;
    flow.predecessors(n, [&](std::uint32_t producer, std::uint32_t) { enters = enters || !group.contains(producer); });
    count += enters;
  }
  return count;
}

/// What no kernel of these rules holds, written apart from the code that decides it; rows are not allowed for.
void check_kernel(const fuse::dataflow& flow, const node_set& group, const fuse::kernel_limits& most) {
  if (group.size() == 1) return;
  ASSERT_LE(group.size(), most.nodes);
  ASSERT_LE(fuse::argument_count(flow, group), most.arguments);
  ASSERT_LE(outputs_of(flow, group), most.outputs);
  std::size_t heavy = 0;
  for (const std::uint32_t n : group) {
    ASSERT_NE(flow.kind(n), kind::opaque);
    heavy += flow.kind(n) == kind::anchor || flow.kind(n) == kind::reduction;
    // Everything that a convolution reaches inside is elementwise; what reaches it inside is nothing.
    if (flow.kind(n) == kind::anchor) {
      ASSERT_TRUE(fuse::is_entry(flow, group, n));
      std::vector<std::uint32_t> open = {n};
      while (!open.empty()) {
        const std::uint32_t at = open.back();
        open.pop_back();
        flow.successors(at, [&](std::uint32_t reader, std::uint32_t v) {
          if (!group.contains(reader)) return;
          ASSERT_EQ(flow.edge(v, reader), kind::elementwise);
          open.push_back(reader);
        });
      }
    }
    flow.predecessors(n, [&](std::uint32_t producer, std::uint32_t) {
      if (!group.contains(producer)) return;
      ASSERT_NE(flow.kind(n), kind::anchor);
      ASSERT_NE(flow.kind(producer), kind::reduction);
    });
  }
  ASSERT_LE(heavy, 1u);
}

void check_all(const fuse::dataflow& flow, const fuse::fused& result, const fuse::kernel_limits& most) {
  ASSERT_EQ(fuse::order_violation(flow, result.groups), "");
  ASSERT_EQ(result.kernels, result.groups.size());
  for (const node_set& g : result.groups) {
    ASSERT_TRUE(fuse::is_convex(flow, g)) << to_string(g);
    ASSERT_NO_FATAL_FAILURE(check_kernel(flow, g, most)) << to_string(g);
  }
}

bool closes_a_cycle(const fuse::dataflow& flow, const fuse::fused& a, const fuse::fused& b) {
  std::vector<std::uint32_t> name(flow.size());
  std::iota(name.begin(), name.end(), 0u);
  for (const fuse::fused* each : {&a, &b}) {
    for (const node_set& g : each->groups) {
      for (const std::uint32_t n : g) {
        const std::uint32_t from = name[n], to = name[g.first()];
        std::ranges::replace(name, from, to);
      }
    }
  }
  try {
    fuse::quotient(flow, name);
    return false;
  } catch (const collage::error&) { return true; }
}

void fuse_random_graphs(std::uint32_t graphs) {
  fuse_random random;
  std::size_t better = 0, than_both = 0, cyclic = 0, several = 0;
  for (std::uint32_t i = 0; i < graphs; ++i) {
    const fuse::dataflow flow = random_flow(random, {.nodes = random.number(1, 13),
                                                     .spaces = random.number(1, 2),
                                                     .opaque = random.number(0, 20),
                                                     .near = random.number(30, 90)});
    fuse::kernel_limits most;
    if (i % 2 == 1) {
      most.nodes = random.number(1, 8);
      most.arguments = random.number(1, 6);
      most.outputs = random.number(1, 3);
    }
    // Forward fusion writes one node's values; of a node with two outputs, two.
    fuse::kernel_limits forwards = most;
    forwards.outputs = std::max<std::size_t>(most.outputs, 2);
    const std::string text = "graph " + std::to_string(i) + "\n" + describe(flow);

    const fuse::fused forward = fuse::fuse_forward(flow, most);
    ASSERT_NO_FATAL_FAILURE(check_all(flow, forward, forwards)) << text;
    for (const node_set& g : forward.groups)
      ASSERT_LE(exits_of(flow, g), 1u) << to_string(g) << text;  // none where nobody reads it

    const fuse::fused backward = fuse::fuse_backward(flow, most);
    ASSERT_NO_FATAL_FAILURE(check_all(flow, backward, most)) << text;
    for (const node_set& g : backward.groups) ASSERT_LE(entries_of(flow, g), 1u) << to_string(g) << text;

    fuse::kernel_limits single = most;
    single.outputs = 1;
    const fuse::fused one = fuse::fuse_backward(flow, single);
    ASSERT_NO_FATAL_FAILURE(check_all(flow, one, single)) << text;

    const fuse::fused all = fuse::fuse_all(flow, most);
    ASSERT_NO_FATAL_FAILURE(check_all(flow, all, forwards)) << text;
    ASSERT_LE(all.bytes, forward.bytes) << text;
    ASSERT_LE(all.kernels, forward.kernels) << text;
    ASSERT_LE(forward.bytes, fuse::unfused(flow).bytes) << text;
    // Merges only add to the forward groups.
    for (const node_set& g : forward.groups)
      ASSERT_TRUE(std::ranges::any_of(all.groups, [&](const node_set& h) { return h.contains(g); })) << text;
    better += all.bytes < forward.bytes;
    than_both += all.kernels < forward.kernels && all.kernels < backward.kernels;
    for (const node_set& g : all.groups) several += exits_of(flow, g) > 1;
    cyclic += closes_a_cycle(flow, forward, backward);
  }
  std::cout << better << " of " << graphs << " better than forward alone, " << than_both
            << " in fewer kernels than either, " << several
            << " groups with several exits; both without a check: " << cyclic << " cyclic\n";
  EXPECT_GT(better, graphs / 10);
  EXPECT_GT(than_both, graphs / 20);
  EXPECT_GT(several, graphs / 10);
  EXPECT_GT(cyclic, graphs / 1000);  // so the check has something to do
}

TEST(fuse_all, random_graphs) { fuse_random_graphs(10'000); }
TEST(fuse_all_long, random_graphs) { fuse_random_graphs(100'000); }

TEST(fuse_all, random_graphs_by_rows) {
  fuse_random random;
  const fuse::kernel_limits rows{.rows = true};
  std::size_t better = 0, mixed = 0;
  for (int i = 0; i < 3000; ++i) {
    const fuse::dataflow flow = random_flow(
        random,
        {.nodes = random.number(1, 16), .spaces = random.number(1, 2), .anchors = 5, .reductions = 20, .rows = true});
    const fuse::fused plain = fuse::fuse_all(flow), all = fuse::fuse_all(flow, rows);
    ASSERT_EQ(fuse::order_violation(flow, all.groups), "");
    ASSERT_LE(all.bytes, fuse::fuse_forward(flow).bytes);
    better += all.bytes < plain.bytes;
    for (const node_set& g : all.groups) {
      if (g.size() == 1) continue;
      std::set<std::uint32_t> read, reduced, written;
      bool has_anchor = false, behind_reduction = false;
      for (const std::uint32_t n : g) {
        const fuse::flow_node& node = flow.node(n);
        has_anchor = has_anchor || node.kind == kind::anchor;
        ASSERT_TRUE(node.kind != kind::opaque || node.row > 0) << describe(flow);
        if (node.row > 0) read.insert(flow.at(flow.operands(n)[0]).space);
        if (node.kind == kind::reduction) reduced.insert(flow.at(node.first_output).space);
        flow.predecessors(n, [&](std::uint32_t producer, std::uint32_t) {
          behind_reduction = behind_reduction || (g.contains(producer) && flow.kind(producer) == kind::reduction);
        });
        if (fuse::is_exit(flow, g, n)) written.insert(flow.at(node.first_output).space);
      }
      if (read.empty()) continue;
      // A group of forward fusion may end in a reduction; what rows add has one space, and that of the reduced rows.
      ASSERT_LE(read.size(), 1u) << to_string(g) << describe(flow);
      ASSERT_FALSE(has_anchor) << to_string(g) << describe(flow);
      for (const std::uint32_t space : written)
        ASSERT_TRUE(read.contains(space) || reduced.contains(space)) << to_string(g) << describe(flow);
      mixed += behind_reduction;
    }
  }
  EXPECT_GT(better, 300u);
  EXPECT_GT(mixed, 300u);
}

struct network_row {
  const char* name;
  fuse::dataflow flow;
  std::uint32_t operators;
  struct figures {
    std::size_t kernels;
    double megabytes;
  } forward, weights_as_sources, single, several, combined, rows;
};

TEST(fuse_table, networks) {
  const network_row table[] = {
      {"ResNet-18 v1",
       resnet({2, 2, 2, 2}, false, 1),
       70,
       {24, 25.8},
       {53, 51.7},
       {32, 31.8},
       {32, 31.8},
       {24, 25.8},
       {24, 25.8}},
      {"ResNet-18 v2",
       resnet({2, 2, 2, 2}, false, 2),
       78,
       {29, 30.4},
       {60, 59.5},
       {37, 36.4},
       {32, 34.1},
       {24, 28.1},
       {24, 28.1}},
      {"ResNet-50 v1",
       resnet({3, 4, 6, 3}, true, 1),
       176,
       {57, 109.4},
       {127, 238.3},
       {73, 153.6},
       {73, 153.6},
       {57, 109.4},
       {57, 109.4}},
      {"ResNet-50 v2",
       resnet({3, 4, 6, 3}, true, 2),
       191,
       {69, 141.5},
       {141, 273.6},
       {85, 185.7},
       {73, 169.6},
       {57, 125.5},
       {57, 125.5}},
      {"ResNet-101 v2",
       resnet({3, 4, 23, 3}, true, 2),
       378,
       {137, 223.4},
       {277, 423.7},
       {170, 294.9},
       {141, 265.2},
       {108, 193.7},
       {108, 193.7}},
      {"MobileNet-V2", mobilenet_v2(), 149, {52, 54.6}, {114, 109.8}, {62, 56.4}, {62, 56.4}, {52, 54.6}, {52, 54.6}},
      {"DenseNet-121",
       densenet121(),
       487,
       {241, 249.3},
       {366, 386.3},
       {241, 249.3},
       {183, 213.0},
       {183, 213.0},
       {183, 213.0}},
      {"transformer, norms first",
       transformer(true),
       297,
       {130, 166.8},
       {222, 344.0},
       {154, 178.3},
       {154, 178.3},
       {130, 166.8},
       {91, 139.5}},
      {"transformer, norms last",
       transformer(false),
       288,
       {126, 163.6},
       {215, 338.7},
       {149, 175.1},
       {149, 175.1},
       {126, 163.6},
       {90, 138.4}},
      {"LSTM, 32 steps", lstm(), 544, {127, 1.7}, {414, 4.2}, {382, 3.7}, {344, 3.5}, {96, 1.4}, {96, 1.4}},
  };
  const fuse::kernel_limits single{.outputs = 1}, rows{.rows = true};
  for (const network_row& row : table) {
    SCOPED_TRACE(row.name);
    const auto expect = [&](const fuse::fused& found, const network_row::figures& figures) {
      EXPECT_EQ(found.kernels, figures.kernels);
      EXPECT_NEAR(std::round(static_cast<double>(found.bytes) / 1e5) / 10, figures.megabytes, 1e-9);
      EXPECT_EQ(fuse::order_violation(row.flow, found.groups), "");
    };
    EXPECT_EQ(row.flow.size(), row.operators);
    expect(fuse::fuse_forward(row.flow), row.forward);
    expect(fuse::fuse_backward(row.flow, single, {.weights = true}), row.weights_as_sources);
    expect(fuse::fuse_backward(row.flow, single), row.single);
    expect(fuse::fuse_backward(row.flow), row.several);
    expect(fuse::fuse_all(row.flow), row.combined);
    expect(fuse::fuse_all(row.flow, rows), row.rows);
  }
}

TEST(fuse_growth, merges_judged_grow_with_the_graph) {
  const auto judged = [](const fuse::dataflow& flow) {
    const fuse::fused result = fuse::fuse_all(flow);
    EXPECT_EQ(fuse::order_violation(flow, result.groups), "");
    return static_cast<double>(result.judged) / flow.size();
  };
  const auto compare = [&](const fuse::dataflow& small, const fuse::dataflow& large) {
    EXPECT_GE(large.size(), 9 * small.size());
    EXPECT_LE(judged(large), 1.5 * judged(small));
  };
  compare(lstm(60), lstm(600));
  compare(resnet({3, 4, 80, 3}, true, 2), resnet({3, 4, 900, 3}, true, 2));
  compare(transformer(true, 20), transformer(true, 200));
  // One random graph may be twice as hard as another of its size: the means of eight are compared.
  fuse_random random;
  double small = 0, large = 0;
  for (int k = 0; k < 8; ++k) {
    small += judged(random_flow(random, {.nodes = 1000}));
    large += judged(random_flow(random, {.nodes = 10'000}));
  }
  EXPECT_LE(large, 1.5 * small);
}

TEST(fuse_from_graph, sees_kinds_shapes_and_rows) {
  namespace c = collage;
  namespace op = collage::ops;
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 8}});
  const c::value w = g.constant("w", {c::dtype::f32, {8, 4}}, c::uniform{-1, 1});
  const c::value bias = g.constant("b", {c::dtype::f32, {4}}, c::uniform{-1, 1});
  const c::value sum = g(op::add, g(op::matmul, x, w), bias);                // 0 1
  const c::value soft = g(op::softmax, g(op::relu, sum));                    // 2 3
  const c::value across = g(op::softmax, sum, {.axis = 0});                  // 4
  const c::value mean = g(op::reduce_mean, sum, {.axes = {1}});              // 5
  const c::value column = g(op::reduce_sum, sum, {.axes = {0}});             // 6
  const c::value flat = g(op::reshape, soft, {.dims = {8}});                 // 7
  const c::value exponents = g(op::reduce_log_sum_exp, sum, {.axes = {1}});  // 8
  for (const c::value v : {across, mean, column, flat, exponents})
    g.output(c::label("y") + static_cast<int>(v.index), v);
  const c::graph network = g.finish();

  const fuse::dataflow flow = fuse::dataflow_of(network);
  ASSERT_EQ(flow.size(), 9u);
  const kind kinds[] = {kind::anchor,    kind::broadcast, kind::elementwise, kind::opaque,   kind::opaque,
                        kind::reduction, kind::reduction, kind::opaque,      kind::reduction};
  const std::uint32_t rows[] = {0, 0, 0, 4, 0, 4, 0, 0, 4};
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    EXPECT_EQ(flow.kind(n), kinds[n]) << n;
    EXPECT_EQ(flow.node(n).row, rows[n]) << n;
    EXPECT_EQ(flow.is_read_outside(n), n >= 4) << n;
  }
  EXPECT_EQ(flow.node(7).role, fuse::node_role::host);
  EXPECT_EQ(flow.at(flow.node(1).first_output).bytes, 32u);
  EXPECT_EQ(flow.edge(flow.node(0).first_output, 1), kind::elementwise);
  EXPECT_TRUE(flow.at(flow.operands(0)[1]).is_weight);
  EXPECT_FALSE(flow.at(flow.operands(0)[0]).is_weight);
  EXPECT_EQ(flow.edges(), (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                              {0, 1}, {1, 2}, {1, 4}, {1, 5}, {1, 6}, {1, 8}, {2, 3}, {3, 7}}));

  // The view costs nothing and is no kernel; as a mover it is one.
  const fuse::fused result = fuse::unfused(flow);
  EXPECT_EQ(result.kernels, 8u);
  EXPECT_EQ(result.groups.size(), 9u);
  const fuse::dataflow moved =
      fuse::dataflow_of(network, [](const c::graph& of, std::uint32_t n) { return fuse::class_of(of, n, false); });
  EXPECT_EQ(moved.kind(7), kind::injective);
  EXPECT_EQ(fuse::unfused(moved).bytes - result.bytes, 2 * 32u);
}

TEST(fuse_from_graph, built_in_networks) {
  namespace c = collage;
  const auto check = [](std::size_t kernels, auto&& write) {
    c::graph_builder g;
    write(g);
    const fuse::dataflow flow = fuse::dataflow_of(g.finish());
    const fuse::fused forward = fuse::fuse_forward(flow), all = fuse::fuse_all(flow);
    const fuse::fused rows = fuse::fuse_all(flow, {.rows = true});
    for (const fuse::fused* each : {&forward, &all, &rows}) EXPECT_EQ(fuse::order_violation(flow, each->groups), "");
    EXPECT_EQ(forward.kernels, kernels);
    EXPECT_LE(all.bytes, forward.bytes);
    EXPECT_LE(rows.bytes, all.bytes);
  };
  check(120, [](auto& g) { c::zoo::bert_paper(g); });
  check(56, [](auto& g) { c::zoo::resnet50(g); });
  check(257, [](auto& g) { c::zoo::nasnet_a_paper(g); });
  check(54, [](auto& g) { c::zoo::mobilenet_v2(g); });
}

/// A backend that takes everything but anchors, and writes several values.
struct streaming {
  static constexpr auto rule = fuse::by_fusion{
      [](const fuse::dataflow& flow, std::uint32_t n) { return flow.kind(n) != kind::anchor; }, {.rows = true}};
};

TEST(fuse_candidates, of_a_backend_that_writes_several_values) {
  const fuse::dataflow flow = densenet121();
  const fuse::group_list found = fuse::list(streaming::rule, flow);
  std::size_t several = 0;
  for (const fuse::group& g : found) {
    ASSERT_EQ(fuse::why_invalid(flow, g, {.exits = 0, .taps = true}), "") << to_string(g.nodes);
    for (const std::uint32_t n : g.nodes) ASSERT_NE(flow.kind(n), kind::anchor);
    several += exits_of(flow, g.nodes) > 1;
  }
  EXPECT_EQ(several, 54u);  // every concatenation but the last of its block, with the norm behind it
  EXPECT_TRUE(std::ranges::any_of(found, [](const fuse::group& g) { return g.nodes.size() == 1; }));
}

TEST(fuse_candidates, are_convex_on_random_graphs) {
  fuse_random random;
  constexpr fuse::by_fusion rule{
      [](const fuse::dataflow& flow, std::uint32_t n) { return flow.kind(n) != kind::opaque; }};
  std::size_t several = 0;
  for (int i = 0; i < 1000; ++i) {
    const fuse::dataflow flow = random_flow(random, {.nodes = random.number(1, 20), .spaces = 1, .opaque = 20});
    for (const fuse::group& g : fuse::list(rule, flow)) {
      ASSERT_EQ(fuse::why_invalid(flow, g, {.exits = 0, .taps = true}), "") << to_string(g.nodes) << describe(flow);
      ASSERT_NO_FATAL_FAILURE(check_kernel(flow, g.nodes, {.nodes = 256, .arguments = 256, .outputs = 8}));
      ASSERT_NE(g.kind, kind::opaque);
      several += entries_of(flow, g.nodes) > 1 && exits_of(flow, g.nodes) > 1;
    }
  }
  EXPECT_GT(several, 200u);  // siblings
}

TEST(fuse_candidates, a_residual_sum_and_the_norm_behind_it) {
  namespace c = collage;
  c::graph_builder g;
  c::zoo::bert_paper(g);
  const c::graph network = g.finish();
  const fuse::dataflow flow = fuse::dataflow_of(network);
  const auto is = [&](std::uint32_t n, const char* name) { return std::string(network.node(n).kind->name) == name; };
  std::size_t found = 0;
  for (const fuse::group& group : fuse::list(streaming::rule, flow)) {
    if (group.nodes.size() != 3 || exits_of(flow, group.nodes) != 2) continue;
    const auto count = [&](const char* name) {
      return std::ranges::count_if(group.nodes.begin(), group.nodes.end(),
                                   [&](std::uint32_t n) { return is(n, name); });
    };
    found +=
        count("add") == 2 && count("layer_norm") == 1;  // bias, residual sum, norm; the sum is written for the next one
  }
  EXPECT_EQ(found, 15u);  // two in each of eight layers but behind the last
}

}  // namespace fuse_fuse_test
