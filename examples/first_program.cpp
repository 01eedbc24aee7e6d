// The program of docs/start-cpp.md: places a built-in network over two libraries by measurement, keeps the plan, and runs it.
// needs: onednn eigen io
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/collage.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/waiting.hpp>
#include <collage/zoo/all.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

namespace c = collage;

using backends = c::backend_set<c::onednn, c::eigen>;  // a type; add backends of your own to it

// Measures for 20 seconds at the first start. Later starts read the plan, which takes milliseconds.
c::plan plan_of(const c::graph& network, const std::string& file) {
  try {
    if (std::filesystem::exists(file)) return c::load_plan<backends>(file, network);
  } catch (const c::error& e) {
    std::fprintf(stderr, "%s\n", e.what());  // of another machine, or of other libraries: measure again
  }
  const auto show = [](const c::place_progress& now) { std::fprintf(stderr, "\r%-70.70s", now.what.c_str()); };
  const c::plan plan = c::place<backends>(network, {.network = "mobilenet-v2", .budget_s = 20, .progress = show});
  std::fputc('\n', stderr);
  c::save_plan(plan, network, file);
  return plan;
}

int main() try {
  const c::brief_waiting waiting;  // idle threads sleep, which matters beside other programs
  c::graph_builder builder;
  c::zoo::mobilenet_v2(builder);  // the network of an ONNX file comes from c::onnx::load
  c::graph network = builder.finish();
  c::fill_constants(network);  // random weights, because this network has none

  const c::plan plan = plan_of(network, "mobilenet.plan.json");
  const c::dynamic_engine engine = c::engine<backends>(network, plan);  // immutable: threads share it
  c::dynamic_context context = engine.context();                        // memory for one run at a time

  const c::tensor image({c::dtype::f32, {1, 3, 224, 224}});
  const c::tensor scores({c::dtype::f32, {1, 1000}});
  image.as<float>()[0] = 1;
  context.run({image}, {scores});

  for (const c::plan_run& run : plan.runs) std::printf("%-8s %7.3f ms\n", run.name.c_str(), run.median_ms);
  std::printf("%zu kernels; the first score is %g\n", engine.steps().size(), scores.as<float>()[0]);
} catch (const c::error& e) {
  std::fprintf(stderr, "%s\n", e.what());  // one sentence: where, what, and what to do
  return e.exit_code();
}
