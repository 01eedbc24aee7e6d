// Graphs as Graphviz text, written by Boost.Graph: `dot -Tsvg network.dot > network.svg`.
#pragma once

#include <boost/graph/graphviz.hpp>
#include <collage/graph/boost.hpp>
#include <collage/graph/print.hpp>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>

namespace collage::inline v0 {

/// A note on one node, shown with its name and operator kind.
struct dot_note {
  std::int32_t group = -1;  ///< the nodes of a group share a colour; negative: no colour
  std::string label;        ///< a further line, such as the node's backend and its time
};

struct dot_options {
  std::span<const dot_note> notes;  ///< one per node, or none
  bool types = true;                ///< whether edges show the type of their value
};

namespace detail {

/// Text for a quoted label.
inline std::string dot_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return escaped;
}

/// Light colours (ColorBrewer's Set3), so that black text stays readable. They repeat after twelve groups.
inline const char* dot_colour(std::int32_t group) {
  static constexpr const char* colours[] = {"#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462",
                                            "#b3de69", "#fccde5", "#d9d9d9", "#bc80bd", "#ccebc5", "#ffed6f"};
  return colours[static_cast<std::size_t>(group) % (sizeof(colours) / sizeof(colours[0]))];
}

inline std::string dot_type(const graph& network, std::uint32_t value, const dot_options& options) {
  return options.types ? "[label=\"" + to_string(network.type_of(value)) + "\"]" : std::string();
}

}  // namespace detail

/// Writes a graph: boxes for nodes, ellipses for the graph's inputs and outputs, and an edge for each use of a value. Constants
/// are not drawn. Throws if there are notes, but not one for each node.
inline void write_dot(std::ostream& to, const graph& network, const dot_options& options = {}) {
  if (!options.notes.empty() && options.notes.size() != network.nodes().size())
    throw error(error_kind::invalid_argument,
                std::to_string(options.notes.size()) + " notes were given for " +
                    std::to_string(network.nodes().size()) + " nodes",
                "write_dot");

  const auto node = [&](std::ostream& out, std::uint32_t n) {
    const std::string& name = network.node_name(n);
    const std::string kind = network.node(n).kind->name;
    std::string label = detail::dot_escaped(name.starts_with(kind + "_") ? name : kind + "\n" + name);
    std::string style;
    if (!options.notes.empty()) {
      const dot_note& note = options.notes[n];
      if (!note.label.empty()) label += "\\n" + detail::dot_escaped(note.label);
      if (note.group >= 0) style = std::string(", style=filled, fillcolor=\"") + detail::dot_colour(note.group) + "\"";
    }
    out << " [label=\"" << label << "\"" << style << "]";
  };
  const auto edge = [&](std::ostream& out, const graph_edge& e) {
    out << detail::dot_type(network, value_of(e, network), options);
  };
  const auto rest = [&](std::ostream& out) {
    out << "node [shape=box, fontname=\"Helvetica\"];\nedge [fontname=\"Helvetica\", fontsize=10];\n";
    const auto terminal = [&](const std::string& id, const std::string& name) {
      out << id << " [shape=ellipse, label=\"" << detail::dot_escaped(name) << "\"];\n";
    };
    for (const std::uint32_t value : network.inputs()) {
      const std::string id = "value" + std::to_string(value);
      terminal(id, network.value_name(value));
      for (const use& u : network.view().uses_of(value))
        out << id << "->" << u.node << " " << detail::dot_type(network, value, options) << ";\n";
    }
    for (std::size_t i = 0; i < network.outputs().size(); ++i) {
      const std::uint32_t value = network.outputs()[i];
      const std::string id = "output" + std::to_string(i);
      terminal(id, network.output_name(i));
      if (network.at(value).role == value_role::constant) continue;
      const std::int32_t producer = network.at(value).producer;
      out << (producer >= 0 ? std::to_string(producer) : "value" + std::to_string(value)) << "->" << id << " "
          << detail::dot_type(network, value, options) << ";\n";
    }
  };
  boost::write_graphviz(to, network, node, edge, rest);
}

}  // namespace collage::inline v0
