#include "parts.hpp"

#include <collage/run/views.hpp>
#include <collage/set/candidate.hpp>

#include <algorithm>
#include <cmath>

namespace collage::inline v0::detail {
bool has_range(const graph& network, std::uint32_t value) {
  const value_record& r = network.at(value);
  if (r.type.type != dtype::f32 || r.type.dims.elements() == 0) return false;
  return r.uses != 0 || r.is_output || r.role == value_role::input;
}

std::uint32_t origin_of(const graph& network, std::uint32_t value) {
  const graph_view view = network.view();
  while (network.at(value).role == value_role::computed) {
    const auto node = static_cast<std::uint32_t>(network.at(value).producer);
    if (!moves_or_picks(view, node) || view.output_of(node) != value) break;
    const std::uint32_t from = view.inputs_of(node)[0];
    if (network.at(from).role == value_role::constant || network.type_of(from).type != dtype::f32) break;
    value = from;
  }
  return value;
}

graph_watch::graph_watch(const graph& network) : network_(&network), slots_(network.values().size(), none) {
  for (std::uint32_t v = 0; v < slots_.size(); ++v) {
    if (network.at(v).role == value_role::constant || !has_range(network, v)) continue;
    if (origin_of(network, v) == v) slots_[v] = static_cast<std::uint32_t>(count_++);
  }
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    if (!is_alias(network.view(), n)) step_nodes_.push_back(n);
    const auto bodies = network.bodies_of(n);
    for (std::uint32_t i = 0; i < bodies.size(); ++i)
      bodies_.push_back({n, i, std::make_unique<graph_watch>(*bodies[i])});
  }
}

std::size_t graph_watch::size() const {
  std::size_t all = count_;
  for (const owned_body& b : bodies_) all += b.inside->size();
  return all;
}

void graph_watch::start(std::size_t bins) {
  for (std::size_t i = 0; i < count_; ++i) seen_.emplace_back(bins);
  for (const owned_body& b : bodies_) b.inside->start(bins);
}

const observed_value* graph_watch::find(std::uint32_t value) const {
  return slots_[value] == none ? nullptr : &seen_[slots_[value]];
}

void graph_watch::note(std::uint32_t value, const void* numbers, std::uint64_t sample) {
  if (slots_[value] == none || numbers == nullptr) return;
  observed_value& to = seen_[slots_[value]];
  const auto count = static_cast<std::size_t>(network_->type_of(value).dims.elements());
  const std::span<const float> list(static_cast<const float*>(numbers), count);
  if (const auto at = to.numbers->add(list); at && to.bad_sample == 0) {
    to.bad_sample = sample;
    to.is_nan = std::isnan(list[*at]);
  }
}

void graph_watch::note_step(std::size_t step, const dynamic_context& context, std::uint64_t sample) {
  const std::uint32_t node = step_nodes_[step];
  for (std::uint32_t i = 0; i < network_->node(node).outputs; ++i) {
    const std::uint32_t v = network_->view().output_of(node, i);
    note(v, context.data_of(v), sample);
  }
}

void graph_watch::note_inputs(const dynamic_context& context, std::uint64_t sample) {
  for (const std::uint32_t v : network_->inputs()) note(v, context.data_of(v), sample);
}

graph_watch& graph_watch::body(std::uint32_t node, std::size_t which) {
  const auto at =
      std::ranges::find_if(bodies_, [&](const owned_body& b) { return b.node == node && b.which == which; });
  return *at->inside;
}

}  // namespace collage::inline v0::detail
