// Kernels for which a budget leaves no time to measure them: they are priced by a model.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>
#include "cost_forecast.hpp"
#include "kernel_check.hpp"
#include "placing_state.hpp"
#include "time_model.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class modelled_kernels {
 public:
  explicit modelled_kernels(placing_state& known) : known_(known), model_(known.task) {}

  /// Gives each node a kernel if it has none with a known cost. Candidates for few nodes come first, then the
  /// order of the set, with fallback kernels last. Kernels are compared with the reference as without measuring. Returns whether every
  /// node has a kernel.
  bool cover(place_report& report) {
    kernel_check check(known_.task, report);
    const graph& network = known_.task.network;
    std::vector<bool> covered(network.nodes().size());
    for (std::uint32_t n = 0; n < covered.size(); ++n)
      covered[n] = is_control(network.view(), n) || std::ranges::any_of(known_.views[n], [&](std::uint32_t order) {
                     return known_.can_be_view(n, order);
                   });
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) {
      // A kernel for more nodes leaves some without one, if the placement uses another kernel for the others.
      if (is_usable(i) && nodes_of(i).size() == 1) covered[nodes_of(i)[0]] = true;
      else order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [this](std::uint32_t i) {
      const place_candidate& c = known_.candidates[i];
      return std::tuple(nodes_of(i).size(), is_last_resort(known_.task.backends, c), c.backend);
    });
    cost_forecast forecast(known_);
    forecast.learn();
    for (const std::uint32_t i : order) {
      const std::vector<std::uint32_t>& nodes = nodes_of(i);
      if (std::ranges::none_of(nodes, [&](std::uint32_t n) { return !covered[n]; })) continue;
      const place_candidate& c = known_.candidates[i];
      if (known_.costs.find(c) == nullptr) {
        measured_cost& cost = known_.costs.entry_of(c);
        cost.is_modelled = true;
        cost.alone_ms = forecast.ms(i);
        (void)check.can_be_used(network, known_.candidates.all(), i, cost);
      }
      if (is_usable(i))
        for (const std::uint32_t n : nodes) covered[n] = true;
    }
    return std::ranges::all_of(covered, [](bool is) { return is; });
  }

  /// The structures, those first that take most of the network's time by the model.
  std::vector<std::uint32_t> heaviest_first() const {
    const place_candidates& all = known_.candidates.all();
    std::vector<double> ms;
    std::vector<std::uint32_t> order;
    for (std::uint32_t s = 0; s < all.structures.size(); ++s) {
      order.push_back(s);
      ms.push_back(model_.ms(all, order.back()));
    }
    std::ranges::stable_sort(order, std::greater(), [&ms](std::uint32_t s) { return ms[s]; });
    return order;
  }

 private:
  const std::vector<std::uint32_t>& nodes_of(std::uint32_t candidate) const {
    return known_.candidates.nodes_of(candidate);
  }
  bool is_usable(std::uint32_t candidate) const {
    const measured_cost* const cost = known_.costs.find(known_.candidates[candidate]);
    return cost != nullptr && cost->refusal.empty();
  }

  placing_state& known_;
  time_model model_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
