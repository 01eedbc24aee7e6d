#include "commands.hpp"
#include "dot_file.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/io/file.hpp>
#include <collage/io/plan_file.hpp>

#include <map>

namespace program {

namespace c = collage;

namespace {

/// A line for each group, and behind one of control flow the groups of its sub-graphs: those of the second sub-graph of
/// group 7 are 7.2.1, 7.2.2, ...
void add_groups(table& page, const c::graph& network, const c::placement& groups, const std::string& prefix,
                double whole_ms) {
  std::size_t number = 0;
  for (const c::plan_group& g : groups.groups) {
    if (g.backend == c::alias_backend) continue;
    std::string other = "none", behind;
    if (g.regret_ms >= 0) {
      other = g.instead;
      behind = format_number("%.4f", g.regret_ms);
    } else if (!g.runners_up.empty()) {
      const c::plan_alternative& r = g.runners_up.front();
      other = r.backend == g.backend ? r.kernel : r.backend;
      behind = format_number("%.4f", r.cost_ms - g.cost_ms);
    }
    const std::string name = prefix + std::to_string(++number);
    page.add({name, label_of(network, g.nodes), g.backend, g.kernel, format_number("%.4f", g.cost_ms),
              format_number("%.1f", whole_ms > 0 ? 100 * g.cost_ms / whole_ms : 0), other, behind});
    for (std::size_t i = 0; i < g.bodies.size(); ++i)
      add_groups(page, *network.bodies_of(g.nodes[0])[i], g.bodies[i], name + "." + std::to_string(i + 1) + ".",
                 whole_ms);
  }
}

std::string groups_table(const placed& p) {
  table page({{"#", align::right},
              {"group", align::left, 16},
              {"backend"},
              {"kernel", align::left, 16},
              {"ms", align::right},
              {"%", align::right},
              {"runner-up", align::left, 12},
              {"+ms", align::right}});
  add_groups(page, p.network, p.made.chosen, "", p.made.chosen.cost_ms);
  return page.text();
}

std::string totals_table(const c::plan& made) {
  struct total {
    std::size_t groups = 0, nodes = 0;
    double cost_ms = 0;
  };
  std::map<std::string, total> totals;
  for (const c::plan_group& g : made.chosen.groups) {
    total& t = totals[g.backend];
    ++t.groups;
    t.nodes += g.nodes.size();
    t.cost_ms += g.cost_ms;
  }
  table page({{"backend"},
              {"groups", align::right},
              {"nodes", align::right},
              {"ms", align::right},
              {"%", align::right},
              {""}});
  for (const c::plan_backend& b : made.backends) {
    const total t = totals[b.name];
    page.add({b.name,
              std::to_string(t.groups),
              std::to_string(t.nodes),
              format_number("%.4f", t.cost_ms),
              format_number("%.1f", made.chosen.cost_ms > 0 ? 100 * t.cost_ms / made.chosen.cost_ms : 0),
              {b.version, colour::dim}});
  }
  if (const auto views = totals.find(c::alias_backend); views != totals.end())
    page.add({"none",
              std::to_string(views->second.groups),
              std::to_string(views->second.nodes),
              "",
              "",
              {"other views of the same memory", colour::dim}});
  if (const auto control = totals.find(c::control_backend); control != totals.end())
    page.add({c::control_backend,
              std::to_string(control->second.groups),
              std::to_string(control->second.nodes),
              format_number("%.4f", control->second.cost_ms),
              format_number("%.1f", made.chosen.cost_ms > 0 ? 100 * control->second.cost_ms / made.chosen.cost_ms : 0),
              {"branches and loops, run by the engine", colour::dim}});
  return page.text();
}

std::string refusals_text(const std::vector<refusal>& list) {
  std::string page;
  for (const refusal& r : list) {
    std::string text = r.backend + (r.pattern.empty() ? "" : " " + r.pattern) + " at " + r.where;
    if (r.count > 1) text += " and " + std::to_string(r.count - 1) + " more";
    page += wrap(text + ": " + r.reason, 4, 2);
  }
  return page;
}

}  // namespace

int explain(const options& given) {
  check(given);
  if (!given.dot_file.empty()) c::check_writable(given.dot_file);
  const placed p = get_plan(given);
  if (!given.dot_file.empty()) write_dot_file(given.dot_file, p.network, &p.made.chosen);
  if (given.json) {
    c::json made = c::plan_to_json(p.made, p.network);
    c::json refusals = c::json::array();
    for (const refusal& r : p.refusals)
      refusals.push_back({{"backend", r.backend},
                          {"pattern", r.pattern},
                          {"where", r.where},
                          {"count", r.count},
                          {"reason", r.reason}});
    made["refusals"] = std::move(refusals);
    print(c::to_text(made));
    return 0;
  }
  const auto heading = [](const char* text) { return "\n" + paint(colour::bold, text) + "\n"; };
  std::string page = paint(colour::bold, title_of(p.made)) + "\n\n" + groups_table(p);
  page += "\n" + totals_table(p.made) + "\n" + wrap(certificate_text(p.made), 0);
  if (!p.made.runs.empty()) page += "\n" + runs_table(p.made, p.made.runs);
  if (const std::string borrowed = borrowed_text(p.made, static_cast<std::size_t>(-1)); !borrowed.empty())
    page += heading("What single backends leave to others") + borrowed;
  if (!p.refusals.empty()) page += heading("What backends refused") + refusals_text(p.refusals);
  print(page);
  return 0;
}

}  // namespace program
