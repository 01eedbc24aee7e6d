// What several commands say about plans.
#pragma once

#include "placing.hpp"

#include <collage/io/json.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace program {

/// End-to-end figures: the plan first, then what it was compared with. The last column says what is special about a
/// placement.
std::string runs_table(const collage::plan& made, const std::vector<collage::plan_run>& runs);

/// Notes on stderr that the figures are poor where they spread as they do when other programs use the processors.
void note_spread(const std::vector<collage::plan_run>& runs);

/// Notes on stderr that the plan took much longer now than when it was made.
void note_slower(const collage::plan& made, double median_ms);

/// Which nodes each single-backend placement leaves to others, at most `most` names each; empty where none does.
std::string borrowed_text(const collage::plan& made, std::size_t most);

/// Cost, lower bound and what they mean, in a sentence.
std::string certificate_text(const collage::plan& made);
/// Where a plan comes from that the last search did not find.
std::string origin_text(const std::string& origin);

/// What a backend runs of a plan, in all.
struct backend_total {
  std::size_t groups = 0, nodes = 0;
  double cost_ms = 0;

  void add_group(std::size_t its_nodes, double its_cost_ms) {
    ++groups;
    nodes += its_nodes;
    cost_ms += its_cost_ms;
  }
};

/// By how much the sum of the groups' costs is off the time of whole runs: 0.03 for 3 % too much; 0 where nothing ran.
double prediction_error(const collage::plan& made);

/// The same in a sentence; empty where nothing ran.
std::string prediction_text(const collage::plan& made);

/// The memory of a run for intermediate values and workspaces, beside the least that there can be: "arena of 12.0 MB, 1.000
/// times the 12.0 MB ...".
std::string arena_text(const collage::dynamic_engine& engine);
/// The same as members of a JSON object.
void add_arena(collage::json& to, const collage::dynamic_engine& engine);

/// A group of nodes in a word: the nodes' names; where these do not tell the operators, the last name and the
/// operators.
std::string label_of(const collage::graph& network, const std::vector<std::uint32_t>& nodes);

}  // namespace program
