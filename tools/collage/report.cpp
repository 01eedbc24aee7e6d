#include "report.hpp"

#include "backends.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/run/plan_algorithms.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace program {

namespace c = collage;

std::string runs_table(const c::plan& made, const std::vector<c::plan_run>& runs) {
  return c::detail::runs_table(made, runs, paint);
}

namespace {

struct used_algorithm {
  std::string name;
  std::size_t groups = 0;
  double error_bound = 0;  // the largest
};

void add_algorithms(const c::graph& network, const c::placement& of, std::vector<used_algorithm>& to) {
  for (const c::plan_group& g : of.groups) {
    if (const c::kernel_algorithm a = c::algorithm_of(network, backends(), g); !a.is_direct()) {
      const auto known = std::ranges::find(to, std::string(a.name), &used_algorithm::name);
      used_algorithm& used = known != to.end() ? *known : to.emplace_back();
      used.name = a.name;
      ++used.groups;
      used.error_bound = std::max(used.error_bound, a.error_bound);
    }
    if (g.bodies().empty()) continue;
    const auto bodies = network.bodies_of(g.nodes.back());
    for (std::size_t i = 0; i < g.bodies().size(); ++i) add_algorithms(*bodies[i], g.bodies()[i], to);
  }
}

std::vector<used_algorithm> algorithms_of(const placed& p) {
  std::vector<used_algorithm> list;
  add_algorithms(p.network, p.made.chosen, list);
  return list;
}

}  // namespace

std::string algorithms_table(const placed& p) {
  const std::vector<used_algorithm> list = algorithms_of(p);
  if (list.empty()) return {};
  table page({{"algorithm"}, {"groups", align::right}, {"error bound", align::right}});
  for (const used_algorithm& a : list)
    page.add({a.name, std::to_string(a.groups), format_number("%.1e", a.error_bound)});
  return page.text() +
         wrap("The bound holds for every input. It is in units of the largest input times the largest weight.", 0);
}

c::json algorithms_to_json(const placed& p) {
  c::json list = c::json::array();
  for (const used_algorithm& a : algorithms_of(p))
    list.push_back({{"algorithm", a.name}, {"groups", a.groups}, {"error_bound", a.error_bound}});
  return list;
}

void note_spread(const std::vector<c::plan_run>& runs) {
  const auto spread =
      std::find_if(runs.begin(), runs.end(), [](const c::plan_run& r) { return r.high_ms > 1.5 * r.low_ms; });
  if (spread != runs.end())
    complain("note: the times of " + spread->name + " vary from " + format_time(spread->low_ms) + " to " +
             format_time(spread->high_ms) + "; end other programs that use the processors, and repeat");
}

void note_slower(const c::plan& made, double median_ms) {
  if (made.runs.empty() || median_ms <= 1.5 * made.runs[0].median_ms) return;
  complain("note: the plan took " + format_time(median_ms) + ", but " + format_time(made.runs[0].median_ms) +
           " when it was made; end other programs that use the processors, or tune again");
}

void note_holdups(const c::process_holdups& held) {
  if (!held.advice.empty()) complain("note: " + held.advice);
}

std::string arena_text(const c::dynamic_engine& engine) {
  const auto bytes = static_cast<double>(engine.arena_bytes()), least = static_cast<double>(engine.arena_lower_bound());
  return "arena of " + format_number("%.1f MB", bytes / 1e6) + ", " +
         format_number("%.3f", least > 0 ? bytes / least : 1) + " times the lower bound of " +
         format_number("%.1f MB", least / 1e6) + " (the most that one step uses)";
}
void add_arena(c::json& to, const c::dynamic_engine& engine) {
  to["arena_bytes"] = engine.arena_bytes();
  to["arena_lower_bound"] = engine.arena_lower_bound();
}

}  // namespace program
