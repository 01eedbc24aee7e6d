// Reads the files of placed networks that were published with the Collage paper.
#pragma once

#include "published_costs.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace program::replay {

/// One node of a placement file.
struct placed_node {
  enum class kind { input, constant, call, tuple };
  kind is = kind::call;
  std::string op;                       ///< of a call
  extents shape;                        ///< of inputs and constants; the file states no other
  std::vector<std::uint32_t> operands;  ///< in order; each is an earlier node
  std::uint32_t group = 0;              ///< in the published placement
  std::string backend;                  ///< of that group
};

/// A network with its published placement. Nodes are in topological order.
struct placed_network {
  std::vector<placed_node> nodes;
};

namespace detail {

/// Reads Graphviz text of exactly the form of the published files.
class placement_reader {
 public:
  placement_reader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  placed_network read() {
    expect(next(), "digraph {");
    expect(next(), "\trankdir=BT");
    for (std::string_view line = next(); line != "}"; line = next()) {
      std::string_view rest = line;
      if (rest.empty() || rest.front() != '\t') wrong("neither a node nor an edge");
      rest.remove_prefix(1);
      const std::uint32_t number = take_number(rest);
      if (takes(rest, " -> ")) edge(number, rest);
      else if (takes(rest, " [label=\"")) node(number, rest);
      else wrong("neither a node nor an edge");
    }
    while (at_ < text_.size())
      if (!next().empty()) wrong("text after the closing bracket");
    for (const placed_node& n : found_.nodes)
      if ((n.is == placed_node::kind::call || n.is == placed_node::kind::tuple) && n.operands.empty())
        wrong("the end of the file, but an operator has no operands");
    const auto is_call = [](const placed_node& n) { return n.is == placed_node::kind::call; };
    if (std::ranges::none_of(found_.nodes, is_call)) wrong("the end of the file, but there are no operators");
    return std::move(found_);
  }

 private:
  [[noreturn]] void wrong(const char* what) const {
    throw collage::error(collage::error_kind::invalid_argument, std::string("this is ") + what,
                         file_ + ", line " + std::to_string(line_), "use the published file unchanged");
  }
  std::string_view next() {
    if (at_ >= text_.size()) wrong("the end of the file, but the closing bracket is missing");
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    return line;
  }
  void expect(std::string_view line, std::string_view wanted) const {
    if (line != wanted) wrong("not the beginning of a placement");
  }
  static bool takes(std::string_view& rest, std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
  }
  std::uint32_t take_number(std::string_view& rest) const {
    std::uint32_t number = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (read.ec != std::errc()) wrong("not a number");
    rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
    return number;
  }

  void edge(std::uint32_t from, std::string_view rest) {
    const std::uint32_t to = take_number(rest);
    if (!rest.empty() || to >= found_.nodes.size() || from >= to)
      wrong("an edge whose target is not a later node of the file");
    const placed_node::kind is = found_.nodes[to].is;
    if (is == placed_node::kind::input || is == placed_node::kind::constant) wrong("an edge to an input or a constant");
    found_.nodes[to].operands.push_back(from);
  }

  /// Reads NAME [POSITION, GROUP-BACKEND_PATTERN], then the fields that depend on NAME.
  void node(std::uint32_t number, std::string_view rest) {
    if (number != found_.nodes.size()) wrong("a node out of order");
    placed_node made;
    const std::string_view name = rest.substr(0, rest.find(" ["));
    if (name.empty() || !takes(rest, name) || !takes(rest, " [")) wrong("a node without its position and group");
    if (take_number(rest) != number || !takes(rest, ", ")) wrong("a node whose position is not its number");
    made.group = take_number(rest);
    const std::size_t bar = rest.find("_0-");
    if (!takes(rest, "-") || bar == std::string_view::npos || bar < 2) wrong("a node without a backend and a pattern");
    made.backend = rest.substr(0, bar - 1);
    rest.remove_prefix(bar);
    const std::string_view ends[] = {"](op=", "](fileds=none)", "]:"};
    if (name == "Call") {
      skip_to(rest, ends[0]);
      const std::size_t end = rest.find(')');
      if (end == std::string_view::npos || end == 0) wrong("a call without an operator");
      made.op = rest.substr(0, end);
    } else if (name == "Tuple") {
      skip_to(rest, ends[1]);
      made.is = placed_node::kind::tuple;
    } else {
      skip_to(rest, ends[2]);
      made.is = name == "Constant" ? placed_node::kind::constant : placed_node::kind::input;
      made.shape = tensor(next());
    }
    found_.nodes.push_back(std::move(made));
  }
  void skip_to(std::string_view& rest, std::string_view word) const {
    const std::size_t at = rest.find(word);
    if (at == std::string_view::npos) wrong("a node whose label has the wrong ending");
    rest.remove_prefix(at + word.size());
  }
  extents tensor(std::string_view line) const {
    const std::size_t end = line.find("), float32]\"");
    if (!line.starts_with("Tensor[(") || end == std::string_view::npos) wrong("not a tensor of float32");
    extents shape;
    for (std::string_view rest = line.substr(8, end - 8); !rest.empty();) {
      const std::uint32_t extent = take_number(rest);
      if (extent == 0 || extent > most_number) wrong("a tensor without elements, or too large");
      shape.push_back(extent);
      if (!takes(rest, ", ") && !takes(rest, ",") && !rest.empty()) wrong("not a shape");
    }
    return shape;
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_ = 0;
  placed_network found_;
};

}  // namespace detail

/// Reads the text of a placement file; `file` names it in errors. Throws `collage::error` if anything differs from the
/// published form.
inline placed_network read_placement(std::string_view text, const std::string& file) {
  return detail::placement_reader(text, file).read();
}

}  // namespace program::replay
