// Tables and sentences about plans, which several commands print.
#pragma once

#include "placing.hpp"

#include <collage/io/json.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace program {

/// A table of end-to-end times: first the plan, then the placements that it was compared with. The last column has
/// remarks, for example that a placement runs the same steps as the plan.
std::string runs_table(const collage::plan& made, const std::vector<collage::plan_run>& runs);

/// Prints a note on stderr if times vary so much that other programs probably use the processors.
void note_spread(const std::vector<collage::plan_run>& runs);

/// Prints a note on stderr if the plan took much longer now than when it was made.
void note_slower(const collage::plan& made, double median_ms);

/// A line for each baseline with its fallback nodes, at most `most` names each. Empty if no baseline has any.
std::string borrowed_text(const collage::plan& made, std::size_t most);

/// The plan's cost, its lower bound and their meaning, in a sentence.
std::string certificate_text(const collage::plan& made);
/// The origin, in words, of a plan that the last search did not find.
std::string origin_text(const std::string& origin);

/// The share of a backend in a plan.
struct backend_total {
  std::size_t groups = 0, nodes = 0;
  double cost_ms = 0;

  void add_group(std::size_t its_nodes, double its_cost_ms) {
    ++groups;
    nodes += its_nodes;
    cost_ms += its_cost_ms;
  }
};

/// The relative error of the sum of the groups' costs as a prediction of the time end to end. It is 0.03 if the sum is
/// 3 % too high, and 0 if nothing ran.
double prediction_error(const collage::plan& made);

/// The prediction error in a sentence; empty if nothing ran.
std::string prediction_text(const collage::plan& made);

/// The size of the arena, and the lower bound that no plan can be below. It begins "arena of 12.0 MB, 1.000 times the
/// lower bound".
std::string arena_text(const collage::dynamic_engine& engine);
/// Adds both sizes of the arena to a JSON object.
void add_arena(collage::json& to, const collage::dynamic_engine& engine);

/// A short name for a group: the names of its nodes, if each begins with the node's operator kind. Otherwise the last
/// node's name and the operator kinds.
std::string label_of(const collage::graph& network, const std::vector<std::uint32_t>& nodes);

}  // namespace program
