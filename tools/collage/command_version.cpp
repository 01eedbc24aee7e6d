#include "backends.hpp"
#include "build_info.hpp"
#include "commands.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/fwd.hpp>
#include <collage/io/json.hpp>

#include <string>
#include <vector>

namespace program {

namespace {

/// "0.1.0"
std::string version() {
  return std::to_string(COLLAGE_VERSION_MAJOR) + "." + std::to_string(COLLAGE_VERSION_MINOR) + "." +
         std::to_string(COLLAGE_VERSION_PATCH);
}

constexpr const char* licence = "Apache-2.0";

void print_json() {
  collage::json libraries = collage::json::array(), found = collage::json::array();
  for (const build_library& l : build_libraries())
    libraries.push_back({{"name", l.name},
                         {"version", *l.version == '\0' ? collage::json() : collage::json(l.version)},
                         {"licence", l.licence},
                         {"how", l.how},
                         {"for", l.used_for}});
  for (const described_backend& b : describe_backends(false))
    found.push_back({{"name", b.name}, {"available", b.available}, {"version", b.version}});
  print(collage::to_text({{"version", version()},
                          {"licence", licence},
                          {"compiler", the_build.compiler},
                          {"system", the_build.system},
                          {"build_type", the_build.type},
                          {"flags", the_build.flags},
                          {"adapters", the_build.adapters},
                          {"libraries", libraries},
                          {"backends", found}}));
}

void print_page() {
  table libraries({{"library"}, {"version"}, {"licence"}, {"how"}, {"for", align::left, 24}});
  for (const build_library& l : build_libraries())
    libraries.add({{l.name, colour::bold}, *l.version == '\0' ? "-" : l.version, l.licence, l.how, l.used_for});
  table found({{"backend"}, {"version here", align::left, 60}});
  for (const described_backend& b : describe_backends(false))
    found.add({{b.name, colour::bold}, b.available ? b.version : "not available"});
  print(
      "collage " + version() + ", licence " + licence + "\n\n" +
      wrap(std::string("Compiled by ") + the_build.compiler + " for " + the_build.system + ", " + the_build.type +
               " (" + the_build.flags + "). Adapters are compiled for " + the_build.adapters + ".",
           0) +
      "\n" + libraries.text() + "\n" +
      wrap("Inside: compiled in. Shared: a shared object, loaded at the start. Opened: a shared object, loaded when it "
           "is first needed. Versions are those at build time.",
           0) +
      "\n" + found.text());
}

}  // namespace

int show_version(const options& given) {
  if (!given.verbose) print("collage " + version() + "\n");
  else if (given.json) print_json();
  else print_page();
  return 0;
}

}  // namespace program
