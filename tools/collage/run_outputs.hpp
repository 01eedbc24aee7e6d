// The outputs of runs: their files, and their table or JSON.
#pragma once

#include "options.hpp"
#include "table.hpp"

#include <collage/io/json.hpp>
#include <collage/measure/timing.hpp>
#include <collage/run/tensor.hpp>

#include <span>
#include <string>
#include <vector>

namespace program {

/// An output with its contents.
struct run_output {
  std::string name;
  collage::const_tensor_view contents;
};

/// The file in the folder of --output for each output. A slash in an output's name becomes an underscore. If the file name belongs to another
/// output, a number follows; names without a slash are the first to get theirs. The folder is created. None without a folder.
/// Throws if one of them cannot be written, or would replace a file that the command reads.
std::vector<std::string> output_files(const options& given, std::span<const std::string> outputs);

/// Types, ranges and files of outputs. `files` is empty, or has one for each output.
collage::json outputs_to_json(std::span<const run_output> outputs, std::span<const std::string> files);
table outputs_table(std::span<const run_output> outputs, std::span<const std::string> files);

/// The milliseconds of 3 to 50 calls, as many as fit into a second.
template <class Call>
std::vector<double> times_of(const Call& call) {
  std::vector<double> samples;
  const double start = collage::detail::now_ms();
  while (samples.size() < 3 || (samples.size() < 50 && collage::detail::now_ms() - start < 1000)) {
    const double before = collage::detail::now_ms();
    call();
    samples.push_back(collage::detail::now_ms() - before);
  }
  return samples;
}

/// The input's name and source in NAME=SOURCE of --input. Names may have '=' themselves: of several names that fit, the longest counts.
/// If none fits, the text before the first '=' is the name. Throws if it has not that form; `known` lists the inputs for the message.
struct input_setting {
  std::string name, source;
};
input_setting split_input(const std::string& text, std::span<const std::string> names, const std::string& known);

}  // namespace program
