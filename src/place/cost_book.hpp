// The costs of candidates as placing knows them: measured alone, measured within the network, or only bounded from below.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/op/kind.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
#include "policy.hpp"
#include "round_log.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// How sure a cost is.
enum class cost_state : std::uint8_t {
  refused,  ///< there is no kernel
  bounded,  ///< not measured: it costs at least this
  alone,    ///< measured alone; within the network it is expected to cost this
  within,   ///< measured within the network
};

struct known_cost {
  cost_state state = cost_state::refused;
  double ms = 0;
};

/// How the search prices kernels that were not measured often enough to be sure.
enum class outlook : std::uint8_t {
  as_known,
  /// Pessimistic prices, for the search for the plan. Kernels that are not in the fastest placement cost more than is known, and
  /// those that never ran within the network still more. Otherwise the search would follow each measurement that came out too
  /// low. Among hundreds there always are some.
  doubtful,
  /// Optimistic prices, for trials. Kernels that never ran within the network cost less than is known, and those that ran in few
  /// placements a little less. The placement that the search finds is worth a run, until more runs would show nothing new.
  hopeful,
  /// The same for times in split caches (round_log.hpp).
  hopeful_split,
};

class cost_book {
 public:
  cost_book(const graph& network, backend_table backends, const place_candidates& candidates)
      : network_(network), backends_(backends), candidates_(candidates), factor_(backends.size(), 1.0) {
    for (std::uint32_t i = 0; i < candidates.list.size(); ++i) {
      const place_candidate& c = candidates.list[i];
      const place_group& g = candidates.groups[c.group];
      if (candidates.structures[g.structure].example == c.group) rivals_[g.structure].push_back(i);
      if (g.nodes.size() == 1) alone_structure_[g.nodes[0]] = g.structure;
    }
  }

  /// Notes a candidate that was appended to the list, at the first group of its structure.
  void add(std::uint32_t candidate) {
    rivals_[candidates_.groups[candidates_.list[candidate].group].structure].push_back(candidate);
  }

  /// The known or expected cost of a candidate.
  known_cost cost_of(const place_candidate& c) const {
    const auto known = table_.find(key_of(candidates_, c));
    const double factor = factor_[c.backend];
    if (known == table_.end()) return {cost_state::bounded, least_ms(c) * factor};
    if (!known->second.refusal.empty()) return {};
    if (known->second.within.samples != 0) return {cost_state::within, known->second.within.median_ms};
    return {cost_state::alone, known->second.alone_ms * factor};
  }
  /// The price of a candidate for the search.
  known_cost price_of(const place_candidate& c, outlook how) const {
    known_cost price = cost_of(c);
    const bool is_doubtful = how == outlook::doubtful;
    if (how == outlook::as_known || !any_within_) return price;
    if (price.state == cost_state::within && !is_doubtful && ran_far_off(c)) {
      // In a placement much slower than the fastest, caches are in another state. The cost alone may say more.
      price.state = cost_state::alone;
      price.ms = std::min(price.ms, find(c)->alone_ms * factor_[c.backend]);
    }
    if (price.state == cost_state::alone) price.ms *= is_doubtful ? thresholds.price.doubt_alone : hope_;
    if (price.state != cost_state::within || is_favoured(c)) return price;
    if (is_doubtful) price.ms *= thresholds.price.doubt_within;
    else if (how == outlook::hopeful_split && !is_known_split(c)) price.ms *= thresholds.price.hope_split;
    else if (!is_well_known(c, how)) price.ms *= thresholds.price.hope_within;
    return price;
  }
  /// Whether another run within the network would show little: it is part of the fastest placement, or ran in several.
  bool is_well_known(const place_candidate& c, outlook how) const {
    const auto found = seen_.find(key_of(candidates_, c));
    if (is_favoured(c) || found == seen_.end()) return is_favoured(c);
    const sightings& seen = found->second;
    return how == outlook::hopeful_split ? seen.split.size() >= thresholds.price.enough_split_sightings
                                         : std::max({seen.shared.size(), seen.split.size(), seen.far_off.size()}) >=
                                               thresholds.price.enough_sightings;
  }
  /// Whether it ran within the network in split caches.
  bool is_known_split(const place_candidate& c) const {
    const auto seen = seen_.find(key_of(candidates_, c));
    return seen != seen_.end() && !seen->second.split.empty();
  }
  /// The same for any candidate of a backend.
  bool knows_split(std::uint32_t backend) const {
    return std::ranges::any_of(
        seen_, [backend](const auto& seen) { return seen.first.backend == backend && !seen.second.split.empty(); });
  }
  /// Sets the fastest placement so far, by its candidates.
  void favour(std::span<const std::optional<std::uint32_t>> who) {
    favoured_.clear();
    for (const auto& candidate : who)
      if (candidate) favoured_.insert(key_of(candidates_, candidates_.list[*candidate]));
  }
  /// Its measurements; null if there are none.
  const measured_cost* find(const place_candidate& c) const {
    const auto known = table_.find(key_of(candidates_, c));
    return known == table_.end() ? nullptr : &known->second;
  }
  bool is_measured(std::uint32_t structure) const {
    for (const std::uint32_t i : rivals_.at(structure))
      if (find(candidates_.list[i]) == nullptr) return false;
    return true;
  }

