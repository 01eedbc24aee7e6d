// Plans of earlier placings: whether they can still be selected, and the one that the store has for a network.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_algorithms.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "configuration_candidates.hpp"
#include "conversions.hpp"
#include "cost_keys.hpp"
#include "placing_state.hpp"
#include "region_candidates.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Whether all steps of a placement are candidates now, and its weights keep the bound. Its regions become candidates. `has_kernel`
/// and `converts` say whether a candidate, and a candidate among conversions, can be used.
template <class HasKernel, class Converts>
bool can_be_selected(const placement& kept, placing_state& known, region_candidates& regions, HasKernel has_kernel,
                     Converts converts) {
  if (!known.weights.keeps(kept)) return false;
  regions.add_those_of(kept);
  configuration_candidates(known).add_those_of(kept);
  const auto who = known.candidates.in(kept);
  std::size_t at = 0;
  for (const plan_group& g : kept.groups) {
    if (const auto* const view = std::get_if<view_step>(&g.step)) {
      const std::vector<std::uint32_t>& views = known.views[g.nodes[0]];
      if (std::ranges::find(views, known.task.number_of_form(view->form)) == views.end())
        return false;  // a constraint wants a kernel, for example
      continue;
    }
    const std::optional<std::uint32_t> candidate = who[at++];
    if (g.is_control()) continue;
    if (!candidate || !has_kernel(*candidate)) return false;
  }
  const std::optional<conversion_book>& conversions = known.layouts.conversions();
  return std::ranges::all_of(kept.conversions, [&](const plan_conversion& c) {
    const auto candidate = conversions ? conversions->find(c) : std::nullopt;
    return candidate && converts(*candidate);
  });
}

/// A plan of end-to-end runs that the store has for the network of a placing.
struct tuned_placing {
  plan found;
  bool is_finished = false;
};

/// The first that the placing's options allow; nothing if there is none. Costs are not looked at: the runs say more.
inline std::optional<tuned_placing> tuned_plan_of(placing_state& known, const cost_index& index,
                                                  region_candidates& regions) {
  const place_task& task = known.task;
  const cost_keys keys(task.network, task.backends, known.candidates.all(), task.use, task.threads, task.precision,
                       task.options.algorithms);
  const stored_key& machine = keys.of_machine();
  const auto is_any = [](std::uint32_t) { return true; };
  for (const cost_index::tuned_plan& kept : index.tuned_plans(
           {task.network.fingerprint(), {}, machine.machine, machine.threads, machine.waiting, {}, keys.set()})) {
    try {
      tuned_placing made{plan_from_json(json::parse(kept.text), task.network, "the store"), kept.is_finished};
      if (serves(made.found.precision, task.precision) &&
          unwanted_algorithm_of(made.found, task.network, task.backends, wanted_algorithms(task.options)).is_direct() &&
          can_be_selected(made.found.chosen, known, regions, is_any, is_any))
        return made;
    } catch (const error&) {  // an entry of another version; the next may serve
    } catch (const json::exception&) {}
  }
  return {};
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
