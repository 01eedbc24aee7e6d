// Timing rivals against each other: bundles of calls, interleaved in rounds, a robust centre with its spread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace collage::inline v0 {

/// What a list of samples says, in milliseconds per call: the median, and the 10th and 90th percentile.
struct timing {
  double median_ms = 0;
  double low_ms = 0;
  double high_ms = 0;
  std::size_t samples = 0;
};

namespace detail {

/// A quantile of sorted samples by linear interpolation.
inline double quantile(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace detail

/// Summarises samples; all zero for none.
inline timing summarise(std::vector<double> samples_ms) {
  if (samples_ms.empty()) return {};
  std::sort(samples_ms.begin(), samples_ms.end());
  return {detail::quantile(samples_ms, 0.5), detail::quantile(samples_ms, 0.1), detail::quantile(samples_ms, 0.9),
          samples_ms.size()};
}

/// The median of the ratios a[i] / b[i] of samples taken in the same rounds.
inline double paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  return summarise(std::move(ratios)).median_ms;
}

/// How rivals are timed.
struct timing_options {
  double sample_ms = 0.2;        ///< a sample bundles as many calls as fill this
  std::size_t rounds = 9;        ///< samples of each rival
  std::size_t least_rounds = 3;  ///< of a rival that is clearly beaten, and of very slow ones
  double beaten = 2.0;           ///< a rival this many times slower than the fastest is not timed further
  double budget_ms = 400;        ///< for one rival; long kernels get fewer rounds, but at least least_rounds
};

/// Times rivals for one place: in each round each rival gives one sample, in turns that start elsewhere every round, so
/// that a slow period of the machine hits all of them alike. Answers each rival's samples in milliseconds per call.
/// Every rival is called at least once before it counts.
inline std::vector<std::vector<double>> time_rivals(std::span<const std::function<void()>> rivals,
                                                    const timing_options& options = {}) {
  const std::size_t count = rivals.size();
  std::vector<std::vector<double>> samples(count);
  std::vector<std::size_t> bundle(count, 1);
  std::vector<std::size_t> wanted(count, options.rounds);
  for (std::size_t i = 0; i < count; ++i) {
    // Warm-up: until a call is no longer clearly faster than the one before, so that one-time work is over.
    double last = 0;
    for (int call = 0; call < 4; ++call) {
      const double start = detail::now_ms();
      rivals[i]();
      const double took = detail::now_ms() - start;
      const bool settled = call > 0 && took > 0.8 * last;
      last = call == 0 ? took : std::min(took, last);
      if (settled) break;
    }
    bundle[i] = static_cast<std::size_t>(std::max(1.0, options.sample_ms / std::max(last, 1e-4)));
    const double per_round = last * static_cast<double>(bundle[i]);
    const auto affordable = static_cast<std::size_t>(options.budget_ms / std::max(per_round, 1e-6));
    wanted[i] = std::clamp(affordable, options.least_rounds, options.rounds);
  }
  std::vector<double> best(count, 0);
  for (std::size_t round = 0; round < options.rounds; ++round) {
    double fastest = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (!samples[i].empty() && (fastest == 0 || best[i] < fastest)) fastest = best[i];
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t i = (turn + round) % count;
      if (round >= wanted[i]) continue;
      if (round >= options.least_rounds && best[i] > options.beaten * fastest) continue;
      const double start = detail::now_ms();
      for (std::size_t call = 0; call < bundle[i]; ++call) rivals[i]();
      const double per_call = (detail::now_ms() - start) / static_cast<double>(bundle[i]);
      best[i] = samples[i].empty() ? per_call : std::min(best[i], per_call);
      samples[i].push_back(per_call);
    }
  }
  return samples;
}

}  // namespace collage::inline v0
