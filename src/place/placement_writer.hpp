// Writes the result of a search as a placement of a plan, with the costs that are known now.
#pragma once

#include <algorithm>
#include <collage/layout.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "conversions.hpp"
#include "group_order.hpp"
#include "placing_state.hpp"
#include "search_view.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class placement_writer {
 public:
  explicit placement_writer(const placing_state& known) : known_(known) {}

  placement write(const std::string& name, const search_result& from) const {
    placement result;
    result.name = name;
    if (known_.task.options.precision.may_round()) result.scales = known_.task.options.precision.scales;
    for (const std::uint32_t chosen : from.found.chosen) {
      const shown_step& what = from.who[chosen];
      const std::uint32_t node = from.problem.candidates[chosen].nodes.first();
      result.groups.push_back(what.is(shown_step::kind::view)      ? view_of(node, what.number)
                              : what.is(shown_step::kind::control) ? control_of(node, name)
                                                                   : group_of(what.number));
      result.cost_ms += result.groups.back().cost_ms;  // the cost, not the price that the search counts
    }
    order_groups(known_.task.network, result);
    result.cost_ms += add_conversions(result) + add_switches(result);
    return result;
  }

  /// A copy of a placement with the costs that are known now.
  placement refreshed(const placement& p) const {
    placement result = p;
    result.cost_ms = 0;
    const auto who = known_.candidates.in(p);
    std::size_t at = 0;
    for (plan_group& g : result.groups) {
      if (g.is_view()) continue;
      set_switch(g, 0);
      if (const auto candidate = who[at++]; candidate && known_.costs.find(known_.candidates[*candidate]) != nullptr) {
        plan_group now = group_of(*candidate);
        g = std::move(now);
      }
      result.cost_ms += g.cost_ms;
    }
    result.cost_ms += add_switches(result);
    const std::optional<conversion_book>& conversions = known_.layouts.conversions();
    for (plan_conversion& c : result.conversions) {
      const auto candidate = conversions ? conversions->find(c) : std::nullopt;
      if (candidate && conversions->is_measured(*candidate)) c.cost_ms = conversions->cost_of(*candidate);
      result.cost_ms += c.cost_ms;
    }
    return result;
  }

  /// A copy of `base` in which `others` replace the groups that hold their nodes. Its cost lacks conversions and switches: the
  /// caller adds these after it has measured the conversions.
  placement replaced(const placement& base, const std::vector<plan_group>& others) const {
    placement p = base;
    std::vector<bool> is_replaced(known_.task.network.nodes().size());
    for (const plan_group& g : others)
      for (const std::uint32_t n : g.nodes) is_replaced[n] = true;
    std::erase_if(p.groups, [&](const plan_group& g) { return is_replaced[g.nodes.front()]; });
    p.groups.insert(p.groups.end(), others.begin(), others.end());
    p.cost_ms = 0;
    for (plan_group& g : p.groups) {
      set_switch(g, 0);
      p.cost_ms += g.cost_ms;
    }
    order_groups(known_.task.network, p);
    return p;
  }

  /// The plan's group for a candidate that was measured or built.
  plan_group group_of(std::uint32_t candidate) const {
    const place_candidate& c = known_.candidates[candidate];
    const measured_cost* cost = known_.costs.find(c);
    plan_group g;
    g.step = step_of(known_.task.backends, c);
    g.kernel = cost->kernel;
    g.layout = layout_text(candidate);
    g.nodes = known_.candidates.nodes_of(candidate);
    if (!c.is_by_rule()) {
      const auto root = std::find(g.nodes.begin(), g.nodes.end(), c.root);
      std::rotate(root, root + 1, g.nodes.end());  // the root is last; the others keep the graph's order
    }
    g.cost_ms = known_.costs.cost_of(c).ms;
    g.alone_ms = cost->alone_ms;
    const timing& t = cost->within.samples != 0 ? cost->within : cost->time;
    const double scale = t.median_ms > 0 ? g.cost_ms / t.median_ms : 1;
    g.low_ms = t.sure_low_ms * scale;
    g.high_ms = t.sure_high_ms * scale;
    if (cost->estimate) g.estimate = cost->estimate->text();
    g.runners_up = runners_up(candidate);
    const kernel_algorithm computes = algorithm_of(known_.task.network, known_.task.backends, c);
    g.algorithm = computes.name;
    g.error_bound = computes.error_bound;
    return g;
  }

  /// The conversions that a placement's groups need.
  std::vector<served_conversion> conversions_of(const placement& p) const {
    std::vector<std::vector<std::uint32_t>> nodes;
    std::vector<const value_forms*> borders;
    const auto who = known_.candidates.in(p);
    std::size_t at = 0;
    for (const plan_group& g : p.groups) {
      nodes.push_back(g.nodes);
      if (const auto* const view = std::get_if<view_step>(&g.step)) {
        borders.push_back(known_.layouts.borders_of_view(g.nodes[0], known_.task.number_of_form(view->form)));
        continue;
      }
      const std::optional<std::uint32_t> candidate = who[at++];
      borders.push_back(candidate ? &known_.layouts.borders_of(*candidate) : nullptr);
    }
    return known_.layouts.conversions_between_groups(nodes, borders);
  }
  /// Gives a placement the conversions that its groups need, each by the fastest backend. Returns their cost in milliseconds.
  double add_conversions(placement& p) const {
    p.conversions.clear();
    double sum = 0;
    for (const auto& [needed, candidate] : conversions_of(p)) {
      plan_conversion c{needed.value, {to_text(needed.from), to_text(needed.to), {}, "0"}, {}, 0};
      if (candidate) {
        const conversion_book& conversions = *known_.layouts.conversions();
        const place_candidate& how = conversions.candidates().list[*candidate];
        const measured_cost* cost = conversions.book().find(how);
        c.step.backend = known_.task.backends[how.backend].name;
        c.step.configuration = how.configuration.text();
        if (cost != nullptr) c.kernel = cost->kernel;
        c.cost_ms = conversions.cost_of(*candidate);
      }
      sum += c.cost_ms;
      p.conversions.push_back(std::move(c));
    }
    return sum;
  }
  /// Adds the switches to the costs of a placement's groups. Returns the sum of the switches in milliseconds.
  double add_switches(placement& p) const {
    if (!known_.neighbours.any()) return 0;
    const auto writers = other_writers(known_.task.network, known_.task.backends, p);
    double sum = 0;
    std::size_t at = 0;
    for (plan_group& g : p.groups) {
      if (g.is_view()) continue;
      set_switch(g, known_.neighbours.of(writers[at++], backend_number(known_.task.backends, g.backend())));
      sum += g.switch_ms;
    }
    return sum;
  }

 private:
  static void set_switch(plan_group& g, double ms) {
    for (double* part : {&g.cost_ms, &g.low_ms, &g.high_ms}) *part += ms - g.switch_ms;
    g.switch_ms = ms;
  }

  plan_group view_of(std::uint32_t node, std::uint32_t number) const {
    plan_group g;
    g.layout = to_text(known_.task.forms[number]);
    g.step = view_step{g.layout};
    g.kernel = "view";
    g.nodes = {node};
    return g;
  }
  plan_group control_of(std::uint32_t node, const std::string& placement_name) const {
    plan_group g;
    g.step = control_step{known_.bodies.placements_of(node, placement_name)};
    g.kernel = known_.task.network.node(node).kind->name;
    g.nodes = {node};
    g.cost_ms = g.low_ms = g.high_ms = g.alone_ms = known_.bodies.cost_of(node);
    return g;
  }

  /// "blocked-16", or "plain to blocked-16" if a kernel reads one form and writes another.
  std::string layout_text(std::uint32_t candidate) const {
    const value_forms& borders = known_.layouts.borders_of(candidate);
    if (borders.list().empty()) return plain.name;
    const node_group values =
        values_of(known_.task.network, known_.task.backends, known_.candidates.all(), known_.candidates[candidate]);
    form reads;
    for (const std::uint32_t v : values.arguments)
      if (reads == form()) reads = borders.of(v);
    const form& writes = borders.of(values.outputs.front());
    return reads == writes ? to_text(reads) : to_text(reads) + " to " + to_text(writes);
  }

  /// Other kernels for the same nodes, cheapest first, at most three.
  std::vector<plan_alternative> runners_up(std::uint32_t chosen) const {
    std::vector<plan_alternative> others;
    for (const std::uint32_t i : known_.candidates.covering(known_.candidates.nodes_of(chosen))) {
      const place_candidate& c = known_.candidates[i];
      const measured_cost* cost = known_.costs.find(c);
      if (i == chosen || cost == nullptr || !cost->refusal.empty()) continue;
      others.push_back({known_.task.backends[c.backend].name, pattern_name(known_.task.backends, c.backend, c.pattern),
                        cost->kernel, known_.costs.cost_of(c).ms});
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const plan_alternative& a, const plan_alternative& b) { return a.cost_ms < b.cost_ms; });
    if (others.size() > 3) others.resize(3);
    return others;
  }

  const placing_state& known_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
