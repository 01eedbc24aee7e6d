// Candidates that backends refuse, in a network and in the subgraphs of its branches and loops.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <vector>

namespace collage::inline v0::report {

/// The refusals in one graph. Their places are its nodes: another graph may have nodes of the same names.
struct graph_refusals {
  const graph* network = nullptr;
  std::vector<place_refusal> list;
};

/// Finds the refusals of the plan's backends: in the network first, then in each subgraph.
std::vector<graph_refusals> find_refusals(const graph& network, const plan& made, backend_table table);

/// All of them in one list.
std::vector<place_refusal> joined(const std::vector<graph_refusals>& all);

}  // namespace collage::inline v0::report
