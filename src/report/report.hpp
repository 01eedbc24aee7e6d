// Reports: a plan and its network as one HTML page that needs nothing else.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/program.hpp>
#include <cstddef>
#include <string>
#include <vector>
#include "missing_patterns.hpp"
#include "refusals.hpp"

namespace collage::inline v0::report {

/// A plan to compare with, and its name for people.
struct other_plan {
  const plan* made = nullptr;
  std::string name;
};

/// Everything that a report shows. The network and the plans must outlive the call.
struct source {
  const graph* network = nullptr;
  const plan* made = nullptr;     ///< of this network
  std::string name;               ///< of the plan, for people
  const program* code = nullptr;  ///< of the plan's engine; null: the report has no chart of the arena
  std::vector<graph_refusals> refusals;
  missing_patterns missing;
  other_plan against;     ///< of the same network; null: the report has no comparison
  double peak_flops = 0;  ///< per second, of the machine; 0: not known
  double peak_bytes = 0;  ///< per second, from and to memory; 0: not known
};

/// The sizes of a report.
struct summary {
  std::size_t groups = 0, boxes = 0, blocks = 0, crossings = 0;
};

/// The page, in UTF-8. The same source has the same page, byte for byte. It holds no date, loads nothing, and shows every name of
/// the network as text. Throws `error` if `against` is a plan of another network.
std::string page_of(const source& from, summary* sizes = nullptr);

}  // namespace collage::inline v0::report
