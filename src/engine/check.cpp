// Whether a placement covers its network.
#include "parts.hpp"

#include <collage/run/layouts.hpp>
#include <collage/run/views.hpp>

#include <utility>

namespace collage::inline v0::detail {

error plan_error(const std::string& what, const std::string& where) {
  return {error_kind::invalid_argument, what, where, "place the network again to get a plan that fits"};
}

const backend_entry& backend_named(backend_table backends, const std::string& name) {
  if (const backend_entry* const b = find_backend(backends, name)) return *b;
  throw error(error_kind::invalid_argument, "backend " + name + " is not in this program's set", "plan",
              "build the program with it or place the network again");
}

namespace {

/// No kernel runs for a view: another node in its place would lie in memory of another size.
void check_view(const graph& network, const plan_group& g, const view_step& step) {
  const std::string in_space = step.form.substr(0, step.form.find('@'));
  const std::optional<form> stored = form_of(in_space, shared_layouts, {});
  if (!stored)
    throw plan_error("treats node " + network.node_name(g.nodes.back()) + " as a view in form " + step.form +
                         ", which does not exist",
                     "plan");
  if (g.nodes.size() == 1 && !views_of(network, g.nodes[0], *stored).empty()) return;
  const std::string where = *stored != form() ? " in " + in_space : "";
  throw plan_error("treats node " + network.node_name(g.nodes.back()) + " as a view" + where + ", which it is not",
                   "plan");
}

void check_step(const graph& network, const plan_group& g) {
  if (const auto* const view = std::get_if<view_step>(&g.step)) check_view(network, g, *view);
  if (g.is_control() && (g.nodes.size() != 1 || network.node(g.nodes[0]).bodies == 0))
    throw plan_error("treats node " + network.node_name(g.nodes.back()) + " as control flow, which it is not", "plan");
  if (std::holds_alternative<conversion_step>(g.step) || std::holds_alternative<copy_step>(g.step))
    throw plan_error("runs no operator at node " + network.node_name(g.nodes.back()), "plan");
}

/// `group_of` has the group of each node so far, and `ready` the values of earlier groups.
void check_reads(const graph& network, const plan_group& g, std::uint32_t number,
                 const std::vector<std::uint32_t>& group_of, const std::vector<bool>& ready) {
  for (const std::uint32_t n : g.nodes)
    for (const std::uint32_t operand : network.view().inputs_of(n)) {
      const std::int32_t producer = network.at(operand).producer;
      const bool is_inside = producer >= 0 && group_of[static_cast<std::size_t>(producer)] == number;
      if (!is_inside && !ready[operand])
        throw plan_error("reads " + network.value_name(operand) + " before it is computed",
                         "plan, node " + network.node_name(n));
    }
}

}  // namespace

void check_cover(const graph& network, const placement& groups) {
  std::vector<std::uint32_t> group_of(network.nodes().size(), 0);  // groups count from 1; 0: not covered yet
  std::uint32_t number = 0;
  std::vector<bool> ready(network.values().size(), false);
  for (std::uint32_t v = 0; v < ready.size(); ++v) ready[v] = network.at(v).producer < 0;
  for (const plan_group& g : groups.groups) {
    if (g.nodes.empty()) throw plan_error("has a group without nodes", "plan");
    ++number;
    for (const std::uint32_t n : g.nodes) {
      if (n >= group_of.size())
        throw plan_error(
            "names node " + std::to_string(n) + ", but the network has " + std::to_string(group_of.size()) + " nodes",
            "plan");
      if (std::exchange(group_of[n], number) != 0)
        throw plan_error("runs node " + network.node_name(n) + " twice", "plan");
    }
    check_step(network, g);
    check_reads(network, g, number, group_of, ready);
    // Which of these values the kernel writes is the match's to say; it writes all that are read outside.
    for (const std::uint32_t n : g.nodes)
      for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) ready[network.view().output_of(n, i)] = true;
  }
  for (std::uint32_t n = 0; n < group_of.size(); ++n)
    if (group_of[n] == 0) throw plan_error("does not run node " + network.node_name(n), "plan");
}

}  // namespace collage::inline v0::detail
