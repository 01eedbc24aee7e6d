// Declarations shared by the functions that make networks.
#pragma once

#include "states.hpp"

#include <collage/graph/graph.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

/// Facts about a model that its graph does not hold.
struct model_words {
  std::int64_t opset = 0;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> notes;
};

/// Makes a network ready to be placed, and returns a handle for it.
collage_network* new_network(collage::graph loaded, std::string name, const model_words& from);

}  // namespace c_interface
