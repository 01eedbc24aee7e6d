#include "backends.hpp"
#include "commands.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/io/json.hpp>

namespace program {

int show_backends(const options& given) {
  collage::json list = collage::json::array();
  std::string page;
  for (const described_backend& b : describe_backends()) {
    collage::json patterns = collage::json::array();
    for (const described_pattern& p : b.patterns) patterns.push_back({{"name", p.name}, {"describe", p.text}});
    list.push_back({{"name", b.name},
                    {"available", b.available},
                    {"version", b.version},
                    {"details", b.details},
                    {"reason", b.reason},
                    {"patterns", patterns}});
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
  }
  print(given.json ? collage::to_text(list) : page);
  return 0;
}

}  // namespace program
