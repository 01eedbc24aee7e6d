// Loads the network that the command line names.
#pragma once

#include "options.hpp"

#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx/model_source.hpp>
#endif

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace program {

/// A network. If it comes from a file, also the file's metadata.
struct loaded {
  collage::graph network;
  std::vector<std::string> about;  ///< lines to print: operator set, producer, metadata
  std::vector<std::string> notes;  ///< notes for the user, one sentence each
};

/// Loads the network that the options name, as it is written. Constants from the generator are not filled yet. Throws
/// `collage::error` if there is no such network; the sentence lists the built-in ones.
loaded load_network(const options& given);

/// Whether a name is that of a file, and not of a built-in network.
bool is_model_file(const std::string& network);

#if COLLAGE_HAS_ONNX
/// Whether the file leaves the rank or an extent open.
bool is_open(const collage::open_port& port);

/// A network whose file leaves shapes open, or whose shapes depend on contents.
struct late_network {
  options given;  ///< with a shape for every input
  /// For the network in stages; null if it has one stage, for which the shapes are enough.
  std::shared_ptr<const collage::onnx::model_source> source;
  std::vector<std::string> deciding;  ///< inputs whose contents decide shapes, if zeros are possible for them
};

/// Nothing if `load_network` can load the network. Otherwise, open shapes are those of the files for --input, or usual ones that
/// work. A note reports each that was chosen so. Throws what `load_network` throws for other reasons.
std::optional<late_network> late_network_of(const options& given);

/// The network of a file, for sessions. Extents that the options give are fixed, others are as in the file.
std::shared_ptr<const collage::onnx::model_source> model_source_of(const options& given);

/// The inputs of the file that the options name, as they are declared there. Throws for networks that are not from a file.
std::vector<collage::open_port> inputs_of(const options& given);
#endif

/// The options with a shape for every input: with --plan those of the plan, otherwise as above. Throws if --shape contradicts
/// the plan.
options with_shapes(const options& given);

/// Loads the network and makes it ready to be placed: fills its constants and runs the passes. Prints the notes, unless
/// --quiet is given. With --requantise it is the network without the rounding of the file.
collage::graph load_ready_network(const options& given);

/// The same for --plan: it may be a plan that was made with --requantise.
collage::graph load_planned_network(const options& given);

/// The ranges that a quantised file has for the values of its network without rounding.
collage::network_ranges ranges_in_file(const options& given);

}  // namespace program
