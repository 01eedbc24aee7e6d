// Patterns that are not there: operators that a backend does not take, and neighbours that it does not join, with what a
// pattern for them would compete with.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace program {

/// Operators of one kind that no candidate of a backend covers.
struct missing_operator {
  std::string backend;
  std::string kind;
  std::string reason;  ///< why the backend refuses them; empty where no pattern of it matches
  std::size_t nodes = 0;
  double cost_ms = 0;  ///< of the groups that they are in now
};

/// Groups that one backend runs one after the other, the second alone reading the first, and that no candidate of it joins.
struct missing_fusion {
  std::string backend;
  std::string first, second;  ///< operators
  std::string example;        ///< the last node of the second, at the first place
  std::size_t places = 0;
  double cost_ms = 0;  ///< of both, at all places: a pattern pays where it takes less
};

/// Dearest first.
struct missing_patterns {
  std::vector<missing_operator> operators;
  std::vector<missing_fusion> fusions;
};

/// Of the backends that a plan was made over, the network and the sub-graphs that its nodes own.
missing_patterns find_missing_patterns(const collage::graph& network, const collage::plan& made);

}  // namespace program
