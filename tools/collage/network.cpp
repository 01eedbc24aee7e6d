#include "network.hpp"

#include "open_shapes.hpp"
#include "terminal.hpp"

#include <collage/io/plan_file.hpp>
#include <collage/ops.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place/requantise.hpp>
#include <collage/zoo/all.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/npy.hpp>
#include <collage/io/onnx.hpp>
#include <collage/io/onnx/model_source.hpp>
#endif

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace program {

namespace c = collage;

namespace {

constexpr const char* zoo = "zoo:";

#if COLLAGE_HAS_ONNX

void refuse_several(const shape_setting& s) {
  if (const c::extent_values* const values = s.several())
    throw c::error(c::error_kind::invalid_argument, "it names " + std::to_string(values->count()) + " extents",
                   "--shape " + s.text, "give one; only collage tune takes several");
}

/// The options for loading a file, and the contents to which they bind inputs.
struct file_options {
  c::onnx::load_options how;
  std::vector<c::tensor> contents;

  explicit file_options(const options& given) {
    for (const shape_setting& s : shape_settings(given)) {
      refuse_several(s);
      how.shapes.push_back({s.name, s.dims()});
    }
    contents.reserve(given.bindings.size());
    for (const std::string& text : given.bindings) {
      const auto [name, file] = split_setting(text, "--bind", "NAME=FILE.npy");
      for (const c::onnx::bound_value& b : how.values)
        if (b.input == name)
          throw c::error(c::error_kind::invalid_argument, "it is given twice", "--bind " + name, "give it once");
      contents.push_back(c::load_npy(file));
      how.values.push_back({name, contents.back()});
    }
  }
  file_options(const file_options&) = delete;
  file_options& operator=(const file_options&) = delete;
};

std::shared_ptr<const c::onnx::model_source> source_of(const options& given, const c::onnx::model& read) {
  const file_options how(given);
  return std::make_shared<const c::onnx::model_source>(read, how.how);
}

std::vector<c::open_port> inputs_of_file(options given) {
  given.shapes.clear();
  const auto source = source_of(given, c::onnx::read_model(given.network));
  return {source->inputs().begin(), source->inputs().end()};
}

/// The options, with shapes of inputs in place of the extents of symbols.
options without_symbols(options given) {
  const std::vector<shape_setting> settings = shape_settings(given);
  for (const shape_setting& s : settings) refuse_several(s);
  if (std::ranges::none_of(settings, may_name_symbol)) return given;
  const std::vector<c::open_port> inputs = inputs_of_file(given);
  const auto is_symbol = [&](const shape_setting& s) {
    return may_name_symbol(s) && std::ranges::find(inputs, s.name, &c::open_port::name) == inputs.end();
  };
  if (std::ranges::any_of(settings, is_symbol)) given.shapes = shape_space(settings, inputs).settings();
  return given;
}

loaded load_file(const options& asked) {
  const options given = without_symbols(asked);
  const file_options how(given);
  c::onnx::load_report report;
  loaded result{c::onnx::load(given.network, how.how, &report), {}, std::move(report.notes)};
  result.about.push_back(given.network + ": operator set " + std::to_string(report.opset) +
                         (report.producer.empty() ? "" : ", written by " + report.producer));
  for (const auto& [key, value] : report.metadata)
    result.about.push_back("metadata " + key + ": " +
                           (value.size() <= 60 ? value : std::to_string(value.size()) + " bytes"));
  return result;
}

#endif

}  // namespace

bool is_model_file(const std::string& name) {
  std::error_code ignored;
  return name.rfind(zoo, 0) != 0 && (name.ends_with(".onnx") || std::filesystem::exists(name, ignored));
}

loaded load_network(const options& given) {
  if (is_model_file(given.network)) {
#if COLLAGE_HAS_ONNX
    return load_file(given);
#else
    throw c::error(c::error_kind::unsupported, "this program was built without ONNX", given.network,
                   "install libonnx-dev and libprotobuf-dev and build again");
#endif
  }
  const auto refuse_for_zoo = [](const std::vector<std::string>& list, const char* option, const char* remedy) {
    if (!list.empty())
      throw c::error(c::error_kind::invalid_argument, "this option is only for networks from files",
                     option + (" " + list.front()), remedy);
  };
  refuse_for_zoo(given.shapes, "--shape", "leave it out: the inputs of built-in networks have fixed shapes");
  refuse_for_zoo(given.bindings, "--bind", "leave it out; collage run takes contents as --input NAME=FILE.npy");
  if (given.network.rfind(zoo, 0) == 0) {
    c::graph_builder builder;
    if (c::zoo::build(given.network.c_str() + 4, builder)) return {builder.finish(), {}, {}};
  }
  std::string known;
  for (const c::zoo::network& n : c::zoo::networks) known += (known.empty() ? "" : ", ") + std::string(zoo) + n.name;
  throw c::error(c::error_kind::invalid_argument, "there is no such network", "network " + given.network,
                 "name an ONNX file or one of " + known);
}

#if COLLAGE_HAS_ONNX

namespace {

/// Sets the shape of an input, of which a part may have been given before.
void set_shape(options& given, const std::string& name, const c::shape& dims) {
  std::erase_if(given.shapes, [&](const std::string& text) { return text.substr(0, text.rfind('=')) == name; });
  given.shapes.push_back(name + "=" + c::detail::to_string(dims));
}

/// The files that --input names for inputs of a source.
struct file_contents {
  std::vector<c::tensor> tensors;
  std::vector<c::given_value> values;

  file_contents(const options& given, const c::onnx::model_source& source) {
    tensors.reserve(given.inputs.size());
    for (const c::open_port& p : source.inputs())
      for (const std::string& text : given.inputs) {
        const std::string file = text.starts_with(p.name + "=") ? text.substr(p.name.size() + 1) : "random";
        if (file == "random" || tensors.size() == given.inputs.size()) continue;
        tensors.push_back(c::load_npy(file));
        values.push_back({p.name, tensors.back()});
      }
  }
  file_contents(const file_contents&) = delete;
  file_contents& operator=(const file_contents&) = delete;
};

/// The shape of a file for an input. Throws if an extent was given otherwise.
const c::shape& checked(const c::open_port& input, const c::shape& dims) {
  for (std::size_t d = 0; input.has_rank && d < std::min(dims.size(), input.dims.size()); ++d)
    if (input.dims[d] >= 0 && input.dims[d] != dims[d])
      throw c::error(c::error_kind::invalid_argument,
                     "its file has the shape " + c::detail::to_string(dims) + ", and the network or --shape wants " +
                         c::detail::to_string(input.dims),
                     "--input " + input.name, "give a file that fits, or leave out --shape");
  return dims;
}

/// Adds the shapes of files for inputs without a fixed shape.
void take_shapes(options& given, const file_contents& files, const c::onnx::model_source& source) {
  for (const c::open_port& p : source.inputs())
    for (const c::given_value& v : files.values)
      if (v.name == p.name && is_open(p)) set_shape(given, p.name, checked(p, v.contents.type.dims));
}

/// Finds out whether the network has more than one stage, or is made for the contents of inputs. All inputs have shapes.
void look_for_stages(late_network& made) {
  const c::onnx::model_source& source = *made.source;
  std::vector<c::tensor> contents;
  std::vector<c::given_value> given;
  for (const c::open_port& p : source.inputs()) contents.emplace_back(c::tensor_type{p.type, p.dims});
  for (std::size_t i = 0; i < contents.size(); ++i) given.push_back({source.inputs()[i].name, contents[i]});
  try {
    const c::network_stage first = source.make(nullptr, given);
    made.deciding = first.decided_by;
    if (first.is_last && first.late.empty() && first.decided_by.empty()) made.source = nullptr;
  } catch (const c::error&) {}  // zeros may not fit; the run says what is wrong with its inputs
}

bool has_open_input(const c::onnx::model_source& source) { return std::ranges::any_of(source.inputs(), is_open); }

}  // namespace

bool is_open(const c::open_port& port) {
  return !port.has_rank || std::ranges::any_of(port.dims, [](std::int64_t extent) { return extent < 0; });
}

std::optional<late_network> late_network_of(const options& asked) {
  if (!is_model_file(asked.network)) return {};
  const options given = without_symbols(asked);
  std::optional<c::onnx::model> read;
  late_network made{given, nullptr, {}};
  try {
    (void)load_network(given);
    return {};
  } catch (const c::error& e) {
    if (e.kind() != c::error_kind::invalid_argument && e.kind() != c::error_kind::unsupported) throw;
    try {
      read = c::onnx::read_model(given.network);
      made.source = source_of(given, *read);
    } catch (const c::error&) {
      if (read) throw;  // what is wrong does not depend on shapes
    }
    // A mistake is not mended by shapes if all of them are known.
    if (!made.source || (e.kind() == c::error_kind::invalid_argument && !has_open_input(*made.source))) throw;
  }
  const file_contents files(given, *made.source);
  take_shapes(made.given, files, *made.source);
  made.source = source_of(made.given, *read);
  const std::vector<c::shape> chosen = [&] {
    try {
      return made.source->example_shapes(files.values);
    } catch (const c::error& e) {
      if (has_open_input(*made.source)) throw;
      // Only contents can be at fault.
      throw c::error(e.kind(), e.what(), "", "inputs that decide shapes count as zeros without --input NAME=FILE.npy");
    }
  }();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const c::open_port& p = made.source->inputs()[i];
    if (!is_open(p)) continue;
    set_shape(made.given, p.name, chosen[i]);
    if (!given.quiet)
      complain("note: input " + p.name + " is open; it is taken as " + c::detail::to_string(chosen[i]) +
               ", and --shape or a file for --input gives it another shape");
  }
  made.source = source_of(made.given, *read);
  look_for_stages(made);
  return made;
}

