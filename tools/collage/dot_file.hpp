// A network as Graphviz text.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>

#include <string>

namespace program {

/// Writes FILE for `dot -Tsvg FILE`. With a plan, every group has a colour, and its last node says who runs it.
void write_dot_file(const std::string& file, const collage::graph& network, const collage::placement* groups = nullptr);

}  // namespace program
