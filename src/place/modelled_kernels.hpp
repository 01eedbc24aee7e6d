// Kernels for which a budget leaves no time to measure them: they are priced by a model.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/graph/totals.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/roofline.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>
#include "kernel_check.hpp"
#include "placing_state.hpp"
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class modelled_kernels {
 public:
  explicit modelled_kernels(placing_state& known) : known_(known) {}

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
    const double slowness = slowness_of_measured();
    for (const std::uint32_t i : order) {
      const std::vector<std::uint32_t>& nodes = nodes_of(i);
      if (std::ranges::none_of(nodes, [&](std::uint32_t n) { return !covered[n]; })) continue;
      const place_candidate& c = known_.candidates[i];
      if (known_.costs.find(c) == nullptr) {
        measured_cost& cost = known_.costs.entry_of(c);
        cost.is_modelled = true;
        cost.alone_ms = model_ms(nodes) * slowness;
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
    for (const place_structure& s : all.structures) {
      order.push_back(static_cast<std::uint32_t>(order.size()));
      ms.push_back(static_cast<double>(s.occurrences) * model_ms(all.groups[s.example].nodes));
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

  /// The time of a group by the roofline model, with the operands and results of each node read and written.
  double model_ms(const std::vector<std::uint32_t>& nodes) const {
    const graph& network = known_.task.network;
    double flops = 0, bytes = 0;
    for (const std::uint32_t n : nodes) {
      flops += work_of(network, n).flops;
      bytes += static_cast<double>(bytes_of_values(network, n));
    }
    const auto threads = static_cast<double>(known_.task.threads);
    const budget_policy& rates = thresholds.budget;
    return roofline::cost_ms({"", rates.flops_per_s * threads, rates.bytes_per_s, rates.launch_ms}, flops, bytes);
  }
  /// How many times the modelled time measured kernels take: the median; 1 if none was measured.
  double slowness_of_measured() const {
    std::vector<double> factors;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i)
      if (is_usable(i)) factors.push_back(known_.costs.find(known_.candidates[i])->alone_ms / model_ms(nodes_of(i)));
    if (factors.empty()) return 1;
    const auto middle = factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2);
    std::ranges::nth_element(factors, middle);
    return *middle;
  }

  placing_state& known_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
