#include "backends.hpp"
#include "commands.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/io/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace program {

namespace {

/// "alone +4": by itself, and in 4 patterns with others. Short, as there is a column for each backend.
std::string text_of(const collage::coverage_cell& c) {
  if (c == collage::coverage_cell{}) return "-";
  const std::string fused = c.fused == 0 ? "" : "+" + std::to_string(c.fused);
  return c.alone ? "alone" + (fused.empty() ? "" : " " + fused) : fused;
}

int show_coverage(const options& given) {
  const described_coverage coverage = describe_coverage();
  collage::json list = collage::json::array();
  std::vector<column> columns{{"operator"}};
  for (const std::string& name : coverage.backends) columns.push_back({name});
  table page(std::move(columns));
  for (const described_coverage::row& row : coverage.rows) {
    collage::json takers = collage::json::object();
    std::vector<cell> cells{{row.kind, colour::bold}};
    for (std::size_t b = 0; b < row.cells.size(); ++b) {
      const collage::coverage_cell& c = row.cells[b];
      cells.push_back(text_of(c));
      if (!(c == collage::coverage_cell{})) takers[coverage.backends[b]] = {{"alone", c.alone}, {"fused", c.fused}};
    }
    list.push_back({{"operator", row.kind}, {"backends", takers}});
    page.add(std::move(cells));
  }
  if (given.json) {
    print(collage::to_text(list));
    return 0;
  }
  std::string names;
  for (const std::string& name : coverage.by_rule) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty())
    names =
        "\n" + wrap("Backends whose operators depend on the network (fusion rule or regions): " + names + ".", 0, 0);
  print(page.text() + names);
  return 0;
}

}  // namespace

int show_backends(const options& given) {
  if (given.coverage) return show_coverage(given);
  collage::json list = collage::json::array();
  std::string page;
  for (const described_backend& b : describe_backends(given.all)) {
    collage::json patterns = collage::json::array();
    for (const described_pattern& p : b.patterns) patterns.push_back({{"name", p.name}, {"describe", p.text}});
    list.push_back({{"name", b.name},
                    {"available", b.available},
                    {"version", b.version},
                    {"details", b.details},
                    {"reason", b.reason},
                    {"patterns", patterns},
                    {"rule", b.has_rule},
                    {"regions", b.takes_regions},
                    {"rounds_to", b.rounds_to},
                    {"variant_of", b.variant_of}});
    page += (page.empty() ? "" : "\n") + paint(colour::bold, b.name);
    if (!b.version.empty()) page += " " + b.version;
    page += "  " + (b.available ? paint(colour::green, "available") : paint(colour::red, "not available")) + "\n";
    if (!b.reason.empty() && !b.available) page += wrap(b.reason, 2, 2);
    if (!b.details.empty()) page += wrap(b.details, 2, 2);
    if (!b.patterns.empty()) {
      std::string names = "patterns:";
      for (const described_pattern& p : b.patterns) names += " " + p.name;
      page += wrap(names, 4, 2);
    }
    if (b.has_rule) page += "  fusion rule: groups of operators, found in each network\n";
    if (b.takes_regions && b.rounds_to.empty()) page += "  regions: any part of a network, up to all of it\n";
    if (b.takes_regions && !b.rounds_to.empty())
      page += wrap("regions that round to " + b.rounds_to + ", where --precision allows it" +
                       (b.variant_of.empty() ? "" : "; --backends allows it with " + b.variant_of),
                   2, 4);
  }
  print(given.json ? collage::to_text(list) : page);
  return 0;
}

}  // namespace program
