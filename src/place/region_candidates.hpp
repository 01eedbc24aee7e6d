// Regions as candidates: which of them there may be, and those that are added while placing goes on.
#pragma once

#include <algorithm>
#include <collage/place/regions.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "placing_state.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class region_candidates {
 public:
  /// Adds the largest regions that rules leave.
  explicit region_candidates(placing_state& known) : known_(known) {
    for (std::uint32_t b = 0; b < known.task.backends.size() && !known.task.options.rules.empty(); ++b)
      if (takes_regions(b)) add_largest(b);
    first_tried_ = known.candidates.size();
  }

  /// Whether a backend that may be used takes regions.
  bool takes_regions(std::uint32_t backend) const {
    return known_.task.use[backend] && known_.task.backends[backend].takes_regions;
  }
  bool may_hold(std::uint32_t backend, std::uint32_t node) const {
    return !known_.forbidden[backend][node] && takes_node(known_.task.backends[backend], known_.task.network, node);
  }
  /// From this candidate on they were added by the search over regions.
  std::size_t first_tried() const { return first_tried_; }

  /// The candidate for a region, made where there is none yet; nothing where the backend does not take all of it. `nodes` are
  /// ascending.
  std::optional<std::uint32_t> add(std::uint32_t backend, const std::vector<std::uint32_t>& nodes) {
    if (const auto there = known_.candidates.find_region(backend, nodes)) return there;
    for (const std::uint32_t n : nodes)
      if (!takes_node(known_.task.backends[backend], known_.task.network, n)) return {};
    const candidate_index::added_region made = known_.candidates.add_region(backend, nodes);
    if (made.is_first_of_structure) known_.costs.add(made.candidate);
    return made.candidate;
  }
  /// Makes the regions of a placement candidates, so that their costs can be looked up.
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

  /// Where a largest region has no kernel, single operators in it may be to blame, which are not worth the rest: each is
  /// tried alone, and the regions are made again without those that have none. `has_kernel` is asked for a candidate.
  template <class HasKernel>
  void try_largest(HasKernel has_kernel) {
    const deadline& until = known_.task.until;
    for (std::uint32_t b = 0; b < known_.task.backends.size(); ++b) {
      if (!takes_regions(b)) continue;
      bool all_have = true;
      for (std::uint32_t i = 0; i < first_tried_ && !until.is_over(); ++i)
        if (known_.candidates[i].backend == b && known_.candidates.is_region(i)) all_have = has_kernel(i) && all_have;
      if (all_have) continue;
      for (std::uint32_t n = 0; n < known_.task.is_alias.size() && !until.is_over(); ++n) {
        if (known_.task.is_alias[n] || !may_hold(b, n)) continue;
        const std::optional<std::uint32_t> alone = add(b, {n});
        known_.forbidden[b][n] = !(alone && has_kernel(*alone));
      }
      add_largest(b);
      first_tried_ = known_.candidates.size();
    }
  }

 private:
  void add_largest(std::uint32_t backend) {
    std::vector<bool> taken(known_.task.network.nodes().size());
    for (std::uint32_t n = 0; n < taken.size(); ++n) taken[n] = may_hold(backend, n);
    for (const std::vector<std::uint32_t>& nodes : largest_regions(known_.task.network, taken))
      (void)add(backend, nodes);
  }

  placing_state& known_;
  std::size_t first_tried_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
