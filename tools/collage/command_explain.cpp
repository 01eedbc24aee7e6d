#include "backends.hpp"
#include "commands.hpp"
#include "dot_file.hpp"
#include "missing_patterns.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/io/file.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

/// Adds a line for each group. After a group of control flow come the groups of its subgraphs. The groups of the second
/// subgraph of group 7 have the numbers 7.2.1, 7.2.2, ...
void add_groups(table& page, const c::graph& network, const c::placement& groups, const std::string& prefix,
                double whole_ms) {
  std::size_t number = 0;
  for (const c::plan_group& g : groups.groups) {
    if (g.is_view()) continue;
    std::string other = "none", behind;
    if (g.regret_ms >= 0) {
      other = g.instead;
      behind = format_number("%.4f", g.regret_ms);
    } else if (!g.runners_up.empty()) {
      const c::plan_alternative& r = g.runners_up.front();
      other = r.backend == g.backend() ? r.kernel : r.backend;
      behind = format_number("%.4f", r.cost_ms - g.cost_ms);
    }
    const std::string name = prefix + std::to_string(++number);
    page.add({name, label_of(network, g.nodes), g.backend(), g.kernel, format_number("%.4f", g.cost_ms),
              format_number("%.1f", whole_ms > 0 ? 100 * g.cost_ms / whole_ms : 0), other, behind});
    for (std::size_t i = 0; i < g.bodies().size(); ++i)
      add_groups(page, *network.bodies_of(g.nodes[0])[i], g.bodies()[i], name + "." + std::to_string(i + 1) + ".",
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

/// The conversions of values between groups.
std::string conversions_table(const placed& p) {
  table page({{"value", align::left, 16},
              {"from"},
              {"to"},
              {"backend"},
              {"kernel", align::left, 16},
              {"ms", align::right},
              {"%", align::right}});
  for (const c::plan_conversion& x : p.made.chosen.conversions)
    page.add({p.network.value_name(x.value), x.step.from, x.step.to, x.step.backend, x.kernel,
              format_number("%.4f", x.cost_ms),
              format_number("%.1f", p.made.chosen.cost_ms > 0 ? 100 * x.cost_ms / p.made.chosen.cost_ms : 0)});
  return page.text();
}

std::map<std::string, backend_total> totals_of(const c::plan& made) {
  std::map<std::string, backend_total> totals;
  for (const c::plan_conversion& x : made.chosen.conversions) totals[x.step.backend].cost_ms += x.cost_ms;
  for (const c::plan_group& g : made.chosen.groups) totals[g.backend()].add_group(g.nodes.size(), g.cost_ms);
  return totals;
}

std::string totals_table(const c::plan& made) {
  std::map<std::string, backend_total> totals = totals_of(made);
  table page({{"backend"},
              {"groups", align::right},
              {"nodes", align::right},
              {"ms", align::right},
              {"%", align::right},
              {""}});
  for (const c::plan_backend& b : made.backends) {
    const backend_total t = totals[b.name];
    page.add({b.name,
              std::to_string(t.groups),
              std::to_string(t.nodes),
              format_number("%.4f", t.cost_ms),
              format_number("%.1f", made.chosen.cost_ms > 0 ? 100 * t.cost_ms / made.chosen.cost_ms : 0),
              {b.version, colour::dim}});
  }
  if (const auto views = totals.find(c::view_runner); views != totals.end())
    page.add({"none",
              std::to_string(views->second.groups),
              std::to_string(views->second.nodes),
              "",
              "",
              {"views: no kernel runs", colour::dim}});
  if (const auto control = totals.find(c::control_runner); control != totals.end())
    page.add({c::control_runner,
              std::to_string(control->second.groups),
              std::to_string(control->second.nodes),
              format_number("%.4f", control->second.cost_ms),
              format_number("%.1f", made.chosen.cost_ms > 0 ? 100 * control->second.cost_ms / made.chosen.cost_ms : 0),
              {"branches and loops, run by the engine", colour::dim}});
  return page.text();
}

/// The sum of the switches in a sentence: the part of the cost that switching backends adds. Empty if there are none.
std::string switches_text(const c::placement& chosen) {
  double sum = 0;
  std::size_t groups = 0;
  for (const c::plan_group& g : chosen.groups) {
    sum += g.switch_ms;
    groups += g.switch_ms > 0;
  }
  return groups == 0 ? ""
                     : format_number("%.4f ms", sum) + " of this are switches: " + std::to_string(groups) +
                           (groups == 1 ? " group takes longer because another backend wrote its operands."
                                        : " groups take longer because another backend wrote their operands.");
}

std::string refusals_text(const std::vector<c::merged_refusal>& list) {
  std::string page;
  for (const c::merged_refusal& r : list) {
    std::string text = r.backend + (r.pattern.empty() ? "" : " " + r.pattern) + " at " + r.where;
    if (r.places > 1) text += " and " + std::to_string(r.places - 1) + " more";
    page += wrap(text + ": " + r.reason, 4, 2);
  }
  return page;
}

/// The text shows the first few of each list, which cost the most.
constexpr std::size_t shown = 8;

std::string more_than(std::size_t count) {
  return count <= shown ? "" : wrap("and " + std::to_string(count - shown) + " more, see --json", 2, 2);
}

std::string operators_table(const std::vector<missing_operator>& list) {
  table page(
      {{"backend"}, {"operator"}, {"nodes", align::right}, {"ms now", align::right}, {"why", align::left, 20, true}});
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i) {
    const missing_operator& m = list[i];
    page.add({m.backend, m.kind, std::to_string(m.nodes), format_number("%.4f", m.cost_ms),
              m.reason.empty() ? "none of its patterns matches" : m.reason});
  }
  return page.text() + more_than(list.size());
}

std::string fusions_table(const std::vector<missing_fusion>& list) {
  table page({{"backend"},
              {"operators", align::left, 16},
              {"then", align::left, 16},
              {"places", align::right},
              {"ms to beat", align::right},
              {"first place", align::left, 12}});
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i) {
    const missing_fusion& m = list[i];
    page.add({m.backend, m.first, m.second, std::to_string(m.places), format_number("%.4f", m.cost_ms), m.example});
  }
  return page.text() + more_than(list.size());
}

c::json missing_to_json(const missing_patterns& missing) {
  c::json operators = c::json::array(), fusions = c::json::array();
  for (const missing_operator& m : missing.operators)
    operators.push_back({{"backend", m.backend},
                         {"operator", m.kind},
                         {"nodes", m.nodes},
                         {"cost_ms", c::rounded(m.cost_ms)},
                         {"refused", m.reason.empty() ? c::json() : c::json(m.reason)}});
  for (const missing_fusion& m : missing.fusions)
    fusions.push_back({{"backend", m.backend},
                       {"first", m.first},
                       {"second", m.second},
                       {"places", m.places},
                       {"cost_ms", c::rounded(m.cost_ms)},
                       {"example", m.example}});
  return {{"operators", operators}, {"fusions", fusions}};
}

c::json to_json(const placed& p, const missing_patterns& missing) {
  c::json made = c::plan_to_json(p.made, p.network);
  c::json totals = c::json::array();
  for (const auto& [name, t] : totals_of(p.made))
    totals.push_back({{"backend", name}, {"groups", t.groups}, {"nodes", t.nodes}, {"cost_ms", c::rounded(t.cost_ms)}});
  made["totals"] = std::move(totals);
  made["additive_error"] = p.made.runs.empty() ? c::json() : c::json(c::rounded(prediction_error(p.made)));
  made["missing"] = missing_to_json(missing);
  c::json refusals = c::json::array();
  for (const c::merged_refusal& r : p.refusals)
    refusals.push_back({{"backend", r.backend},
                        {"pattern", r.pattern},
                        {"where", r.where},
                        {"count", r.places},
                        {"reason", r.reason}});
  made["refusals"] = std::move(refusals);
  return made;
}

/// The program of an engine, with the facts of to_text(program): `regions` of memory, and `instructions` in order.
c::json to_json(const c::program& code, const c::graph& network) {
  using home = c::program_region::home;
  const auto number_or_null = [](std::uint32_t region) {
    return region == c::program_region::none ? c::json() : c::json(region);
  };
  const char* const homes[] = {"nowhere", "input", "output", "constant", "arena", "part"};
  c::json regions = c::json::array(), instructions = c::json::array(), arenas = c::json::array();
  for (std::uint32_t i = 0; i < code.regions.size(); ++i) {
    const c::program_region& r = code.regions[i];
    if (r.where == home::nowhere) continue;
    c::json one = {{"region", i},
                   {"value", r.value == c::program_region::none ? c::json() : c::json(network.value_name(r.value))},
                   {"form", c::to_text(r.stored)},
                   {"bytes", r.bytes},
                   {"where", homes[static_cast<std::size_t>(r.where)]},
                   {"index", r.index},
                   {"offset", r.offset}};
    if (r.where == home::arena) one.update({{"first", r.first}, {"last", r.last}});
    regions.push_back(std::move(one));
  }
  for (const c::program_instruction& it : code.instructions) {
    c::json in = c::json::array(), out = c::json::array();
    bool is_in_place = false;
    for (const c::program_operand& o : it.in) in.push_back(number_or_null(o.region));
    for (const c::program_operand& o : it.out) {
      out.push_back(number_or_null(o.region));
      is_in_place = is_in_place || o.how == c::access::inout;
    }
    instructions.push_back({{"runs", c::runner_of(it.step)},
                            {"kernel", it.kernel},
                            {"label", it.label},
                            {"in", in},
                            {"out", out},
                            {"in_place", is_in_place},
                            {"workspace", number_or_null(it.workspace)}});
  }
  for (const c::program_arena& a : code.arenas)
    arenas.push_back({{"space", a.space->name}, {"bytes", a.bytes}, {"lower_bound", a.bound}});
  return {{"threads", code.threads}, {"arenas", arenas}, {"regions", regions}, {"instructions", instructions}};
}

}  // namespace