std::shared_ptr<const c::onnx::model_source> model_source_of(const options& given) {
  return source_of(without_symbols(given), c::onnx::read_model(given.network));
}

std::vector<c::open_port> inputs_of(const options& given) {
  if (!is_model_file(given.network)) {
    (void)load_network(given);  // says what is wrong with its name and the options
    throw c::error(c::error_kind::invalid_argument, "its extents are fixed", "network " + given.network,
                   "name a file of ONNX, or leave out what is about open extents");
  }
  return inputs_of_file(given);
}

namespace {

/// The shape that a plan has for an input of the network. Throws if it has no such input: it is for another network.
c::shape planned_shape(const c::json_place& inputs, const std::string& name, const std::string& file) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]["name"].text() != name) continue;
    const c::json_place extents = inputs[i]["shape"];
    if (extents.size() > c::shape::max_rank) extents.wrong("has more than 8 extents");
    c::shape dims;
    for (std::size_t d = 0; d < extents.size(); ++d)
      dims.push_back(static_cast<std::int64_t>(extents[d].natural(0, ~std::uint64_t{0} >> 1U)));
    return dims;
  }
  throw c::error(c::error_kind::invalid_argument, "is a plan without input " + name + ", which the network has", file,
                 "give the network and the --bind of which the plan was made, or place this network");
}

