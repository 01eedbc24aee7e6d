// Keep-lists: parts of a network that stay in float32 where lower precision is allowed elsewhere (docs/precision.md).
//
// Declarations only. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/run/precision.hpp>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// Nodes of a network. A kernel that runs any of them reads and writes float32, and does not round weights.
struct kept_part {
  /// The name of a node; `*` stands for any characters. Or `kind:softmax`: the nodes of an operator kind. Or `kind:matmul+softmax`: the
  /// nodes of all such chains, where each operator reads a result of the one before it.
  std::string what;
  /// Where this is not empty, the part has the nodes of all its matches, and `what` is a name for people.
  pattern_view pattern = {};
};

/// The nodes of all matches of a pattern.
template <pattern_type P>
kept_part kept_pattern() {
  return {std::string("pattern:") + P::name, nodes_of<P>};
}

/// By node: whether it is in one of the parts. Nodes of subgraphs may be named; they are in float32 anyway. Errors: a part that names
/// nothing in the network, with the nearest names.
std::vector<bool> kept_nodes(const graph& network, std::span<const kept_part> parts);

/// As precision_text, with the parts: "bf16, error at most 1 %, kept in fp32: conv_1, kind:softmax". Their order does not matter.
std::string precision_text(const precision_options& how, std::span<const kept_part> kept);

/// The names of the parts in such a text; none if it has none. A name with a comma and a space in it becomes several.
std::vector<std::string> kept_in(const std::string& precision);

}  // namespace collage::inline v0
