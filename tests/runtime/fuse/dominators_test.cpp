// Dominator trees against brute force and Boost.Graph, on random graphs and on some whose answer is plain.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <collage/error.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/dominators.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graphs.hpp"

namespace fuse_dominators_test {

using namespace collage_test;
using edge_list = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The graph as edges that lead from node `size` (the root) into every node, and on.
struct plain_graph {
  std::uint32_t size = 0;
  std::vector<index_list> next;
};

plain_graph backwards(const fuse::dataflow& flow) {
  plain_graph g{flow.size(), std::vector<index_list>(flow.size() + 1)};
  for (const auto& [from, to] : flow.edges()) g.next[to].push_back(from);
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    bool ends = flow.is_read_outside(n), is_read = false;
    flow.successors(n, [&](std::uint32_t, std::uint32_t) { is_read = true; });
    if (ends || !is_read) g.next[flow.size()].push_back(n);
  }
  return g;
}

plain_graph forwards(const fuse::dataflow& flow, fuse::sources from) {
  plain_graph g{flow.size(), std::vector<index_list>(flow.size() + 1)};
  std::vector<bool> is_fed(flow.size(), false);
  for (const auto& [producer, reader] : flow.edges()) {
    g.next[producer].push_back(reader);
    is_fed[reader] = true;
  }
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    bool starts = !is_fed[n];
    for (const std::uint32_t v : flow.operands(n)) {
      const fuse::flow_value& value = flow.at(v);
      starts = starts || (value.producer == fuse::none && (value.is_weight ? from.weights : from.inputs));
    }
    if (starts) g.next[flow.size()].push_back(n);
  }
  return g;
}

/// What the root reaches when one node is taken away.
std::vector<bool> reached_without(const plain_graph& g, std::uint32_t without) {
  std::vector<bool> seen(g.size + 1, false);
  const std::function<void(std::uint32_t)> visit = [&](std::uint32_t n) {
    if (n == without || seen[n]) return;
    seen[n] = true;
    for (const std::uint32_t to : g.next[n]) visit(to);
  };
  visit(g.size);
  return seen;
}

/// The strict dominator that all other strict dominators dominate; `none` for the root.
index_list by_brute_force(const plain_graph& g) {
  std::vector<index_list> dominators(g.size);
  for (std::uint32_t d = 0; d < g.size; ++d) {
    const std::vector<bool> seen = reached_without(g, d);
    for (std::uint32_t n = 0; n < g.size; ++n)
      if (n != d && !seen[n]) dominators[n].push_back(d);
  }
  index_list parent(g.size, fuse::none);
  for (std::uint32_t n = 0; n < g.size; ++n) {
    std::size_t most = 0;
    for (const std::uint32_t d : dominators[n]) {
      if (parent[n] != fuse::none && dominators[d].size() < most) continue;
      parent[n] = d;
      most = dominators[d].size();
    }
  }
  return parent;
}

index_list by_boost(const plain_graph& g) {
  edge_list edges;
  for (std::uint32_t n = 0; n <= g.size; ++n)
    for (const std::uint32_t to : g.next[n]) edges.emplace_back(n, to);
  const boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS> made(edges.begin(), edges.end(),
                                                                                    g.size + 1);
  std::vector<std::size_t> parent(g.size + 1, std::numeric_limits<std::size_t>::max());
  boost::lengauer_tarjan_dominator_tree(
      made, std::size_t{g.size},
      boost::make_iterator_property_map(parent.begin(), boost::get(boost::vertex_index, made)));
  index_list answer;
  for (std::uint32_t n = 0; n < g.size; ++n)
    answer.push_back(parent[n] == g.size ? fuse::none : static_cast<std::uint32_t>(parent[n]));
  return answer;
}

index_list parents(const fuse::dominator_tree& tree) {
  index_list list;
  for (std::uint32_t n = 0; n < tree.size(); ++n) list.push_back(tree.parent(n));
  return list;
}

/// The largest edge on any path from a node to its post-dominator, where all paths from it lead.
fusion_kind largest_edge(const fuse::dataflow& flow, std::uint32_t from, std::uint32_t to) {
  fusion_kind most = fusion_kind::elementwise;
  std::vector<bool> seen(flow.size(), false);
  const std::function<void(std::uint32_t)> visit = [&](std::uint32_t n) {
    flow.successors(n, [&](std::uint32_t reader, std::uint32_t v) {
      most = std::max(most, flow.edge(v, reader));
      if (reader == to || seen[reader]) return;
      seen[reader] = true;
      visit(reader);
    });
  };
  visit(from);
  return most;
}

