// Makes `collage::graph` a graph of Boost.Graph: vertex list, edge list, bidirectional.
//
// Vertices are nodes, by index. Each use of a computed value is an edge from the node that computes the value to the node that
// reads it. A node that reads a value twice therefore has two edges from its producer; the operand distinguishes them. Graph
// inputs and constants are neither vertices nor edges.
//
// If the entry does not reach every node, lengauer_tarjan_dominator_tree needs depth-first numbers that start at the largest
// number. Its short overload starts them at 0, which means the entry (Boost 1.81).
#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/iterator_facade.hpp>
#include <boost/property_map/property_map.hpp>
#include <collage/graph/graph.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace collage::inline v0 {

/// One use of a computed value.
struct graph_edge {
  std::uint32_t producer = 0;  ///< the node that computes the value
  std::uint32_t consumer = 0;  ///< the node that reads it
  std::uint32_t operand = 0;   ///< the index of the value among its operands

  friend constexpr auto operator<=>(const graph_edge&, const graph_edge&) = default;
};

/// The value that an edge carries.
inline std::uint32_t value_of(const graph_edge& e, const graph& g) { return g.view().inputs_of(e.consumer)[e.operand]; }

namespace detail {

/// Edges in the order of their readers: over all operands of the nodes from `node` on, without graph inputs and constants.
class in_edge_iterator
    : public boost::iterator_facade<in_edge_iterator, graph_edge, boost::forward_traversal_tag, graph_edge> {
 public:
  in_edge_iterator() = default;
  in_edge_iterator(const graph& g, std::uint32_t node) : graph_(&g), node_(node) { skip(); }

 private:
  friend class boost::iterator_core_access;

  std::int32_t producer() const {
    const std::uint32_t value = graph_->view().inputs_of(node_)[operand_];
    return graph_->at(value).producer;
  }
  /// Advances to the first operand, from this one on, that a node computes.
  void skip() {
    for (; node_ < graph_->nodes().size(); ++node_, operand_ = 0)
      for (; operand_ < graph_->node(node_).inputs; ++operand_)
        if (producer() >= 0) return;
  }
  graph_edge dereference() const { return {static_cast<std::uint32_t>(producer()), node_, operand_}; }
  bool equal(const in_edge_iterator& other) const { return node_ == other.node_ && operand_ == other.operand_; }
  void increment() {
    ++operand_;
    skip();
  }

  const graph* graph_ = nullptr;
  std::uint32_t node_ = 0;
  std::uint32_t operand_ = 0;
};

/// The uses of all outputs of one node, which are consecutive in the graph's list of uses.
class out_edge_iterator
    : public boost::iterator_facade<out_edge_iterator, graph_edge, boost::random_access_traversal_tag, graph_edge> {
 public:
  out_edge_iterator() = default;
  out_edge_iterator(const use* at, std::uint32_t producer) : at_(at), producer_(producer) {}

 private:
  friend class boost::iterator_core_access;

  graph_edge dereference() const { return {producer_, at_->node, at_->operand}; }
  bool equal(const out_edge_iterator& other) const { return at_ == other.at_; }
  void increment() { ++at_; }
  void decrement() { --at_; }
  void advance(std::ptrdiff_t steps) { at_ += steps; }
  std::ptrdiff_t distance_to(const out_edge_iterator& other) const { return other.at_ - at_; }

  const use* at_ = nullptr;
  std::uint32_t producer_ = 0;
};

}  // namespace detail

// Vertex list ---------------------------------------------------------------------------------------------------------

inline std::pair<boost::counting_iterator<std::uint32_t>, boost::counting_iterator<std::uint32_t>> vertices(
    const graph& g) {
  return {boost::counting_iterator<std::uint32_t>(0),
          boost::counting_iterator<std::uint32_t>(static_cast<std::uint32_t>(g.nodes().size()))};
}
inline std::size_t num_vertices(const graph& g) { return g.nodes().size(); }

// Edge list -----------------------------------------------------------------------------------------------------------

inline std::uint32_t source(const graph_edge& e, const graph&) { return e.producer; }
inline std::uint32_t target(const graph_edge& e, const graph&) { return e.consumer; }

inline std::pair<detail::in_edge_iterator, detail::in_edge_iterator> edges(const graph& g) {
  return {detail::in_edge_iterator(g, 0), detail::in_edge_iterator(g, static_cast<std::uint32_t>(g.nodes().size()))};
}
/// Counts the edges; takes time proportional to the number of values.
inline std::size_t num_edges(const graph& g) {
  std::size_t count = 0;
  for (const value_record& v : g.values()) count += v.producer >= 0 ? v.uses : 0U;
  return count;
}

// Bidirectional -------------------------------------------------------------------------------------------------------

inline std::pair<detail::out_edge_iterator, detail::out_edge_iterator> out_edges(std::uint32_t node, const graph& g) {
  const node_record& n = g.node(node);
  const value_record& first = g.at(n.first_output);
  const value_record& last = g.at(n.first_output + n.outputs - 1);
  const use* uses = g.view().uses.data();
  return {detail::out_edge_iterator(uses + first.first_use, node),
          detail::out_edge_iterator(uses + last.first_use + last.uses, node)};
}
inline std::size_t out_degree(std::uint32_t node, const graph& g) {
  const auto range = out_edges(node, g);
  return static_cast<std::size_t>(range.second - range.first);
}
inline std::pair<detail::in_edge_iterator, detail::in_edge_iterator> in_edges(std::uint32_t node, const graph& g) {
  return {detail::in_edge_iterator(g, node), detail::in_edge_iterator(g, node + 1)};
}
inline std::size_t in_degree(std::uint32_t node, const graph& g) {
  std::size_t count = 0;
  for (const std::uint32_t value : g.view().inputs_of(node)) count += g.at(value).producer >= 0 ? 1U : 0U;
  return count;
}
inline std::size_t degree(std::uint32_t node, const graph& g) { return in_degree(node, g) + out_degree(node, g); }

// Property maps -------------------------------------------------------------------------------------------------------

inline boost::typed_identity_property_map<std::uint32_t> get(boost::vertex_index_t, const graph&) { return {}; }
inline std::uint32_t get(boost::vertex_index_t, const graph&, std::uint32_t node) { return node; }

}  // namespace collage::inline v0

namespace boost {

template <>
struct graph_traits<collage::graph> {
  using vertex_descriptor = std::uint32_t;
  using edge_descriptor = collage::graph_edge;
  using directed_category = bidirectional_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  struct traversal_category : bidirectional_graph_tag, vertex_list_graph_tag, edge_list_graph_tag {};

  using vertex_iterator = counting_iterator<std::uint32_t>;
  using edge_iterator = collage::detail::in_edge_iterator;
  using in_edge_iterator = collage::detail::in_edge_iterator;
  using out_edge_iterator = collage::detail::out_edge_iterator;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;

  static constexpr vertex_descriptor null_vertex() { return 0xFFFFFFFF; }
};

// Some algorithms deduce a const type for a graph that they take by reference.
template <>
struct graph_traits<const collage::graph> : graph_traits<collage::graph> {};

template <>
struct property_map<collage::graph, vertex_index_t> {
  using type = typed_identity_property_map<std::uint32_t>;
  using const_type = type;
};
template <>
struct property_map<const collage::graph, vertex_index_t> : property_map<collage::graph, vertex_index_t> {};

}  // namespace boost
