// Prices all candidates by what a store knows of them and of kernels like them. Nothing is built or timed.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/measuring.hpp>
#include <collage/place/workloads.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>
#include "conversions.hpp"
#include "cost_book.hpp"
#include "cost_keys.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "search_view.hpp"
#include "time_model.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class estimator {
 public:
  estimator(placing_state& known, const cost_index& index) : known_(known), index_(index) {}

  /// Gives every candidate and conversion a cost or a refusal.
  void price() {
    const place_task& task = known_.task;
    price(task.network, known_.candidates.all(), known_.costs);
    if (known_.layouts.conversions()) {
      conversion_book& c = *known_.layouts.conversions();
      price(c.network(), c.candidates(), c.book());
    }
    leave_unknown_regions();
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) settle_fallbacks(i);
  }

  /// Whether kernels of enough of the network were measured, at this size or others.
  bool knows_enough() {
    std::vector<bool> is_known(known_.task.network.nodes().size());
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) {
      const measured_cost& cost = entry_of(i);
      if (!cost.refusal.empty()) continue;
      if (cost.estimate && (cost.estimate->basis == cost_basis::modelled || cost.estimate->is_of_others)) continue;
      for (const std::uint32_t n : known_.candidates.nodes_of(i)) is_known[n] = true;
    }
    const time_model model(known_.task);
    double known_ms = 0, all_ms = 0;
    for (std::uint32_t n = 0; n < is_known.size(); ++n) {
      if (known_.task.is_alias[n]) continue;
      const double ms = model.ms(std::span(&n, 1));
      all_ms += ms;
      if (is_known[n]) known_ms += ms;
    }
    return known_ms >= thresholds.estimate.least_known * all_ms;
  }

  /// Refuses the fallback kernels at a candidate's nodes if some other kernel runs these, and allows them if none does.
  void settle_fallbacks(std::uint32_t candidate) {
    const std::uint32_t structure = known_.candidates.structure_of(candidate);
    bool any = allows_fallbacks_;
    for (const std::uint32_t i : known_.costs.rivals_of(structure))
      if (!any && !is_fallback(i)) any = entry_of(i).refusal.empty() && rounds_nothing(i);
    for (const std::uint32_t i : known_.costs.rivals_of(structure)) {
      if (!is_fallback(i)) continue;
      std::string& refusal = entry_of(i).refusal;
      if (any && !allows_fallbacks_ && refusal.empty()) refusal = needless_fallback;
      else if ((!any || allows_fallbacks_) && refusal == needless_fallback) refusal.clear();
    }
  }
  /// Allows all fallback kernels, whose weights are not packed. Returns whether that is new.
  bool allow_fallbacks() {
    if (std::exchange(allows_fallbacks_, true)) return false;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) settle_fallbacks(i);
    return true;
  }

 private:
  void price(const graph& network, const place_candidates& all, cost_book& book) {
    const place_task& task = known_.task;
    const cost_keys keys(network, task.backends, all, task.use, task.threads, task.precision, task.options.algorithms);
    std::vector<bool> is_done(all.structures.size());
    for (const place_candidate& first : all.list) {
      const std::uint32_t structure = all.groups[first.group].structure;
      if (is_done[structure]) continue;
      is_done[structure] = true;
      const std::vector<std::uint64_t> words =
          structure_key(network, all.groups[all.structures[structure].example].nodes);
      std::map<std::vector<std::uint64_t>, std::shared_ptr<const cost_index::workload>> prepared;  // by forms
      std::map<std::pair<std::uint32_t, std::uint32_t>, int> turns;  // by backend and pattern
      for (const std::uint32_t i : book.rivals_of(structure)) {
        const place_candidate& c = all.list[i];
        std::vector<std::uint64_t> forms;
        keys.add_forms(c, forms);
        std::shared_ptr<const cost_index::workload>& its = prepared[forms];
        if (its == nullptr) {
          forms.insert(forms.begin(), words.begin(), words.end());
          its = index_.prepared(forms);
        }
        cost_estimate found = index_.estimate(keys.without_workload(c), *its);
        if (found.basis == cost_basis::modelled && found.like_it == 0)
          found.ms *= std::pow(thresholds.estimate.next_backend, c.backend);
        if (found.is_of_others) found.ms *= std::pow(thresholds.estimate.next_choice, turns[{c.backend, c.pattern}]++);
        judge_accuracy(network, c, found);
        take(std::move(found), book.entry_of(c));
      }
    }
  }

  /// Refuses kernels by other algorithms that were measured neither at this size nor, always accurate, at others.
  void judge_accuracy(const graph& network, const place_candidate& c, cost_estimate& found) const {
    if (known_.task.options.algorithms != algorithms::accurate || !found.refusal.empty() ||
        found.basis == cost_basis::measured || algorithm_of(network, known_.task.backends, c).is_direct())
      return;
    if (found.basis == cost_basis::modelled || found.is_of_others)
      found.refusal = "it computes by another algorithm, whose accuracy was measured at no size";
    else if (found.was_refused) found.refusal = "it computes by another algorithm, and was refused at another size";
  }

  static void take(cost_estimate found, measured_cost& cost) {
    cost.alone_ms = found.ms;
    cost.kernel = found.kernel;
    cost.refusal = found.refusal;
    cost.from_store = found.basis == cost_basis::measured;
    cost.is_modelled = !cost.from_store;
    cost.time = found.time;
    if (cost.from_store) return;
    const double error = found.error.value_or(0);
    cost.time = {found.ms, found.ms, found.ms, found.ms / (1 + error), found.ms * (1 + error), 0};
    cost.estimate = std::make_shared<const cost_estimate>(std::move(found));
  }

  /// Refuses regions that were measured at no size, where operators have kernels. A model says nothing about what a library makes
  /// of a region, and building one takes seconds.
  void leave_unknown_regions() {
    bool any = false;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) any = any || known_.candidates.is_region(i);
    if (!any || !search_view(known_).is_covered_by_operators()) return;
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i)
      if (measured_cost& cost = entry_of(i); known_.candidates.is_region(i) && cost.refusal.empty() && cost.estimate &&
                                             cost.estimate->basis == cost_basis::modelled)
        cost.refusal = "no region of these operators was measured at any size";
  }

  measured_cost& entry_of(std::uint32_t candidate) { return known_.costs.entry_of(known_.candidates[candidate]); }
  bool rounds_nothing(std::uint32_t candidate) const { return !known_.errors.rounding_of(candidate); }
  bool is_fallback(std::uint32_t candidate) const {
    return is_last_resort(known_.task.backends, known_.candidates[candidate]);
  }

  placing_state& known_;
  const cost_index& index_;
  bool allows_fallbacks_ = false;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
