// Places a built-in network over two libraries by measurement, runs it, and shows what runs where.
// needs: onednn eigen
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/collage.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/zoo/all.hpp>
#include <cstdio>

namespace c = collage;

using backends = c::backend_set<c::onednn, c::eigen>;  // static composition; add your own

int main() try {
  c::graph_builder builder;
  c::zoo::mobilenet_v2(builder);
  c::graph network = builder.finish();
  c::fill_constants(network);

  const c::plan plan = c::place<backends>(network, {.network = "mobilenet-v2", .budget_s = 20});  // by measurement
  const c::dynamic_engine engine = c::engine<backends>(network, plan);  // immutable, shareable
  c::dynamic_context context = engine.context();                        // memory for one run at a time

  const c::tensor image({c::dtype::f32, {1, 3, 224, 224}});
  const c::tensor scores({c::dtype::f32, {1, 1000}});
  context.run({image}, {scores});

  for (const c::plan_run& run : plan.runs) std::printf("%-8s %7.3f ms\n", run.name.c_str(), run.median_ms);
  std::printf("%zu kernels, %.1f MB for intermediate values\n", engine.steps().size(),
              double(engine.arena_bytes()) / 1e6);
} catch (const c::error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return e.exit_code();
}
