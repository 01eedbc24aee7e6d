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

std::string groups_table(const placed& p) {
  table page({{"#", align::right},
              {"group", align::left, 16},
              {"backend"},
              {"kernel", align::left, 16},
              {"ms", align::right},
              {"%", align::right},
              {"runner-up", align::left, 12},
              {"+ms", align::right}});
  std::size_t number = 0;
  for (const c::plan_group& g : p.made.chosen.groups) {
    if (g.backend == c::alias_backend) continue;
    std::string other = "none", behind;
    if (!g.runners_up.empty()) {
      const c::plan_alternative& r = g.runners_up.front();
      other = r.backend == g.backend ? r.kernel : r.backend;
      behind = format_number("%.4f", r.cost_ms - g.cost_ms);
    }
    page.add({std::to_string(++number), label_of(p.network, g.nodes), g.backend, g.kernel,
              format_number("%.4f", g.cost_ms),
              format_number("%.1f", p.made.chosen.cost_ms > 0 ? 100 * g.cost_ms / p.made.chosen.cost_ms : 0), other,
              behind});
  }
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
  if (!p.made.runs.empty()) page += "\n" + runs_table(p.made, p.made.runs, ratios_to_first(p.made.runs));
  if (const std::string borrowed = borrowed_text(p.made, static_cast<std::size_t>(-1)); !borrowed.empty())
    page += heading("What single backends leave to others") + borrowed;
  if (!p.refusals.empty()) page += heading("What backends refused") + refusals_text(p.refusals);
  print(page);
  return 0;
}

}  // namespace program
