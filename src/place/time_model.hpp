// The time of kernels by the roofline model: what is known before anything is measured.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/graph/totals.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/roofline.hpp>
#include <cstdint>
#include <span>
#include "kernel_check.hpp"
#include "place_task.hpp"
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class time_model {
 public:
  explicit time_model(const place_task& task) : task_(task) {}

  /// The time of a group, with the operands and results of each node read and written.
  double ms(std::span<const std::uint32_t> nodes) const {
    double flops = 0, bytes = 0;
    for (const std::uint32_t n : nodes) {
      flops += work_of(task_.network, n).flops;
      bytes += static_cast<double>(bytes_of_values(task_.network, n));
    }
    const auto threads = static_cast<double>(task_.threads);
    const budget_policy& rates = thresholds.budget;
    return roofline::cost_ms({"", rates.flops_per_s * threads, rates.bytes_per_s, rates.launch_ms}, flops, bytes);
  }
  /// The time of all groups of a structure.
  double ms(const place_candidates& all, std::uint32_t structure) const {
    const place_structure& s = all.structures[structure];
    return static_cast<double>(s.occurrences) * ms(all.groups[s.example].nodes);
  }
  /// The part of the network's time that a structure takes; 1 for a network without work.
  double share(const place_candidates& all, std::uint32_t structure) {
    if (whole_ms_ == 0)
      for (std::uint32_t n = 0; n < task_.network.nodes().size(); ++n) whole_ms_ += ms(std::span(&n, 1));
    return whole_ms_ > 0 ? std::min(ms(all, structure) / whole_ms_, 1.0) : 1.0;
  }

 private:
  const place_task& task_;
  double whole_ms_ = 0;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
