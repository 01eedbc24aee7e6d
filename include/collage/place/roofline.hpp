// Modelled costs: a launch plus the longer of arithmetic and memory traffic.
#pragma once

#include <collage/error.hpp>
#include <collage/place/cost_source.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// The rates of one backend.
struct roofline_rates {
  std::string backend;
  double flops_per_s = 0;
  double bytes_per_s = 0;
  double launch_ms = 0;
};

/// The roofline model (Williams, Waterman, Patterson 2009) plus a cost per call, which dominates for small kernels. It models
/// neither caches nor shapes for which a library is slow.
class roofline {
 public:
  /// Throws `error` for rates that are not positive and finite, and for a launch that is negative or not finite.
  explicit roofline(std::vector<roofline_rates> backends) : backends_(std::move(backends)) {
    for (const roofline_rates& b : backends_) {
      const auto is_rate = [](double rate) { return std::isfinite(rate) && rate > 0; };
      if (is_rate(b.flops_per_s) && is_rate(b.bytes_per_s) && std::isfinite(b.launch_ms) && b.launch_ms >= 0) continue;
      throw error(error_kind::invalid_argument, "its rates must be positive numbers and its launch cost not negative",
                  "roofline of " + b.backend);
    }
  }

  const std::vector<roofline_rates>& backends() const noexcept { return backends_; }

  static double cost_ms(const roofline_rates& rates, double flops, double bytes) {
    return rates.launch_ms + 1e3 * std::max(flops / rates.flops_per_s, bytes / rates.bytes_per_s);
  }

  cost_answer cost_of(const cost_question& question) const {
    for (const roofline_rates& b : backends_)
      if (b.backend == question.backend) return {cost_ms(b, question.flops, question.bytes), {}};
    return cost_answer::none("the model knows no backend " + std::string(question.backend));
  }

 private:
  std::vector<roofline_rates> backends_;
};
static_assert(cost_source<roofline>);

}  // namespace collage::inline v0
