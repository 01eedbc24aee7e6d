// Candidates: each group of nodes that a pattern of a backend matches and the backend accepts, or that its fusion rule lists.
#pragma once

#include <algorithm>
#include <array>
#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/from_graph.hpp>
#include <collage/fuse/group.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/place/refusal.hpp>
#include <collage/place/regions.hpp>
#include <collage/place/workloads.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <collage/set/candidate.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// One way to run a group, without its cost: a backend with a pattern and a configuration, or with its fusion rule.
struct place_candidate {
  std::uint32_t backend = 0;  ///< index into the table
  std::uint32_t pattern = 0;
  collage::configuration configuration = {};
  std::uint32_t group = 0;  ///< index into place_candidates::groups
  std::uint32_t root = 0;   ///< the node at which the pattern matches

  /// The value of `pattern` if the backend's fusion rule lists the group.
  static constexpr std::uint32_t rule = 0xFFFFFFFF;
  bool is_by_rule() const { return pattern == rule; }
};

/// A group of nodes of the network for which there is a candidate.
struct place_group {
  std::vector<std::uint32_t> nodes;  ///< ascending
  std::uint32_t structure = 0;       ///< index into place_candidates::structures
};

/// Groups of one workload: equal operators, attributes and types, and constants in the same positions. They are measured once.
struct place_structure {
  std::uint32_t example = 0;  ///< the first group of this structure
  std::string label;          ///< for people: "conv+relu 1x64x56x56"
  std::size_t occurrences = 0;
};

struct place_candidates {
  std::vector<place_candidate> list;
  std::vector<place_group> groups;
  std::vector<place_structure> structures;
  std::vector<place_refusal> refusals;
};

/// Listing candidates calls these while it works, many times in 0.1 s.
struct listing_watch {
  /// true: fusion rules list no further groups. Matches of patterns are listed all the same, because every node needs a kernel.
  std::function<bool()> stop = {};
  /// Gets the name of what is listed, and how much of it is done, of how much in all.
  std::function<void(const char* what, std::size_t done, std::size_t all)> progress = {};

  bool is_over() const { return stop && stop(); }
  void tell(const char* what, std::size_t done, std::size_t all) const {
    if (progress) progress(what, done, all);
  }
};

inline const char* pattern_name(backend_table backends, std::uint32_t backend, std::uint32_t pattern) {
  return pattern == place_candidate::rule ? by_rule : backends[backend].patterns[pattern].name;
}
/// The step that runs a candidate.
inline plan_step step_of(backend_table backends, const place_candidate& c) {
  if (c.is_by_rule()) return group_step{backends[c.backend].name};
  return kernel_step{backends[c.backend].name, pattern_name(backends, c.backend, c.pattern), c.configuration.text()};
}
inline bool is_last_resort(backend_table backends, const place_candidate& c) {
  return !c.is_by_rule() && backends[c.backend].patterns[c.pattern].last_resort;
}

/// The match of a candidate that has a pattern.
inline match_record record_of(const graph& network, backend_table backends, const place_candidate& c) {
  match_record record;
  match_at(network.view(), backends[c.backend].patterns[c.pattern].nodes, c.root, record);
  return record;
}

