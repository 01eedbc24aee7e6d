// How good plans by estimated costs are, and how long they take (docs/measuring.md, "Costs of shapes that were not measured").
//
// usage: estimated_plans [--threads N] [--budget S] [--store FILE] [--backends A,B] [--json] NETWORK MEASURED ASKED
//   NETWORK   bert:HIDDENxLAYERS, whose extents are tokens, or FILE.onnx:INPUT=1x3x48x@, whose extents replace each @
//   MEASURED  extents at which the network is tuned first, as in 64,128,256; they share a store. '': none
//   ASKED     extents at which it is placed by estimates, and tuned with a copy of the store for comparison
//   An extent for a network with several @ is 8x128: a number for each.
//   Prints a table in Markdown, or a line of JSON for each asked extent. The last column is for placing by estimates after tuning,
//   with the costs of all kernels that it measured at this extent.
//   --place-only TIMES  places so many times by estimates, and tunes nothing
// needs: place io onnx onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/every_backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/store.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/worker.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/waiting.hpp>
#include <collage/zoo/bert.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    list.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

std::vector<std::int64_t> numbers_in(const std::string& text, char between) {
  std::vector<std::int64_t> list;
  for (const std::string& part : parts_of(text, between)) list.push_back(std::strtol(part.c_str(), nullptr, 10));
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

/// The extent is one number, or one for each open dimension.
c::graph network_at(const std::string& which, const std::string& extent) {
  const std::vector<std::string> numbers = parts_of(extent, 'x');
  if (numbers.empty()) throw c::error(c::error_kind::invalid_argument, "is empty", "an extent", "write 64 or 8x64");
  c::graph network;
  if (which.starts_with("bert:")) {
    const std::vector<std::int64_t> of = numbers_in(which.substr(5), 'x');
    network = bert(numbers_in(extent, 'x').front(), of.at(0), of.at(1));
  } else {
    const std::size_t colon = which.rfind(".onnx:") + 5, equals = which.rfind('=');
    std::string dims = which.substr(equals + 1);
    std::size_t next = 0;
    for (std::size_t at; (at = dims.find('@')) != std::string::npos;)
      dims.replace(at, 1, numbers[std::min(next++, numbers.size() - 1)]);
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

double median(const std::vector<double>& list) { return c::summarise(list).median_ms; }

/// The time of the first by the second in turns, over some seconds.
c::paired_ratio ratio_of(runner& first, runner& second, double seconds, double& second_ms) {
  double one_ms = 0;
  for (int i = 0; i < 3; ++i) one_ms = std::max(first.run_ms(), second.run_ms());
  const int runs = std::clamp(static_cast<int>(100 / one_ms), 1, 5);  // of each in a round
  std::vector<double> firsts, seconds_ms;
  const double until = c::detail::now_ms() + 1e3 * seconds;
  while (c::detail::now_ms() < until || firsts.size() < 8) {
    std::vector<double> a, b;
    for (int i = 0; i < runs; ++i) a.push_back(first.run_ms());
    for (int i = 0; i < runs; ++i) b.push_back(second.run_ms());
    firsts.push_back(median(a));
    seconds_ms.push_back(median(b));
  }
  second_ms = median(seconds_ms);
  return c::compare_paired(firsts, seconds_ms);
}

/// A plan by estimates at one extent, compared with plans that know more.
struct finding {
  std::string extent;
  std::size_t operators = 0;
  c::placed_plan estimated;
  double took_ms = 1e300;  // the fastest of some placings
  double tuned_ms = 0;
  c::paired_ratio of_tuned, known_of_tuned;

  void print_row() const {
    const c::place_report& r = estimated.report;
    std::printf("| %s | %zu | %zu, %zu, %zu, %zu | %.1f | %.3f |", extent.c_str(), operators, r.from_store,
                r.interpolated, r.modelled, r.refused, took_ms, estimated.chosen.cost_ms);
    if (of_tuned.rounds == 0) std::printf(" | | |\n");  // placed only
    else
      std::printf(" %.3f | %+.1f %% | %+.1f %% |\n", tuned_ms, 100 * (of_tuned.median - 1),
                  100 * (known_of_tuned.median - 1));
  }
  void print_json() const {
    const c::place_report& r = estimated.report;
    const auto ratio = [](const c::paired_ratio& one) {
      return nlohmann::json{{"median", one.median}, {"low", one.low}, {"high", one.high}, {"rounds", one.rounds}};
    };
    const nlohmann::json line = {{"extent", extent},
                                 {"operators", operators},
                                 {"measured", r.from_store},
                                 {"interpolated", r.interpolated},
                                 {"modelled", r.modelled},
                                 {"refused", r.refused},
                                 {"place_ms", took_ms},
                                 {"estimated_ms", estimated.chosen.cost_ms},
                                 {"tuned_ms", tuned_ms},
                                 {"ratio", ratio(of_tuned)},
                                 {"known_ratio", ratio(known_of_tuned)}};
    std::printf("%s\n", line.dump().c_str());
  }
};

/// Places by estimates, so many times.
finding placed_at(const std::string& extent, const c::graph& network, const c::place_options& quickly,
                  std::size_t times) {
  finding found;
  found.extent = extent;
  found.operators = network.nodes().size();
  for (std::size_t i = 0; i < times; ++i) {
    const double start = c::detail::now_ms();
    found.estimated = c::place<c::every_backend>(network, quickly);
    found.took_ms = std::min(found.took_ms, c::detail::now_ms() - start);
  }
  return found;
}

/// Tunes the network with a copy of the store, and runs the plans in turns.
void compare(finding& found, const c::graph& network, c::place_options how, c::place_options quickly) {
  const std::string copy = how.store + ".copy";
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(copy + part);
  (void)c::cost_store(copy).merge_from(how.store);
  how.store = copy;
  const c::placed_plan tuned = c::place<c::every_backend>(network, how);
  quickly.index = nullptr;
  quickly.store = copy;
  const c::placed_plan known = c::place<c::every_backend>(network, quickly);
  runner first(network, found.estimated), second(network, tuned), third(network, known);
  found.of_tuned = ratio_of(first, second, 5, found.tuned_ms);
  found.known_of_tuned = ratio_of(third, second, 5, found.tuned_ms);
}

void print_heading(const c::cost_index& index, double read_ms) {
  std::printf("%zu costs, read in %.1f ms\n\n", index.size(), read_ms);
  std::printf(
      "| extent | operators | kernels measured, interpolated, modelled, refused | place ms | by estimate ms | tuned ms | slower | with all costs |\n");
  std::printf("|--:|--:|---|--:|--:|--:|--:|--:|\n");
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  c::place_options how;
  how.threads = static_cast<int>(line.number("--threads", 1));
  how.budget_s = static_cast<double>(line.number("--budget", 60));
  how.regions.seconds = 0;
  how.backends = parts_of(line.text("--backends", ""), ',');
  const std::size_t times = line.number("--place-only", 0);
  const bool json = line.flag("--json");
  how.store = line.text("--store", "estimated_plans.db");
  if (line.rest().size() != 3)
    throw c::error(c::error_kind::invalid_argument, "needs a network and two lists of extents");
  const std::string which = line.rest()[0];
  for (const std::string& extent : parts_of(line.rest()[1], ',')) {
    if (times != 0) break;
    const c::placed_plan made = c::place<c::every_backend>(network_at(which, extent), how);
    std::fprintf(stderr, "tuned at %s: %.3f ms\n", extent.c_str(), made.chosen.cost_ms);
  }
  const double start = c::detail::now_ms();
  const c::cost_index index(how.store);
  if (!json) print_heading(index, c::detail::now_ms() - start);
  c::place_options quickly = how;
  quickly.costs = c::placing_costs::estimated;
  quickly.index = &index;
  quickly.check_s = 0;
  quickly.store = {};
  std::vector<double> losses;
  for (const std::string& extent : parts_of(line.rest()[2], ',')) {
    const c::graph network = network_at(which, extent);
    finding found = placed_at(extent, network, quickly, std::max<std::size_t>(times, 3));
    if (times == 0) compare(found, network, how, quickly);
    losses.push_back(100 * (found.of_tuned.median - 1));
    if (json) found.print_json();
    else found.print_row();
    std::fflush(stdout);
  }
  if (times == 0 && !json && !losses.empty())
    std::printf("\nslower by %+.1f %% in the median, and by %+.1f %% at most\n", median(losses),
                *std::ranges::max_element(losses));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const c::brief_waiting beside_others;  // as in the program, whose store serves, and in its workers
  if (c::worker<c::every_backend>(count, words)) return 0;
  return benchmarks::run("estimated_plans", measure, count, words);
}
