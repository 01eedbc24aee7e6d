// Whether plans hold up where shapes are awkward: primes, one, three channels, even windows, strides above the window, dilation.
// Small networks, a fixed list and random ones, are placed with all backends, and each plan runs against oneDNN alone, in turns.
//
// usage: awkward [--threads N] [--random N] [--seed N] [--seconds N] [--store FILE]     prints a table in Markdown
//   --random   so many random convolutions beside the list (20), by --seed (1)
//   --seconds  how long a plan runs against oneDNN (2)
//   --store    where costs are kept; nowhere if not given
// needs: place io onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/monitor.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_fit.hpp>
#include <collage/run/processor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
using benchmarks::all_backends;
using c::graph_builder;
using c::shape;
using c::value;

c::tensor_type f32(const shape& dims) { return {c::dtype::f32, dims}; }
value input(graph_builder& g, const shape& dims) { return g.input("x", f32(dims)); }
value weights(graph_builder& g, const char* name, const shape& dims) {
  return g.constant(name, f32(dims), c::uniform{-0.5, 0.5});
}

/// A convolution of a square window with bias and relu, as networks have them.
struct convolution {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1, kernels = 1, window = 1, stride = 1, dilation = 1,
               groups = 1, before = 0, behind = 0;

  std::string text() const {
    std::string list = "conv " + std::to_string(batch) + "x" + std::to_string(channels) + "x" + std::to_string(height) +
                       "x" + std::to_string(width) + " to " + std::to_string(kernels) + ", window " +
                       std::to_string(window);
    if (stride != 1) list += ", stride " + std::to_string(stride);
    if (dilation != 1) list += ", dilation " + std::to_string(dilation);
    if (groups != 1) list += ", groups " + std::to_string(groups);
    if (before != 0 || behind != 0) list += ", pads " + std::to_string(before) + " and " + std::to_string(behind);
    return list;
  }
  bool fits() const {
    const std::int64_t reach = dilation * (window - 1) + 1;
    return std::min(height, width) + before + behind >= reach && channels % groups == 0 && kernels % groups == 0;
  }
  value operator()(graph_builder& g) const {
    const value x = input(g, {batch, channels, height, width});
    const value w = weights(g, "w", {kernels, channels / groups, window, window});
    return g(op::relu, g(op::conv, x, w, weights(g, "b", {kernels}),
                         {.groups = groups,
                          .strides = {stride, stride},
                          .dilations = {dilation, dilation},
                          .pads_begin = {before, before},
                          .pads_end = {behind, behind}}));
  }
};

struct test_case {
  std::string name;
  std::function<value(graph_builder&)> build;
};

