// Graphs in words, for people:
//
//   graph: 4 nodes, 2 constants, 0.02 M parameters, 0.01 GFLOP
//     in   input: float32[1x16x28x28]
//     out  output: float32[1x32x28x28] = relu_2
//     conv_0 = conv(input, first.weight[32x16x3x3]) {pads_begin=[1,1], pads_end=[1,1]} -> float32[1x32x28x28]
//     ...
//
// One node a line, in the graph's order. Constants are named with their shape, or with their value where it is one
// number; attributes that have their default value are left out. Lines are wrapped between words.
#pragma once

#include <charconv>
#include <collage/graph/graph.hpp>
#include <collage/graph/totals.hpp>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

struct print_options {
  std::size_t columns = 100;    ///< lines are wrapped to this width where a single word is not longer
  bool all_attributes = false;  ///< also those that have their default value
  /// By value: what is printed in place of its type, unless it is empty. Null: types are printed.
  const std::vector<std::string>* types = nullptr;
};

namespace detail {

/// The shortest digits that read back as the same number.
template <class Real>
std::string number_text(Real number) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number);
  return {digits, end.ptr};
}

inline std::string fixed_text(double number, int decimals) {
  char digits[340];
  const std::to_chars_result end =
      std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, decimals);
  return {digits, end.ptr};
}

inline std::string attribute_text(const attribute_value& v) {
  switch (v.what) {
    case attribute_value::tag::boolean: return v.integer != 0 ? "true" : "false";
    case attribute_value::tag::integer: return std::to_string(v.integer);
    case attribute_value::tag::real: return number_text(v.real);
    case attribute_value::tag::text: return '"' + std::string(v.text.text) + '"';
    case attribute_value::tag::list: {
      std::string text = "[";
      for (const std::int64_t entry : v.list) text += (text.size() == 1 ? "" : ",") + std::to_string(entry);
      return text + "]";
    }
    case attribute_value::tag::reals: {
      std::string text = "[";
      for (const double number : v.reals) text += (text.size() == 1 ? "" : ",") + number_text(number);
      return text + "]";
    }
  }
  return {};
}

inline std::vector<std::pair<std::string, std::string>> attribute_list(const kind_info& kind,
                                                                       std::span<const std::uint64_t> words) {
  std::vector<std::pair<std::string, std::string>> list;
  kind.list(words, {&list, [](void* to, const attribute_value& v) {
                      static_cast<decltype(list)*>(to)->emplace_back(v.name, attribute_text(v));
                    }});
  return list;
}

/// A node's attributes as "name=value"; without those that a node with its operands would have if nothing were stated.
inline std::vector<std::string> attribute_texts(const graph& network, std::uint32_t node, bool all) {
  const kind_info& kind = *network.node(node).kind;
  const auto stated = attribute_list(kind, network.view().words_of(node));
  attribute_words words = kind.defaults();
  if (kind.normalise != nullptr) {
    std::vector<tensor_type> in;
    for (const std::uint32_t value : network.view().inputs_of(node)) in.push_back(network.type_of(value));
    kind.normalise(words, in);
  }
  const auto usual = attribute_list(kind, words.list());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < stated.size(); ++i)
    if (all || i >= usual.size() || stated[i] != usual[i]) texts.push_back(stated[i].first + "=" + stated[i].second);
  return texts;
}

/// An operand: its name; of a constant also the value or the shape.
inline std::string operand_text(const graph& network, std::uint32_t value) {
  const value_record& v = network.at(value);
  if (v.role != value_role::constant) return network.value_name(value);
  if (!v.has_scalar) return network.value_name(value) + "[" + to_string(v.type.dims) + "]";
  const bool single = v.type.type == dtype::f32;
  return network.value_name(value) + "=" + (single ? number_text(static_cast<float>(v.scalar)) : number_text(v.scalar));
}

/// The type of a value, or what the options have in its place.
inline std::string type_text(const graph& network, std::uint32_t value, const print_options& options) {
  if (options.types == nullptr || (*options.types)[value].empty()) return to_string(network.type_of(value));
  return (*options.types)[value];
}

