#include "everything.hpp"

/// The number of nodes of a built-in network.
std::size_t nodes_of(const char* name) {
  collage::graph_builder g;
  if (!collage::zoo::build(name, g)) return 0;
  return g.finish().nodes().size();
}
