// Expected costs of candidates that were not measured: a model's times, scaled as measured kernels turned out.
#pragma once

#include <algorithm>
#include <array>
#include <collage/graph/graph.hpp>
#include <collage/op/kind.hpp>
#include <collage/place/costs.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "placing_state.hpp"
#include "time_model.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// A group costs its time by the model, times a factor. The factor is that of the best measured group with the same heaviest node. If
/// none was measured, it is the median of groups with or without anchors, as this one is.
class cost_forecast {
 public:
  explicit cost_forecast(const placing_state& known) : known_(known), model_(known.task) {}

  /// Takes over the costs that are known now.
  void learn() {
    const graph& network = known_.task.network;
    factors_.assign(network.nodes().size(), 0);
    std::array<std::vector<double>, 2> all;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) {
      const measured_cost* const cost = known_.costs.find(known_.candidates[i]);
      if (cost == nullptr || !cost->refusal.empty() || cost->is_modelled || known_.candidates.is_region(i)) continue;
      const group_time& modelled = time_of(i);
      const double factor = cost->alone_ms / modelled.ms;
      double& best = factors_[modelled.heaviest];
      best = best == 0 ? factor : std::min(best, factor);
      all[is_anchor(modelled.heaviest) ? 1 : 0].push_back(factor);
    }
    for (std::size_t which : {0, 1}) {
      std::vector<double>& list = all[which].empty() ? all[1 - which] : all[which];
      if (list.empty()) continue;
      const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
      std::ranges::nth_element(list, middle);
      usual_[which] = *middle;
    }
  }
  /// The expected cost of a candidate, in milliseconds.
  double ms(std::uint32_t candidate) {
    const group_time& modelled = time_of(candidate);
    const double known = factors_.empty() ? 0 : factors_[modelled.heaviest];
    return modelled.ms * (known > 0 ? known : usual_[is_anchor(modelled.heaviest) ? 1 : 0]);
  }

 private:
  struct group_time {
    double ms = 0;
    std::uint32_t heaviest = 0;  ///< the node that takes most of it
  };

  bool is_anchor(std::uint32_t node) const {
    return known_.task.network.node(node).kind->fusion == fusion_kind::anchor;
  }
  const group_time& time_of(std::uint32_t candidate) {
    const std::uint32_t group = known_.candidates[candidate].group;
    if (group >= times_.size()) times_.resize(known_.candidates.all().groups.size());
    group_time& at = times_[group];
    if (at.ms > 0) return at;
    const std::vector<std::uint32_t>& nodes = known_.candidates.nodes_of(candidate);
    at = {model_.ms(nodes), nodes.front()};
    double most = 0;
    for (const std::uint32_t n : nodes)
      if (const double ms = model_.ms(std::span(&n, 1)); ms > most) {
        most = ms;
        at.heaviest = n;
      }
    return at;
  }

  const placing_state& known_;
  time_model model_;
  std::vector<group_time> times_;             // by group
  std::vector<double> factors_;               // by node; 0: nothing is known
  std::array<double, 2> usual_ = {1.0, 1.0};  // without and with an anchor
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
