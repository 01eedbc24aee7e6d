// Learns costs from end-to-end runs: of kernels and conversions within the network, and of switches between backends.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/measure/statistics.hpp>
#include <collage/place/costs.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>
#include "conversions.hpp"
#include "group_order.hpp"
#include "neighbours.hpp"
#include "placement_race.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class run_learner {
 public:
  explicit run_learner(placing_state& known) : known_(known) {}

  /// Learns the costs of kernels and conversions within the network; `incumbent` is the fastest placement. Learns the costs of
  /// switches only if the sum of costs is wrong without them.
  void learn(const placement_race& race, std::size_t incumbent) {
    learn_kernels(race, incumbent);
    const double took = race.time_of(incumbent).median_ms;
    if (!neighbours_count_ && took > 0 &&
        std::abs(placement_writer(known_).refreshed(race.which(incumbent)).cost_ms / took - 1) > most_off)
      neighbours_count_ = true;
    if (neighbours_count_) {
      std::vector<observed_step> all;
      for (std::size_t i = 0; i < race.size(); ++i) {
        const std::vector<observed_step> steps = observed(race, i, incumbent);
        all.insert(all.end(), steps.begin(), steps.end());
      }
      known_.neighbours.learn(all);
      learn_kernels(race, incumbent);
    }
    known_.costs.favour(known_.candidates.in(race.which(incumbent)));
    learn_conversions(race, incumbent);
  }

 private:
  /// The largest part of a step's time that may count as its switches.
  static constexpr double most_added = 0.9;
  /// Switches are learnt if the sum of costs differs from the end-to-end time by more than this part of the time.
  static constexpr double most_off = 0.02;
  /// If a placement is slower than the fastest by more than this factor, times of its kernels say little about the fastest.
  static constexpr double much_slower = 1.5;

  /// The timed steps of a placement, as far as their kernels are candidates.
  std::vector<observed_step> observed(const placement_race& race, std::size_t i, std::size_t incumbent) const {
    std::vector<observed_step> list;
    const auto who = known_.candidates.in(race.which(i));
    const auto writers = other_writers(known_.task.network, known_.task.backends, race.which(i));
    const std::vector<timing> steps = race.steps_of(i, incumbent, race.main_regime(i));
    for (std::size_t s = 0; s < who.size(); ++s)
      if (who[s] && steps[s].samples != 0)
        list.push_back({key_of(known_.candidates.all(), known_.candidates[*who[s]]), steps[s].median_ms, writers[s]});
    return list;
  }
  /// Learns the times of steps without their switches.
  void learn_kernels(const placement_race& race, std::size_t incumbent) {
    known_.costs.learn_anew();
    for (std::size_t i = 0; i < race.size(); ++i) {
      const auto who = known_.candidates.in(race.which(i));
      const bool far_off = race.time_of(i).median_ms > much_slower * race.time_of(incumbent).median_ms;
      for (const cache_regime regime : cache_regimes) {
        std::vector<timing> steps = race.steps_of(i, incumbent, regime);
        take_off_switches(race.which(i), who, steps);
        known_.costs.learn(who, steps, regime, far_off);
      }
    }
    known_.costs.finish_learning();
  }
  void take_off_switches(const placement& p, std::span<const std::optional<std::uint32_t>> who,
                         std::vector<timing>& steps) const {
    if (!known_.neighbours.any()) return;
    const auto writers = other_writers(known_.task.network, known_.task.backends, p);
    for (std::size_t s = 0; s < who.size(); ++s) {
      if (!who[s]) continue;
      const double added = known_.neighbours.of(writers[s], known_.candidates[*who[s]].backend);
      if (!(added > 0)) continue;
      const double left = 1 - std::min(added / steps[s].median_ms, most_added);
      for (double* part :
           {&steps[s].median_ms, &steps[s].low_ms, &steps[s].high_ms, &steps[s].sure_low_ms, &steps[s].sure_high_ms})
        *part *= left;
    }
  }
  void learn_conversions(const placement_race& race, std::size_t incumbent) {
    std::optional<conversion_book>& conversions = known_.layouts.conversions();
    if (!conversions) return;
    conversions->book().learn_anew();
    for (std::size_t i = 0; i < race.size(); ++i) {
      std::vector<std::optional<std::uint32_t>> who;
      for (const std::size_t c : race.conversions_in(i)) who.push_back(conversions->find(race.which(i).conversions[c]));
      for (const cache_regime regime : cache_regimes)
        conversions->book().learn(who, race.conversion_steps_of(i, incumbent, regime), regime);
    }
    conversions->book().finish_learning();
  }

  placing_state& known_;
  bool neighbours_count_ = false;  // costs include switches
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
