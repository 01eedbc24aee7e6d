// Gets a plan: from a file, or by placing.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/run/plan.hpp>

#include <cstdint>
#include <string>

namespace program {

/// A network with its plan.
struct placed {
  collage::graph network;
  collage::plan made;
  bool fresh = false;            ///< placed by this call, not read from a file
  bool is_worth_keeping = true;  ///< false: placing ended before this plan was compared with the file's previous one
  collage::place_report report;  ///< for a fresh plan
  std::string store;             ///< the store's file; empty if there is none
};

/// The purpose for which a command reads the plan of --plan. Notes about the times of its runs are for commands that run it.
enum class plan_use : std::uint8_t { run, show };

/// Checks the options as far as that is possible without a plan. Throws `collage::error`.
void check(const options& given, plan_use use = plan_use::run);

/// The options for placing, of the command line. Without --budget there is no limit.
collage::place_options place_options_of(const options& given);
/// The state of placing, for a line of progress.
std::string text_of(const collage::place_progress& now);

class plan_keeper;

/// Places the network that the options name. Shows progress on stderr. With a keeper, the plan is for a file. A signal then ends
/// measuring and not the program, and the file's previous plan takes part in the comparison.
placed place_now(const options& given, plan_keeper* keeper = nullptr);
/// The same for a network that is ready to be placed.
placed place_network(const options& given, collage::graph network, plan_keeper* keeper = nullptr);

/// Reads the plan of `--plan FILE`, or places if the option is not given. The plan must fit the network, this program,
/// this machine, `--threads` and `--backends`.
placed get_plan(const options& given, plan_use use = plan_use::run);

}  // namespace program
