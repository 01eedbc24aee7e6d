// Getting a plan: from a file, or by placing now.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/plan.hpp>

#include <string>
#include <vector>

namespace program {

/// A network with its plan.
struct placed {
  collage::graph network;
  collage::plan made;
  bool fresh = false;  ///< placed now, not read from a file
  std::vector<collage::merged_refusal> refusals;
  collage::place_report report;  ///< of a fresh plan
  std::string store;             ///< the file; empty where there is none
};

/// Names, numbers and files that the options give, as far as they can be checked without a plan.
void check(const options& given);

/// What a plan is made for: to be kept, after which Ctrl-C ends measuring and the plan that the file holds is compared
/// with, or for one use.
enum class purpose { tuning, once };

/// Places the network of the options now, with progress on stderr.
placed place_now(const options& given, purpose why);

/// The plan of `--plan FILE`, which must fit the network, this program, this machine, `--threads` and `--backends`; without
/// the option, place_now.
placed get_plan(const options& given);

/// "zoo:resnet50 on 2 threads of AMD EPYC 9R14 (avx512), fp32"
std::string title_of(const collage::plan& made);

}  // namespace program
