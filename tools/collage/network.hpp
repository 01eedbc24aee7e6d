// Networks by the name that the command line gives them.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>

#include <string>
#include <vector>

namespace program {

/// A network and, of one from a file, what the file says besides.
struct loaded {
  collage::graph network;
  std::vector<std::string> about;  ///< lines for people: what wrote the file, which operator set, metadata
  std::vector<std::string> notes;  ///< what a user should know, one sentence each
};

/// The network that the options name, as it is written, without the contents of constants that a rule fills; an error
/// that lists what is possible.
loaded load_network(const options& given);

/// The same ready to be placed: constants filled and passes run. Tells the notes, unless --quiet.
collage::graph load_ready_network(const options& given);

}  // namespace program
