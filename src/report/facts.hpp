// Figures of a plan's groups that tables, drawings and charts share.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>
#include "difference.hpp"
#include "items.hpp"
#include "region_parts.hpp"
#include "report.hpp"

namespace collage::inline v0::report {

/// A group of the plan, or of a subgraph of one of its nodes.
struct group_facts {
  const graph* network = nullptr;  ///< that the group's nodes belong to
  const plan_group* group = nullptr;
  std::string number;      ///< as `explain` has it: 7, or 7.2.1 in the second subgraph of group 7; empty for views
  std::string label;       ///< the names of its nodes, or the last node's name and the operators
  std::string drawn;       ///< a label without names, if names say nothing about operators
  std::size_t runner = 0;  ///< in facts::runners
  double flops = 0;        ///< a multiply-add counts as two
  double bytes = 0;        ///< that it must read and write: each operand, constant and result once
  bool is_inner = false;   ///< in a subgraph, so its time is part of its owner's
  bool is_part = false;    ///< a node of a region, without a time of its own
  std::vector<std::uint32_t> refusals;  ///< in facts::refusals
};

/// A graph with its own drawing: the network, a subgraph of a branch or loop, or a region's nodes.
struct scene {
  const graph* network = nullptr;
  const placement* placed = nullptr;
  std::string name;                    ///< "network", "group 7, part 2" or "group 7, its nodes"
  std::uint32_t first_group = 0;       ///< in facts::groups; the others follow
  std::uint32_t first_conversion = 0;  ///< in facts::conversions
  item_graph items;
};

/// A part of the work of a run that takes time, by the backend that does it.
struct share {
  std::size_t runner = 0, groups = 0, nodes = 0;
  double cost_ms = 0;
};

/// The contents of a report, with times that can be added and divided by. A plan file has finite times, but their sums and rates may be
/// infinite.
class bounded_source {
 public:
  explicit bounded_source(const source& given);
  bounded_source(const bounded_source&) = delete;
  bounded_source& operator=(const bounded_source&) = delete;

  const source& get() const { return from_; }

 private:
  source from_;
  plan made_, other_;  // copies of plans with times out of bounds; empty otherwise
};

struct facts {
  explicit facts(const source& given);

  const bounded_source bounded;
  const source& from;
  const graph& network;
  const plan& made;
  std::vector<std::string>
      runners;  ///< backends of the plans in their order, then "control" and "view" if there are any
  std::deque<region_parts> regions;
  std::vector<group_facts> groups;  ///< as the plan has them; those of subgraphs follow, then the nodes of regions
  std::vector<scene> scenes;        ///< the network's first
  std::vector<std::pair<const graph*, const plan_conversion*>> conversions;  ///< of all scenes
  std::vector<std::uint32_t> rows;      ///< the same in the order of a table: each owner in front of its inner groups
  std::vector<place_refusal> refusals;  ///< of all graphs
  std::vector<share> shares;            ///< the longest first; without views
  double flops = 0, alone_ms = 0, switch_ms = 0, conversions_ms = 0;
  double longest_ms = 0;  ///< of a group or conversion of the network
  std::size_t views = 0;
  std::vector<repeated_block> blocks;  ///< of the network
  difference other;                    ///< empty if there is no other plan; its first groups are `groups`

  std::size_t runner_of(const std::string& name) const;
  /// The run with this name; null if there is none.
  const plan_run* run_of(const std::string& name) const;
  /// The single backend that is fastest compared with the plan; null if none ran.
  const plan_run* best_single() const;
  bool is_measured() const { return made.chosen.cost_ms > 0; }

 private:
  void add_groups(const graph& in, const placement& placed, const std::string& prefix, const std::string& name);
  void add_scene(const graph& in, const placement& placed, const std::string& name, const program* code);
  group_facts facts_of(const graph& in, const plan_group& g);
  void add_regions();
  void add_rows();
  void add_shares();
  void add_refusals();
  void add_difference(const plan& second);
};

}  // namespace collage::inline v0::report
