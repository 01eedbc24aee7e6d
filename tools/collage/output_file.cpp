#include "output_file.hpp"

#include <collage/io/file.hpp>

#include <string>
#include <vector>

namespace program {

namespace c = collage;

namespace {

/// Refuses the files in options of the form NAME=FILE.
void refuse_named(const std::string& file, const std::vector<std::string>& list, const char* option) {
  for (const std::string& text : list)
    for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
      c::check_replaces_no_input(file, text.substr(at + 1), option);
}

}  // namespace

void check_plan_output(const std::string& file, const options& given) {
  c::check_replaces_no_input(file, given.network, "the network");
  c::check_replaces_no_input(file, given.other_plan_file, "the other plan");
  c::check_replaces_no_input(file, given.data, "--data");
  c::check_replaces_no_input(file, given.known_ranges, "--ranges");
  refuse_named(file, given.bindings, "--bind");
  refuse_named(file, given.inputs, "--input");
  c::check_writable(file);
}

void check_output(const std::string& file, const options& given) {
  c::check_replaces_no_input(file, given.plan_file, "--plan");
  check_plan_output(file, given);
}

}  // namespace program
