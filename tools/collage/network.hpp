// Loads the network that the command line names.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>

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

/// Loads the network and makes it ready to be placed: fills its constants and runs the passes. Prints the notes, unless
/// --quiet is given.
collage::graph load_ready_network(const options& given);

}  // namespace program
