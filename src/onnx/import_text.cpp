// Parts of a model in words, for messages.
#include "import_text.hpp"

#include <cstdio>

namespace collage::inline v0::onnx {

std::string operator_name(const model_node& node) {
  return node.domain.empty() ? node.operator_type : node.domain + "." + node.operator_type;
}

std::string name_of(const model_node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& output : node.outputs)
    if (!output.empty()) return output;
  return operator_name(node);
}

std::string text_of(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string printable(const std::string& text, std::size_t most) {
  std::string clean;
  for (const char c : text) {
    if (clean.size() == most) return clean + "...";
    clean += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return clean;
}

std::string text_of(const model_attribute& a) {
  const auto integer = [](std::int64_t i) { return std::to_string(i); };
  const auto real = [](double x) { return text_of(x); };
  const auto quoted = [](const std::string& t) { return '"' + printable(t, 40) + '"'; };
  switch (a.form) {
    case attribute_form::real: return text_of(a.real);
    case attribute_form::integer: return integer(a.integer);
    case attribute_form::text: return quoted(a.text);
    case attribute_form::reals: return "[" + joined(a.reals, real) + "]";
    case attribute_form::integers: return "[" + joined(a.integers, integer) + "]";
    case attribute_form::texts: return "[" + joined(a.texts, quoted) + "]";
    case attribute_form::tensor:
    case attribute_form::tensors: return "a tensor";
    case attribute_form::graph:
    case attribute_form::graphs: return "a graph";
    case attribute_form::other: break;
  }
  return "...";
}

std::string text_of(const model_port& p) {
  std::string text = element_type_name(p.element_type);
  if (!p.has_shape) return text + " of any shape";
  text += "[";
  for (std::size_t i = 0; i < p.extents.size(); ++i) {
    const model_extent& e = p.extents[i];
    text += (i == 0 ? "" : "x") + (e.extent >= 0      ? std::to_string(e.extent)
                                   : e.symbol.empty() ? "?"
                                                      : printable(e.symbol, 20));
  }
  return text + (p.extents.empty() ? "scalar]" : "]");
}

}  // namespace collage::inline v0::onnx
