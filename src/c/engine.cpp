// Engines.
#include "states.hpp"

#include <collage/error.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

namespace {

constexpr std::size_t oldest_engine_options = sizeof(std::size_t);
constexpr std::size_t oldest_info = offsetof(collage_engine_info, arena_lower_bound) + sizeof(std::size_t);
constexpr std::size_t oldest_step = offsetof(collage_step, planned_ms) + sizeof(double);

/// "conv_0+relu_1"
std::string label_of(const c::graph& network, const std::vector<std::uint32_t>& nodes) {
  std::string label;
  for (const std::uint32_t n : nodes) label += (label.empty() ? "" : "+") + network.node_name(n);
  return label;
}

/// Builds the engine. It takes over the network's weights if `releases` is set.
c::dynamic_engine engine_of(const plan_state& plan, bool releases) {
  const network_state& network = *plan.network;
  const c::graph& graph = graph_with_weights(network);
  if (!releases) return {graph, plan.made.chosen, backends(), plan.made.threads, network.packed};
  // The weights are not given back if building fails, because some may be gone. If two threads release them at the same time, one
  // of them gets the error.
  if (!network.has_weights.exchange(false)) (void)graph_with_weights(network);
  return {std::move(network.graph), plan.made.chosen, backends(), plan.made.threads, network.packed};
}

collage_engine* new_engine(const plan_state& plan, const collage_engine_options& options) {
  const network_state& network = *plan.network;
  wait_briefly_unless_chosen();
  c::dynamic_engine engine = engine_of(plan, options.release_weights != 0);
  std::vector<std::string> labels;
  for (const c::step_info& s : engine.steps())
    labels.push_back(s.nodes.empty() ? s.label : label_of(network.graph, s.nodes));
  std::vector<double> planned_ms = c::planned_ms(engine, plan.made.chosen);
  std::shared_ptr<const c::traced_engine> described = c::traced(engine, network.graph, network.name);
  return new collage_engine(std::make_shared<const engine_state>(engine_state{
      std::move(engine), std::move(labels), std::move(planned_ms), c::waiting_policy(), std::move(described)}));
}

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_engine_create(const collage_plan* plan, const collage_engine_options* options,
                                     collage_engine** engine) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(plan);
    const collage_engine_options known =
        here.options(options, "collage_engine_options", c_interface::oldest_engine_options);
    collage_engine*& to = here.target(engine, "engine");
    to = c_interface::new_engine(state, known);
  });
}

void collage_engine_release(collage_engine* engine) noexcept { c_interface::release(__func__, engine); }

collage_status collage_engine_get_info(const collage_engine* engine, collage_engine_info* info) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(engine);
    collage_engine_info found{};
    found.inputs = state.engine.inputs().size();
    found.outputs = state.engine.outputs().size();
    found.steps = state.engine.steps().size();
    found.threads = state.engine.threads();
    found.waiting_policy = state.waiting_policy.c_str();
    found.arena_bytes = state.engine.arena_bytes();
    found.arena_lower_bound = state.engine.arena_lower_bound();
    here.answer(info, found, "collage_engine_info", c_interface::oldest_info);
  });
}

collage_status collage_engine_input(const collage_engine* engine, std::size_t index, collage_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_port(here, here.state_of(engine).engine.inputs(), index, "input", port);
  });
}

collage_status collage_engine_output(const collage_engine* engine, std::size_t index, collage_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_port(here, here.state_of(engine).engine.outputs(), index, "output", port);
  });
}

collage_status collage_engine_step(const collage_engine* engine, std::size_t index, collage_step* step) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(engine);
    here.check_index(index, state.engine.steps().size(), "step");
    const collage::step_info& from = state.engine.steps()[index];
    collage_step found{};
    found.backend = from.backend.c_str();
    found.pattern = from.pattern.c_str();
    found.kernel = from.kernel.c_str();
    found.label = state.labels[index].c_str();
    found.nodes = from.nodes.size();
    found.workspace_bytes = from.workspace;
    found.planned_ms = state.planned_ms[index];
    here.answer(step, found, "collage_step", c_interface::oldest_step);
  });
}
