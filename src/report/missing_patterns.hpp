// Patterns that a backend lacks: for single operators, and for pairs of groups that it does not fuse. Each comes with
// the present cost, which a new pattern would have to beat.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace collage::inline v0::report {

/// Nodes of one operator kind that no candidate of a backend covers.
struct missing_operator {
  std::string backend;
  std::string kind;
  std::string reason;  ///< why the backend refuses them; empty if none of its patterns matches
  std::size_t nodes = 0;
  double cost_ms = 0;  ///< of the groups that contain them now
};

/// Pairs of groups of one backend that no candidate of this backend fuses. Only the second group reads the first.
struct missing_fusion {
  std::string backend;
  std::string first, second;  ///< the operators of each group
  std::string example;        ///< the last node of the second group, at the first place
  std::size_t places = 0;
  double cost_ms = 0;  ///< of both groups, at all places; a pattern pays if it takes less
};

/// Both lists begin with the highest cost.
struct missing_patterns {
  std::vector<missing_operator> operators;
  std::vector<missing_fusion> fusions;
};

/// Finds what the plan's backends lack, in the network and in the subgraphs of its nodes. Backends of the table that the plan was
/// not chosen from do not count.
missing_patterns find_missing_patterns(const graph& network, const plan& made, backend_table table);

}  // namespace collage::inline v0::report
