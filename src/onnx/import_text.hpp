// Parts of a model as text, for messages.
#pragma once

#include <collage/io/onnx/model.hpp>
#include <cstddef>
#include <string>

namespace collage::inline v0::onnx {

/// "Conv", or with its domain "com.microsoft.Gelu".
std::string operator_name(const model_node& node);
/// The name that identifies a node for the user: its own, or else that of its first output.
std::string name_of(const model_node& node);
/// Text from a file, made fit for a message: short, and on one line.
std::string printable(const std::string& text, std::size_t most = 60);
std::string text_of(double x);
std::string text_of(const model_attribute& a);
/// The declared type of an input: "float[1x3xheightx?]".
std::string text_of(const model_port& p);

/// The items of a list, with commas between them. At most 12 are shown.
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
