// The refusals of a placing, and the error for a network that the backends do not cover. It names each node that no backend takes.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/set/candidate.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>
#include "cost_book.hpp"
#include "placing_state.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// The refusals of the nodes for which `is_covered` is false, by node. A backend accepts none of the node's matches, or does not take
/// it, or has a kernel for it that cannot be used.
inline std::vector<std::vector<std::string>> refusals_of(const placing_state& known,
                                                         const std::vector<bool>& is_covered) {
  const graph& network = known.task.network;
  std::vector<std::vector<std::string>> list(is_covered.size());
  std::unordered_map<std::string, std::vector<const place_refusal*>> by_name;
  for (const place_refusal& r : known.candidates.all().refusals) by_name[r.where].push_back(&r);
  for (std::uint32_t n = 0; n < list.size(); ++n) {
    if (is_covered[n]) continue;
    if (const auto named = by_name.find(network.node_name(n)); named != by_name.end())
      for (const place_refusal* r : named->second) list[n].push_back(r->backend + " refuses: " + r->reason);
    for (std::uint32_t b = 0; b < known.task.backends.size(); ++b) {
      if (!known.task.use[b] || known.task.backends[b].takes == nullptr) continue;
      const verdict taken = judge_node(known.task.backends[b], network, n);
      if (!taken && taken.rule != std::string_view(verdict(false).rule))  // not from a backend that gives no reason
        list[n].push_back(std::string(known.task.backends[b].name) + " refuses: " + taken.rule);
    }
  }
  for (std::uint32_t i = 0; i < known.candidates.size(); ++i) {
    const measured_cost* cost = known.costs.find(known.candidates[i]);
    if (cost == nullptr || cost->refusal.empty()) continue;
    const std::uint32_t b = known.candidates[i].backend;
    const std::vector<std::uint32_t>& nodes = known.candidates.nodes_of(i);
    const bool is_alone = nodes.size() == 1 || !known.candidates.is_region(i);
    const std::string text =
        known.task.backends[b].name +
        (is_alone ? " refuses: " + cost->refusal
                  : " refuses a region of " + std::to_string(nodes.size()) + " operators with it: " + cost->refusal +
                        " (placing ended before it was tried alone)");
    for (const std::uint32_t n : nodes)
      if (!is_covered[n] && (is_alone || !known.candidates.find_region(b, {n}))) list[n].push_back(text);
  }
  return list;
}

/// Describes a node for the error: its operator, its operands, and which backends refuse it and why.
inline std::string why_not_covered(const placing_state& known, std::uint32_t node,
                                   const std::vector<std::string>& refusals) {
  const graph& network = known.task.network;
  std::string what = std::string(" (") + network.node(node).kind->name;
  const auto operands = network.view().inputs_of(node);
  for (const std::uint32_t v : operands.first(std::min<std::size_t>(operands.size(), 4)))
    what += " " + to_string(network.type_of(v));
  if (operands.size() > 4) what += " ...";
  what += ")";
  std::string who;
  for (const std::string& text : refusals)
    if (who.find(text) == std::string::npos) who += (who.empty() ? "" : ", ") + text;
  return what + (who.empty() ? ": no backend has a pattern for it" : ", " + who);
}

/// Throws one error that names every node without a `usable` candidate, unless the node is a view or control flow.
template <class Usable>
void require_cover(const placing_state& known, Usable usable) {
  const graph& network = known.task.network;
  std::vector<bool> covered(network.nodes().size());
  for (std::uint32_t n = 0; n < covered.size(); ++n)
    covered[n] = is_control(network.view(), n) ||
                 std::ranges::any_of(known.views[n], [&](std::uint32_t order) { return known.can_be_view(n, order); });
  for (std::uint32_t i = 0; i < known.candidates.size(); ++i)
    if (usable(known.candidates[i]))
      for (const std::uint32_t n : known.candidates.nodes_of(i)) covered[n] = true;
  if (std::ranges::all_of(covered, [](bool is) { return is; })) return;
  // Equal places share an entry, because a network has dozens of them.
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> holes;
  std::unordered_map<std::string, std::size_t> hole_of;
  const auto refusals = refusals_of(known, covered);
  for (std::uint32_t n = 0; n < covered.size(); ++n) {
    if (covered[n]) continue;
    const std::string what = why_not_covered(known, n, refusals[n]);
    const auto [alike, is_new] = hole_of.try_emplace(what, holes.size());
    if (is_new) holes.emplace_back(what, std::vector<std::uint32_t>());
    holes[alike->second].second.push_back(n);
  }
  // A lack of memory is no lack of a backend. Each reason then has its remedy.
  bool is_passing = false;
  for (std::uint32_t i = 0; i < known.candidates.size() && !is_passing; ++i) {
    const measured_cost* const cost = known.costs.find(known.candidates[i]);
    is_passing = cost != nullptr && cost->passing &&
                 std::ranges::any_of(known.candidates.nodes_of(i), [&](std::uint32_t n) { return !covered[n]; });
  }
  constexpr std::size_t named = 3;
  std::string text;
  for (const auto& [what, nodes] : holes) {
    for (std::size_t i = 0; i < std::min(nodes.size(), named); ++i)
      text += (i != 0 ? ", " : text.empty() ? "" : "; ") + network.node_name(nodes[i]);
    if (nodes.size() > named) text += " and " + std::to_string(nodes.size() - named) + " more";
    text += what;
  }
  bool has_portable = false;  // it runs every operator kind with a reference
  for (std::uint32_t b = 0; b < known.task.backends.size(); ++b)
    has_portable = has_portable || (known.task.use[b] && known.task.backends[b].name == std::string("portable"));
  throw error(is_passing ? error_kind::environment : error_kind::unsupported, "no backend runs " + text,
              "network " + known.task.options.network,
              is_passing     ? ""
              : has_portable ? "add a backend that runs them, or give the operator kind a reference"
                             : "add a backend that runs them, such as portable");
}

/// Adds the refusals of a subgraph, but not those of the machine or the options: the whole network has them.
inline void add_refusals_of_subgraph(const place_task& task, const std::vector<place_refusal>& of,
                                     std::vector<place_refusal>& to) {
  for (const place_refusal& r : of)
    if (std::ranges::find(task.missing, r) == task.missing.end()) to.push_back(r);
}

/// Lists the refusals of `build` and of measuring, then those of `accepts`, each reason once.
inline void list_refusals(const placing_state& known, std::vector<place_refusal>& to) {
  const backend_table backends = known.task.backends;
  const auto add = [&](const cost_book& book, const place_candidates& candidates) {
    for (const auto& [key, cost] : book.table())
      if (const auto& [structure, b, p, how] = key; !cost.refusal.empty())
        to.push_back({backends[b].name, pattern_name(backends, b, p), candidates.structures[structure].label,
                      (how.number() ? "" : "configuration " + how.text() + ": ") + cost.refusal});
  };
  add(known.costs, known.candidates.all());
  if (const auto& conversions = known.layouts.conversions()) add(conversions->book(), conversions->candidates());
  std::map<std::tuple<std::string, std::string, std::string>, bool> told;
  for (const place_refusal& r : known.candidates.all().refusals)
    if (!std::exchange(told[{r.backend, r.pattern, r.reason}], true)) to.push_back(r);
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
