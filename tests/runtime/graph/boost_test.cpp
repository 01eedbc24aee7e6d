// The run-time graph as a graph of Boost.Graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/incremental_components.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <collage/graph/boost.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/random_graph.hpp"

namespace graph_boost_test {

using namespace collage_test;
using graph = c::graph;
using boost::graph_traits;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<graph>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<graph>));
BOOST_CONCEPT_ASSERT((boost::VertexAndEdgeListGraphConcept<graph>));
BOOST_CONCEPT_ASSERT((boost::IncidenceGraphConcept<graph>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<graph>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<graph, std::uint32_t, boost::vertex_index_t>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<boost::reverse_graph<graph>>));

/// A kind with two outputs, as a user's header would define it.
inline constexpr struct halves : c::kind<halves> {
  static constexpr char name[] = "halves";
  static constexpr std::uint32_t outputs = 2;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.out[1] = io.in[0];
    return {};
  }
} halves{};

std::vector<c::graph_edge> list(const auto& range) { return {range.first, range.second}; }

/// x -> relu_0 -> { add_1 (twice), mul_2 } -> sub_3, with constants between.
graph diamond() {
  c::graph_builder g;
  const c::tensor_type type{c::dtype::f32, {4}};
  const c::value x = g.input("x", type);
  const c::value w = g.constant("w", type, c::uniform{0, 1});
  const c::value r = g(op::relu, x);
  const c::value a = g(op::add, r, r);
  const c::value m = g(op::mul, w, r);
  g.output("y", g(op::sub, a, m));
  return g.finish();
}

TEST(boost_graph, a_reading_is_an_edge) {
  const graph g = diamond();
  EXPECT_EQ(num_vertices(g), 4U);
  EXPECT_EQ(num_edges(g), 5U);
  const std::vector<c::graph_edge> all = {{0, 1, 0}, {0, 1, 1}, {0, 2, 1}, {1, 3, 0}, {2, 3, 1}};
  EXPECT_EQ(list(edges(g)), all);

  EXPECT_EQ(list(out_edges(0, g)), (std::vector<c::graph_edge>{{0, 1, 0}, {0, 1, 1}, {0, 2, 1}}));
  EXPECT_EQ(out_degree(0, g), 3U);
  EXPECT_EQ(list(in_edges(0, g)), std::vector<c::graph_edge>{});  // it reads an input
  EXPECT_EQ(list(in_edges(2, g)), (std::vector<c::graph_edge>{{0, 2, 1}}));
  EXPECT_EQ(in_degree(2, g), 1U);
  EXPECT_EQ(degree(1, g), 3U);
  EXPECT_EQ(list(out_edges(3, g)), std::vector<c::graph_edge>{});

  EXPECT_EQ(source(all[3], g), 1U);
  EXPECT_EQ(target(all[3], g), 3U);
  EXPECT_EQ(g.value_name(value_of(all[2], g)), "relu_0");
}

TEST(boost_graph, an_empty_graph_has_nothing) {
  const graph g = c::graph_builder().finish();
  EXPECT_EQ(num_vertices(g), 0U);
  EXPECT_EQ(num_edges(g), 0U);
  EXPECT_TRUE(edges(g).first == edges(g).second);
  EXPECT_TRUE(vertices(g).first == vertices(g).second);
}

TEST(boost_graph, all_outputs_of_a_node_have_edges) {
  c::graph_builder b;
  const c::value x = b.input("x", {c::dtype::f32, {4}});
  const c::value first = b(halves, x);
  const c::value second{first.index + 1};
  const c::value m = b(op::mul, second, second);
  b.output("y", b(op::add, first, m));
  const graph g = b.finish();
  EXPECT_EQ(list(out_edges(0, g)), (std::vector<c::graph_edge>{{0, 2, 0}, {0, 1, 0}, {0, 1, 1}}));
  EXPECT_EQ(g.value_name(value_of({0, 1, 1}, g)), "halves_0:1");
}

TEST(boost_graph, in_and_out_edges_agree_with_the_edge_list) {
  generator random(seed_or(1));
  for (int round = 0; round < 100; ++round) {
    const graph g = random_graph(random, {.nodes = 1 + pick(random, 30)});
    std::vector<c::graph_edge> all = list(edges(g)), in, out;
    for (std::uint32_t n = 0; n < num_vertices(g); ++n) {
      for (const c::graph_edge& e : list(in_edges(n, g))) in.push_back(e);
      for (const c::graph_edge& e : list(out_edges(n, g))) out.push_back(e);
      EXPECT_EQ(in_degree(n, g), list(in_edges(n, g)).size());
      EXPECT_EQ(out_degree(n, g), list(out_edges(n, g)).size());
    }
    EXPECT_EQ(num_edges(g), all.size());
    EXPECT_EQ(in, all);
    std::sort(all.begin(), all.end());
    std::sort(out.begin(), out.end());
    EXPECT_EQ(out, all);
  }
}