void compare(std::uint32_t graphs, std::uint32_t most_nodes, std::uint32_t outputs = 8) {
  fuse_random random;
  std::size_t inner = 0, far = 0;
  for (std::uint32_t i = 0; i < graphs; ++i) {
    const fuse::dataflow flow = random_flow(random, {.nodes = random.number(most_nodes / 2 + 1, most_nodes),
                                                     .opaque = 1,
                                                     .anchors = 1,
                                                     .reductions = 1,
                                                     .near = random.number(20, 100),
                                                     .outputs = outputs});
    const fuse::dominator_tree post = fuse::post_dominators(flow);
    const index_list truth = by_brute_force(backwards(flow));
    ASSERT_EQ(parents(post), truth) << describe(flow);
    ASSERT_EQ(by_boost(backwards(flow)), truth);
    for (const fuse::sources from :
         {fuse::sources{}, {.inputs = true}, {.weights = true}, {.inputs = true, .weights = true}}) {
      const fuse::dominator_tree pre = fuse::pre_dominators(flow, from);
      const plain_graph plain = forwards(flow, from);
      ASSERT_EQ(parents(pre), by_brute_force(plain)) << describe(flow);
      ASSERT_EQ(parents(pre), by_boost(plain)) << describe(flow);
    }
    for (std::uint32_t n = 0; n < flow.size(); ++n) {
      ASSERT_EQ(post.depth(n), truth[n] == fuse::none ? 1u : post.depth(truth[n]) + 1);
      if (truth[n] == fuse::none) continue;
      ++inner;
      ASSERT_EQ(post.kind(n), largest_edge(flow, n, truth[n])) << n << " to " << truth[n] << "\n" << describe(flow);
      std::uint32_t above = n;
      for (std::uint32_t steps = random.number(0, 6); steps > 0 && post.parent(above) != fuse::none; --steps)
        above = post.parent(above);
      far += above != n;
      ASSERT_TRUE(post.dominates(above, n));
      const std::uint32_t other = random.number(0, flow.size() - 1);
      bool is_above = false;
      for (std::uint32_t at = n; at != fuse::none; at = post.parent(at)) is_above = is_above || at == other;
      ASSERT_EQ(post.dominates(other, n), is_above);
    }
  }
  std::cout << inner << " nodes with a post-dominator\n";
  EXPECT_GT(inner, graphs);
  EXPECT_GT(far, graphs / 2);
}

TEST(fuse_dominators, equal_brute_force_and_boost) { compare(2000, 24); }
/// Deep trees, in which ancestors are far apart.
TEST(fuse_dominators, equal_brute_force_where_they_are_deep) { compare(40, 300, 0); }
TEST(fuse_dominators_long, equal_brute_force_and_boost) { compare(20000, 24); }

TEST(fuse_dominators, of_a_residual_block_with_weights) {
  fuse::flow_builder b;
  const fuse::value_facts image{400, 0}, weight{36, 1};
  const std::uint32_t x = b.given(image);
  const std::uint32_t w = b.given(weight, true), bias = b.given(weight, true);
  const std::uint32_t first = b.node(fusion_kind::elementwise, {x}, image);          // 0
  const std::uint32_t conv = b.node(fusion_kind::anchor, {first, w}, image);         // 1
  const std::uint32_t biased = b.node(fusion_kind::broadcast, {conv, bias}, image);  // 2
  const std::uint32_t sum = b.node(fusion_kind::broadcast, {biased, first}, image);  // 3
  b.output(b.node(fusion_kind::reduction, {sum}, {4, 2}));                           // 4
  const fuse::dataflow flow = b.finish();

  const fuse::dominator_tree post = fuse::post_dominators(flow);
  EXPECT_EQ(parents(post), (index_list{3, 2, 3, 4, fuse::none}));
  EXPECT_EQ(post.kind(1), fusion_kind::elementwise);  // a broadcast that keeps the shape
  EXPECT_EQ(post.kind(0), fusion_kind::anchor);       // one of the paths runs into the convolution
  EXPECT_EQ(post.kind(3), fusion_kind::reduction);
  EXPECT_EQ(parents(fuse::pre_dominators(flow)), (index_list{fuse::none, 0, 1, 0, 3}));
  // With weights as sources no layer dominates anything.
  EXPECT_EQ(parents(fuse::pre_dominators(flow, {.weights = true})),
            (index_list{fuse::none, fuse::none, fuse::none, fuse::none, 3}));
}

