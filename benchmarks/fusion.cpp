// What fusion is worth in real plans: kernels, bytes and milliseconds with forward fusion alone, and with backward and
// sibling fusion beside it. Everything else (backends, patterns, measuring, search) is the same.
//
// usage: fusion [threads]       prints a table in Markdown
// needs: place onednn openblas eigen stacked portable
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/stacked.hpp>
#include <collage/collage.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/node_group.hpp>
#include <collage/zoo/all.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace c = collage;
namespace op = collage::ops;
namespace parts = collage::zoo::parts;
using c::label;

/// The same kernels for groups of one output, as forward fusion makes them.
struct forward_only : c::backend<"stacked"> {
  static constexpr auto rule = c::fuse::only_valid{c::fuse::limits{.exits = 1, .taps = true}, c::stacked::rule};
  static bool takes(const c::graph& network, std::uint32_t node) { return c::stacked::takes(network, node); }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return c::stacked::build(group, context);
  }
  static c::probe_result probe() { return c::stacked::probe(); }
};

template <class Stacked>
using with = c::backend_set<c::onednn, c::openblas, c::eigen, Stacked, c::portable>;
using without = c::backend_set<c::onednn, c::openblas, c::eigen, c::portable>;

/// DenseNet-121 (Huang and others, 2017). Batch norms in front of a convolution are a scale and a shift.
void densenet121(c::graph_builder& g) {
  std::int64_t channels = 3;
  int count = 0;
  const auto conv = [&](c::value x, std::int64_t to, std::int64_t window, std::int64_t stride) {
    const label name = label("conv") + count++;
    const c::value w = parts::constant(g, name + ".weight", {to, channels, window, window},
                                       parts::by_fan_in(channels * window * window, parts::before_relu));
    channels = to;
    const std::int64_t pad = window / 2;
    return g(op::conv, x, w, {.strides = {stride, stride}, .pads_begin = {pad, pad}, .pads_end = {pad, pad}});
  };
  const auto norm_relu = [&](c::value x) {
    const label name = label("norm") + count++;
    const c::value scale = parts::constant(g, name + ".scale", {channels, 1, 1}, parts::around_one);
    const c::value shift = parts::constant(g, name + ".shift", {channels, 1, 1}, parts::small);
    return g(op::relu, g(op::add, g(op::mul, x, scale), shift));
  };
  const auto biased = [&](c::value x) {
    const label name = label("bias") + count++;
    return g(op::relu, g(op::add, x, parts::constant(g, name, {channels, 1, 1}, parts::small)));
  };
  c::value x = biased(conv(g.input("input", {c::dtype::f32, {1, 3, 224, 224}}), 64, 7, 2));
  x = g(op::max_pool, x, {.window = {3, 3}, .strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}});
  const int layers[] = {6, 12, 24, 16};
  for (int block = 0; block < 4; ++block) {
    for (int i = 0; i < layers[block]; ++i) {
      const std::int64_t before = channels;
      const c::value more = conv(biased(conv(norm_relu(x), 128, 1, 1)), 32, 3, 1);
      x = g(op::concat, x, more, {.axis = 1});
      channels = before + 32;
    }
    if (block == 3) break;
    x = conv(norm_relu(x), channels / 2, 1, 1);
    x = g(op::average_pool, x, {.window = {2, 2}, .strides = {2, 2}});
  }
  g.output("output", g(op::reduce_mean, norm_relu(x), {.axes = {2, 3}, .keep_dims = false}));
}

