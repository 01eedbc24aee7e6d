#include "commands.hpp"
#include "dot_file.hpp"
#include "network.hpp"
#include "output_file.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/graph/print.hpp>
#include <collage/graph/totals.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/zoo/all.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace program {

namespace c = collage;

namespace {

c::json type_to_json(const std::string& name, const c::tensor_type& type) {
  c::json dims = c::json::array();
  for (const std::int64_t extent : type.dims) dims.push_back(extent);
  return {{"name", name}, {"type", c::name_of(type.type)}, {"shape", dims}};
}

/// Counts are kept as doubles; as JSON they are whole.
std::int64_t whole(double count) { return static_cast<std::int64_t>(count); }

c::json graph_to_json(const c::graph& network, const std::string& name) {
  const c::graph_view view = network.view();
  const c::graph_totals totals = c::totals_of(network);
  c::json inputs = c::json::array(), outputs = c::json::array(), nodes = c::json::array();
  for (const std::uint32_t v : network.inputs())
    inputs.push_back(type_to_json(network.value_name(v), network.type_of(v)));
  for (std::size_t i = 0; i < network.outputs().size(); ++i)
    outputs.push_back(type_to_json(network.output_name(i), network.type_of(network.outputs()[i])));
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    c::json operands = c::json::array(), results = c::json::array();
    for (const std::uint32_t v : view.inputs_of(n)) operands.push_back(network.value_name(v));
    for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) {
      const std::uint32_t v = view.output_of(n, i);
      results.push_back(type_to_json(network.value_name(v), network.type_of(v)));
    }
    nodes.push_back({{"name", network.node_name(n)},
                     {"kind", network.node(n).kind->name},
                     {"operands", operands},
                     {"results", results},
                     {"flops", whole(c::work_of(network, n).flops)}});
  }
  return {{"network", name},
          {"parameters", totals.parameters},
          {"flops", whole(totals.flops)},
          {"inputs", inputs},
          {"outputs", outputs},
          {"nodes", nodes}};
}

#if COLLAGE_HAS_ONNX

/// "float32[batch x 3 x 48 x ?]", with the names of open extents.
std::string declared_text(const c::open_port& p) {
  std::string dims;
  for (std::size_t d = 0; d < p.dims.size(); ++d) {
    const std::string open = p.symbols[d].empty() ? "?" : p.symbols[d];
    dims += (dims.empty() ? "" : " x ") + (p.dims[d] < 0 ? open : std::to_string(p.dims[d]));
  }
  return std::string(c::name_of(p.type)) + "[" + (p.has_rank ? dims : "any shape") + "]";
}

/// Lines and JSON about inputs and outputs whose extents the file leaves open; nothing if it has none.
struct declarations {
  std::string text;
  c::json list = c::json::array();

  explicit declarations(const options& asked) {
    options given = asked;
    given.shapes.clear();
    if (!is_model_file(given.network)) return;
    const auto source = model_source_of(given);
    add("input", source->inputs());
    add("output", source->outputs());
  }

 private:
  void add(const char* what, std::span<const c::open_port> ports) {
    for (const c::open_port& p : ports) {
      if (!is_open(p)) continue;
      text += std::string("open ") + what + " " + p.name + ": " + declared_text(p) + "\n";
      c::json dims = c::json::array();
      for (std::size_t d = 0; d < p.dims.size(); ++d)
        dims.push_back(p.dims[d] >= 0 ? c::json(p.dims[d]) : p.symbols[d].empty() ? c::json() : c::json(p.symbols[d]));
      list.push_back({{"name", p.name}, {"is", what}, {"shape", p.has_rank ? dims : c::json()}});
    }
  }
};

#else

struct declarations {
  std::string text;
  c::json list = c::json::array();
  explicit declarations(const options&) {}
};

#endif

}  // namespace

int show_zoo(const options& given) {
  c::json list = c::json::array();
  table page({{"network"},
              {"nodes", align::right},
              {"M parameters", align::right},
              {"GFLOP", align::right},
              {"", align::left, 20, true}});
  for (const c::zoo::network& n : c::zoo::networks) {
    const std::string name = std::string("zoo:") + n.name;
    options of_this;
    of_this.network = name;
    const c::graph_totals totals = c::totals_of(load_network(of_this).network);
    list.push_back({{"name", n.name},
                    {"network", name},
                    {"about", n.about},
                    {"nodes", totals.nodes},
                    {"parameters", totals.parameters},
                    {"flops", whole(totals.flops)}});
    page.add({{name, colour::bold},
              std::to_string(totals.nodes),
              format_number("%.1f", static_cast<double>(totals.parameters) / 1e6),
              format_number("%.1f", totals.flops / 1e9),
              std::string(n.about)});
  }
  print(given.json ? c::to_text(list) : page.text());
  return 0;
}

int inspect(const options& asked) {
  const options given = with_shapes(asked);
  if (!given.dot_file.empty()) check_output(given.dot_file, given);
  const loaded l = load_network(given);
  const c::graph& network = l.network;
  if (!given.quiet)
    for (const std::string& note : l.notes) complain("note: " + note);
  if (!given.dot_file.empty()) {
    write_dot_file(given.dot_file, network);
    if (!given.json) {
      print("wrote " + given.dot_file + " (draw it: dot -Tsvg " + given.dot_file + " > network.svg)\n");
      return 0;
    }
  }
  const declarations open(asked);
  std::string text;
  for (const std::string& line : l.about) text += line + '\n';
  text += open.text;
  c::json all = graph_to_json(network, given.network);
  if (!open.list.empty()) all["open"] = open.list;
  print(given.json ? c::to_text(all) : text + c::to_string(network, {.columns = page_width}));
  return 0;
}

}  // namespace program
