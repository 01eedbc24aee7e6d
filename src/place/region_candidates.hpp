// Regions as candidates: which regions the constraints allow, and which are added during placing.
#pragma once

#include <algorithm>
#include <collage/place/regions.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/set/candidate.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>
#include "placing_state.hpp"
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class region_candidates {
 public:
  /// Adds the largest regions that the constraints allow. Without constraints, `known` has the largest regions already.
  explicit region_candidates(placing_state& known) : known_(known) {
    const bool is_constrained = !known.task.options.rules.empty() || !known.task.options.kept.empty();
    for (std::uint32_t b = 0; b < known.task.backends.size() && is_constrained; ++b)
      if (takes_regions(b)) add_largest(b);
    first_tried_ = known.candidates.size();
  }

  /// Whether a backend takes regions and may be used.
  bool takes_regions(std::uint32_t backend) const {
    return known_.task.use[backend] && known_.task.backends[backend].takes_regions;
  }
  bool may_hold(std::uint32_t backend, std::uint32_t node) const {
    return !known_.forbidden[backend][node] && takes_node(known_.task.backends[backend], known_.task.network, node);
  }
  /// The search over regions added the candidates from this number on.
  std::size_t first_tried() const { return first_tried_; }

  /// The candidate for a region, which is added if it does not exist yet; nothing if the backend does not take all nodes together.
  /// `nodes` are ascending.
  std::optional<std::uint32_t> add(std::uint32_t backend, const std::vector<std::uint32_t>& nodes) {
    if (const auto there = known_.candidates.find_region(backend, nodes)) return there;
    for (const std::uint32_t n : nodes)
      if (!takes_node(known_.task.backends[backend], known_.task.network, n) || !may_join(backend, n, nodes)) return {};
    const candidate_index::added_region made = known_.candidates.add_region(backend, nodes);
    if (made.is_first_of_structure) known_.costs.add(made.candidate);
    return made.candidate;
  }
  /// Adds the regions of a placement as candidates, so that their costs can be looked up.
  void add_those_of(const placement& p) {
    for (const plan_group& g : p.groups)
      for (std::uint32_t b = 0; b < known_.task.backends.size(); ++b)
        if (takes_regions(b) && std::holds_alternative<group_step>(g.step) &&
            g.backend() == known_.task.backends[b].name &&
            std::ranges::all_of(g.nodes, [&](std::uint32_t n) { return may_hold(b, n); })) {
          std::vector<std::uint32_t> nodes = g.nodes;
          std::sort(nodes.begin(), nodes.end());
          (void)add(b, nodes);
        }
  }

  /// The costs of a backend's largest regions together; infinite if one has no kernel, or was not measured.
  double cost_of_largest(std::uint32_t backend) const {
    double sum = 0;
    for (std::uint32_t i = 0; i < first_tried_; ++i) {
      if (known_.candidates[i].backend != backend || !known_.candidates.is_region(i)) continue;
      const measured_cost* const cost = known_.costs.find(known_.candidates[i]);
      if (cost == nullptr || !cost->refusal.empty()) return std::numeric_limits<double>::infinity();
      sum += cost->alone_ms;
    }
    return sum;
  }
  /// How long building the largest regions should take; 0 if there are none.
  double expected_build_s() const {
    const budget_policy& rates = thresholds.budget;
    const graph& network = known_.task.network;
    double seconds = 0;
    for (std::uint32_t i = 0; i < first_tried_; ++i) {
      if (!known_.candidates.is_region(i) || !takes_regions(known_.candidates[i].backend)) continue;
      const std::vector<std::uint32_t>& nodes = known_.candidates.nodes_of(i);
      seconds += rates.region_s + rates.region_operator_s * static_cast<double>(nodes.size());
      for (const std::uint32_t n : nodes)
        for (const std::uint32_t v : network.view().inputs_of(n))
          if (network.at(v).role == value_role::constant)
            seconds += rates.region_byte_s * static_cast<double>(network.type_of(v).bytes());
    }
    return seconds;
  }

  /// Tries the largest regions. If one has no kernel, a few operators may be the cause, and the rest is worth keeping. So each
  /// operator is tried alone, and the regions are made again without the operators that have no kernel. `has_kernel` is called with
  /// a candidate. When the time is up, only nodes that have no other kernel are tried: without one there is no plan at all.
  template <class HasKernel>
  void try_largest(HasKernel has_kernel) {
    for (std::uint32_t b = 0; b < known_.task.backends.size(); ++b) {
      if (!takes_regions(b)) continue;
      const std::vector<bool> needed = nodes_without_operators();
      const auto may_try = [&](std::span<const std::uint32_t> nodes) {
        const deadline& until = known_.task.until;
        return !until.is_over() ||
               (!until.was_stopped() && std::ranges::any_of(nodes, [&](std::uint32_t n) { return needed[n]; }));
      };
      bool all_have = true;
      for (std::uint32_t i = 0; i < first_tried_; ++i)
        if (known_.candidates[i].backend == b && known_.candidates.is_region(i) &&
            may_try(known_.candidates.nodes_of(i)))
          all_have = has_kernel(i) && all_have;
      if (all_have) continue;
      for (std::uint32_t n = 0; n < known_.task.is_alias.size(); ++n) {
        if (known_.task.is_alias[n] || !may_hold(b, n) || !may_try(std::span(&n, 1))) continue;
        const std::optional<std::uint32_t> alone = add(b, {n});
        known_.forbidden[b][n] = !(alone && has_kernel(*alone));
      }
      add_largest(b);
      first_tried_ = known_.candidates.size();
    }
  }

 private:
  /// Whether a region of these nodes may hold one of them.
  bool may_join(std::uint32_t backend, std::uint32_t node, const std::vector<std::uint32_t>& nodes) const {
    const graph& network = known_.task.network;
    if (judge_join(known_.task.backends[backend], network, node)) return true;
    return std::ranges::none_of(network.view().inputs_of(node), [&](std::uint32_t v) {
      const std::int32_t producer = network.at(v).producer;
      return producer >= 0 && std::ranges::binary_search(nodes, static_cast<std::uint32_t>(producer));
    });
  }
  /// Which nodes have no candidate but regions, and are no views.
  std::vector<bool> nodes_without_operators() const {
    std::vector<bool> without(known_.task.network.nodes().size());
    for (std::uint32_t n = 0; n < without.size(); ++n)
      without[n] = !is_control(known_.task.network.view(), n) &&
                   std::ranges::none_of(known_.views[n], [&](std::uint32_t v) { return known_.can_be_view(n, v); });
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) {
      const measured_cost* const cost = known_.costs.find(known_.candidates[i]);
      if (known_.candidates.is_region(i) || (cost != nullptr && !cost->refusal.empty())) continue;
      for (const std::uint32_t n : known_.candidates.nodes_of(i)) without[n] = false;
    }
    return without;
  }
  void add_largest(std::uint32_t backend) {
    std::vector<bool> taken(known_.task.network.nodes().size());
    for (std::uint32_t n = 0; n < taken.size(); ++n) taken[n] = may_hold(backend, n);
    for (const std::vector<std::uint32_t>& nodes : largest_regions(
             known_.task.network, taken, region_beginnings(known_.task.backends[backend], known_.task.network)))
      (void)add(backend, nodes);
  }

  placing_state& known_;
  std::size_t first_tried_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
