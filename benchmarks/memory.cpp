// What arena a run takes, beside the bound that no arena can be smaller than (docs/engine.md, "The arena").
//
// usage: memory [--threads N] [--plans FOLDER] FILE.onnx...     prints a table in Markdown
//   --plans  also the plans FOLDER/NAME.plan.json that were made of the files NAME.onnx, with the backends of the program
// needs: place io onnx onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;
using benchmarks::all_backends;

void print_row(const std::string& name, const std::string& placing, const c::graph& network, const c::plan& made) {
  const c::dynamic_engine engine = c::engine<all_backends>(network, made);
  const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::printf("| %s | %s | %zu | %.3f | %.3f | %.3f |\n", name.c_str(), placing.c_str(), engine.steps().size(),
              megabytes(engine.arena_bytes()), megabytes(engine.arena_lower_bound()),
              static_cast<double>(engine.arena_bytes()) / static_cast<double>(engine.arena_lower_bound()));
  std::fflush(stdout);
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  const int threads = static_cast<int>(line.number("--threads", 1));
  const std::string plans = line.text("--plans", "");
  std::printf("| network | placing | steps | arena MB | bound MB | of bound |\n|---|---|--:|--:|--:|--:|\n");
  for (const std::string& file : line.rest()) {
    const std::string name = std::filesystem::path(file).stem().string();
    c::graph network = c::onnx::load(file);
    c::fill_constants(network);
    network = c::optimise(network);
    c::place_options how;
    how.network = name;
    how.threads = threads;
    how.costs = c::placing_costs::none;
    print_row(name, "priority list", network, c::place<all_backends>(network, how));
    for (const c::backend_entry& b : c::table_of<all_backends>) {
      how.backends = {b.name};
      try {
        print_row(name, std::string(b.name) + " alone", network, c::place<all_backends>(network, how));
      } catch (const c::error&) {  // it does not take every node
      }
    }
    const std::string plan = plans + "/" + name + ".plan.json";
    if (!plans.empty() && std::filesystem::exists(plan))
      print_row(name, "measured plan", network, c::load_plan(plan, network));
  }
  return 0;
}

}  // namespace

int main(int count, char** words) { return benchmarks::run("memory", measure, count, words); }
