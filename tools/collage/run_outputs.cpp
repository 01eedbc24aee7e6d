#include "run_outputs.hpp"

#include "output_file.hpp"

#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <collage/run/elements.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

namespace program {

namespace c = collage;

namespace {

std::vector<std::string> file_names(std::span<const std::string> outputs) {
  std::vector<std::string> names(outputs.size());
  std::set<std::string> taken;
  for (const bool has_slash : {false, true})
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string name = outputs[i];
      if ((name.find('/') != std::string::npos) != has_slash) continue;
      std::replace(name.begin(), name.end(), '/', '_');
      names[i] = name;
      for (int number = 2; !taken.insert(names[i]).second; ++number) names[i] = name + "_" + std::to_string(number);
    }
  return names;
}

/// The range and mean of a tensor's finite elements, and the number of the others.
struct extent_of_values {
  double least = std::numeric_limits<double>::infinity(), most = -least, mean = 0;
  std::size_t not_finite = 0;

  explicit extent_of_values(const c::const_tensor_view& t) {
    const c::oracle_value all = c::to_oracle(t);
    std::size_t count = 0;
    const auto add = [&](double x) {
      if (!std::isfinite(x)) {
        ++not_finite;
        return;
      }
      least = std::min(least, x);
      most = std::max(most, x);
      mean += x;
      ++count;
    };
    for (const double x : all.real) add(x);
    for (const std::int64_t x : all.integer) add(static_cast<double>(x));
    mean = count == 0 ? 0 : mean / static_cast<double>(count);
    if (count == 0) least = most = 0;
  }
};

}  // namespace

std::vector<std::string> output_files(const options& given, std::span<const std::string> outputs) {
  const std::string& folder = given.output_folder;
  std::vector<std::string> files;
  if (folder.empty()) return files;
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed) && !std::filesystem::create_directory(folder, failed))
    throw c::error(
        c::error_kind::invalid_argument,
        "the output folder cannot be created: " + (failed ? failed.message() : std::string("a file has this name")),
        folder, "give --output a folder in which you may create files");
  for (const std::string& name : file_names(outputs)) {
    files.push_back((std::filesystem::path(folder) / (name + ".npy")).string());
    check_output(files.back(), given);
  }
  return files;
}

c::json outputs_to_json(std::span<const run_output> outputs, std::span<const std::string> files) {
  c::json list = c::json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const c::tensor_type& type = outputs[i].contents.type;
    const extent_of_values e(outputs[i].contents);
    c::json dims = c::json::array();
    for (const std::int64_t extent : type.dims) dims.push_back(extent);
    list.push_back({{"name", outputs[i].name},
                    {"type", c::name_of(type.type)},
                    {"shape", dims},
                    {"least", c::rounded(e.least)},
                    {"mean", c::rounded(e.mean)},
                    {"most", c::rounded(e.most)},
                    {"not_finite", e.not_finite},
                    {"file", files.empty() ? c::json() : c::json(files[i])}});
  }
  return list;
}

table outputs_table(std::span<const run_output> outputs, std::span<const std::string> files) {
  table page({{"output"},
              {"type", align::left, 16},
              {"least", align::right},
              {"mean", align::right},
              {"most", align::right},
              {"", align::left, 16}});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const extent_of_values e(outputs[i].contents);
    page.add({outputs[i].name, c::detail::to_string(outputs[i].contents.type), format_number("%.5g", e.least),
              format_number("%.5g", e.mean), format_number("%.5g", e.most),
              e.not_finite != 0 ? cell(std::to_string(e.not_finite) + " not finite", colour::red)
                                : cell(files.empty() ? "" : files[i])});
  }
  return page;
}

input_setting split_input(const std::string& text, std::span<const std::string> names, const std::string& known) {
  std::size_t equals = text.find('=');
  for (std::size_t at = equals; at != std::string::npos; at = text.find('=', at + 1))
    for (const std::string& name : names)
      if (text.compare(0, at, name) == 0) equals = at;
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw c::error(c::error_kind::invalid_argument, "it is not of the form NAME=FILE.npy or NAME=random",
                   "--input " + text, "the inputs are " + known);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace program
