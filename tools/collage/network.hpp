// Networks by the name that the command line gives them.
#pragma once

#include <collage/graph/graph.hpp>

#include <string>

namespace program {

/// The network called NET, without the contents of its constants; an error that lists what is possible.
collage::graph load_network(const std::string& name);

/// The same with the contents, which takes a moment for a large network.
collage::graph load_network_with_data(const std::string& name);

}  // namespace program