  /// The candidates of a structure at its example.
  const std::vector<std::uint32_t>& rivals_of(std::uint32_t structure) const { return rivals_.at(structure); }

  void measure(std::uint32_t structure, const candidate_measurer& measurer) {
    measure_structure(candidates_, structure, measurer, table_);
    note_fastest(structure);
  }
  /// Notes the cost of a candidate that was measured beside others than its rivals.
  void set(const place_candidate& c, measured_cost cost) {
    table_[key_of(candidates_, c)] = std::move(cost);
    note_fastest(candidates_.groups[c.group].structure);
  }
  /// No longer counts a candidate as a rival, so that it is not measured again. It must have been added.
  void retire(std::uint32_t candidate) {
    std::erase(rivals_.at(candidates_.groups[candidates_.list[candidate].group].structure), candidate);
  }
  /// Takes over a cost from the store.
  void recall(const place_candidate& c, measured_cost known) {
    known.from_store = true;
    table_[key_of(candidates_, c)] = std::move(known);
    note_fastest(candidates_.groups[c.group].structure);
  }

  /// Forgets the costs of a structure that were measured now. Those from the store stay.
  void forget(std::uint32_t structure) {
    for (const std::uint32_t i : rivals_.at(structure))
      if (const auto known = table_.find(key_of(candidates_, candidates_.list[i]));
          known != table_.end() && !known->second.from_store)
        table_.erase(known);
    fastest_alone_.erase(structure);
  }

  /// Forgets the kernels that were not built for want of time. Returns whether there were any.
  bool forget_unbuilt(std::uint32_t structure) {
    bool any = false;
    for (const std::uint32_t i : rivals_.at(structure))
      if (const auto known = table_.find(key_of(candidates_, candidates_.list[i]));
          known != table_.end() && known->second.refusal == no_time_for_it) {
        table_.erase(known);
        any = true;
      }
    return any;
  }
  /// Forgets all that `learn` noted.
  void learn_anew() {
    seen_.clear();
    for (auto& [key, cost] : table_) cost.within = {};
    std::fill(factor_.begin(), factor_.end(), 1.0);
    hope_ = thresholds.price.most_hope;
    any_within_ = false;
  }
  /// Notes the times of a placement's steps within the network. `steps` has one entry for each group of the placement that is no
  /// view, in its order. `who` has the candidate of each of these groups, none for control flow. `far_off`: the placement is much
  /// slower than the fastest, as baselines may be. The times count after `finish_learning`.
  void learn(std::span<const std::optional<std::uint32_t>> who, std::span<const timing> steps, cache_regime regime,
             bool far_off = false) {
    // A kernel that runs at several places of a placement gets their mean, so that the sum over the network is right.
    std::map<cost_key, std::vector<timing>> places;
    for (std::size_t i = 0; i < who.size(); ++i)
      if (who[i] && steps[i].samples != 0 && find(candidates_.list[*who[i]]) != nullptr)
        places[key_of(candidates_, candidates_.list[*who[i]])].push_back(steps[i]);
    for (const auto& [key, times] : places) {
      sightings& seen = seen_[key];
      std::vector<timing>& list = far_off ? seen.far_off : regime == cache_regime::split ? seen.split : seen.shared;
      list.push_back(combined(times, [](const std::vector<double>& ms) {
        return std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
      }));
    }
  }
  /// Computes costs and factors from all that `learn` noted.
  void finish_learning() {
    // The median over placements, because one that ran in a bad minute may be off by any factor.
    std::vector<double> within(backends_.size()), alone(backends_.size());
    const auto median = [](std::vector<double> list) { return summarise(std::move(list)).median_ms; };
    for (const auto& [key, seen] : seen_) {
      measured_cost& cost = table_.at(key);
      const timing shared = combined(seen.shared, median), split = combined(seen.split, median);
      cost.within = shared.samples == 0 ? split : split.samples == 0 ? shared : mean_of(shared, split);
      if (seen.is_far_off()) cost.within = combined(seen.far_off, median);
      within[key.backend] += cost.within.median_ms;
      alone[key.backend] += cost.alone_ms;
      any_within_ = true;
    }
    for (std::size_t b = 0; b < factor_.size(); ++b)
      if (alone[b] > 0) factor_[b] = within[b] / alone[b];
    hope_ = hope();
  }