/// The values that the candidate's kernel reads and writes, in the order in which the kernel gets them.
inline node_group values_of(const graph& network, backend_table backends, const place_candidates& all,
                            const place_candidate& c) {
  const std::vector<std::uint32_t>& nodes = all.groups[c.group].nodes;
  if (c.is_by_rule()) return group_of(network, nodes);
  const match_record record = record_of(network, backends, c);
  const auto arguments = record.argument_list();
  return {nodes, {arguments.begin(), arguments.end()}, written_values(network.view(), record)};
}
/// The forms in which the candidate's kernel reads and writes these values.
inline value_forms forms_of(const graph& network, backend_table backends, const place_candidates& all,
                            const place_candidate& c) {
  const backend_entry& b = backends[c.backend];
  if (c.is_by_rule())
    return *b.space == host_space ? value_forms() : forms_of(b, network, group_of(network, all.groups[c.group].nodes));
  const pattern_entry& p = b.patterns[c.pattern];
  if (p.layouts == nullptr && p.space == nullptr) return {};
  return forms_of(p, network.view(), record_of(network, backends, c), c.configuration);
}
/// The smallest element type to which a candidate's kernel rounds values. It also multiplies in this type. Nothing if it rounds none.
inline std::optional<dtype> rounding_of(const graph& network, backend_table backends, const place_candidates& all,
                                        const place_candidate& c) {
  if (c.is_by_rule()) return backends[c.backend].rounds_to;
  return rounding_of(network, forms_of(network, backends, all, c));
}
/// Whether a candidate's kernel rounds no value. A plan in float32 needs such kernels.
inline bool rounds_nothing(const graph& network, backend_table backends, const place_candidates& candidates,
                           const place_candidate& c) {
  return !rounding_of(network, backends, candidates, c);
}
/// How the candidate's kernel computes. The library of a region decides it there, and counts as direct.
inline kernel_algorithm algorithm_of(const graph& network, backend_table backends, const place_candidate& c) {
  if (c.is_by_rule() || backends[c.backend].patterns[c.pattern].algorithm == nullptr) return {};
  return backends[c.backend].patterns[c.pattern].algorithm(network.view(), record_of(network, backends, c),
                                                           c.configuration);
}
/// Builds the candidate's kernel. Errors: those of the backend, if it refuses to build it.
inline kernel build_candidate(const graph& network, backend_table backends, const place_candidates& all,
                              const place_candidate& c, build_context& context) {
  if (c.is_by_rule()) return backends[c.backend].build_group(group_of(network, all.groups[c.group].nodes), context);
  const match_record record = record_of(network, backends, c);
  return backends[c.backend].patterns[c.pattern].build(network.view(), record, context);
}

