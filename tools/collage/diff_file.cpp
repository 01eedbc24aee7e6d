#include "diff_file.hpp"

#include "backends.hpp"

#include <collage/backend.hpp>
#include <collage/dtype.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/plan.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace program {

namespace {

/// The smallest element type that a group's layout names, as in "plain to channels-last:bf16".
std::string element_in(const std::string& layout) {
  std::string found = c::fp32;
  std::size_t least = c::size_of(c::dtype::f32);
  for (std::size_t colon = layout.find(':'); colon != std::string::npos; colon = layout.find(':', colon + 1)) {
    const std::string name = layout.substr(colon + 1, layout.find_first_of("@ ", colon) - colon - 1);
    for (const c::detail::element_name& known : c::detail::element_names)
      if (name == known.name && c::size_of(known.type) < least) {
        found = name;
        least = c::size_of(known.type);
      }
  }
  return found;
}

void read_groups(const c::json_place& from, const std::string& prefix, const std::string& owner, file_plan& to) {
  const c::json_place groups = from["groups"];
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const c::json_place g = groups[i];
    const c::json_place nodes = g["nodes"];
    file_group read;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      read.nodes.push_back(prefix + std::to_string(nodes[n][std::size_t{0}].natural(0, 0xFFFFFFFF)));
      read.label += (n == 0 ? owner : "+") + nodes[n][std::size_t{1}].text();
    }
    if (read.nodes.empty()) nodes.wrong("is empty");
    const std::string step = g["step"].text();
    const bool is_control = step == "control", is_view = step == "view";
    read.backend = is_control ? c::control_runner : is_view ? c::view_runner : g["backend"].text();
    const c::backend_entry* region = nullptr;  // of a group by rule
    if (step == "kernel") {
      read.pattern = g["pattern"].text();
      read.configuration = g["configuration"].text();
    } else if (!is_control && !is_view) {
      read.pattern = c::by_rule;
      region = c::find_backend(backends(), read.backend);
    }
    read.kernel = g["kernel"].text();
    read.layout = g["layout"].text();
    const bool is_rounded = region != nullptr && region->rounds_to;
    read.element = element_in(is_rounded ? c::to_text(c::form().of(*region->rounds_to)) : read.layout);
    read.cost_ms = g["cost_ms"].number();
    read.low_ms = g["low_ms"].number();
    read.high_ms = g["high_ms"].number();
    read.is_inner = !prefix.empty();
    const std::string node = read.nodes.front(), label = read.label;
    to.groups.push_back(std::move(read));
    if (!is_control) continue;
    const c::json_place bodies = g["bodies"];
    for (std::size_t b = 0; b < bodies.size(); ++b)
      read_groups(bodies[b], node + "." + std::to_string(b) + ".", label + "/", to);
  }
}

}  // namespace

double cost_of(const std::vector<const file_group*>& groups) {
  double sum = 0;
  for (const file_group* g : groups) sum += g->cost_ms;
  return sum;
}

file_plan read_file_plan(const std::string& file) {
  const c::json from = c::read_plan_file(file);
  const c::json_place top(from, file, c::detail::new_plan);
  file_plan p;
  p.file = file;
  p.fingerprint = top["fingerprint"].text();
  p.made.network = top["network"].text();
  p.made.threads = static_cast<int>(top["threads"].natural(1, c::detail::most_threads));
  p.made.precision = top["precision"].text();
  p.made.processor = top["processor"].text();
  p.made.waiting = top["waiting"].text();
  const c::json_place backends = top["backends"];
  for (std::size_t i = 0; i < backends.size(); ++i)
    p.made.backends.push_back(
        {backends[i]["name"].text(), backends[i]["version"].text(), backends[i]["details"].text()});
  p.made.origin = top["origin"].text();
  p.made.lower_bound_ms = top["lower_bound_ms"].number();
  p.made.optimal = top["optimal"].boolean();
  p.made.error = c::detail::error_from_json(top);
  const c::json_place runs = top["runs"];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    c::plan_run r;
    r.name = runs[i]["name"].text();
    r.median_ms = runs[i]["median_ms"].number();
    p.made.runs.push_back(std::move(r));
  }
  p.cost_ms = top["chosen"]["cost_ms"].number();
  const c::json_place conversions = top["chosen"]["conversions"];
  for (std::size_t i = 0; i < conversions.size(); ++i) {
    const c::json_place x = conversions[i];
    p.conversions.emplace_back(x["backend"].text(), x["cost_ms"].number());
    p.converted.insert(x["value"][std::size_t{1}].text() + " " + x["from"].text() + " " + x["to"].text() + " " +
                       x["backend"].text() + " " + x["kernel"].text());
  }
  read_groups(top["chosen"], "", "", p);
  return p;
}

}  // namespace program
