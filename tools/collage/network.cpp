#include "network.hpp"

#include "terminal.hpp"

#include <collage/pass/optimise.hpp>
#include <collage/zoo/all.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/npy.hpp>
#include <collage/io/onnx.hpp>
#endif

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
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

loaded load_file(const options& given) {
  c::onnx::load_options how;
  for (const std::string& text : given.shapes) {
    const auto [name, dims] = split_setting(text, "--shape", "NAME=1x3x224x224");
    for (const c::onnx::bound_shape& b : how.shapes)
      if (b.input == name)
        throw c::error(c::error_kind::invalid_argument, "it is given twice", "--shape " + name, "give it once");
    how.shapes.push_back({name, parse_shape(dims, "--shape " + text)});
  }
  std::vector<c::tensor> contents;
  contents.reserve(given.bindings.size());
  for (const std::string& text : given.bindings) {
    const auto [name, file] = split_setting(text, "--bind", "NAME=FILE.npy");
    for (const c::onnx::bound_value& b : how.values)
      if (b.input == name)
        throw c::error(c::error_kind::invalid_argument, "it is given twice", "--bind " + name, "give it once");
    contents.push_back(c::load_npy(file));
    how.values.push_back({name, contents.back()});
  }
  c::onnx::load_report report;
  loaded result{c::onnx::load(given.network, how, &report), {}, std::move(report.notes)};
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

c::graph load_ready_network(const options& given) {
  loaded l = load_network(given);
  if (!given.quiet)
    for (const std::string& note : l.notes) complain("note: " + note);
  c::fill_constants(l.network);
  return c::optimise(l.network);
}

}  // namespace program
