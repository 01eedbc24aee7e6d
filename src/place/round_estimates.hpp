// Estimates from the log of a race: times, paired ratios and the times of steps. All are functions of only the log.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/measure/statistics.hpp>
#include <collage/place/compare.hpp>
#include <cstddef>
#include <utility>
#include <vector>
#include "policy.hpp"
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {

/// The regime of a placement's time: `shared`, but `split` for a placement that hardly ran in a shared cache.
inline cache_regime main_regime(const round_log& log, std::size_t placement) {
  const std::size_t shared = log.turns(placement, cache_regime::shared),
                    split = log.turns(placement, cache_regime::split);
  return shared < enough_of_a_regime && split > shared ? cache_regime::split : cache_regime::shared;
}

inline std::vector<double> taken_turns(std::vector<double> times) {
  std::erase_if(times, [](double ms) { return !has_run(ms); });
  return times;
}

/// A placement's times without the disturbed ones: `not_run` also where a round took over 1.1 times the 25th percentile. Other
/// programs come and go within seconds, and only ever make a placement slower. Say a third of all times is a third too long. Then
/// the median of 15 ratios is off by some 5 %; that of the undisturbed rounds is off by 1 %.
inline std::vector<double> undisturbed_times(const round_log& log, std::size_t placement, cache_regime regime) {
  std::vector<double> list = log.times(placement, regime), sorted = taken_turns(list);
  if (sorted.empty()) return list;
  std::ranges::sort(sorted);
  const double most = thresholds.race.disturbed * quantile(sorted, 0.25);
  std::ranges::replace_if(list, [most](double ms) { return ms > most; }, not_run);
  return list;
}

/// Whether the undisturbed rounds are enough to leave the others out.
inline bool suffice(std::size_t undisturbed, std::size_t all) {
  return undisturbed >= thresholds.race.least_undisturbed && thresholds.race.undisturbed_part * undisturbed >= all;
}

/// A placement's time in one regime: over undisturbed rounds, or over all where less than a third, or less than three, were.
inline timing time_in(const round_log& log, std::size_t placement, cache_regime regime) {
  std::vector<double> all = taken_turns(log.times(placement, regime)),
                      undisturbed = taken_turns(undisturbed_times(log, placement, regime));
  return summarise(suffice(undisturbed.size(), all.size()) ? std::move(undisturbed) : std::move(all));
}

/// A placement's time, in its main regime.
inline timing time_of(const round_log& log, std::size_t placement) {
  return time_in(log, placement, main_regime(log, placement));
}

/// How a placement compares with another in one regime: over the rounds in which neither was disturbed. Where these are few, all
/// common rounds count.
inline paired_ratio ratio_in(const round_log& log, std::size_t placement, std::size_t to, cache_regime regime) {
  const paired_ratio all = compare_paired(log.times(placement, regime), log.times(to, regime));
  const paired_ratio undisturbed =
      compare_paired(undisturbed_times(log, placement, regime), undisturbed_times(log, to, regime));
  const bool would_lose_regime =
      log.has(cache_regime::split) && undisturbed.rounds < std::min(all.rounds, enough_of_a_regime);
  return suffice(undisturbed.rounds, all.rounds) && !would_lose_regime ? undisturbed : all;
}

/// The geometric mean of both regimes where each has enough rounds, otherwise the regime with more.
inline paired_ratio joined(const paired_ratio& shared, const paired_ratio& split) {
  if (std::min(shared.rounds, split.rounds) < enough_of_a_regime) return shared.rounds >= split.rounds ? shared : split;
  return {std::sqrt(shared.median * split.median), std::sqrt(shared.low * split.low),
          std::sqrt(shared.high * split.high), shared.rounds + split.rounds};
}

/// How a placement compares with another. No rounds count if one of them is left out.
inline paired_ratio ratio_of(const round_log& log, std::size_t placement, std::size_t to) {
  if (log.leaves_out(placement) || log.leaves_out(to)) return {};
  return joined(ratio_in(log, placement, to, cache_regime::shared), ratio_in(log, placement, to, cache_regime::split));
}

/// Which regimes count in a decision although there may be few rounds of them yet.
struct expected_regimes {
  bool shared = false, split = false;
};

/// Whether one of `placements` was faster by a factor in every round that both ran, or is by the confidence interval, after so
/// many rounds. Where rounds of an expected regime are missing, the placements are presumed to be equal in it.
inline bool is_slower(const round_log& log, std::size_t placement, std::size_t placements, std::size_t rounds,
                      double factor, expected_regimes expected) {
  const bool is_split = main_regime(log, placement) == cache_regime::split;
  for (std::size_t other = 0; other < placements; ++other) {
    // A placement that ran only in split caches ran to measure its kernels, and is not compared.
    if (other == placement || (main_regime(log, other) == cache_regime::split && !is_split)) continue;
    if (log.leaves_out(other)) continue;
    const paired_ratio shared = ratio_in(log, placement, other, cache_regime::shared),
                       split = ratio_in(log, placement, other, cache_regime::split);
    const bool lacks_half =
        shared.rounds < enough_of_a_regime ? expected.shared : split.rounds < enough_of_a_regime && expected.split;
    const paired_ratio r = joined(shared, split);
    if (r.rounds >= rounds && (lacks_half ? std::sqrt(r.low) : r.low) > factor) return true;
  }
  return false;
}

/// A placement's median in a regime, scaled as if `beside` had taken its own median in the rounds in which both ran
/// undisturbed. With less than five such rounds it is not scaled: that would show chance rather than the machine.
inline double usual_ms(const round_log& log, std::size_t placement, std::size_t beside, cache_regime regime) {
  const std::vector<double> own = undisturbed_times(log, placement, regime),
                            other = undisturbed_times(log, beside, regime);
  std::vector<double> together;
  for (std::size_t k = 0; k < own.size(); ++k)
    if (has_run(own[k]) && has_run(other[k])) together.push_back(other[k]);
  const bool is_enough = together.size() >= thresholds.race.rounds_to_scale;
  const double own_ms = time_in(log, placement, regime).median_ms, other_ms = summarise(std::move(together)).median_ms;
  return is_enough && other_ms > 0 ? own_ms * (time_in(log, beside, regime).median_ms / other_ms) : own_ms;
}

/// The times of a placement's steps within whole runs, by step. Steps are timed only in some rounds, and the machine may have
/// been slow just then. So a step counts as its part of the whole run of its round, times `usual_ms`. `beside` is a placement
/// that ran in most rounds. Times in split caches are scaled as if `beside` took as long there as in a shared cache. A step
/// without enough times has no samples.
inline std::vector<timing> steps_in(const round_log& log, std::size_t placement, std::size_t steps, std::size_t beside,
                                    cache_regime regime) {
  double usual = usual_ms(log, placement, beside, regime);
  bool is_known = true;
  std::size_t least = 0;
  if (regime == cache_regime::split) {
    least = enough_of_a_regime;
    const double shared_ms = time_in(log, beside, cache_regime::shared).median_ms;
    is_known = shared_ms == 0 || log.turns(beside, cache_regime::split) >= enough_of_a_regime;
    if (const double split_ms = time_in(log, beside, cache_regime::split).median_ms; shared_ms > 0 && split_ms > 0)
      usual *= shared_ms / split_ms;
  }
  std::vector<std::vector<double>> times(steps);
  for (const race_round& r : log.rounds()) {
    if (r.regime != regime || placement >= r.turns.size()) continue;
    const round_turn& turn = r.turns[placement];
    for (const std::vector<double>& call : turn.step_ms)
      for (std::size_t s = 0; s < steps; ++s) times[s].push_back(call[s] * (turn.ms > 0 ? usual / turn.ms : 1));
  }
  std::vector<timing> list;
  for (std::vector<double>& step : times)
    list.push_back(is_known && step.size() >= least ? summarise(std::move(step)) : timing{});
  return list;
}

}  // namespace detail
}  // namespace collage::inline v0
