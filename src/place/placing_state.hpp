// What one placing knows: its candidates, and what has been learnt of their costs so far.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>
#include "candidate_index.hpp"
#include "candidate_layouts.hpp"
#include "cost_book.hpp"
#include "neighbours.hpp"
#include "place_rules.hpp"
#include "place_task.hpp"
#include "sub_plans.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Read by all parts of placing. Who writes: `region_candidates` adds candidates and forbids what has no kernel,
/// `cost_measurer` adds costs measured alone, `run_learner` what whole runs showed, and `placer` the plans of sub-graphs and,
/// where nothing is measured, what can be built.
struct placing_state {
  explicit placing_state(const place_task& given) : placing_state(given, find_allowed_candidates(given)) {}
  placing_state(const placing_state&) = delete;
  placing_state& operator=(const placing_state&) = delete;

  place_task task;
  candidate_layouts layouts;  ///< and what conversions between them cost
  candidate_index candidates;
  cost_book costs;             ///< of kernels
  neighbour_costs neighbours;  ///< what is added where kernels of different backends meet
  sub_plans bodies;
  std::vector<std::vector<bool>> forbidden;  ///< by backend and node: no region of the backend may hold it
  view_layouts views;

  /// Whether the search is to know that a node may be a view in a layout, one of `views`. Conversions of unknown cost are not
  /// asked for, nor those that nobody makes any more.
  bool can_be_view(std::uint32_t node, std::uint32_t order) const {
    return order == 0 || (task.options.measure && layouts.can_be_converted(*layouts.borders_of_view(node, order)));
  }

 private:
  placing_state(const place_task& given, allowed_candidates&& left)
      : task(given),
        layouts(task, left),
        candidates(task.network, task.backends, std::move(left.candidates)),
        costs(task.network, task.backends, candidates.all()),
        neighbours(task.backends.size()),
        bodies(task.network),
        forbidden(std::move(left.forbidden)),
        views(std::move(left.views)) {}
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
