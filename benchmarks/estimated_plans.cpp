// How good plans by estimated costs are, and how long they take (docs/measuring.md, "Costs of shapes that were not measured").
//
// usage: estimated_plans [--threads N] [--budget S] [--store FILE] NETWORK MEASURED ASKED     prints a table in Markdown
//   NETWORK   bert:HIDDENxLAYERS, whose extents are tokens, or FILE.onnx:INPUT=1x3x48x@, whose extents replace each @
//   MEASURED  extents at which the network is tuned first, as in 64,128,256; they share a store
//   ASKED     extents at which it is placed by estimates, and tuned with a copy of the store for comparison
//   The last column is for placing by estimates after that, with the costs of all kernels that tuning measured at this extent.
//   --place-only TIMES  places so many times by estimates, and tunes nothing
// needs: place io onnx onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/every_backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx.hpp>
#include <collage/measure/store.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/worker.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/tensor.hpp>
#include <collage/zoo/bert.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;

std::vector<std::int64_t> numbers_in(const std::string& text, char between) {
  std::vector<std::int64_t> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    list.push_back(std::strtol(text.substr(at, end - at).c_str(), nullptr, 10));
    at = end + 1;
  }
  return list;
}

c::graph bert(std::int64_t tokens, std::int64_t hidden, std::int64_t layers) {
  c::graph_builder g;
  c::value x = g.input("input", {c::dtype::f32, {1, tokens, hidden}});
  c::zoo::parts::transformer<c::graph_builder> t{
      g, {.tokens = tokens, .hidden = hidden, .heads = hidden / 64, .inner = 4 * hidden}, 1e-6};
  for (std::int64_t i = 0; i < layers; ++i) {
    const c::label layer = c::label() + static_cast<std::size_t>(i);
    x = g(c::ops::add, x, t.attention(layer, t.norm(x)));
    x = g(c::ops::add, x, t.down(layer, g(c::ops::relu, t.up(layer, t.norm(x)))));
  }
  g.output("output", x);
  return g.finish();
}

c::graph network_at(const std::string& which, std::int64_t extent) {
  c::graph network;
  if (which.starts_with("bert:")) {
    const std::vector<std::int64_t> of = numbers_in(which.substr(5), 'x');
    network = bert(extent, of.at(0), of.at(1));
  } else {
    const std::size_t colon = which.rfind(".onnx:") + 5, equals = which.rfind('=');
    std::string dims = which.substr(equals + 1);
    for (std::size_t at; (at = dims.find('@')) != std::string::npos;) dims.replace(at, 1, std::to_string(extent));
    c::shape shape;
    for (const std::int64_t one : numbers_in(dims, 'x')) shape.push_back(one);
    c::onnx::load_options how;
    how.shapes.push_back({which.substr(colon + 1, equals - colon - 1), shape});
    network = c::onnx::load(which.substr(0, colon), how);
  }
  c::fill_constants(network);
  return c::optimise(network);
}

/// An engine with inputs and outputs.
class runner {
 public:
  runner(const c::graph& network, const c::plan& made) : engine_(c::engine<c::every_backend>(network, made)) {
    std::mt19937_64 random(1);
    for (const std::uint32_t v : network.inputs()) {
      inputs_.emplace_back(network.type_of(v));
      c::fill_random(inputs_.back(), random);
    }
    for (const std::uint32_t v : network.outputs()) outputs_.emplace_back(network.type_of(v));
    for (const c::tensor& t : inputs_) in_.push_back(t);
    for (c::tensor& t : outputs_) out_.push_back(t);
  }
  double run_ms() {
    const double start = c::detail::now_ms();
    context_.run(in_, out_);
    return c::detail::now_ms() - start;
  }

 private:
  c::dynamic_engine engine_;
  c::dynamic_context context_{engine_.context()};
  std::vector<c::tensor> inputs_, outputs_;
  std::vector<c::const_tensor_view> in_;
  std::vector<c::tensor_view> out_;
};

double median(std::vector<double> list) {
  std::ranges::nth_element(list, list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2));
  return list[list.size() / 2];
}

