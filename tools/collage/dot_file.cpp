#include "dot_file.hpp"

#include "terminal.hpp"

#include <collage/io/dot.hpp>
#include <collage/io/file.hpp>

#include <sstream>
#include <vector>

namespace program {

namespace c = collage;

void write_dot_file(const std::string& file, const c::graph& network, const c::placement* groups) {
  std::vector<c::dot_note> notes;
  if (groups != nullptr) {
    notes.resize(network.nodes().size());
    std::int32_t group = 0;
    for (const c::plan_group& g : groups->groups) {
      if (g.is_view()) continue;
      for (const std::uint32_t n : g.nodes) notes[n].group = group;
      notes[g.nodes.back()].label = g.backend() + " " + format_time(g.cost_ms);
      ++group;
    }
  }
  std::ostringstream text;
  c::write_dot(text, network, {.notes = notes});
  c::write_file(file, text.str());
}

}  // namespace program
