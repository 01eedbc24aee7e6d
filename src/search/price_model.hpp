// Prices of resources from the plans that are known.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// The cost of a plan, and the amount by which it exceeds each bound. At prices its weight is the cost plus prices times
/// excess.
struct plan_line {
  double cost = 0;
  std::vector<double> excess;  ///< by resource; negative within the bound
};

inline double weight_of(const plan_line& l, std::span<const double> prices) {
  double sum = l.cost;
  for (std::size_t r = 0; r < prices.size(); ++r) sum += prices[r] * l.excess[r];
  return sum;
}

/// The least weight of any known plan, as a function of the prices. It is concave, and it is an upper bound on the lower
/// bound that these prices can give. So its maximum says which prices to try next (cutting planes; Kelley 1960).
class price_model {
 public:
  explicit price_model(std::vector<plan_line> lines) : lines_(std::move(lines)) {}

  void add(plan_line line) { lines_.push_back(std::move(line)); }
  bool has_within(std::size_t resource) const {
    return std::ranges::any_of(lines_, [&](const plan_line& l) { return l.excess[resource] <= 0; });
  }
  double least(std::span<const double> prices) const {
    double best = std::numeric_limits<double>::infinity();
    for (const plan_line& l : lines_) best = std::min(best, weight_of(l, prices));
    return best;
  }
  /// Moves the price of one resource to where the least weight is greatest, with the other prices kept. There must be a
  /// plan within the bound of that resource.
  void maximise(std::vector<double>& prices, std::size_t resource) const {
    prices[resource] = 0;
    const auto lowest = [&](double price) {
      prices[resource] = price;
      return &*std::ranges::min_element(lines_, [&](const plan_line& a, const plan_line& b) {
        const double x = weight_of(a, prices), y = weight_of(b, prices);
        return x != y ? x < y : a.excess[resource] < b.excess[resource];
      });
    };
    const plan_line* over = lowest(0);  // rises with the price; `within` falls
    if (over->excess[resource] <= 0) return;
    prices[resource] = 0;
    const plan_line* within = nullptr;
    for (const plan_line& l : lines_)
      if (l.excess[resource] <= 0 && (within == nullptr || weight_of(l, prices) < weight_of(*within, prices)))
        within = &l;
    // Each round replaces a plan by one that is lower at the price where the two meet.
    for (std::size_t rounds = 0; rounds <= lines_.size(); ++rounds) {
      prices[resource] = 0;
      const double at =
          (weight_of(*within, prices) - weight_of(*over, prices)) / (over->excess[resource] - within->excess[resource]);
      const plan_line* low = lowest(std::max(0.0, at));
      if (low == over || low == within || !(weight_of(*low, prices) < weight_of(*over, prices))) return;
      (low->excess[resource] > 0 ? over : within) = low;
    }
  }
  /// The same for all resources, one after the other. With several resources this may end below the maximum.
  void maximise(std::vector<double>& prices) const {
    for (std::size_t round = 0; round < (prices.size() == 1 ? 1U : rounds_of_several); ++round)
      for (std::size_t r = 0; r < prices.size(); ++r)
        if (has_within(r)) maximise(prices, r);
  }

 private:
  static constexpr unsigned rounds_of_several = 8;

  std::vector<plan_line> lines_;
};

}  // namespace collage::inline v0::search::detail
