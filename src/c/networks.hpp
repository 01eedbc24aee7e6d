// Declarations shared by the functions that make networks.
#pragma once

#include "states.hpp"

#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/tensor.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx.hpp>
#endif

#include <cstddef>
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

/// Makes a network ready to be placed, and returns a handle for it. `requantise` removes the rounding of a quantised network
/// (collage_network_options).
collage_network* new_network(collage::graph loaded, std::string name, const model_words& from, bool requantise = false);

inline constexpr std::size_t oldest_network_options =
    offsetof(collage_network_options, value_count) + sizeof(std::size_t);

#if COLLAGE_HAS_ONNX
/// The shapes and contents that a caller gives to inputs of a model.
struct model_inputs {
  collage::onnx::load_options how;
  std::vector<collage::tensor> contents;  ///< of the values
};
model_inputs model_inputs_of(const call& here, const collage_network_options& given);
#endif

/// Throws the error of a build that reads no models.
[[noreturn]] void refuse_model(const std::string& name);

/// The text of an importer's error in the terms of the C interface: no command-line options.
std::string our_words(std::string text);

/// Calls, and puts the text of an error into the terms of the C interface.
template <class Call>
auto in_our_words(const Call& call) {
  try {
    return call();
  } catch (const collage::error& e) { throw collage::error(e.kind(), our_words(e.what())); }
}

}  // namespace c_interface
