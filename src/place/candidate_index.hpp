// The candidates of one placing, found by what they cover.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/workloads.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

/// Groups of one structure have the same candidates, also after some were taken away at some of their places.
inline void renumber_structures(place_candidates& candidates) {
  using kernel_key = std::tuple<std::uint32_t, std::uint32_t, configuration>;  // its backend and pattern
  std::map<std::uint32_t, std::vector<kernel_key>> left;                       // by group
  for (const place_candidate& c : candidates.list) left[c.group].emplace_back(c.backend, c.pattern, c.configuration);
  std::vector<place_structure> structures;
  std::map<std::pair<std::uint32_t, std::vector<kernel_key>>, std::uint32_t> numbers;
  for (auto& [g, kernels] : left) {
    std::sort(kernels.begin(), kernels.end());
    std::uint32_t& structure = candidates.groups[g].structure;
    const auto [number, is_new] =
        numbers.try_emplace({structure, kernels}, static_cast<std::uint32_t>(structures.size()));
    if (is_new) structures.push_back({g, candidates.structures[structure].label, 0});
    ++structures[number->second].occurrences;
    structure = number->second;
  }
  candidates.structures = std::move(structures);
}

/// Finds candidates by their index. Candidates keep their indices; regions are added after them.
class candidate_index {
 public:
  candidate_index(const graph& network, backend_table backends, place_candidates all)
      : network_(network), backends_(backends), all_(std::move(all)) {
    for (std::uint32_t i = 0; i < all_.list.size(); ++i) by_nodes_[nodes_of(i)].push_back(i);
  }
  candidate_index(const candidate_index&) = delete;
  candidate_index& operator=(const candidate_index&) = delete;

  const place_candidates& all() const { return all_; }
  const place_candidate& operator[](std::uint32_t candidate) const { return all_.list[candidate]; }
  std::size_t size() const { return all_.list.size(); }
  const std::vector<std::uint32_t>& nodes_of(std::uint32_t candidate) const {
    return all_.groups[all_.list[candidate].group].nodes;
  }
  std::uint32_t structure_of(std::uint32_t candidate) const {
    return all_.groups[all_.list[candidate].group].structure;
  }
  bool is_region(std::uint32_t candidate) const {
    return all_.list[candidate].is_by_rule() && backends_[all_.list[candidate].backend].takes_regions;
  }

  /// Those for exactly these nodes, which some candidate covers. `nodes` are ascending.
  const std::vector<std::uint32_t>& covering(const std::vector<std::uint32_t>& nodes) const {
    return by_nodes_.at(nodes);
  }
  /// The same for any nodes: there may be none.
  std::vector<std::uint32_t> of(const std::vector<std::uint32_t>& nodes) const {
    const auto there = by_nodes_.find(nodes);
    return there == by_nodes_.end() ? std::vector<std::uint32_t>() : there->second;
  }
  /// Which candidate each group of a placement is, views left out; nothing for control flow and what is no candidate.
  std::vector<std::optional<std::uint32_t>> in(const placement& p) const {
    std::vector<std::optional<std::uint32_t>> list;
    for (const plan_group& g : p.groups) {
      if (g.is_view()) continue;
      list.emplace_back();
      std::vector<std::uint32_t> nodes = g.nodes;
      std::sort(nodes.begin(), nodes.end());
      const auto there = by_nodes_.find(nodes);
      if (there == by_nodes_.end()) continue;
      for (const std::uint32_t i : there->second) {
        const place_candidate& c = all_.list[i];
        if (same_step(g.step, step_of(backends_, c)) && (c.is_by_rule() || g.nodes.back() == c.root)) list.back() = i;
      }
    }
    return list;
  }

  /// The candidate for a region that is one already. `nodes` are ascending.
  std::optional<std::uint32_t> find_region(std::uint32_t backend, const std::vector<std::uint32_t>& nodes) const {
    const auto there = by_nodes_.find(nodes);
    if (there == by_nodes_.end()) return {};
    for (const std::uint32_t i : there->second)
      if (all_.list[i].backend == backend && all_.list[i].is_by_rule()) return i;
    return {};
  }
  /// A candidate that was added, and the one that it was made from.
  struct added_configuration {
    std::uint32_t candidate, like;
  };
  /// Adds another configuration of a candidate's kernel, at each group of the structure that has the kernel.
  std::vector<added_configuration> add_configuration(std::uint32_t like, const configuration& how) {
    const place_candidate from = all_.list[like];
    const std::uint32_t structure = structure_of(like);
    std::vector<added_configuration> added;
    const auto before = static_cast<std::uint32_t>(all_.list.size());
    for (std::uint32_t i = 0; i < before; ++i) {
      const place_candidate& c = all_.list[i];
      if (c.backend != from.backend || c.pattern != from.pattern || structure_of(i) != structure ||
          c.configuration != from.configuration)
        continue;
      const auto number = static_cast<std::uint32_t>(all_.list.size());
      added.push_back({number, i});
      by_nodes_[nodes_of(i)].push_back(number);
      place_candidate made = c;
      made.configuration = how;
      all_.list.push_back(std::move(made));
    }
    return added;
  }

  struct added_region {
    std::uint32_t candidate;
    bool is_first_of_structure;
  };
  added_region add_region(std::uint32_t backend, const std::vector<std::uint32_t>& nodes) {
    const auto number = static_cast<std::uint32_t>(all_.list.size());
    const auto group = static_cast<std::uint32_t>(all_.groups.size());
    // Layers that are alike are one computation.
    const auto [known, is_new] = region_structures_.try_emplace({backend, structure_key(network_, nodes)},
                                                                static_cast<std::uint32_t>(all_.structures.size()));
    if (is_new) all_.structures.push_back({group, structure_label(network_, nodes), 0});
    ++all_.structures[known->second].occurrences;
    all_.groups.push_back({nodes, known->second});
    all_.list.push_back({.backend = backend, .pattern = place_candidate::rule, .group = group});
    by_nodes_[nodes].push_back(number);
    return {number, is_new};
  }

 private:
  const graph& network_;
  backend_table backends_;
  place_candidates all_;
  /// Candidates by what they cover. Looked up, never walked.
  std::unordered_map<std::vector<std::uint32_t>, std::vector<std::uint32_t>, word_hash> by_nodes_;
  std::map<std::pair<std::uint32_t, std::vector<std::uint64_t>>, std::uint32_t>
      region_structures_;  // by backend and key
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