TEST(boost_graph, topological_sort_puts_readers_behind) {
  generator random(seed_or(2));
  for (int round = 0; round < 50; ++round) {
    const graph g = random_graph(random, {.nodes = 30});
    std::vector<std::uint32_t> order;
    boost::topological_sort(g, std::back_inserter(order));  // readers first
    ASSERT_EQ(order.size(), num_vertices(g));
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (const c::graph_edge& e : list(edges(g))) EXPECT_GT(place[e.producer], place[e.consumer]);
  }
}

TEST(boost_graph, connected_components) {
  c::graph_builder b;
  const c::tensor_type type{c::dtype::f32, {4}};
  const c::value x = b.input("x", type);  // read by both parts, but not a vertex
  const c::value first = b(op::relu, b(op::abs, x));
  const c::value second = b(op::add, b(op::neg, x), b(op::exp, x));
  b.output("a", first);
  b.output("b", second);
  const graph g = b.finish();

  std::vector<std::size_t> rank(num_vertices(g));
  std::vector<std::uint32_t> parent(num_vertices(g));
  boost::disjoint_sets sets(rank.data(), parent.data());
  boost::initialize_incremental_components(g, sets);
  boost::incremental_components(g, sets);
  const auto root = [&](std::uint32_t node) { return sets.find_set(node); };
  EXPECT_EQ(root(0), root(1));
  EXPECT_EQ(root(2), root(3));
  EXPECT_EQ(root(2), root(4));
  EXPECT_NE(root(0), root(2));
}

/// Dominators by their definition: v dominates n if n cannot be reached from the entry without v.
template <class Graph>
std::vector<bool> reached_without(const Graph& g, std::uint32_t entry, std::uint32_t removed) {
  std::vector<bool> seen(num_vertices(g));
  std::vector<std::uint32_t> stack;
  if (entry != removed) stack.push_back(entry), seen[entry] = true;
  while (!stack.empty()) {
    const std::uint32_t at = stack.back();
    stack.pop_back();
    for (auto [e, end] = out_edges(at, g); e != end; ++e) {
      const std::uint32_t next = target(*e, g);
      if (next != removed && !seen[next]) stack.push_back(next), seen[next] = true;
    }
  }
  return seen;
}

template <class Graph>
void check_dominators(const Graph& g, std::uint32_t entry) {
  constexpr std::uint32_t none = graph_traits<graph>::null_vertex();
  std::vector<std::uint32_t> immediate(num_vertices(g), none), parent = immediate, visited = immediate;
  // The overload without depth-first numbers gives every vertex the number 0 and so takes vertices that the entry does
  // not reach for the entry (Boost 1.81); it asks for the largest number itself.
  std::vector<std::size_t> number(num_vertices(g), std::numeric_limits<std::size_t>::max());
  const auto index = get(boost::vertex_index, g);
  const auto map = [&](auto& list) { return boost::make_iterator_property_map(list.begin(), index); };
  boost::lengauer_tarjan_dominator_tree(g, entry, index, map(number), map(parent), visited, map(immediate));

  const std::vector<bool> reachable = reached_without(g, entry, none);
  std::vector<std::vector<bool>> without;
  for (std::uint32_t v = 0; v < num_vertices(g); ++v) without.push_back(reached_without(g, entry, v));
  const auto dominates = [&](std::uint32_t v, std::uint32_t n) { return reachable[n] && !without[v][n]; };
  for (std::uint32_t n = 0; n < num_vertices(g); ++n) {
    if (!reachable[n] || n == entry) {
      EXPECT_EQ(immediate[n], none);
      continue;
    }
    ASSERT_NE(immediate[n], none) << "node " << n;
    EXPECT_TRUE(dominates(immediate[n], n));
    // The immediate one is dominated by every other that dominates n.
    for (std::uint32_t v = 0; v < num_vertices(g); ++v)
      if (v != n && dominates(v, n)) { EXPECT_TRUE(dominates(v, immediate[n]) || v == immediate[n]); }
  }
}

TEST(boost_graph, dominators_and_post_dominators) {
  const std::uint64_t seed = seed_or(3);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  for (int round = 0; round < 60; ++round) {
    const graph g = random_graph(random, {.nodes = 1 + pick(random, 25), .single_entry = true});
    check_dominators(g, 0);
    check_dominators(boost::make_reverse_graph(g), static_cast<std::uint32_t>(num_vertices(g) - 1));
  }
}

}  // namespace graph_boost_test