/// The median time of the first by the second in turns, over some seconds.
double ratio_of(runner& first, runner& second, double seconds, double& second_ms) {
  for (int i = 0; i < 3; ++i) (void)(first.run_ms() + second.run_ms());
  std::vector<double> ratios, times;
  const double until = c::detail::now_ms() + 1e3 * seconds;
  while (c::detail::now_ms() < until || ratios.size() < 20) {
    std::vector<double> a, b;
    for (int i = 0; i < 5; ++i) a.push_back(first.run_ms());
    for (int i = 0; i < 5; ++i) b.push_back(second.run_ms());
    times.push_back(median(b));
    ratios.push_back(median(a) / times.back());
  }
  second_ms = median(times);
  return median(ratios);
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  c::place_options how;
  how.threads = static_cast<int>(line.number("--threads", 1));
  how.budget_s = static_cast<double>(line.number("--budget", 60));
  how.regions.seconds = 0;
  const std::size_t times = line.number("--place-only", 0);
  how.store = line.text("--store", "estimated_plans.db");
  const std::string store = how.store, copy = store + ".copy";
  if (line.rest().size() != 3)
    throw c::error(c::error_kind::invalid_argument, "needs a network and two lists of extents");
  const std::string which = line.rest()[0];
  for (const std::int64_t extent : numbers_in(line.rest()[1], ',')) {
    if (times != 0) break;
    const c::placed_plan made = c::place<c::every_backend>(network_at(which, extent), how);
    std::fprintf(stderr, "tuned at %ld: %.3f ms\n", static_cast<long>(extent), made.chosen.cost_ms);
  }
  double start = c::detail::now_ms();
  const c::cost_index index(store);
  std::printf("%zu costs, read in %.1f ms\n\n", index.size(), c::detail::now_ms() - start);
  std::printf(
      "| extent | operators | kernels measured, interpolated, modelled, refused | place ms | by estimate ms | tuned ms | slower | with all costs |\n");
  std::printf("|--:|--:|---|--:|--:|--:|--:|--:|\n");
  for (const std::int64_t extent : numbers_in(line.rest()[2], ',')) {
    const c::graph network = network_at(which, extent);
    c::place_options quickly = how;
    quickly.costs = c::placing_costs::estimated;
    quickly.index = &index;
    quickly.check_s = 0;
    quickly.store = {};
    c::placed_plan estimated;
    double took_ms = 1e300;
    for (std::size_t i = 0; i < std::max<std::size_t>(times, 3); ++i) {
      start = c::detail::now_ms();
      estimated = c::place<c::every_backend>(network, quickly);
      took_ms = std::min(took_ms, c::detail::now_ms() - start);
    }
    if (times != 0) {
      std::printf("| %ld | %zu | | %.1f | | | | |\n", static_cast<long>(extent), network.nodes().size(), took_ms);
      continue;
    }
    for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(copy + part);
    (void)c::cost_store(copy).merge_from(store);
    how.store = copy;
    const c::placed_plan tuned = c::place<c::every_backend>(network, how);
    quickly.index = nullptr;
    quickly.store = copy;
    const c::placed_plan known = c::place<c::every_backend>(network, quickly);
    runner first(network, estimated), second(network, tuned), third(network, known);
    double tuned_ms = 0;
    const double ratio = ratio_of(first, second, 5, tuned_ms), of_known = ratio_of(third, second, 5, tuned_ms);
    const c::place_report& r = estimated.report;
    std::printf("| %ld | %zu | %zu, %zu, %zu, %zu | %.1f | %.3f | %.3f | %+.1f %% | %+.1f %% |\n",
                static_cast<long>(extent), network.nodes().size(), r.from_store, r.interpolated, r.modelled, r.refused,
                took_ms, estimated.chosen.cost_ms, tuned_ms, 100 * (ratio - 1), 100 * (of_known - 1));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (c::worker<c::every_backend>(count, words)) return 0;
  return benchmarks::run("estimated_plans", measure, count, words);
}
