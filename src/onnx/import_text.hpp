// Parts of a model in words, for messages.
#pragma once

#include <collage/io/onnx/model.hpp>
#include <cstddef>
#include <string>

namespace collage::inline v0::onnx {

/// "Conv", or with its domain "com.microsoft.Gelu".
std::string operator_name(const model_node& node);
/// What people find a node by: its own name, else that of its first output.
std::string name_of(const model_node& node);
/// Text from a file, fit to be part of a message: short, on one line.
std::string printable(const std::string& text, std::size_t most = 60);
std::string text_of(double x);
std::string text_of(const model_attribute& a);
/// The declared type of an input: "float[1x3xheightx?]".
std::string text_of(const model_port& p);

/// A list with its middle left out where it is long.
template <class List, class Text>
std::string joined(const List& list, const Text& text) {
  std::string all;
  std::size_t told = 0;
  for (const auto& item : list) {
    if (told++ == 12) return all + ", ...";
    all += (all.empty() ? "" : ", ") + text(item);
  }
  return all;
}

}  // namespace collage::inline v0::onnx
