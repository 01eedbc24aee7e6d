// Statistics of samples and of pairs of samples: a robust centre, its spread and its confidence interval.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// Statistics of samples, in milliseconds per call.
struct timing {
  double median_ms = 0;
  double low_ms = 0;       ///< 10th percentile
  double high_ms = 0;      ///< 90th percentile
  double sure_low_ms = 0;  ///< the 95 % confidence interval of the median is [sure_low_ms, sure_high_ms]
  double sure_high_ms = 0;
  std::size_t samples = 0;
};

/// Compares two rivals sampled in the same rounds: the median over rounds of a's time divided by b's, and its 95 % confidence
/// interval. A slowdown of a whole round cancels.
struct paired_ratio {
  double median = 1, low = 1, high = 1;
  std::size_t rounds = 0;
};

namespace detail {

/// A quantile of sorted samples by linear interpolation.
inline double quantile(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// The 95 % confidence interval of the median of sorted samples, by order statistics. The number of samples below the true
/// median is binomial, whatever the distribution of the samples (Conover, Practical Nonparametric Statistics, 3.2). Fewer than
/// six samples cannot give 95 %; the interval is then from the least to the greatest.
inline std::pair<double, double> median_interval(std::span<const double> sorted) {
  const std::size_t n = sorted.size();
  const double count = static_cast<double>(n);
  std::size_t rank = 0;  // the number of samples outside the interval at either end
  if (n > 200) {
    rank = static_cast<std::size_t>(std::max(0.0, std::floor(count / 2 - 0.98 * std::sqrt(count))));
  } else {
    double chance = std::pow(0.5, count), below = chance;  // of exactly and of at most `rank` samples below the median
    while (rank + 1 < n - rank && below <= 0.025) {
      ++rank;
      chance *= (count - static_cast<double>(rank) + 1) / static_cast<double>(rank);
      below += chance;
    }
    if (rank > 0) --rank;
  }
  return {sorted[rank], sorted[n - 1 - rank]};
}

}  // namespace detail

/// The statistics of samples. All zero if there are none.
inline timing summarise(std::vector<double> samples_ms) {
  if (samples_ms.empty()) return {};
  std::sort(samples_ms.begin(), samples_ms.end());
  const auto [sure_low, sure_high] = detail::median_interval(samples_ms);
  return {detail::quantile(samples_ms, 0.5),
          detail::quantile(samples_ms, 0.1),
          detail::quantile(samples_ms, 0.9),
          sure_low,
          sure_high,
          samples_ms.size()};
}

/// The mean of two timings, with the samples of both.
inline timing mean_of(const timing& a, const timing& b) {
  const auto half = [&](double timing::* part) { return (a.*part + b.*part) / 2; };
  return {half(&timing::median_ms),   half(&timing::low_ms),       half(&timing::high_ms),
          half(&timing::sure_low_ms), half(&timing::sure_high_ms), a.samples + b.samples};
}

/// Compares a with b over the rounds that both took part in. A round with a sample that is NaN or zero does not count. If no
/// round counts, the ratio is 1, with 0 rounds.
inline paired_ratio compare_paired(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] > 0 && b[i] > 0) ratios.push_back(a[i] / b[i]);
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const auto [low, high] = detail::median_interval(ratios);
  return {detail::quantile(ratios, 0.5), low, high, ratios.size()};
}

}  // namespace collage::inline v0
