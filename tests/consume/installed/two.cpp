#include <cstdio>
#include <exception>

#include "everything.hpp"

std::size_t nodes_of(const char* name);

int main() try {
  collage::graph_builder g;
  collage::zoo::build("bert-paper", g);
  const std::size_t here = g.finish().nodes().size(), there = nodes_of("bert-paper");
  if (here == 0 || here != there) {
    std::fprintf(stderr, "one unit counts %zu nodes, the other %zu\n", here, there);
    return 1;
  }
#if WITH_EIGEN
  // The backend's library is linked, not only its header there.
  if (!collage::eigen::probe().available) return 1;
#endif
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