/// An LSTM layer (Hochreiter and Schmidhuber, 1997), written out step by step, for sequences as they come.
void lstm(c::graph_builder& g, int steps = 32, std::int64_t hidden = 512) {
  const c::tensor_type state{c::dtype::f32, {1, hidden}};
  const c::value of_input =
      parts::constant(g, "input.weight", {hidden, 4 * hidden}, parts::by_fan_in(hidden, parts::keep));
  const c::value of_state =
      parts::constant(g, "state.weight", {hidden, 4 * hidden}, parts::by_fan_in(hidden, parts::keep));
  const c::value bias = parts::constant(g, "bias", {4 * hidden}, parts::small);
  c::value h = g.input("h", state), cell = g.input("c", state);
  for (int t = 0; t < steps; ++t) {
    const c::value x = g.input(label("x") + t, state);
    const c::value gates = g(op::add, g(op::add, g(op::matmul, h, of_state), g(op::matmul, x, of_input)), bias);
    const auto gate = [&](std::int64_t which) {
      return g(op::slice, gates, {.starts = {0, which * hidden}, .steps = {1, 1}, .extents = {1, hidden}});
    };
    const c::value forget = g(op::sigmoid, gate(0)), in = g(op::sigmoid, gate(1));
    const c::value fresh = g(op::tanh, gate(2)), out = g(op::sigmoid, gate(3));
    cell = g(op::add, g(op::mul, forget, cell), g(op::mul, in, fresh));
    h = g(op::mul, out, g(op::tanh, cell));
  }
  g.output("output", h);
}

struct figures {
  std::size_t kernels = 0, of_stacked = 0, several_outputs = 0;
  double megabytes = 0;
};

/// Bytes of activations that kernels read and write: each value once for each kernel.
figures count(const c::graph& network, const c::placement& p) {
  figures f;
  for (const c::plan_group& g : p.groups) {
    if (g.is_view()) continue;
    std::vector<std::uint32_t> nodes = g.nodes;
    std::sort(nodes.begin(), nodes.end());
    const c::node_group group = c::group_of(network, nodes);
    ++f.kernels;
    f.of_stacked += g.backend() == "stacked" ? 1U : 0U;
    f.several_outputs += group.outputs.size() > 1 ? 1U : 0U;
    for (const std::uint32_t v : group.arguments)
      if (!network.view().is_constant(v)) f.megabytes += static_cast<double>(network.type_of(v).bytes()) / 1e6;
    for (const std::uint32_t v : group.outputs) f.megabytes += static_cast<double>(network.type_of(v).bytes()) / 1e6;
  }
  return f;
}

void report(const char* name, const c::graph& network, int threads) {
  c::place_options options;
  options.network = name;
  options.threads = threads;
  options.comparing.seconds = 0.5;
  const c::plan plain = c::place(network, c::table_of<without>, options);
  const c::plan forward = c::place(network, c::table_of<with<forward_only>>, options);
  const c::plan combined = c::place(network, c::table_of<with<c::stacked>>, options);
  const std::vector<const c::placement*> all{&plain.chosen, &forward.chosen, &combined.chosen};
  const std::vector<c::plan_run> runs = c::compare_placements(network, all, c::table_of<with<c::stacked>>, threads, 10,
                                                              1, std::make_shared<c::packed_weights>());
  std::printf("| %s | %zu |", name, network.nodes().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const figures f = count(network, *all[i]);
    std::printf(" %zu (%zu, %zu) / %.1f / %.2f |", f.kernels, f.of_stacked, f.several_outputs, f.megabytes,
                runs[i].median_ms);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 1;
  std::printf(
      "Kernels (of stacked, with several outputs) / megabytes of activations / ms end to end, %d thread(s).\n\n"
      "| network | operators | without stacked | forward | combined |\n|---|---|---|---|---|\n",
      threads);
  const std::pair<const char*, std::function<void(c::graph_builder&)>> networks[] = {
      {"bert-paper", [](c::graph_builder& g) { c::zoo::build("bert-paper", g); }},
      {"bert-base-128", [](c::graph_builder& g) { c::zoo::build("bert-base-128", g); }},
      {"DenseNet-121", [](c::graph_builder& g) { densenet121(g); }},
      {"LSTM, 32 steps", [](c::graph_builder& g) { lstm(g); }}};
  for (const auto& [name, build] : networks) {
    c::graph_builder g;
    build(g);
    c::graph network = g.finish();
    c::fill_constants(network);
    report(name, network, threads);
  }
  return 0;
}
