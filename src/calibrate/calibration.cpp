#include "parts.hpp"

#include <collage/calibrate/calibrate.hpp>
#include <collage/error.hpp>
#include <collage/run/buffers.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace collage::inline v0 {

struct calibration::state {
  state(const graph& given, backend_table backends, const calibration_options& options)
      : network(given), watched(network), engine(make(network, backends, options.threads)), context(engine.context()) {
    const std::size_t values = watched.size();
    if (values == 0)
      throw error(error_kind::invalid_argument, "has no float32 values, so there is nothing to calibrate", "network");
    constexpr std::size_t fewest = 2;
    const bool is_too_large = options.bytes / sizeof(std::uint64_t) / values < 128;
    bins = options.minmax_only && is_too_large ? fewest : bins_for(values, options.bytes);
    watched.start(bins);
    for (const std::uint32_t v : network.outputs()) outputs.emplace_back(network.type_of(v));
    results.assign(outputs.begin(), outputs.end());
  }

  static dynamic_engine make(const graph& network, backend_table backends, int threads) {
    const auto packed = std::make_shared<packed_weights>();
    const detail::unfused_placement placed = detail::place_unfused(network, backends, threads, packed);
    return {network, placed.made, backends, threads, packed};
  }

  /// Throws if a sample has numbers that no range can hold.
  void check(std::span<const const_tensor_view> inputs) const {
    for (std::size_t i = 0; i < std::min(inputs.size(), engine.inputs().size()); ++i) {
      if (inputs[i].type.type != dtype::f32 || inputs[i].data == nullptr) continue;
      const auto list = inputs[i].as<float>();
      const auto bad = std::ranges::find_if(list, [](float x) { return !std::isfinite(x); });
      if (bad == list.end()) continue;
      throw error(error_kind::invalid_argument,
                  std::string(std::isnan(*bad) ? "has NaN" : "is infinite") + " at element " +
                      std::to_string(bad - list.begin()),
                  "sample " + std::to_string(samples + 1) + ", input " + engine.inputs()[i].name,
                  "give samples whose numbers are finite");
    }
  }

  void run(std::span<const const_tensor_view> inputs) {
    const body_observer bodies{this, &state::enter, &state::leave};
    const observed_bodies watch_bodies(bodies);
    running = {{&watched, true}};
    context.run(inputs, results, {.data = this, .before = nullptr, .after = &state::after});
    for (std::size_t i = 0; i < inputs.size(); ++i) watched.note(network.inputs()[i], inputs[i].data, samples + 1);
    ++samples;
  }

  static void after(void* data, std::size_t step, const dynamic_context& context) {
    auto& self = *static_cast<state*>(data);
    const auto [graph, has_inputs] = self.running.back();
    if (!has_inputs) graph->note_inputs(context, self.samples + 1);
    self.running.back().second = true;
    graph->note_step(step, context, self.samples + 1);
  }
  static step_observer enter(void* data, std::uint32_t node, std::size_t which) {
    auto& self = *static_cast<state*>(data);
    self.running.emplace_back(&self.running.back().first->body(node, which), false);
    return {.data = data, .before = nullptr, .after = &state::after};
  }
  static void leave(void* data) { static_cast<state*>(data)->running.pop_back(); }

  graph network;
  detail::graph_watch watched;
  dynamic_engine engine;
  dynamic_context context;
  std::vector<tensor> outputs;
  std::vector<tensor_view> results;
  std::size_t bins = 0;
  std::uint64_t samples = 0;
  std::vector<std::pair<detail::graph_watch*, bool>>
      running;  // the graph that runs and those around it; inputs were noted
};

calibration::calibration(const graph& network, backend_table backends, const calibration_options& options)
    : state_(std::make_unique<state>(network, backends, options)) {}
calibration::calibration(calibration&&) noexcept = default;
calibration::~calibration() = default;

void calibration::add(std::span<const const_tensor_view> inputs) {
  state_->check(inputs);
  state_->run(inputs);
}

std::uint64_t calibration::samples() const { return state_->samples; }
std::size_t calibration::bins() const { return state_->bins; }
std::size_t calibration::bytes() const { return state_->watched.size() * state_->bins * sizeof(std::uint64_t); }

namespace {

/// Throws if the samples say nothing: every float32 input is constant in all of them.
void check_that_inputs_vary(const graph& network, const detail::graph_watch& watched, std::uint64_t samples) {
  const detail::observed_value* constant = nullptr;
  std::string name;
  for (const std::uint32_t v : network.inputs()) {
    const detail::observed_value* const seen = watched.find(v);
    if (seen == nullptr) continue;
    if (seen->numbers->seen().low != seen->numbers->seen().high) return;
    if (constant == nullptr) name = network.value_name(v);
    if (constant == nullptr) constant = seen;
  }
  if (constant == nullptr) return;  // only integers come in
  char number[32];
  std::snprintf(number, sizeof number, "%g", static_cast<double>(constant->numbers->seen().low));
  throw error(error_kind::invalid_argument,
              std::string("is constant: all its numbers are ") + number + " in " +
                  (samples == 1 ? "the only sample" : "all " + std::to_string(samples) + " samples"),
              "input " + name, "give samples as the network will see them");
}

}  // namespace

network_ranges calibration::finish(const range_origin& made_by) && {
  if (state_->samples == 0)
    throw error(error_kind::invalid_argument, "there is no sample", "calibration", "give one at least");
  check_that_inputs_vary(state_->network, state_->watched, state_->samples);
  network_ranges made{{}, state_->network.fingerprint(), made_by, {}};
  made.made_by.samples = state_->samples;
  made.top = detail::ranges_of(state_->watched, made.made_by);
  return made;
}

network_ranges calibrate(const graph& network, backend_table backends, const sample_reader& samples,
                         const range_origin& made_by, const calibration_options& options) {
  calibration pass(network, backends, options);
  std::vector<tensor> inputs;
  for (const std::uint32_t v : network.inputs()) inputs.emplace_back(network.type_of(v));
  const std::vector<const_tensor_view> views(inputs.begin(), inputs.end());
  while (samples(inputs)) pass.add(views);
  return std::move(pass).finish(made_by);
}

}  // namespace collage::inline v0
