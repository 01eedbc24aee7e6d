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
#include <collage/run/shape_formulas.hpp>
#include <collage/zoo/all.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// The shapes of the network's values as formulas of extents that the file and the options leave open.
class open_shapes {
 public:
  std::vector<std::string> types;  ///< by value: "float32[N x 64 x floor((W + 1) / 2)]"; empty where nothing is open
  std::string text;                ///< on which open extents the outputs depend
  c::json list = c::json::object();
  c::json deciding = c::json::array();  ///< open extents that decide which operators run

  open_shapes(const options& asked, const c::graph& network) : types(network.values().size()) {
    if (!is_model_file(asked.network)) return;
    const auto source = model_source_of(asked);
    const std::optional<std::vector<c::shape>> dims = shapes_in(network, source->inputs());
    if (!dims) return;
    const c::shape_formulas found = formulas_of(*source, *dims);
    for (const c::shape_formula& f : found.values)
      if (!f.depends_on.empty()) by_name_.emplace(f.value, f);
    for (std::uint32_t v = 0; v < network.values().size(); ++v)
      if (const auto at = by_name_.find(network.value_name(v));
          at != by_name_.end() && at->second.extents.size() == network.type_of(v).dims.size())
        types[v] = type_text(network.type_of(v).type, at->second);
    say_outputs(network);
    for (const std::string& name : found.decides_operators) text += "which operators run depends on " + name + "\n";
    for (const std::string& name : found.only_usual)
      text += "no network could be made with another " + name + ", so shapes are for this one\n";
    for (const auto& [name, f] : by_name_) list[name] = {{"shape", f.extents}, {"depends_on", f.depends_on}};
    deciding = found.decides_operators;
  }

 private:
  /// None where the network of the file cannot be made at these shapes of its inputs.
  static c::shape_formulas formulas_of(const c::network_source& source, const std::vector<c::shape>& dims) {
    try {
      return c::shape_formulas_of(source, dims);
    } catch (const c::error&) { return {}; }
  }
  /// The shapes of all inputs of the file; nothing if the network lacks one.
  static std::optional<std::vector<c::shape>> shapes_in(const c::graph& network, std::span<const c::open_port> inputs) {
    std::vector<c::shape> dims;
    for (const c::open_port& p : inputs) {
      const auto v =
          std::ranges::find(network.inputs(), p.name, [&](std::uint32_t i) { return network.value_name(i); });
      if (v == network.inputs().end()) return std::nullopt;
      dims.push_back(network.type_of(*v).dims);
    }
    return dims;
  }
  static std::string type_text(c::dtype type, const c::shape_formula& f) {
    std::string dims;
    for (const std::string& extent : f.extents) dims += (dims.empty() ? "" : " x ") + extent;
    return std::string(c::name_of(type)) + "[" + dims + "]";
  }
  void say_outputs(const c::graph& network) {
    for (std::size_t i = 0; i < network.outputs().size(); ++i) {
      const auto at = by_name_.find(network.value_name(network.outputs()[i]));
      if (at == by_name_.end()) continue;
      text += "output " + network.output_name(i) + " depends on ";
      const std::vector<std::string>& of = at->second.depends_on;
      for (std::size_t n = 0; n < of.size(); ++n) text += (n == 0 ? "" : n + 1 == of.size() ? " and " : ", ") + of[n];
      text += '\n';
    }
  }

  std::map<std::string, c::shape_formula> by_name_;
};

#else

struct declarations {
  std::string text;
  c::json list = c::json::array();
  explicit declarations(const options&) {}
};

struct open_shapes {
  std::vector<std::string> types;
  std::string text;
  c::json list = c::json::object(), deciding = c::json::array();
  open_shapes(const options&, const c::graph& network) : types(network.values().size()) {}
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
  const open_shapes formulas(asked, network);
  text += formulas.text;
  c::json all = graph_to_json(network, given.network);
  if (!open.list.empty()) all["open"] = open.list;
  if (!formulas.list.empty()) all["formulas"] = formulas.list;
  if (!formulas.deciding.empty()) all["decides_operators"] = formulas.deciding;
  print(given.json ? c::to_text(all) : text + c::to_string(network, {.columns = page_width, .types = &formulas.types}));
  return 0;
}

}  // namespace program
