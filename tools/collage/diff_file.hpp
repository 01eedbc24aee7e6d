// Plan files as `diff` reads them: without their networks.
#pragma once

#include <collage/run/plan.hpp>
#include <report/difference.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

/// A group as a plan file has it, without its network. Groups of subgraphs follow the group that owns the subgraph.
struct file_group : c::report::compared_group {
  std::string label;      ///< the nodes' names
  std::string element;    ///< the smallest type in its layout, as forms spell it; "fp32" if that names none
  bool is_inner = false;  ///< of a sub-graph: its cost is part of its owner's
};

/// A plan as its file has it, as far as two of them are compared.
struct file_plan {
  std::string file;
  c::plan made;  ///< without placements; with the error if values are rounded
  std::string fingerprint;
  std::vector<file_group> groups;
  std::vector<std::pair<std::string, double>> conversions;  ///< backends that convert values, and the costs
  std::set<std::string> converted;                          ///< what is converted, and how
  double cost_ms = 0;
};

/// A value of the first plan and the same of the second.
template <class T>
struct both {
  T first{}, second{};
  T& operator[](std::size_t which) { return which == 0 ? first : second; }
  const T& operator[](std::size_t which) const { return which == 0 ? first : second; }
};

/// A smallest set of nodes that both plans divide into whole groups: the groups of each plan.
using compared_region = both<std::vector<const file_group*>>;

/// The sum of their costs in milliseconds.
double cost_of(const std::vector<const file_group*>& groups);

/// Reads a plan file. Errors: one sentence that names the file and the place in it.
file_plan read_file_plan(const std::string& file);

}  // namespace program
