// Medians, and intervals by resampling seeds. Runs that did not get there count as infinitely long.
#pragma once

#include <collage/tune/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace families {

inline constexpr double never = std::numeric_limits<double>::infinity();

inline double median(std::vector<double> of) {
  std::ranges::sort(of);
  const std::size_t middle = of.size() / 2;
  return of.size() % 2 == 1 || of[middle - 1] == of[middle] ? of[middle] : (of[middle - 1] + of[middle]) / 2;
}

/// The number that so many of all are not above.
inline double share_below(std::vector<double> of, double share) {
  std::ranges::sort(of);
  return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1))];
}

/// A figure with its 95 % interval.
struct figure {
  double value = 0, low = 0, high = 0;
};

/// A function of seeds, over all of them, and its percentile interval over 1000 samples of them with replacement (Efron 1979). The
/// samples are the same for all figures, so that arms are compared on the same seeds.
inline figure resampled(std::size_t seeds, const std::function<double(std::span<const std::size_t>)>& of) {
  constexpr std::size_t samples = 1000;
  std::vector<std::size_t> chosen(seeds);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  figure found;
  found.value = of(chosen);
  collage::tune::random_source random(1);
  std::vector<double> values(samples);
  for (double& value : values) {
    for (std::size_t& seed : chosen) seed = random.below(seeds);
    value = of(chosen);
  }
  std::ranges::sort(values);
  found.low = values[samples * 25 / 1000];
  found.high = values[samples * 975 / 1000 - 1];
  return found;
}

/// Measurements until each task, of each seed, was within some share of its best.
struct lengths {
  std::size_t tasks = 0;
  std::vector<double> counts;  ///< seed after seed
  std::size_t seeds() const { return counts.size() / tasks; }
  double at(std::size_t seed, std::size_t task) const { return counts[seed * tasks + task]; }
  double of_task(std::size_t task, std::span<const std::size_t> chosen) const {
    std::vector<double> list;
    for (const std::size_t seed : chosen) list.push_back(at(seed, task));
    return median(std::move(list));
  }
  /// The median over tasks of the median over seeds.
  double over(std::span<const std::size_t> chosen) const {
    std::vector<double> list;
    for (std::size_t task = 0; task < tasks; ++task) list.push_back(of_task(task, chosen));
    return median(std::move(list));
  }
  /// The median over tasks of one seed.
  double of_seed(std::size_t seed) const {
    return median({counts.begin() + static_cast<std::ptrdiff_t>(seed * tasks),
                   counts.begin() + static_cast<std::ptrdiff_t>((seed + 1) * tasks)});
  }
  std::size_t censored() const { return static_cast<std::size_t>(std::ranges::count(counts, never)); }
};

/// The share of seeds of which `a` needs fewer than `b`; equal ones count half.
inline double share_of_wins(const lengths& a, const lengths& b) {
  double wins = 0;
  for (std::size_t seed = 0; seed < a.seeds(); ++seed) {
    const double x = a.of_seed(seed), y = b.of_seed(seed);
    wins += x < y ? 1 : x == y ? 0.5 : 0;
  }
  return wins / static_cast<double>(a.seeds());
}

/// How many times as many `b` needs as `a`: of medians, on the same seeds.
inline figure ratio(const lengths& b, const lengths& a) {
  return resampled(a.seeds(), [&](std::span<const std::size_t> chosen) {
    const double x = a.over(chosen), y = b.over(chosen);
    return x == never && y == never ? 1.0 : y / x;
  });
}

}  // namespace families