std::vector<test_case> listed() {
  std::vector<test_case> list;
  for (const convolution& one : std::vector<convolution>{
           {.channels = 3,
            .height = 227,
            .width = 227,
            .kernels = 61,
            .window = 7,
            .stride = 2,
            .before = 3,
            .behind = 3},
           {.channels = 13, .height = 31, .width = 29, .kernels = 17, .window = 3, .before = 1, .behind = 1},
           {.channels = 37, .height = 53, .width = 53, .kernels = 41, .window = 3, .before = 1, .behind = 1},
           {.channels = 32, .height = 40, .width = 40, .kernels = 48, .window = 2},
           {.channels = 19,
            .height = 33,
            .width = 33,
            .kernels = 23,
            .window = 4,
            .stride = 2,
            .before = 1,
            .behind = 2},
           {.channels = 24, .height = 61, .width = 61, .kernels = 40, .window = 3, .stride = 5},
           {.channels = 64, .height = 41, .width = 41, .kernels = 64, .window = 1, .stride = 3},
           {.channels = 29,
            .height = 37,
            .width = 37,
            .kernels = 31,
            .window = 3,
            .dilation = 3,
            .before = 3,
            .behind = 3},
           {.channels = 1, .height = 101, .width = 103, .kernels = 7, .window = 5, .before = 2, .behind = 2},
           {.channels = 53, .height = 47, .width = 43, .kernels = 1, .window = 1},
           {.channels = 1, .height = 1, .width = 1, .kernels = 1, .window = 1},
           {.channels = 997, .height = 1, .width = 1, .kernels = 991, .window = 1},
           {.channels = 37,
            .height = 59,
            .width = 59,
            .kernels = 37,
            .window = 3,
            .groups = 37,
            .before = 1,
            .behind = 1},
           {.channels = 45,
            .height = 28,
            .width = 28,
            .kernels = 30,
            .window = 3,
            .groups = 15,
            .before = 1,
            .behind = 1},
           {.batch = 3,
            .channels = 11,
            .height = 23,
            .width = 23,
            .kernels = 13,
            .window = 5,
            .before = 2,
            .behind = 2},
           {.channels = 3, .height = 113, .width = 113, .kernels = 24, .window = 11, .stride = 4}})
    list.push_back({one.text(), one});
  list.push_back({"conv_transpose 1x17x19x19 to 13, window 3, stride 2", [](graph_builder& g) {
                    return g(op::conv_transpose, input(g, {1, 17, 19, 19}), weights(g, "w", {17, 13, 3, 3}),
                             {.strides = {2, 2}});
                  }});
  list.push_back({"max_pool 1x61x73x71, window 3, stride 2", [](graph_builder& g) {
                    return g(op::max_pool, input(g, {1, 61, 73, 71}), {.window = {3, 3}, .strides = {2, 2}});
                  }});
  list.push_back({"average_pool 1x37x49x47, window 2, stride 5", [](graph_builder& g) {
                    return g(op::average_pool, input(g, {1, 37, 49, 47}), {.window = {2, 2}, .strides = {5, 5}});
                  }});
  for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{
           {127, 131, 137}, {1, 1009, 1013}, {1013, 1009, 1}, {1, 1, 1}, {3, 2, 5}, {257, 3, 263}})
    list.push_back(
        {"matmul " + std::to_string(m) + "x" + std::to_string(k) + " by " + std::to_string(k) + "x" + std::to_string(n),
         [m, k, n](graph_builder& g) {
           return g(op::relu,
                    g(op::add, g(op::matmul, input(g, {m, k}), weights(g, "w", {k, n})), weights(g, "b", {n})));
         }});
  list.push_back({"softmax 127x251", [](graph_builder& g) { return g(op::softmax, input(g, {127, 251})); }});
  list.push_back({"softmax 1x13x17x19, axis 1",
                  [](graph_builder& g) { return g(op::softmax, input(g, {1, 13, 17, 19}), {.axis = 1}); }});
  list.push_back({"layer_norm 131x257", [](graph_builder& g) {
                    return g(op::layer_norm, input(g, {131, 257}), weights(g, "scale", {257}),
                             weights(g, "shift", {257}));
                  }});
  list.push_back({"add 1x13x1x7 and 5x1x11x7", [](graph_builder& g) {
                    return g(op::add, input(g, {1, 13, 1, 7}), weights(g, "y", {5, 1, 11, 7}));
                  }});
  list.push_back({"relu of 7", [](graph_builder& g) { return g(op::relu, input(g, {7})); }});
  return list;
}