TEST(fuse_dominators, of_a_long_chain_and_of_nothing) {
  EXPECT_EQ(fuse::post_dominators(fuse::flow_builder().finish()).size(), 0u);
  fuse::flow_builder b;
  std::uint32_t v = b.given({4, 0});
  constexpr std::uint32_t count = 100'000;
  for (std::uint32_t i = 0; i < count; ++i) v = b.node(fusion_kind::elementwise, {v}, {4, 0});
  b.output(v);
  const fuse::dataflow flow = b.finish();
  const fuse::dominator_tree post = fuse::post_dominators(flow), pre = fuse::pre_dominators(flow);
  EXPECT_EQ(post.depth(0), count);
  EXPECT_EQ(pre.depth(count - 1), count);
  EXPECT_TRUE(post.dominates(count - 1, 0));
  EXPECT_FALSE(post.dominates(0, count - 1));
  EXPECT_TRUE(pre.dominates(0, count - 1));
}

TEST(fuse_dominators, know_the_one_mover_on_a_long_way) {
  // top -> chain -> ... and top -> chain[skip]: the post-dominator of top is chain[skip], and all before lies between.
  constexpr std::uint32_t count = 40;
  for (std::uint32_t skip = 0; skip < count; ++skip) {
    for (std::uint32_t mover = 0; mover < count; ++mover) {
      fuse::flow_builder b;
      const fuse::value_facts facts{4, 0};
      const std::uint32_t top = b.node(fusion_kind::elementwise, {b.given(facts)}, facts);
      std::uint32_t v = top;
      for (std::uint32_t i = 0; i < count; ++i) {
        const fusion_kind kind = i == mover ? fusion_kind::injective : fusion_kind::broadcast;
        v = i == skip ? b.node(kind, {v, top}, facts) : b.node(kind, {v}, facts);
      }
      b.output(v);
      const fuse::dominator_tree post = fuse::post_dominators(b.finish());
      ASSERT_EQ(post.parent(0), skip + 1);
      ASSERT_EQ(post.kind(0), mover <= skip ? fusion_kind::injective : fusion_kind::elementwise)
          << skip << " " << mover;
    }
  }
}

std::string error_of(const std::function<void(fuse::flow_builder&)>& write) {
  fuse::flow_builder b;
  b.given({4, 0});
  try {
    write(b);
  } catch (const collage::error& e) {
    EXPECT_EQ(e.kind(), collage::error_kind::invalid_argument);
    return e.what();
  }
  return "no error";
}

TEST(fuse_dataflow, refuses_what_cannot_be) {
  EXPECT_EQ(error_of([](auto& b) { b.node(fusion_kind::elementwise, {1}, {4, 0}); }),
            "node 0: reads value 1, which no earlier node computes; list nodes in a topological order, without cycles");
  EXPECT_EQ(error_of([](auto& b) { b.output(1); }), "dataflow: there is no value 1 to be an output");
  EXPECT_EQ(error_of([](auto& b) { b.node(fusion_kind::reduction, {}, {4, 0}, fuse::node_role::operation, 4); }),
            "node 0: works on rows, but reads nothing");
}

TEST(fuse_dataflow, lists_each_reader_once) {
  fuse::flow_builder b;
  const std::uint32_t x = b.given({4, 0});
  const std::uint32_t a = b.node(fusion_kind::elementwise, {x}, {4, 0});
  b.output(b.node(fusion_kind::broadcast, {a, a}, {4, 0}));
  b.node(fusion_kind::broadcast, {x, a}, {64, 1});
  const fuse::dataflow flow = b.finish();
  EXPECT_EQ(index_list(flow.readers(a).begin(), flow.readers(a).end()), (index_list{1, 2}));
  EXPECT_EQ(index_list(flow.readers(x).begin(), flow.readers(x).end()), (index_list{0, 2}));
  EXPECT_EQ(flow.edges(), (edge_list{{0, 1}, {0, 2}}));
  EXPECT_EQ(flow.edge(a, 1), fusion_kind::elementwise);
  EXPECT_EQ(flow.edge(a, 2), fusion_kind::broadcast);
  EXPECT_TRUE(flow.is_read_outside(1));
  EXPECT_FALSE(flow.is_read_outside(2));
}

}  // namespace fuse_dominators_test