  /// An entry to fill in for a kernel that is chosen without measuring: its name, or why it cannot be built.
  measured_cost& entry_of(const place_candidate& c) { return table_[key_of(candidates_, c)]; }
  const cost_table& table() const { return table_; }

 private:
  /// Times of a kernel within the network, one for each placement: in each cache regime, and in placements that are far off.
  struct sightings {
    std::vector<timing> shared, split, far_off;
    bool is_far_off() const { return shared.empty() && split.empty() && !far_off.empty(); }
  };
  /// Whether it ran in few placements, all of them far off.
  bool ran_far_off(const place_candidate& c) const {
    const auto seen = seen_.find(key_of(candidates_, c));
    return seen != seen_.end() && seen->second.is_far_off() &&
           seen->second.far_off.size() < thresholds.price.enough_sightings;
  }

  /// The portion of its expected time that a kernel may well take if it never ran within the network. It comes from kernels that
  /// did: a tenth of their time went to kernels that took at most this portion. If the machine was restless while kernels were
  /// measured alone, the portion is smaller.
  double hope() const {
    std::vector<std::pair<double, double>> parts;  // portion of the expected time; time
    double sum = 0;
    for (const auto& [key, seen] : seen_) {
      const measured_cost& cost = table_.at(key);
      const double expected = cost.alone_ms * factor_[key.backend];
      if (!(expected > 0) || seen.is_far_off()) continue;
      parts.emplace_back(cost.within.median_ms / expected, cost.within.median_ms);
      sum += cost.within.median_ms;
    }
    std::ranges::sort(parts);
    double so_far = 0;
    for (const auto& [part, took] : parts)
      if ((so_far += took) >= thresholds.price.hope_quantile * sum)
        return std::clamp(thresholds.price.hope_margin * part, thresholds.price.least_hope, thresholds.price.most_hope);
    return thresholds.price.most_hope;
  }
  bool is_favoured(const place_candidate& c) const { return favoured_.count(key_of(candidates_, c)) != 0; }

  /// Combines timings into one: each figure is `f` of the list of this figure.
  template <class F>
  static timing combined(std::span<const timing> times, F f) {
    timing all;
    for (double timing::* const part :
         {&timing::median_ms, &timing::low_ms, &timing::high_ms, &timing::sure_low_ms, &timing::sure_high_ms}) {
      std::vector<double> list;
      for (const timing& t : times) list.push_back(t.*part);
      all.*part = f(std::move(list));
    }
    for (const timing& t : times) all.samples += t.samples;
    return all;
  }

  /// Notes the smallest cost of a structure of one node. It bounds the cost of groups that contain such a node.
  void note_fastest(std::uint32_t structure) {
    if (candidates_.groups[candidates_.structures[structure].example].nodes.size() != 1) return;
    double& fastest = fastest_alone_[structure];
    fastest = 0;
    for (const std::uint32_t i : rivals_.at(structure))
      if (const measured_cost* m = find(candidates_.list[i]); m != nullptr && m->refusal.empty())
        fastest = fastest == 0 ? m->alone_ms : std::min(fastest, m->alone_ms);
  }

  /// A lower bound for a candidate's cost, from the costs of its nodes.
  double least_ms(const place_candidate& c) const {
    double most = 0;
    for (const std::uint32_t n : candidates_.groups[c.group].nodes) {
      const auto structure = alone_structure_.find(n);
      if (structure == alone_structure_.end()) continue;
      const auto fastest = fastest_alone_.find(structure->second);
      if (fastest == fastest_alone_.end()) continue;
      const bool is_anchor = network_.node(n).kind->fusion == fusion_kind::anchor;
      most = std::max(most, fastest->second * (is_anchor ? least_of_anchor : least_of_other));
    }
    return most;
  }

  const graph& network_;
  backend_table backends_;
  const place_candidates& candidates_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> rivals_;  // by structure: candidates at its example
  std::unordered_map<std::uint32_t, std::uint32_t> alone_structure_;      // by node: of the group with this node alone
  std::unordered_map<std::uint32_t, double> fastest_alone_;               // by structure of one node
  cost_table table_;
  std::map<cost_key, sightings> seen_;
  std::set<cost_key> favoured_;
  std::vector<double> factor_;                // by backend: how much longer kernels take within the network than alone
  double hope_ = thresholds.price.most_hope;  // see hope()
  bool any_within_ = false;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
