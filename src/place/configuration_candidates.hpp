// Configurations beyond the few that backends propose, as candidates: points of whole search spaces, and those of earlier plans.
#pragma once

#include <algorithm>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/plan.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>
#include "kept_costs.hpp"
#include "place_rules.hpp"
#include "placing_state.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Candidates of one structure that differ in their configurations alone: kernels of one pattern that read and write values in the
/// same forms. They share a search space.
struct configuration_group {
  std::uint32_t structure = 0, backend = 0, pattern = 0;
  std::vector<std::uint32_t> members;  ///< at the structure's example, the proposed ones first
};

class configuration_candidates {
 public:
  explicit configuration_candidates(placing_state& known) : known_(known) {}

  /// The groups of candidates whose backends have search spaces, by structure.
  std::vector<configuration_group> groups() const {
    std::vector<configuration_group> list;
    const place_candidates& all = known_.candidates.all();
    for (std::uint32_t s = 0; s < all.structures.size(); ++s) {
      const std::size_t first = list.size();
      for (const std::uint32_t i : known_.costs.rivals_of(s)) {
        if (!has_space(all.list[i])) continue;
        const auto same = std::find_if(list.begin() + static_cast<std::ptrdiff_t>(first), list.end(),
                                       [&](const configuration_group& g) { return is_member(i, g.members.front()); });
        if (same != list.end()) same->members.push_back(i);
        else list.push_back({s, all.list[i].backend, all.list[i].pattern, {i}});
      }
    }
    return list;
  }

  /// Adds a configuration of a candidate's kernel wherever the network has this kernel. Returns the candidate at the structure's
  /// example, also if it was there before. Nothing if the backend lacks the configuration, if its kernel reads or writes values in
  /// other forms, or if its algorithm is not wanted.
  std::optional<std::uint32_t> add(std::uint32_t like, const configuration& how) {
    const place_task& task = known_.task;
    const place_candidates& all = known_.candidates.all();
    const place_candidate from = all.list[like];
    const std::uint32_t structure = known_.candidates.structure_of(like);
    for (const std::uint32_t i : known_.costs.rivals_of(structure))
      if (const place_candidate& c = all.list[i];
          c.backend == from.backend && c.pattern == from.pattern && c.configuration == how)
        return i;
    place_candidate wanted = from;
    wanted.configuration = how;
    const pattern_entry& pattern = task.backends[from.backend].patterns[from.pattern];
    const match_record record = record_of(task.network, task.backends, from);
    if (!judge_configuration(pattern, task.network.view(), record, how)) return {};
    const value_forms forms = forms_of(task.network, task.backends, all, wanted);
    if (forms.list() != known_.layouts.borders_of(like).list()) return {};
    if (wanted_algorithms(task.options) == algorithms::direct &&
        !algorithm_of(task.network, task.backends, wanted).is_direct())
      return {};
    std::optional<std::uint32_t> at_example;
    for (const auto& [candidate, twin] : known_.candidates.add_configuration(like, how)) {
      known_.layouts.add(candidate, twin);
      if (known_.candidates[candidate].group != known_.candidates.all().structures[structure].example) continue;
      known_.costs.add(candidate);
      at_example = candidate;
    }
    return at_example;
  }

  /// Adds the configurations that earlier searches of the spaces found to be the fastest. Errors: those of the store.
  void add_kept(kept_costs& kept) {
    for (const configuration_group& g : groups())
      for (const configuration& how : kept.find_fastest(known_.candidates[g.members.front()]))
        (void)add(g.members.front(), how);
  }

  /// Adds the configurations of a placement, so that its kernels are candidates.
  void add_those_of(const placement& p) {
    for (const plan_group& g : p.groups) {
      const auto* const step = std::get_if<kernel_step>(&g.step);
      const std::optional<configuration> how = step != nullptr ? configuration::of(step->configuration) : std::nullopt;
      if (!how) continue;
      std::vector<std::uint32_t> nodes = g.nodes;
      std::ranges::sort(nodes);
      // Each candidate of the kernel may have other forms.
      for (const std::uint32_t i : known_.candidates.of(nodes)) {
        const place_candidate c = known_.candidates[i];
        if (has_space(c) && c.root == g.nodes.back() && step->backend == known_.task.backends[c.backend].name &&
            step->pattern == pattern_name(known_.task.backends, c.backend, c.pattern) && add(i, *how))
          break;
      }
    }
  }

 private:
  bool has_space(const place_candidate& c) const {
    return !c.is_by_rule() && known_.task.backends[c.backend].patterns[c.pattern].search_space != nullptr;
  }
  /// Whether two candidates at one example differ in their configurations alone.
  bool is_member(std::uint32_t a, std::uint32_t b) const {
    const place_candidate &x = known_.candidates[a], &y = known_.candidates[b];
    return x.backend == y.backend && x.pattern == y.pattern && x.root == y.root &&
           known_.layouts.borders_of(a).list() == known_.layouts.borders_of(b).list();
  }

  placing_state& known_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
