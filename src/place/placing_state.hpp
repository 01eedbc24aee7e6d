// The state of one placing: its candidates, and their costs as far as they are known.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>
#include "candidate_index.hpp"
#include "candidate_layouts.hpp"
#include "cost_book.hpp"
#include "error_limit.hpp"
#include "neighbours.hpp"
#include "place_rules.hpp"
#include "place_task.hpp"
#include "sub_plans.hpp"
#include "weight_limit.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// All parts of placing read the state. These parts write it:
///
/// - `region_candidates` adds regions, and forbids nodes that have no kernel in a region.
/// - `cost_measurer` adds costs measured alone.
/// - `run_learner` adds costs measured within the network.
/// - `placer` adds the plans of subgraphs and, if it does not measure, which kernels can be built.
struct placing_state {
  explicit placing_state(const place_task& given) : placing_state(given, find_allowed_candidates(given)) {}
  placing_state(const placing_state&) = delete;
  placing_state& operator=(const placing_state&) = delete;

  place_task task;
  candidate_layouts layouts;  ///< with the costs of conversions between them
  candidate_index candidates;
  cost_book costs;             ///< of kernels
  neighbour_costs neighbours;  ///< of switches between backends
  sub_plans bodies;
  weight_limit weights;                      ///< the bound on their memory, and what candidates keep
  error_limit errors;                        ///< the bound on the error of rounded values, and what candidates round
  std::vector<std::vector<bool>> forbidden;  ///< by backend and node: no region of the backend may hold the node
  view_layouts views;

  /// Whether the search may make a node a view in a form, which is one of `views`. A form other than plain may need conversions.
  /// Without costs, those of conversions are unknown, and only the plain form is allowed. Otherwise, some backend must still be able to
  /// make them.
  bool can_be_view(std::uint32_t node, std::uint32_t order) const {
    return order == 0 || (task.has_costs() && layouts.can_be_converted(*layouts.borders_of_view(node, order)));
  }

 private:
  placing_state(const place_task& given, allowed_candidates&& left)
      : task(given),
        layouts(task, left),
        candidates(task.network, task.backends, std::move(left.candidates)),
        costs(task.network, task.backends, candidates.all()),
        neighbours(task.backends.size()),
        bodies(task.network),
        weights(task, candidates),
        errors(task, candidates, layouts),
        forbidden(std::move(left.forbidden)),
        views(std::move(left.views)) {}
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