int explain(const options& given) {
  check(given);
  if (!given.dot_file.empty()) c::check_writable(given.dot_file);
  const placed p = get_plan(given);
  if (!given.dot_file.empty()) write_dot_file(given.dot_file, p.network, &p.made.chosen);
  const c::dynamic_engine engine(p.network, p.made.chosen, backends(), p.made.threads);
  if (given.program) {
    print(given.json ? c::to_text(to_json(engine.code(), p.network)) : c::to_text(engine.code(), p.network));
    return 0;
  }
  const missing_patterns missing = find_missing_patterns(p.network, p.made);
  if (given.json) {
    c::json all = to_json(p, missing);
    add_arena(all, engine);
    print(c::to_text(all));
    return 0;
  }
  const auto heading = [](const char* text) { return "\n" + paint(colour::bold, text) + "\n"; };
  std::string page = paint(colour::bold, title_of(p.made)) + "\n\n" + groups_table(p);
  if (!p.made.chosen.conversions.empty())
    page += heading("Conversions of values into another form") + conversions_table(p);
  page += "\n" + totals_table(p.made) + "\n" + wrap(certificate_text(p.made), 0);
  if (const std::string text = switches_text(p.made.chosen); !text.empty()) page += wrap(text, 0);
  page += wrap("A run needs an " + arena_text(engine) + ".", 0);
  if (!p.made.runs.empty()) page += "\n" + runs_table(p.made, p.made.runs);
  if (const std::string error = prediction_text(p.made); !error.empty()) page += "\n" + wrap(error, 0);
  if (!missing.operators.empty())
    page += heading("Operators that a backend does not run, and their cost now") + operators_table(missing.operators);
  if (!missing.fusions.empty())
    page +=
        heading("Pairs of groups that a backend does not fuse, and the cost that a fused kernel would have to beat") +
        fusions_table(missing.fusions);
  if (const std::string borrowed = borrowed_text(p.made, static_cast<std::size_t>(-1)); !borrowed.empty())
    page += heading("Nodes that each single backend leaves to others") + borrowed;
  if (!p.refusals.empty()) page += heading("Refusals") + refusals_text(p.refusals);
  print(page);
  return 0;
}

}  // namespace program
