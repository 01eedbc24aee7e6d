// A network as Graphviz text.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>

#include <string>

namespace program {

/// Writes a file for `dot -Tsvg FILE`. With `groups`, each group has its own colour, and its last node shows the
/// backend and the cost.
void write_dot_file(const std::string& file, const collage::graph& network, const collage::placement* groups = nullptr);

}  // namespace program
