// Plans of the subgraphs that control flow runs.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/control.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/plan.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

class sub_plans {
 public:
  explicit sub_plans(const graph& network) : network_(network), plans_(network.nodes().size()) {}

  /// Adds the plan of a node's next subgraph.
  void add(std::uint32_t node, plan of_body) { plans_[node].push_back(std::move(of_body)); }

  /// The cost of a node, in milliseconds. A branch costs as much as its more expensive side. A loop costs as much as one round, or
  /// as all rounds if their number is known. No choice depends on this cost, because the node has a single candidate.
  double cost_of(std::uint32_t node) const {
    double most = 0;
    for (const plan& body : plans_[node]) most = std::max(most, body.chosen.cost_ms);
    const std::uint32_t first = network_.view().inputs_of(node)[0];
    if (network_.node(node).kind->id != kind_id<struct ops::loop> || !network_.at(first).has_scalar) return most;
    if (from_words<ops::loop_attributes>(network_.view().words_of(node)).stops) return most;
    return most * std::clamp(network_.at(first).scalar, 0.0, 1e6);
  }

  /// The placements of a node's subgraphs: the baselines of this name, or the best placements if there is no such baseline.
  std::vector<placement> placements_of(std::uint32_t node, const std::string& name) const {
    std::vector<placement> list;
    for (const plan& body : plans_[node]) {
      const auto single =
          std::find_if(body.singles.begin(), body.singles.end(), [&](const placement& s) { return s.name == name; });
      list.push_back(single != body.singles.end() ? *single : body.chosen);
    }
    return list;
  }

 private:
  const graph& network_;
  std::vector<std::vector<plan>> plans_;  // by node
};

/// Whether a run may take any time: a loop may end by its data, and with random data it may never end.
inline bool may_be_endless(const graph& network) {
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n))
      if (may_be_endless(*body)) return true;
    if (network.node(n).kind->id != kind_id<struct ops::loop>) continue;
    const value_record& rounds = network.at(network.view().inputs_of(n)[0]);
    if (!rounds.has_scalar || rounds.scalar > 1e6) return true;
  }
  return false;
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
