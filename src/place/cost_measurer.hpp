// Gets the costs of candidates alone, from the store or by measuring. It measures again if the machine was slow at first.
#pragma once

#include <algorithm>
#include <array>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/store.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/measuring.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "conversions.hpp"
#include "cost_book.hpp"
#include "fixed_work.hpp"
#include "kept_costs.hpp"
#include "kernel_check.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "progress.hpp"
#include "time_model.hpp"
#include "worker_client.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class cost_measurer {
 public:
  /// Opens the store if the options name one. Errors: those of cost_store, if the store is not optional.
  cost_measurer(placing_state& known, const progress& listener)
      : task_(known.task),
        progress_(listener),
        kernels_{known.task.network, known.candidates.all(), known.costs},
        model_(known.task),
        worker_(worker_options{known.task.options.measuring.worker_timeout_s}) {
    const place_options& options = task_.options;
    if (!options.store.empty())
      keep(kernels_, task_.use, known.weights.key() + precision_key(), options.regions.seconds > 0);
    if (known.layouts.conversions()) {
      conversion_book& c = *known.layouts.conversions();
      conversions_.emplace(cost_ledger{c.network(), c.candidates(), c.book()});
      if (!options.store.empty()) keep(*conversions_, task_.use, "", false);
    }
    const measuring_options& how = options.measuring;
    drift_options drift = how.drift;
    for (std::size_t i = 0; i < drift_signs && kernels_.kept; ++i)
      if (drift.usual_ms[i] <= 0) drift.usual_ms[i] = kernels_.kept->usual_ms(static_cast<drift_sign>(i));
    if (options.budget_s > 0) {  // waiting is part of it
      const double most_ms = thresholds.budget.for_waiting * options.budget_s * 1e3;
      drift.patience_ms = std::min(drift.patience_ms, most_ms);
      drift.longest_wait_ms = std::min(drift.longest_wait_ms, most_ms);
    }
    const bool has_works = std::ranges::any_of(how.drift_works, [](const drift_work& w) { return bool{w}; });
    monitor_.emplace(has_works ? how.drift_works : drift_works(task_.threads), drift, how.clock);
    trusted_ms_ = monitor_->usual_ms();
  }
  cost_measurer(const cost_measurer&) = delete;
  cost_measurer& operator=(const cost_measurer&) = delete;

  // ---- Kernels ----

  /// Gets the costs of a structure, from the store or by measuring. With a store, one process at a time measures.
  void measure(std::uint32_t structure) {
    task_.until.check();
    const double start = now_ms();
    learn(kernels_, structure);
    if (fallbacks_.count(structure) != 0) measure_fallbacks_of(structure);
    structures_.insert(structure);
    ++turns_;
    took_ms_ += now_ms() - start;
  }
  /// Measures the kernels of structures for which there was no time before. Those that take most of the network's time come first.
  void measure_unbuilt(std::vector<std::uint32_t> structures) {
    const auto share = [this](std::uint32_t s) { return model_.share(kernels_.candidates, s); };
    std::ranges::sort(structures, {}, [&](std::uint32_t s) { return std::pair(-share(s), s); });
    structures.erase(std::ranges::unique(structures).begin(), structures.end());
    part_of_share_ = thresholds.budget.for_structure_again;
    for (const std::uint32_t s : structures) {
      const bool has_time = slot_ms(kernels_, s) > thresholds.budget.least_again_ms;
      if (!has_time || task_.until.is_over_for_kernels() || !kernels_.book.forget_unbuilt(s)) continue;
      structures_.erase(s);
      measure(s);
    }
    part_of_share_ = thresholds.budget.for_structure;
  }
  /// Measures candidates against another one of their structure, whose cost stays as it is: theirs follow from the ratios. `again`: also
  /// those that have costs. Returns how many were measured.
  std::size_t measure_beside(std::uint32_t other, std::vector<std::uint32_t> who, bool again) {
    task_.until.check();
    const measuring_lock lock = wait_for_turn(&kernels_);
    const place_candidates& all = kernels_.candidates;
    if (!again) {
      recall(kernels_, kernels_.structure_of(other));
      std::erase_if(who, [&](std::uint32_t i) { return kernels_.book.find(all.list[i]) != nullptr; });
    }
    if (who.empty()) return 0;
    who.insert(who.begin(), other);
    const std::vector<measured_candidate> measured = measure_now(kernels_, who, setup());
    const bool is_timed = measured.front().refusal.empty() && measured.front().cost_ms > 0;
    const double scale = is_timed ? kernels_.book.find(all.list[other])->alone_ms / measured.front().cost_ms : 1;
    std::vector<std::pair<place_candidate, measured_cost>> costs;
    for (std::size_t k = 1; k < who.size(); ++k) {
      measured_cost cost;
      set_measured(cost, measured[k]);
      cost.alone_ms *= scale;
      if (!is_timed && cost.refusal.empty()) {
        cost.refusal = "the kernel beside which it should be timed failed";
        cost.passing = true;
      }
      if (again && cost.passing) continue;
      kernels_.book.set(all.list[who[k]], cost);
      costs.emplace_back(all.list[who[k]], cost);
    }
    if (kernels_.kept && !task_.until.is_past()) kernels_.kept->put(costs, where_);
    return who.size() - 1;
  }
  void measure_once(std::uint32_t structure) {
    if (!kernels_.book.is_measured(structure)) measure(structure);
  }
  /// Measures the wanted structures until all have costs, because those measured during a slow start are invalidated.
  template <class Wanted>
  void measure_all(Wanted wanted) {
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t s = 0; s < kernels_.candidates.structures.size(); ++s) {
        if (!wanted(s) || kernels_.book.is_measured(s)) continue;
        measure(s);
        again = true;
      }
    }
  }
  /// Takes what the store knows of all kernels. For a placing that has no time to measure.
  void recall_all() {
    for (std::uint32_t s = 0; s < kernels_.candidates.structures.size(); ++s) recall(kernels_, s);
  }
  /// Whether a candidate has a kernel that can be used. Measures it if that is not known yet.
  bool has_kernel(std::uint32_t candidate) {
    const std::uint32_t structure = kernels_.structure_of(candidate);
    if (!kernels_.book.is_measured(structure)) measure(structure);
    return is_usable(kernels_, candidate);
  }
  /// The same by known costs and the store, without measuring.
  bool is_known_to_have_kernel(std::uint32_t candidate) {
    recall(kernels_, kernels_.structure_of(candidate));
    return is_usable(kernels_, candidate);
  }

  /// Measures the fallback kernels that were refused because other kernels run their nodes. Returns whether there are any. They are
  /// needed where all others keep too large weights. The store does not get their costs: other placings do without them.
  bool measure_fallbacks() {
    bool any = false;
    for (std::uint32_t s = 0; s < kernels_.candidates.structures.size(); ++s)
      if (!needless_fallbacks(s).empty()) {
        fallbacks_.insert(s);
        measure_fallbacks_of(s);
        any = true;
      }
    return any;
  }

  // ---- Conversions ----

  void measure_conversion(std::uint32_t candidate) {
    const std::uint32_t structure = conversions_->structure_of(candidate);
    if (conversions_->book.is_measured(structure)) return;
    learn(*conversions_, structure);
    converted_.insert(structure);
  }
  /// Builds a conversion that there is no time to measure, at a price of the model.
  void model_conversion(std::uint32_t candidate, double ms) {
    measured_cost& cost = conversions_->book.entry_of(conversions_->candidates.list[candidate]);
    cost.is_modelled = true;
    cost.alone_ms = ms;
    (void)is_built(task_, conversions_->network, conversions_->candidates, conversions_->candidates.list[candidate],
                   cost);
  }
  /// Measures the conversions that `needed` returns, if they have no cost yet. The new costs may change which conversions are
  /// needed, so this is repeated. Returns whether all of them can be made.
  template <class Needed>
  bool measure_conversions(Needed needed) {
    for (bool again = true; again;) {
      again = false;
      for (const auto& [conversion, candidate] : needed()) {
        if (!candidate) return false;
        if (conversions_->book.find(conversions_->candidates.list[*candidate]) != nullptr) continue;
        measure_conversion(*candidate);
        again = true;
      }
    }
    return true;
  }
  bool is_known_to_convert(std::uint32_t candidate) {
    recall(*conversions_, conversions_->structure_of(candidate));
    return is_usable(*conversions_, candidate);
  }

  // ---- Slow starts ----

  /// Invalidates the costs that were measured so far if the machine turns out to be faster than at the start. They are not
  /// comparable with later ones, and are measured again if needed. Returns whether costs were invalidated.
  bool distrust_slow_start() {
    if (task_.options.budget_s > 0 && task_.until.is_over_for_kernels()) return false;  // there is no time for it
    monitor_->look();
    if (!monitor_->is_faster_than(trusted_ms_)) return false;
    const std::array<double, drift_signs> now = monitor_->usual_ms();
    for (std::size_t i = 0; i < drift_signs; ++i) trusted_ms_[i] = std::min(trusted_ms_[i], now[i]);
    for (const std::uint32_t s : kernels_.measured_now) structures_.erase(s);
    kernels_.distrust();
    if (conversions_) {
      for (const std::uint32_t s : conversions_->measured_now) converted_.erase(s);
      conversions_->distrust();
    }
    ++distrusts_;
    return true;
  }
  /// How often costs were invalidated so far.
  std::size_t distrusts() const { return distrusts_; }
  /// Measures invalidated costs again, so that neither the store nor the plan has times of a slow start.
  void replace_distrusted() {
    for (std::optional<std::size_t> before; before != distrusts_;) {  // measuring may invalidate costs once more
      before = distrusts_;
      measure_all([this](std::uint32_t s) { return kernels_.distrusted.count(s) != 0 && !task_.until.is_over(); });
      for (std::uint32_t i = 0; conversions_ && i < conversions_->candidates.list.size() && !task_.until.is_over(); ++i)
        if (conversions_->distrusted.count(conversions_->structure_of(i)) != 0) measure_conversion(i);
    }
  }

  // ---- The machine and the store ----

  /// Does some work with the right to measure, if there is a store. Measurements within the work do not wait for it again.
  template <class Work>
  void in_turn(Work work) {
    const measuring_lock lock = wait_for_turn();
    struct turn {  // ends with the work, also where that throws
      bool& has;
      explicit turn(bool& at) : has(at) { has = true; }
      ~turn() { has = false; }
      turn(const turn&) = delete;
      turn& operator=(const turn&) = delete;
    } const held(has_turn_);
    work();
  }
  /// Empty without a store.
  std::optional<kept_costs>& kept() { return kernels_.kept; }
  /// As place_report::unstored.
  const std::string& unstored() const { return kernels_.kept ? kernels_.kept->problem() : unopened_; }
  drift_monitor& monitor() { return *monitor_; }
  /// The time spent waiting for an undisturbed machine.
  double waited_ms() const { return monitor_->waited_ms() + worker_.waited_ms(); }
  /// The time that threads of workers waited for a processor.
  double held_up_ms() const { return worker_.held_up_ms(); }
  /// As place_report::where.
  const std::string& where() const { return where_; }

 private:
  /// Costs of the candidates of one network, and which of them were invalidated.
  struct cost_ledger {
    const graph& network;
    const place_candidates& candidates;
    cost_book& book;
    std::optional<kept_costs> kept = {};
    std::vector<std::uint32_t> measured_now = {};  // structures
    std::set<std::uint32_t> distrusted = {};       // structures whose costs were invalidated: not read from the store

    std::uint32_t structure_of(std::uint32_t candidate) const {
      return candidates.groups[candidates.list[candidate].group].structure;
    }
    /// The costs of a structure that were measured, not taken from the store.
    std::vector<std::pair<place_candidate, measured_cost>> fresh_of(std::uint32_t structure) const {
      std::vector<std::pair<place_candidate, measured_cost>> fresh;
      for (const std::uint32_t i : book.rivals_of(structure))
        if (const measured_cost* cost = book.find(candidates.list[i]);
            cost != nullptr && !cost->from_store && !cost->is_modelled)
          fresh.emplace_back(candidates.list[i], *cost);
      return fresh;
    }
    void distrust() {
      std::vector<place_candidate> gone;
      for (const std::uint32_t s : std::exchange(measured_now, {})) {
        for (const auto& [candidate, cost] : fresh_of(s)) gone.push_back(candidate);
        book.forget(s);
        distrusted.insert(s);
      }
      if (kept) kept->forget(gone);
    }
  };

  /// A part of the key of comparisons: what the plan may round, and the errors by which that is decided.
  std::string precision_key() const {
    const precision_options& how = task_.options.precision;
    if (!how.may_round()) return {};
    const std::uint64_t scales = how.scales != nullptr ? how.scales->hash() : 0;
    return ", " + task_.plan_precision + " by " + hex_of(how.errors->hash() ^ scales);
  }

  void keep(cost_ledger& of, const std::vector<bool>& use, const std::string& bound, bool divides) {
    const bool is_optional = task_.options.store_is_optional;
    try {
      of.kept.emplace(task_.options.store, of.network, task_.backends, of.candidates, use, task_.threads,
                      task_.precision, task_.options.algorithms, bound, divides, is_optional);
    } catch (const error& e) {
      if (!is_optional) throw;
      unopened_ = e.what();
    }
  }
  static bool is_usable(const cost_ledger& of, std::uint32_t candidate) {
    const measured_cost* cost = of.book.find(of.candidates.list[candidate]);
    return cost != nullptr && cost->refusal.empty();
  }

  void learn(cost_ledger& of, std::uint32_t structure) {
    recall(of, structure);
    if (of.book.is_measured(structure)) return;
    distrust_slow_start();
    tell("measuring", of.candidates.structures[structure].label, &of);
    const measuring_lock lock = wait_for_turn(&of);
    recall(of, structure);
    if (of.book.is_measured(structure)) return;
    measuring_setup how = setup();
    how.slot_ms = slot_ms(of, structure);
    how.needs_all = &of != &kernels_;
    const place_structure& s = of.candidates.structures[structure];
    if (of.candidates.groups[s.example].nodes.size() > 1) how.give_up = [this] { return task_.until.is_long_over(); };
    of.book.measure(structure, [&](std::span<const std::uint32_t> asked) { return measure_now(of, asked, how); });
    const std::string where = task_.options.measuring.workers ? worker_.where() : "in this process";
    if (where_.empty() || where != in_a_worker) where_ = where;
    of.measured_now.push_back(structure);
    // Costs are not kept if the time ended while they were measured. A caller that cancels now loses nothing.
    if (!of.kept || task_.until.is_past()) return;
    of.kept->put(of.fresh_of(structure), where);
  }
  /// The time for the kernels of a structure, so that a budget is not spent on the first ones; 0 without a budget. Conversions
  /// are few and short.
  double slot_ms(const cost_ledger& of, std::uint32_t structure) {
    if (task_.options.budget_s <= 0 || &of != &kernels_) return 0;
    const double part = std::min(part_of_share_ * model_.share(of.candidates, structure), 1.0);
    return std::max(part * task_.until.left_for_kernels_s() * 1e3, 1e-3);
  }
  std::vector<std::uint32_t> needless_fallbacks(std::uint32_t structure) const {
    std::vector<std::uint32_t> list;
    for (const std::uint32_t i : kernels_.book.rivals_of(structure))
      if (const measured_cost* cost = kernels_.book.find(kernels_.candidates.list[i]);
          cost != nullptr && cost->refusal == needless_fallback)
        list.push_back(i);
    return list;
  }
  void measure_fallbacks_of(std::uint32_t structure) {
    const std::vector<std::uint32_t> list = needless_fallbacks(structure);
    if (list.empty()) return;
    task_.until.check();
    const measuring_lock lock = wait_for_turn(&kernels_);
    const std::vector<measured_candidate> measured = measure_now(kernels_, list, setup());
    for (std::size_t k = 0; k < list.size(); ++k) {
      measured_cost& cost = kernels_.book.entry_of(kernels_.candidates.list[list[k]]);
      cost = {};
      set_measured(cost, measured[k]);
    }
  }
  std::vector<measured_candidate> measure_now(const cost_ledger& of, std::span<const std::uint32_t> asked,
                                              const measuring_setup& how) {
    if (task_.options.measuring.workers) return worker_.measure(of.network, task_.backends, of.candidates, asked, how);
    return measure_candidates(of.network, task_.backends, of.candidates, asked, how);
  }
  static void recall(cost_ledger& of, std::uint32_t structure) {
    if (!of.kept || of.distrusted.count(structure) != 0) return;
    for (const std::uint32_t i : of.book.rivals_of(structure))
      if (of.book.find(of.candidates.list[i]) == nullptr)
        if (const std::optional<measured_cost> cost = of.kept->find(of.candidates.list[i]))
          of.book.recall(of.candidates.list[i], *cost);
  }

  measuring_setup setup() {
    measuring_setup s;
    s.threads = task_.threads;
    s.seed = task_.options.seed;
    s.packed = task_.packed.get();
    s.timing = task_.options.measuring.timing;
    s.monitor = &*monitor_;
    s.stop = [this] { return task_.until.is_over(); };
    if (task_.options.cancel) s.note = [this](std::size_t, measuring_step) { task_.until.check(); };
    s.time = task_.options.measuring.clock;
    s.keep_non_finite = task_.options.keep_non_finite;
    s.algorithms = task_.options.algorithms;
    return s;
  }

  /// Waits for the right to measure, if there is a store. `next` has the work that waits; null if no ledger has it.
  measuring_lock wait_for_turn(const cost_ledger* next = nullptr) {
    std::optional<kept_costs>& store = kernels_.kept;
    if (!store || !store->problem().empty() || has_turn_) return {};
    return store->lock([&](const measuring_process& other) {
      tell("waiting",
           other.pid != 0 ? "process " + std::to_string(other.pid) + " measures with the same store"
                          : "another process measures with the same store",
           next);
      return !task_.until.is_over();
    });
  }

  void tell(const char* stage, const std::string& what, const cost_ledger* next) const {
    place_progress now;
    now.stage = stage;
    now.what = what;
    now.done = structures_.size() + converted_.size();
    now.remaining = kernels_.candidates.structures.size() - structures_.size();
    // A conversion is counted when it is needed, because few of the possible ones ever are.
    if (next != nullptr && next != &kernels_) ++now.remaining;
    if (turns_ != 0)
      now.remaining_s = took_ms_ / static_cast<double>(turns_) * static_cast<double>(now.remaining) / 1e3;
    progress_.tell(std::move(now));
  }

  const place_task& task_;
  const progress& progress_;
  cost_ledger kernels_;
  time_model model_;
  double part_of_share_ = thresholds.budget.for_structure;
  std::optional<cost_ledger> conversions_;  // none if all layouts are plain
  std::optional<drift_monitor> monitor_;
  std::array<double, drift_signs> trusted_ms_{};  // the monitor's usual times while the trusted costs were measured
  worker_client worker_;
  std::set<std::uint32_t> fallbacks_;  // structures whose fallback kernels are measured
  std::size_t distrusts_ = 0;
  // Sets, because a structure may be measured again: after a slow start, or when there was no time for all its kernels at first.
  std::set<std::uint32_t> structures_;  // structures of kernels with costs
  std::set<std::uint32_t> converted_;   // structures of conversions with costs
  std::size_t turns_ = 0;               // how often costs of a structure of kernels were got; `took_ms_`: in what time
  double took_ms_ = 0;
  bool has_turn_ = false;
  std::string where_;
  std::string unopened_;  // why there is no store, although the options name one
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
