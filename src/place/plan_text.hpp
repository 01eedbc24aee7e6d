// Tables and sentences about plans.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "text.hpp"

namespace collage::inline v0 {

namespace detail {

/// The network, threads, processor and precision of a plan, in a line.
std::string title_of(const plan& made);

/// The same as the heading of a page, folded to its width, with the end of its last line.
std::string heading_of(const plan& made, painter paint);

/// A table of end-to-end times: first the plan, then the placements that it was compared with. The last column has
/// remarks, for example that a placement runs the same steps as the plan.
std::string runs_table(const plan& made, const std::vector<plan_run>& runs, painter paint);

/// The nodes that a baseline leaves to other backends: "onednn leaves 3 nodes to eigen and portable". Empty if there are none.
std::string left_text(const placement& single);
/// A line for each baseline with its fallback nodes, at most `most` names each. Empty if no baseline has any.
std::string borrowed_text(const plan& made, std::size_t most);

/// The plan's cost, its lower bound and their meaning, in a sentence.
std::string certificate_text(const plan& made);
/// Which groups' costs were not measured, and where they come from. Empty if all were.
std::string estimates_text(const plan& made);
/// The memory of the plan's weights, of the network's, and the bound, in a sentence. Empty if it is not known or there are none.
std::string memory_text(const plan& made);
/// How far the outputs of a plan err because it rounds values, in sentences. Empty if it rounds none.
std::string error_text(const plan& made);
/// The parts that stay in float32 by the user's wish, with their numbers of nodes, in a sentence. Empty if there are none.
std::string kept_text(const plan& made, const graph& network);
/// The placement of a single backend in words: "onednn alone", or that others run what it refuses.
std::string single_text(const plan& made, const std::string& backend);
/// The origin, in words, of a plan that the last search did not find.
std::string origin_text(const plan& made);

/// The relative error of the sum of the groups' costs as a prediction of the time end to end. It is 0.03 if the sum is
/// 3 % too high, and 0 if nothing ran.
double prediction_error(const plan& made);
/// The prediction error in a sentence; empty if nothing ran.
std::string prediction_text(const plan& made);

/// A short name for a group: the names of its nodes, if each begins with the node's operator kind. Otherwise the last
/// node's name and the operator kinds.
std::string label_of(const graph& network, const std::vector<std::uint32_t>& nodes);

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
/// The shares by backend; views and control flow count as backends.
std::map<std::string, backend_total> totals_of(const plan& made);

/// The refusals, each with its first place and the number of others.
std::string refusals_text(const std::vector<merged_refusal>& list);

/// Parts of a page about a plan. `explain` has all of them.
struct plan_page {
  const graph& network;
  const plan& made;
  painter paint;

  /// Title, groups, conversions, shares of the backends, the certificate and the sum of the switches.
  std::string placement() const;
  /// Times end to end and the prediction error. Empty if nothing ran.
  std::string times() const;
  /// Nodes that each single backend leaves to others. Empty if there are none.
  std::string fallbacks() const;
  /// Refusals. Empty if there are none.
  std::string refusals(const std::vector<merged_refusal>& list) const;
  std::string heading(const char* text) const { return "\n" + paint(colour::bold, text) + "\n"; }
};

}  // namespace detail
}  // namespace collage::inline v0
