#include "network.hpp"

#include "terminal.hpp"

#include <collage/pass/optimise.hpp>
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

/// NAME=REST as its two halves.
std::pair<std::string, std::string> split_setting(const std::string& text, const char* option, const char* form) {
  // Names may hold '=' themselves; what is set never does.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw c::error(c::error_kind::invalid_argument, std::string("it is not of the form ") + form,
                   std::string(option) + " " + text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

#if COLLAGE_HAS_ONNX

/// "1x3x224x224" as a shape; empty or "scalar" is one of rank 0.
c::shape parse_shape(const std::string& text, const std::string& where) {
  c::shape dims;
  if (text.empty() || text == "scalar") return dims;
  const auto refuse = [&](const char* what) {
    throw c::error(c::error_kind::invalid_argument, what, where, "write its extents as in 1x3x224x224");
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::int64_t extent = -1;
    const auto read = std::from_chars(text.data() + at, text.data() + end, extent);
    if (read.ec != std::errc() || read.ptr != text.data() + end || extent < 0) refuse("it is not a shape");
    if (dims.size() == c::shape::max_rank) refuse("it has more than 8 extents");
    dims.push_back(extent);
    at = end + 1;
  }
  return dims;
}

/// The options for loading a file, and the contents to which they bind inputs.
struct file_options {
  c::onnx::load_options how;
  std::vector<c::tensor> contents;

  explicit file_options(const options& given) {
    for (const std::string& text : given.shapes) {
      const auto [name, dims] = split_setting(text, "--shape", "NAME=1x3x224x224");
      for (const c::onnx::bound_shape& b : how.shapes)
        if (b.input == name)
          throw c::error(c::error_kind::invalid_argument, "it is given twice", "--shape " + name, "give it once");
      how.shapes.push_back({name, parse_shape(dims, "--shape " + text)});
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

loaded load_file(const options& given) {
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

bool is_file(const std::string& name) {
  std::error_code ignored;
  return name.rfind(zoo, 0) != 0 && (name.ends_with(".onnx") || std::filesystem::exists(name, ignored));
}

}  // namespace

loaded load_network(const options& given) {
  if (is_file(given.network)) {
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

bool is_open(const c::shape& dims) {
  return std::any_of(dims.begin(), dims.end(), [](std::int64_t extent) { return extent < 0; });
}

/// "image=1x3x224x224", as --shape takes it.
std::string setting_of(const std::string& name, const c::shape& dims) {
  return name + "=" + c::detail::to_string(dims);
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

/// Adds the shapes of files for inputs without a fixed shape.
void take_shapes(options& given, const file_contents& files, const c::onnx::model_source& source) {
  for (const c::open_port& p : source.inputs())
    for (const c::given_value& v : files.values)
      if (v.name == p.name && (!p.has_rank || is_open(p.dims)))
        given.shapes.push_back(setting_of(p.name, v.contents.type.dims));
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

std::shared_ptr<const c::onnx::model_source> source_of(const options& given, const c::onnx::model& read) {
  const file_options how(given);
  return std::make_shared<const c::onnx::model_source>(read, how.how);
}

/// Whether the model can be read, and leaves the shape of an input open.
bool has_open_input(const options& given) {
  try {
    const auto source = source_of(given, c::onnx::read_model(given.network));
    return std::ranges::any_of(source->inputs(), [](const c::open_port& p) { return !p.has_rank || is_open(p.dims); });
  } catch (const c::error&) { return false; }
}

}  // namespace

std::optional<late_network> late_network_of(const options& given) {
  if (!is_file(given.network)) return {};
  try {
    (void)load_network(given);
    return {};
  } catch (const c::error& e) {
    if (e.kind() != c::error_kind::invalid_argument && e.kind() != c::error_kind::unsupported) throw;
    // A mistake is not mended by shapes if all of them are known.
    if (e.kind() == c::error_kind::invalid_argument && !has_open_input(given)) throw;
  }
  const c::onnx::model read = c::onnx::read_model(given.network);
  late_network made{given, source_of(given, read), {}};
  const file_contents files(given, *made.source);
  take_shapes(made.given, files, *made.source);
  made.source = source_of(made.given, read);
  const std::vector<c::shape> chosen = [&] {
    try {
      return made.source->example_shapes(files.values);
    } catch (const c::error& e) {
      if (has_open_input(made.given)) throw;
      // Only contents can be at fault.
      throw c::error(e.kind(), e.what(), "", "inputs that decide shapes count as zeros without --input NAME=FILE.npy");
    }
  }();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const c::open_port& p = made.source->inputs()[i];
    if (p.has_rank && !is_open(p.dims)) continue;
    made.given.shapes.push_back(setting_of(p.name, chosen[i]));
    if (!given.quiet)
      complain("note: input " + p.name + " is open; it is taken as " + c::detail::to_string(chosen[i]) +
               ", and --shape or a file for --input gives it another shape");
  }
  made.source = source_of(made.given, read);
  look_for_stages(made);
  return made;
}

options with_shapes(const options& given) {
  if (!given.plan_file.empty()) return given;
  const std::optional<late_network> late = late_network_of(given);
  return late ? late->given : given;
}

#else

options with_shapes(const options& given) { return given; }

#endif

c::graph load_ready_network(const options& given) {
  loaded l = load_network(given);
  if (!given.quiet)
    for (const std::string& note : l.notes) complain("note: " + note);
  c::fill_constants(l.network);
  return c::optimise(l.network);
}

}  // namespace program