/// The options with the plan's shape for every open input. Throws if --shape has another.
options with_planned_shapes(const options& asked) {
  options given = without_symbols(asked);
  const std::vector<c::open_port> inputs = inputs_of_file(given);
  if (std::ranges::none_of(inputs, is_open)) return given;
  const c::json plan = c::read_plan_file(given.plan_file);
  const c::json_place planned = c::json_place(plan, given.plan_file, c::detail::new_plan)["inputs"];
  for (const c::open_port& p : inputs) {
    if (!is_open(p)) continue;
    const c::shape dims = planned_shape(planned, p.name, given.plan_file);
    for (const shape_setting& s : shape_settings(given)) {
      if (s.name != p.name) continue;
      const c::shape wanted = s.dims();
      bool fits = wanted.size() == dims.size();
      for (std::size_t d = 0; fits && d < dims.size(); ++d) fits = wanted[d] == c::unknown || wanted[d] == dims[d];
      if (!fits)
        throw c::error(c::error_kind::invalid_argument,
                       "is a plan for other shapes: input " + p.name + " is " + c::detail::to_string(dims) +
                           " in the plan, and --shape wants " + c::detail::to_string(wanted),
                       given.plan_file, "leave out --shape, or make a plan for that shape");
    }
    set_shape(given, p.name, dims);
  }
  return given;
}

}  // namespace

options with_shapes(const options& given) {
  if (!given.plan_file.empty()) return is_model_file(given.network) ? with_planned_shapes(given) : given;
  const std::optional<late_network> late = late_network_of(given);
  return late ? late->given : given;
}

#else

options with_shapes(const options& given) { return given; }

#endif

namespace {

c::requantised_network requantised(const options& given, const c::graph& network) {
  try {
    return c::requantise(network);
  } catch (const c::error& e) {
    if (e.kind() != c::error_kind::invalid_argument) throw;
    throw c::error(e.kind(), "no value is quantised to 8 bits by one known scale and zero point",
                   "network " + given.network, "leave out --requantise");
  }
}

/// The network without rounding if it has this fingerprint, as plans have it.
std::optional<c::graph> without_rounding(const c::graph& quantised, const std::string& fingerprint) {
  try {
    c::graph free = c::requantise(quantised).network;
    if (fingerprint == c::detail::hex_of(free.fingerprint())) return free;
  } catch (const c::error& e) {  // no file of integers
    if (e.kind() != c::error_kind::invalid_argument) throw;
  }
  return {};
}

/// Whether some value is rounded to integers.
bool is_quantised(const c::graph& network) {
  const c::graph_view view = network.view();
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    if (view.kind_id_of(n) == c::kind_id<struct c::ops::dequantize_linear>) return true;
  return false;
}

/// As the file has it, with contents of all constants. Prints the notes, unless --quiet is given.
c::graph load_filled(const options& given) {
  loaded l = load_network(given);
  if (!given.quiet)
    for (const std::string& note : l.notes) complain("note: " + note);
  c::fill_constants(l.network);
  return std::move(l.network);
}

}  // namespace

c::graph load_ready_network(const options& given) {
  const c::graph network = load_filled(given);
  return given.requantise ? requantised(given, network).network : c::optimise(network);
}

c::graph load_planned_network(const options& given) {
  const c::graph quantised = load_filled(given);
  c::graph network = c::optimise(quantised);
  if (!is_quantised(quantised)) return network;
  const c::json plan = c::read_plan_file(given.plan_file);
  const std::string planned = c::json_place(plan, given.plan_file, c::detail::new_plan)["fingerprint"].text();
  if (planned == c::detail::hex_of(network.fingerprint())) return network;
  std::optional<c::graph> free = without_rounding(quantised, planned);
  if (!free) return network;
  if (!given.quiet)
    complain("note: the plan was made with --requantise, and does not round as the network's file says");
  return *std::move(free);
}

c::network_ranges ranges_in_file(const options& given) {
  loaded l = load_network(given);
  c::fill_constants(l.network);
  return requantised(given, l.network).ranges;
}

}  // namespace program