/// Adds words to a text, in lines of at most `columns`; a line that continues is indented.
inline void wrap(std::string& text, const std::vector<std::string>& words, std::size_t columns) {
  std::string line = " ";
  for (const std::string& word : words) {
    if (line.find_first_not_of(' ') != std::string::npos && line.size() + 1 + word.size() > columns) {
      text += line + '\n';
      line = "     ";
    }
    line += ' ' + word;
  }
  text += line + '\n';
}

/// "prefix(a, b)suffix" as words that may be parted: the prefix stays with the first, the suffix with the last.
inline void append_list(std::vector<std::string>& words, const std::string& prefix, std::vector<std::string> list,
                        const std::string& suffix) {
  if (list.empty()) list.emplace_back();
  list.front() = prefix + list.front();
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i] += ',';
  list.back() += suffix;
  words.insert(words.end(), list.begin(), list.end());
}

}  // namespace detail

/// One node, without an end of line where it fits into one: "name = kind(operands) {attributes} -> type[shape]".
inline std::string to_string(const graph& network, std::uint32_t node, const print_options& options = {}) {
  const node_record& n = network.node(node);
  const graph_view view = network.view();
  std::vector<std::string> words, names, operands, types;
  for (std::uint32_t i = 0; i < n.outputs; ++i) {
    names.push_back(network.value_name(view.output_of(node, i)));
    types.push_back(detail::type_text(network, view.output_of(node, i), options));
  }
  for (const std::uint32_t value : view.inputs_of(node)) operands.push_back(detail::operand_text(network, value));
  detail::append_list(words, "", names, " =");
  detail::append_list(words, n.kind->name + std::string("("), operands, ")");
  const std::vector<std::string> attributes = detail::attribute_texts(network, node, options.all_attributes);
  if (!attributes.empty()) detail::append_list(words, "{", attributes, "}");
  detail::append_list(words, "-> ", types, "");
  std::string text;
  detail::wrap(text, words, options.columns);
  return text.substr(2, text.size() - 3);
}

/// The first lines of a printed graph: what it holds, what it takes and gives.
inline std::string summary(const graph& network, const print_options& options = {}) {
  const graph_totals totals = totals_of(network);
  const auto count = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::string text = "graph: " + count(totals.nodes, "node") + ", " + count(totals.constants, "constant") + ", " +
                     detail::fixed_text(static_cast<double>(totals.parameters) / 1e6, 2) + " M parameters, " +
                     (totals.concrete ? "" : "at least ") + detail::fixed_text(totals.flops / 1e9, 2) + " GFLOP\n";
  for (const std::uint32_t value : network.inputs())
    detail::wrap(text, {"in  ", network.value_name(value) + ":", detail::type_text(network, value, options)},
                 options.columns);
  for (std::size_t i = 0; i < network.outputs().size(); ++i) {
    const std::uint32_t value = network.outputs()[i];
    detail::wrap(text,
                 {"out ", network.output_name(i) + ":", detail::type_text(network, value, options),
                  "= " + network.value_name(value)},
                 options.columns);
  }
  return text;
}

/// The whole graph: its summary, then a line for each node, and its subgraphs in the same form after the node that
/// owns them.
inline std::string to_string(const graph& network, const print_options& options = {}) {
  std::string text = summary(network, options);
  print_options inside = options;
  inside.types = nullptr;  // those of this graph
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    text += "  " + to_string(network, n, options) + '\n';
    for (std::size_t i = 0; i < network.bodies_of(n).size(); ++i) {
      text += "    subgraph " + std::to_string(i) + " of " + network.node_name(n) + ", a ";
      for (const char c : to_string(*network.bodies_of(n)[i], inside)) {
        text += c;
        if (c == '\n') text += "    ";
      }
      text.resize(text.size() - 4);  // the spaces behind its last line
    }
  }
  return text;
}

inline std::ostream& operator<<(std::ostream& to, const graph& network) { return to << to_string(network); }

}  // namespace collage::inline v0
