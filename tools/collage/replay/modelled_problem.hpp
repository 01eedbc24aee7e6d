// A network of the library as a placement problem, for model backends: each is only rates and a fusion rule.
#pragma once

#include "result.hpp"

#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/graph/totals.hpp>
#include <collage/place/cost_source.hpp>
#include <collage/place/roofline.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/problem.hpp>
#include <collage/set/candidate.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program::replay {

/// A model backend, and how many elementwise or broadcast operators it fuses after another operator.
struct model_backend {
  const char* name;
  std::uint32_t behind_products;     ///< after a convolution or matrix product
  std::uint32_t behind_elementwise;  ///< after an elementwise operator
  bool takes_all;                    ///< false: only convolutions and matrix products
  double flops_per_s, bytes_per_s, launch_ms;
};

/// Modelled on the library's own backends on one core. `primitives` has post-operators; `products` adds a bias and an
/// activation; `loops` takes anything. The rates are round numbers; they are not measured.
inline constexpr std::array model_backends{
    model_backend{"primitives", 3, 0, true, 120e9, 12e9, 0.002},
    model_backend{"products", 2, 0, false, 100e9, 12e9, 0.001},
    model_backend{"loops", 1, 3, true, 20e9, 16e9, 0.0002},
};

inline collage::roofline model_of_backends() {
  std::vector<collage::roofline_rates> rates;
  for (const model_backend& b : model_backends) rates.push_back({b.name, b.flops_per_s, b.bytes_per_s, b.launch_ms});
  return collage::roofline(std::move(rates));
}

/// A graph, with the arithmetic and traffic of each node, ready to be placed repeatedly. `tag` of a candidate is the
/// index of its model backend. For a view, which costs nothing, it is the number of model backends.
class modelled_problem {
 public:
  /// Extents must be known. Throws `collage::error` for nodes with subgraphs: the model has no cost for control flow.
  explicit modelled_problem(const collage::graph& network) : nodes_(network.nodes().size()) {
    const collage::graph_view view = network.view();
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (collage::is_control(view, n))
        throw collage::error(collage::error_kind::unsupported, "control flow has no modelled cost",
                             network.node_name(n));
      node& made = nodes_[n];
      const collage::kind_info& kind = *network.node(n).kind;
      made.flops = collage::work_of(network, n).flops;
      made.is_view = collage::is_alias(view, n);
      made.is_product = std::string_view(kind.name) == "conv" || std::string_view(kind.name) == "matmul";
      made.is_elementwise = kind.fusion <= collage::fusion_kind::broadcast;
      made.key = kind.id;
      for (const std::uint64_t word : view.words_of(n)) made.key = collage::detail::combine(made.key, word);
      std::vector<std::uint32_t> read;
      for (const std::uint32_t v : view.inputs_of(n)) {
        for (const std::int64_t extent : network.type_of(v).dims)
          made.key = collage::detail::combine(made.key, static_cast<std::uint64_t>(extent));
        if (std::ranges::find(read, v) != read.end()) continue;
        read.push_back(v);
        made.read_bytes += static_cast<double>(network.type_of(v).bytes());
        if (network.at(v).producer >= 0) edges_.emplace_back(static_cast<std::uint32_t>(network.at(v).producer), n);
      }
      find_reader(network, n);
    }
  }

  std::size_t size() const noexcept { return nodes_.size(); }

  /// The candidates are each single node, and each node with one, two or three elementwise nodes after it, for every
  /// backend that takes them. `source` gives the cost; a group for which it has none is no candidate.
  template <collage::cost_source Source>
  collage::search::problem problem(const Source& source) const {
    collage::search::problem p;
    p.nodes = nodes_.size();
    p.edges = edges_;
    p.outputs = outputs_;
    p.candidates.reserve(6 * nodes_.size());
    std::array<std::uint32_t, 4> group{};
    std::array<std::uint64_t, 4> keys{};
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      const node& first = nodes_[n];
      if (first.is_view) {
        p.candidates.push_back({.nodes = collage::search::node_set{n},
                                .cost_ms = 0,
                                .tag = static_cast<std::uint32_t>(model_backends.size())});
        continue;
      }
      double flops = 0, bytes = 0;
      std::uint32_t last = n;
      for (std::uint32_t behind = 0; behind < group.size(); ++behind) {
        if (behind != 0) {
          last = nodes_[last].reader;
          if (last == no_node || !nodes_[last].is_elementwise || nodes_[last].is_view) break;
        }
        group[behind] = last;
        keys[behind] = nodes_[last].key;
        flops += nodes_[last].flops;
        bytes += nodes_[last].read_bytes - (behind == 0 ? 0 : nodes_[group[behind - 1]].result_bytes);
        const std::span<const std::uint32_t> members(group.data(), behind + 1);
        for (std::uint32_t b = 0; b < model_backends.size(); ++b) {
          if (!takes(model_backends[b], first, behind)) continue;
          const collage::cost_answer cost = source.cost_of({.nodes = members,
                                                            .backend = model_backends[b].name,
                                                            .computes = {keys.data(), behind + 1},
                                                            .flops = flops,
                                                            .bytes = bytes + nodes_[last].result_bytes});
          if (cost) p.candidates.push_back({.nodes = collage::search::node_set(members), .cost_ms = cost.ms, .tag = b});
        }
      }
    }
    return p;
  }

 private:
  static constexpr std::uint32_t no_node = 0xFFFFFFFF;
  struct node {
    double flops = 0, read_bytes = 0, result_bytes = 0;
    std::uint64_t key = 0;           // operator, attributes, shapes of operands
    std::uint32_t reader = no_node;  // the only reader of its only result, if there is just one
    bool is_view = false, is_product = false, is_elementwise = false;
  };

  static bool takes(const model_backend& b, const node& first, std::uint32_t behind) {
    if (!b.takes_all && !first.is_product) return false;
    return behind <= (first.is_product ? b.behind_products : first.is_elementwise ? b.behind_elementwise : 0);
  }

  void find_reader(const collage::graph& network, std::uint32_t n) {
    const collage::graph_view view = network.view();
    bool leaves = network.node(n).outputs != 1;
    for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) {
      const std::uint32_t v = view.output_of(n, i);
      nodes_[n].result_bytes += static_cast<double>(network.type_of(v).bytes());
      if (network.at(v).is_output) outputs_.push_back(n), leaves = true;
    }
    if (leaves) return;
    for (const collage::use& u : view.uses_of(view.output_of(n))) {
      if (nodes_[n].reader != no_node && nodes_[n].reader != u.node) {
        nodes_[n].reader = no_node;
        return;
      }
      nodes_[n].reader = u.node;
    }
  }

  std::vector<node> nodes_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> outputs_;
};

/// Places a network of the library on modelled costs. No operator has a record, and no placement is published.
inline result replay_modelled(const std::string& name, const modelled_problem& network) {
  const collage::roofline model = model_of_backends();
  const auto done = timed_search([&] { return network.problem(model); });
  if (const auto wrong = collage::search::violation(done.problem, done.plan))
    throw collage::error(collage::error_kind::failure, "the search returned an invalid placement: " + *wrong, name,
                         "please report it");
  return {.name = name,
          .table = "roofline",
          .coverage = 0,
          .nodes = done.problem.nodes,
          .candidates = done.problem.candidates.size(),
          .optimum_ms = done.plan.cost_ms,
          .lower_bound_ms = done.plan.lower_bound_ms,
          .gap = done.plan.gap(),
          .published_ms = std::nullopt,
          .search_ms = done.median_ms};
}

}  // namespace program::replay