namespace detail {

/// Adds candidates for groups of the same workload as a group of a fusion rule: its kernel fits them, too. Whether the rule
/// lists them itself depends on the nodes around them. `workload` has the number of each group's workload.
inline void repeat_rules(std::span<const std::uint32_t> workload, std::size_t workloads,
                         const std::vector<std::vector<bool>>& taken, place_candidates& found) {
  const std::size_t groups = workload.size();
  std::vector<std::uint32_t> begin(workloads + 1), alike(groups);  // the groups of each workload, ascending
  for (const std::uint32_t w : workload) ++begin[w + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (std::uint32_t g = 0; g < groups; ++g) alike[next[workload[g]]++] = g;
  const std::size_t listed_before = found.list.size();
  for (std::uint32_t backend = 0; backend < taken.size(); ++backend) {
    if (taken[backend].empty()) continue;
    std::vector<bool> is_listed(groups), is_done(workloads);
    for (std::size_t i = 0; i < listed_before; ++i)
      if (found.list[i].is_by_rule() && found.list[i].backend == backend) is_listed[found.list[i].group] = true;
    const std::vector<bool> by_rule = is_listed;
    for (std::uint32_t g = 0; g < groups; ++g) {
      const std::uint32_t w = workload[g];
      if (!by_rule[g] || is_done[w]) continue;
      is_done[w] = true;
      for (std::uint32_t i = begin[w]; i < begin[w + 1]; ++i)
        if (!is_listed[alike[i]] &&
            std::ranges::all_of(found.groups[alike[i]].nodes, [&](std::uint32_t n) { return taken[backend][n]; }))
          found.list.push_back({.backend = backend, .pattern = place_candidate::rule, .group = alike[i]});
    }
  }
}

/// Finds the structures: groups with equal keys and equal candidates. If a pattern's condition or an `accepts` distinguishes
/// two groups, their candidates differ, so they belong to different structures.
inline void list_structures(const graph& network, const std::vector<std::vector<bool>>& taken, place_candidates& found,
                            const listing_watch& watch) {
  workload_numbers number_of(network);
  std::vector<std::uint32_t> workload;
  workload.reserve(found.groups.size());
  for (const place_group& g : found.groups) {
    watch.tell("workloads", workload.size(), found.groups.size());
    workload.push_back(number_of(g.nodes));
  }
  repeat_rules(workload, number_of.count(), taken, found);
  // The candidates of each group. The order differs between groups, because repeat_rules appends.
  std::vector<std::uint32_t> begin(found.groups.size() + 1), of_group(found.list.size());
  for (const place_candidate& c : found.list) ++begin[c.group + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (std::uint32_t i = 0; i < found.list.size(); ++i) of_group[next[found.list[i].group]++] = i;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, word_hash> structure_of;  // looked up, never walked
  std::map<configuration, std::uint32_t> numbers;
  std::vector<std::array<std::uint32_t, 3>> kernels;
  std::vector<std::uint32_t> key;
  for (std::uint32_t g = 0; g < found.groups.size(); ++g) {
    kernels.clear();
    for (std::uint32_t i = begin[g]; i < begin[g + 1]; ++i) {
      const place_candidate& c = found.list[of_group[i]];
      const auto number = numbers.try_emplace(c.configuration, static_cast<std::uint32_t>(numbers.size())).first;
      kernels.push_back({c.backend, c.pattern, number->second});
    }
    std::ranges::sort(kernels);
    key.assign(1, workload[g]);
    for (const auto& kernel : kernels) key.insert(key.end(), kernel.begin(), kernel.end());
    const auto [s, fresh] = structure_of.try_emplace(key, static_cast<std::uint32_t>(found.structures.size()));
    if (fresh) found.structures.push_back({g, structure_label(network, found.groups[g].nodes), 0});
    ++found.structures[s->second].occurrences;
    found.groups[g].structure = s->second;
  }
}

/// Throws if a pattern and the network have different operator kinds of the same name. A match would read the attributes of one
/// kind as those of the other.
inline void check_kinds(const graph& network, backend_table backends, const std::vector<bool>& use) {
  std::map<std::uint64_t, const kind_info*> kinds;
  for (const node_record& node : network.nodes()) kinds.emplace(node.kind->id, node.kind);
  for (std::uint32_t b = 0; b < backends.size(); ++b)
    for (std::uint32_t p = 0; use[b] && p < backends[b].patterns.size(); ++p) {
      const pattern_view nodes = backends[b].patterns[p].nodes;
      for (std::size_t n = 0; n < nodes.size; ++n)
        for (std::size_t i = 0; i < nodes[n].kinds; ++i) {
          const auto known = kinds.find(nodes[n].kind[i]->id);
          if (known == kinds.end() || is_same_kind(*known->second, *nodes[n].kind[i])) continue;
          throw error(error_kind::invalid_argument,
                      std::string("the network has another operator kind called (") + known->second->name +
                          "), and kinds are identified by name",
                      std::string("pattern ") + backends[b].patterns[p].name + " of backend " + backends[b].name,
                      "give one of them another name");
        }
    }
}

}  // namespace detail

namespace detail {

/// Numbers groups. A group is added when its number is first requested.
class group_numbers {
 public:
  explicit group_numbers(place_candidates& found) : found_(&found) {}
  /// `nodes` are ascending.
  std::uint32_t operator()(std::span<const std::uint32_t> nodes) {
    std::uint64_t key = nodes.size();
    for (const std::uint32_t n : nodes) key = (key ^ n) * fnv_prime;
    std::vector<std::uint32_t>& alike = known_[key];
    for (const std::uint32_t g : alike)
      if (std::ranges::equal(found_->groups[g].nodes, nodes)) return g;
    alike.push_back(static_cast<std::uint32_t>(found_->groups.size()));
    found_->groups.push_back({{nodes.begin(), nodes.end()}, 0});
    return alike.back();
  }

 private:
  place_candidates* found_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> known_;  // by hash; looked up, never iterated
};

/// Adds the matches of patterns, by node, backend and pattern. Refused matches become refusals.
inline void list_matches(const graph& network, backend_table backends, const std::vector<bool>& use,
                         group_numbers& number_of, place_candidates& found, const listing_watch& watch,
                         precisions elements) {
  struct found_match {
    place_candidate of;
    configuration_list proposed = {};
    const char* reason = nullptr;  // why nothing is proposed
    std::uint32_t first = 0;       // of its nodes in `nodes`
    std::uint32_t size = 0;
  };
  const graph_view view = network.view();
  std::vector<found_match> matches;
  std::vector<std::uint32_t> nodes;
  match_record record;
  for (std::uint32_t b = 0; b < backends.size(); ++b)
    for (std::uint32_t p = 0; use[b] && p < backends[b].patterns.size(); ++p) {
      const pattern_entry& pattern = backends[b].patterns[p];
      const auto end = static_cast<std::uint32_t>(view.node_count());
      for (std::uint32_t n = next_match(view, pattern.nodes, 0, record); n < end;
           n = next_match(view, pattern.nodes, n + 1, record)) {
        watch.tell(pattern.name, n, end);
        verdict why;
        const candidate_state state = judge_match(view, pattern, n, record, why);
        if (state == candidate_state::missed) continue;
        found_match m{.of = {.backend = b, .pattern = p, .root = n},
                      .reason = why.rule,
                      .first = static_cast<std::uint32_t>(nodes.size()),
                      .size = record.nodes};
        if (state == candidate_state::found) {
          m.proposed = proposed_for(pattern, view, record);
          m.reason = pattern.configurations == nullptr ? "its choices() returned 0 variants"
                                                       : "its configurations() proposed none";
          if (pattern.layouts != nullptr && elements != precisions::all && !m.proposed.empty()) {
            m.proposed.keep_if([&](const configuration& how) {
              const std::optional<dtype> rounded = rounding_of(network, forms_of(pattern, view, record, how));
              return !rounded || allows(elements, *rounded);
            });
            if (m.proposed.empty()) continue;  // it is for other precisions
          }
        }
        nodes.insert(nodes.end(), record.node_list().begin(), record.node_list().end());
        matches.push_back(std::move(m));
      }
    }
  std::ranges::stable_sort(matches, {}, [](const found_match& m) { return m.of.root; });
  for (found_match& m : matches) {
    const auto refuse = [&](const std::string& reason) {
      const backend_entry& b = backends[m.of.backend];
      found.refusals.push_back({b.name, b.patterns[m.of.pattern].name, network.node_name(m.of.root), reason});
    };
    for (const std::string& fault : m.proposed.faults()) refuse(fault);
    if (m.proposed.empty()) {
      refuse(m.reason);
      continue;
    }
    m.of.group = number_of(std::span(nodes).subspan(m.first, m.size));
    for (const configuration& proposed : m.proposed) {
      m.of.configuration = proposed;
      found.list.push_back(m.of);
    }
  }
}

/// Whether a backend takes a node that this one reads.
inline bool reads_taken(const graph& network, const std::vector<bool>& taken, std::uint32_t node) {
  return std::ranges::any_of(network.view().inputs_of(node), [&](std::uint32_t v) {
    return network.at(v).producer >= 0 && taken[static_cast<std::size_t>(network.at(v).producer)];
  });
}

/// Adds the largest regions of backends that take regions. The search over regions finds smaller ones.
inline void list_regions(const graph& network, backend_table backends, const std::vector<bool>& use,
                         group_numbers& number_of, place_candidates& found) {
  for (std::uint32_t b = 0; b < backends.size(); ++b) {
    if (!use[b] || !backends[b].takes_regions) continue;
    std::vector<bool> taken(network.nodes().size());
    for (std::uint32_t n = 0; n < taken.size(); ++n) taken[n] = takes_node(backends[b], network, n);
    const std::vector<bool> begins = region_beginnings(backends[b], network);
    for (std::uint32_t n = 0; n < taken.size(); ++n)
      if (taken[n] && begins[n] && reads_taken(network, taken, n))
        found.refusals.push_back({backends[b].name, by_rule, network.node_name(n),
                                  std::string("it is in no region with the operators that it reads, because ") +
                                      judge_join(backends[b], network, n).rule});
    for (const std::vector<std::uint32_t>& nodes : largest_regions(network, taken, begins))
      found.list.push_back({.backend = b, .pattern = place_candidate::rule, .group = number_of(nodes)});
  }
}

/// Adds the groups that the backends' fusion rules list. Returns, for each backend with a rule, which nodes it takes. All other
/// nodes are opaque to its rule. Views and control flow are opaque to every rule.
inline std::vector<std::vector<bool>> list_by_rules(const graph& network, backend_table backends,
                                                    const std::vector<bool>& use, group_numbers& number_of,
                                                    place_candidates& found, const listing_watch& watch) {
  std::optional<fuse::dataflow> whole;
  std::vector<std::vector<bool>> taken_by(backends.size());
  for (std::uint32_t b = 0; b < backends.size(); ++b) {
    const backend_entry& e = backends[b];
    if (!use[b] || e.list_groups == nullptr) continue;
    if (!whole) whole = fuse::dataflow_of(network);
    std::vector<bool>& taken = taken_by[b];
    taken.resize(network.nodes().size());
    for (std::uint32_t n = 0; n < taken.size(); ++n) taken[n] = takes_node(e, network, n);
    const fuse::dataflow flow = whole->restricted([&](const fuse::dataflow&, std::uint32_t n) { return taken[n]; });
    fuse::group_list groups;
    groups.stop = [&] {
      watch.tell("groups of a fusion rule", 0, 0);
      return watch.is_over();
    };
    e.list_groups(flow, groups);
    if (!groups.complete)
      found.refusals.push_back(
          {e.name, by_rule, "all of it",
           watch.is_over()
               ? "the time was up before its fusion rule had listed all groups"
               : "its fusion rule lists more groups than its limit allows; the others were not candidates"});
    std::size_t checked = 0;
    for (const fuse::group& g : groups) {
      watch.tell("groups of a fusion rule", checked++, groups.size());
      std::vector<std::uint32_t> nodes(g.nodes.begin(), g.nodes.end());
      if (nodes.back() >= taken.size())
        throw error(error_kind::invalid_argument,
                    "its fusion rule lists node " + std::to_string(nodes.back()) + ", but the network has " +
                        std::to_string(taken.size()) + " nodes",
                    std::string("backend ") + e.name, "list nodes of the dataflow that the fusion rule is given");
      if (!std::ranges::all_of(nodes, [&](std::uint32_t n) { return taken[n]; })) continue;
      if (!fuse::is_convex(flow, g.nodes)) {
        found.refusals.push_back({e.name, by_rule, network.node_name(nodes.back()),
                                  "the group is not convex: a path leaves it and comes back"});
        continue;
      }
      place_candidate c;
      c.backend = b;
      c.pattern = place_candidate::rule;
      c.group = number_of(nodes);
      found.list.push_back(c);
    }
  }
  return taken_by;
}

}  // namespace detail

/// Finds all candidates of the backends for which `use` is true, in this order:
///
/// 1. matches of patterns, by node, backend and pattern, each once for every configuration that the backend proposes (for static
///    graphs, candidates_of in collage/set/candidates.hpp lists the matches);
/// 2. groups that fusion rules list, by backend;
/// 3. the largest regions, by backend;
/// 4. other groups of the same workload as a group of a fusion rule.
///
/// Configurations that round values to an element type which `elements` does not allow are left out.
///
/// The time is linear in the number of nodes, and in the number of nodes in all groups together.
inline place_candidates find_candidates(const graph& network, backend_table backends, const std::vector<bool>& use,
                                        const listing_watch& watch = {}, precisions elements = precisions::all) {
  place_candidates found;
  detail::check_kinds(network, backends, use);
  detail::group_numbers number_of(found);
  detail::list_matches(network, backends, use, number_of, found, watch, elements);
  const auto taken = detail::list_by_rules(network, backends, use, number_of, found, watch);
  detail::list_regions(network, backends, use, number_of, found);
  detail::list_structures(network, taken, found, watch);
  return found;
}

}  // namespace collage::inline v0
