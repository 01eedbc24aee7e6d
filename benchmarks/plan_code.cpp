// How long the generated code of a whole plan takes: generating all kernels, and making them executable.
//
// usage: plan_code [--threads N] [NAME | FILE.onnx...]     prints a table in Markdown; built-in networks have names
//
// Each network is placed by the order of the backends, generated kernels first, with their first configurations and with the
// schemes that have the most kernels. Then its engine is built. Times are the shortest of several.
// needs: place io onnx jit onednn openblas eigen stacked portable
#include <collage/backends/jit.hpp>
#include <collage/io/onnx.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "jit/code_totals.hpp"
#include "placing.hpp"

namespace {

namespace c = collage;
namespace jit = collage::detail::jit;

/// The configurations of two levels of a scheme first, and those of one level before others.
struct many_kernels : c::jit {
  static void configurations(const c::any_match& m, c::configuration_list& to) {
    c::configuration_list all;
    c::jit::configurations(m, all);
    for (const char* name : {" two-", " strassen", " winograd", ""})
      for (const c::configuration& how : all)
        if (how.text().find(name) != std::string::npos) to.add(how.text());
  }
};

struct sample {
  double code_ms = 1e30, build_ms = 1e30;
  std::uint64_t kernels = 0, bytes = 0;
};

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

template <class Backend>
void print_row(const std::string& name, const char* which, const c::graph& network, int threads) {
  using set = c::backend_set<Backend, c::onednn, c::eigen, c::portable>;
  c::place_options how;
  how.network = name;
  how.threads = threads;
  how.costs = c::placing_costs::none;
  how.algorithms = c::algorithms::all;
  how.memory.ratio = 100;
  const c::plan made = c::place<set>(network, how);
  const auto is_generated = [](const c::plan_group& g) { return g.backend() == "jit"; };
  sample best;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t kernels = jit::totals.kernels, bytes = jit::totals.bytes, spent = jit::totals.nanoseconds;
    const auto begin = std::chrono::steady_clock::now();
    const c::dynamic_engine engine = c::engine<set>(network, made);
    best.build_ms = std::min(best.build_ms, ms_since(begin));
    best.code_ms = std::min(best.code_ms, static_cast<double>(jit::totals.nanoseconds - spent) / 1e6);
    best.kernels = jit::totals.kernels - kernels;
    best.bytes = jit::totals.bytes - bytes;
  }
  std::printf("| %s | %s | %td | %llu | %.0f | %.2f | %.0f |\n", name.c_str(), which,
              std::ranges::count_if(made.chosen.groups, is_generated), static_cast<unsigned long long>(best.kernels),
              static_cast<double>(best.bytes) / 1e3, best.code_ms, best.build_ms);
  std::fflush(stdout);
}

c::graph network_of(const std::string& name) {
  if (!name.ends_with(".onnx")) return benchmarks::network_called(name);
  c::graph network = c::onnx::load(name);
  c::fill_constants(network);
  return c::optimise(network);
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  const int threads = static_cast<int>(line.number("--threads", 1));
  std::vector<std::string> names = line.rest();
  if (names.empty()) names = {"resnet50", "bert-base-128", "mobilenet-v2"};
  std::printf(
      "| network | configurations | steps of jit | kernels | KB | code ms | engine ms |\n"
      "|---|---|--:|--:|--:|--:|--:|\n");
  for (const std::string& name : names) {
    const c::graph network = network_of(name);
    const std::string shown = std::filesystem::path(name).stem().string();
    print_row<c::jit>(shown, "first", network, threads);
    print_row<many_kernels>(shown, "schemes first", network, threads);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return benchmarks::run("plan_code", measure, argc, argv); }
