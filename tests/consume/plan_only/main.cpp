// Runs a plan that another program made, and checks one number of the answer by hand.
#include <collage/backends/eigen.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/io/ranges_file.hpp>
#include <collage/run/engine.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include "network.hpp"

namespace c = collage;

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const c::graph network = small_network();
  const c::plan plan = c::load_plan(argv[1], network);
  const auto engine = c::engine<c::backend_set<c::eigen>>(network, plan);
  auto context = engine.context();

  const c::tensor x(engine.inputs()[0].type), w(engine.inputs()[1].type), b(engine.inputs()[2].type);
  const c::tensor scores(engine.outputs()[0].type);
  for (float& e : x.as<float>()) e = 0.5F;
  for (float& e : w.as<float>()) e = 0.25F;
  for (float& e : b.as<float>()) e = 2;
  context.run({x, w, b}, {scores});

  for (const float e : scores.as<float>()) {
    if (std::abs(e - 3.0F) > 1e-5F) {  // 8 * 0.5 * 0.25 + 2
      std::fprintf(stderr, "the network's answer is %g, not 3\n", static_cast<double>(e));
      return 1;
    }
  }

  // Range files need no component but io, either.
  const std::string ranges = std::string(argv[1]) + ".ranges";
  c::network_ranges none;
  none.fingerprint = network.fingerprint();
  none.made_by.samples = 1;
  c::save_ranges(ranges, none);
  if (c::load_ranges(ranges, network).made_by.samples != 1) return 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