/// Of up to some ten million multiplications, and mostly of numbers that no vector's length divides.
convolution random_convolution(std::mt19937_64& random) {
  const auto pick = [&random](const std::vector<std::int64_t>& from) { return from[random() % from.size()]; };
  for (;;) {
    convolution one{.batch = pick({1, 1, 1, 2}),
                    .channels = pick({1, 3, 5, 7, 12, 17, 31, 33, 64, 97}),
                    .height = pick({1, 2, 7, 13, 28, 31, 55, 97}),
                    .width = pick({1, 2, 7, 13, 28, 31, 55, 97}),
                    .kernels = pick({1, 2, 5, 11, 16, 29, 65, 101}),
                    .window = pick({1, 2, 3, 4, 5, 7}),
                    .stride = pick({1, 1, 2, 3, 7}),
                    .dilation = pick({1, 1, 2, 3}),
                    .before = pick({0, 1, 2}),
                    .behind = pick({0, 1, 2})};
    if (random() % 3 == 0) one.kernels = one.groups = one.channels;
    const double work = static_cast<double>(one.batch * one.channels / one.groups * one.kernels) *
                        static_cast<double>(one.height * one.width * one.window * one.window) /
                        static_cast<double>(one.stride * one.stride);
    if (one.fits() && work < 5e7) return one;
  }
}

std::string who_runs(const c::placement& placed) {
  std::set<std::string> names;
  c::detail::add_backends_of(placed, names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  const auto threads = static_cast<int>(line.number("--threads", static_cast<std::size_t>(c::available_threads())));
  const std::size_t more = line.number("--random", 20);
  std::mt19937_64 random(line.number("--seed", 1));
  const auto seconds = static_cast<double>(line.number("--seconds", 2));
  const std::string store = line.text("--store", "");
  if (!line.rest().empty())
    throw c::error(c::error_kind::invalid_argument, "there is nothing to name", line.rest().front(),
                   "see the first lines of the benchmark's source");
  std::vector<test_case> cases = listed();
  for (std::size_t i = 0; i < more; ++i) {
    const convolution one = random_convolution(random);
    cases.push_back({one.text(), one});
  }
  std::printf("%d thread%s of %s\n\n| network | plan | ms | onednn ms | ratio [95 %%] |\n|---|---|---|---|---|\n",
              threads, threads == 1 ? "" : "s", c::processor_name().c_str());
  c::drift_monitor monitor = c::watch_machine(threads);
  std::vector<double> ratios;
  std::size_t behind = 0, same = 0;
  for (const test_case& one : cases) {
    graph_builder g;
    g.output("y", one.build(g));
    c::graph network = g.finish();
    c::fill_constants(network);
    network = c::optimise(network);
    c::place_options how;
    how.network = one.name;
    how.threads = threads;
    how.store = store;
    how.comparing.seconds = seconds;
    const c::plan made = c::place<all_backends>(network, how);
    const auto onednn = std::ranges::find(made.singles, "onednn", &c::placement::name);
    if (onednn == made.singles.end())
      throw c::error(c::error_kind::environment, "oneDNN is not there", "backends", "build with it");
    const std::vector<c::plan_run> runs =
        c::compare_placements(network, {&made.chosen, &*onednn}, c::table_of<all_backends>, threads, seconds, 1,
                              std::make_shared<c::packed_weights>(), &monitor);
    const bool is_same = c::same_steps(made.chosen, *onednn);
    ratios.push_back(runs[1].ratio);
    same += is_same;
    behind += runs[1].ratio < 0.97;
    std::printf(
        "| %s | %s | %.4f | %.4f | %s |\n", one.name.c_str(), who_runs(made.chosen).c_str(), runs[0].median_ms,
        runs[1].median_ms,
        is_same ? "same steps"
                : (std::to_string(runs[1].ratio).substr(0, 5) + " [" + std::to_string(runs[1].ratio_low).substr(0, 5) +
                   ", " + std::to_string(runs[1].ratio_high).substr(0, 5) + "]")
                      .c_str());
    std::fflush(stdout);
  }
  std::printf(
      "\nratio: oneDNN's time over the plan's, the median over paired rounds. %zu networks, of which %zu take the same steps as "
      "oneDNN alone; in %zu the plan is slower (below 0.97); least %.3f, median %.3f.\n",
      cases.size(), same, behind, *std::ranges::min_element(ratios), c::summarise(ratios).median_ms);
  return 0;
}

}  // namespace

int main(int count, char** words) { return benchmarks::run("awkward", measure, count, words); }
