#include "output_file.hpp"

#include "network.hpp"

#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <front_end.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx/model.hpp>
#endif

#include <sys/stat.h>

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

/// Refuses the files that hold the network's weights outside of its own. Reads the model only where a file would be replaced.
void refuse_weights(const std::string& file, const std::string& network) {
#if COLLAGE_HAS_ONNX
  struct stat there{};
  if (!is_model_file(network) || ::stat(file.c_str(), &there) != 0) return;
  std::vector<std::string> weights;
  try {
    weights = c::onnx::external_files(network);
  } catch (const c::error&) { return; }  // the command says it when it loads the network
  for (const std::string& name : weights) c::check_replaces_no_input(file, name, "the network's weights");
#else
  static_cast<void>(file), static_cast<void>(network);
#endif
}

/// Refuses the store, also the user's, which no option names.
void refuse_store(const std::string& file, const options& given) {
  std::string ignored;
  c::check_replaces_no_input(file, c::store_named(given.store_file.empty() ? nullptr : &given.store_file, ignored),
                             "the store");
}

}  // namespace

void check_plan_output(const std::string& file, const options& given) {
  c::check_replaces_no_input(file, given.network, "the network");
  refuse_weights(file, given.network);
  refuse_store(file, given);
  c::check_replaces_no_input(file, given.other_plan_file, "the other plan");
  c::check_replaces_no_input(file, given.data, "--data");
  c::check_replaces_no_input(file, given.known_ranges, "--ranges");
  for (const std::string& merged : given.merged_files) c::check_replaces_no_input(file, merged, "--merge");
  refuse_named(file, given.bindings, "--bind");
  refuse_named(file, given.inputs, "--input");
  c::check_writable(file);
}

void check_output(const std::string& file, const options& given) {
  c::check_replaces_no_input(file, given.plan_file, "--plan");
  check_plan_output(file, given);
}

}  // namespace program
