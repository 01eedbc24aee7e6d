// Places the small network and writes the plan: what happens once, on a machine with everything. Built by collage
// itself.
#include <collage/backends/eigen.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>

#include <cstdio>
#include <exception>

#include "network.hpp"

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const collage::graph network = small_network();
  const collage::plan plan =
      collage::place<collage::backend_set<collage::eigen>>(network, {.threads = 1, .comparing = {.seconds = 0.05}});
  collage::save_plan(plan, network, argv[1]);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
