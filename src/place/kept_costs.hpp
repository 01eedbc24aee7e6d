// The store as placing uses it: finds and keeps the costs of candidates and the results of comparisons.
#pragma once

#include <algorithm>
#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/store.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "cost_keys.hpp"
#include "place_rules.hpp"
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// After an error, an optional store is not used any more, and `problem` says why. A store that is not optional throws errors of
/// reading.
class kept_costs {
 public:
  /// Opens the store. `bound` is the part of the key of comparisons about the memory of weights. Errors: those of cost_store.
  kept_costs(const std::string& path, const graph& network, backend_table backends, const place_candidates& candidates,
             const std::vector<bool>& use, int threads, const char* precision, algorithms which, std::string bound,
             bool divides, bool is_optional)
      : store_(path),
        keys_(network, backends, candidates, use, threads, precision, which),
        is_optional_(is_optional),
        network_(network),
        backends_(backends),
        candidates_(candidates),
        algorithms_(which),
        bound_(std::move(bound)) {
    for (std::uint32_t b = 0; b < backends.size(); ++b)
      divides_ = divides_ || (divides && use[b] && backends[b].takes_regions);
    if (!store_.writable()) problem_ = "the store " + store_.why_not_writable();
  }

  std::optional<measured_cost> find(const place_candidate& c) {
    const std::optional<stored_cost> kept = read([&] { return store_.find(key_of(c)); });
    if (!kept) return {};
    measured_cost cost;
    cost.time = {kept->median_ms,   kept->low_ms,       kept->high_ms,
                 kept->sure_low_ms, kept->sure_high_ms, static_cast<std::size_t>(kept->samples)};
    cost.alone_ms = kept->median_ms;
    cost.kernel = kept->kernel;
    cost.refusal = kept->refusal;
    return cost;
  }

  /// Keeps the costs of rivals that were measured together. If that fails, placing goes on without the store, and `problem` says
  /// why. The times are scaled so that their median is the cost by the race.
  void put(const std::vector<std::pair<place_candidate, measured_cost>>& costs, const std::string& how) {
    if (!problem_.empty() || costs.empty()) return;
    std::vector<std::pair<stored_key, stored_cost>> entries;
    for (const auto& [c, cost] : costs) {
      if (cost.passing) continue;
      stored_cost kept;
      kept.label = candidates_.structures[candidates_.groups[c.group].structure].label;
      kept.kernel = cost.kernel;
      kept.refusal = cost.refusal;
      if (cost.refusal.empty()) {
        const double scale = cost.time.median_ms > 0 ? cost.alone_ms / cost.time.median_ms : 1;
        kept.median_ms = cost.alone_ms;
        kept.low_ms = cost.time.low_ms * scale;
        kept.high_ms = cost.time.high_ms * scale;
        kept.sure_low_ms = cost.time.sure_low_ms * scale;
        kept.sure_high_ms = cost.time.sure_high_ms * scale;
        kept.samples = cost.time.samples;
      }
      kept.how = how;
      entries.emplace_back(key_of(c), std::move(kept));
    }
    if (entries.empty()) return;
    try {
      store_.put(entries);
    } catch (const error& e) { problem_ = e.what(); }
  }

  /// The result of an earlier comparison of a kernel with the reference, by `put_check` or when it was measured: the refusal, empty
  /// if it agreed. Nothing if it was never compared.
  std::optional<std::string> find_check(const place_candidate& c) {
    if (const std::optional<measured_cost> measured = find(c)) return measured->refusal;
    const std::optional<stored_cost> kept = read([&] { return store_.find(check_key_of(c)); });
    if (!kept) return {};
    return kept->refusal;
  }
  /// Notes such a result. `keep_checks` writes all of them at once: each writing waits for the disk.
  void put_check(const place_candidate& c, const measured_cost& cost) {
    if (!problem_.empty()) return;
    stored_cost kept;
    kept.label = "check of " + candidates_.structures[candidates_.groups[c.group].structure].label;
    kept.kernel = cost.kernel;
    kept.refusal = cost.refusal;
    kept.how = "compared with the reference, not timed";
    checks_.emplace_back(check_key_of(c), std::move(kept));
  }
  void keep_checks() {
    if (!problem_.empty() || checks_.empty()) return;
    try {
      store_.put(checks_);
    } catch (const error& e) { problem_ = e.what(); }
    checks_.clear();
  }

  /// The fastest configurations that a search of a kernel's whole space found, the fastest first. `like` is the candidate with some
  /// configuration of the kernel.
  std::vector<configuration> find_fastest(const place_candidate& like) {
    std::vector<configuration> list;
    for (;;) {
      const std::optional<stored_cost> kept = read([&] { return store_.find(fastest_key_of(like, list.size())); });
      std::optional<configuration> one = kept ? configuration::of(kept->kernel) : std::nullopt;
      if (!one) return list;
      list.push_back(*std::move(one));
    }
  }
  /// Keeps them, with their costs.
  void put_fastest(const place_candidate& like, const std::vector<std::pair<configuration, double>>& fastest) {
    if (!problem_.empty() || fastest.empty()) return;
    std::vector<std::pair<stored_key, stored_cost>> entries;
    for (const auto& [how, ms] : fastest) {
      stored_cost kept;
      kept.label = "space of " + candidates_.structures[candidates_.groups[like.group].structure].label;
      kept.kernel = how.text();
      kept.median_ms = kept.low_ms = kept.high_ms = kept.sure_low_ms = kept.sure_high_ms = ms;
      kept.samples = 1;
      kept.how = "among the fastest configurations of the space";
      entries.emplace_back(fastest_key_of(like, entries.size()), std::move(kept));
    }
    try {
      store_.put(entries);
    } catch (const error& e) { problem_ = e.what(); }
  }

  /// Removes costs that turned out to be wrong, so that no other process reads them, whatever becomes of this process.
  void forget(const std::vector<place_candidate>& candidates) {
    if (!problem_.empty() || candidates.empty()) return;
    std::vector<stored_key> keys;
    for (const place_candidate& c : candidates) keys.push_back(key_of(c));
    try {
      store_.forget(keys);
    } catch (const error& e) { problem_ = e.what(); }
  }

  /// The plan that an earlier comparison of these placements made, with the same views to choose from. Nothing if there was no such
  /// comparison, or if its plan cannot be read any more.
  std::optional<plan> find(const plan& compared, const view_layouts& views) {
    const std::optional<stored_run> kept = read([&] { return store_.find(key_of(compared, views)); });
    if (!kept) return {};
    try {
      return plan_from_json(json::parse(kept->plan), network_, store_.path());
    } catch (const error&) { return {}; } catch (const json::exception&) {
      return {};
    }
  }
  /// Keeps the plan `made` that came of comparing `compared`.
  void put(const plan& compared, const view_layouts& views, const plan& made) { put(key_of(compared, views), made); }
  /// Keeps a plan whose comparison has not ended. Only placing by estimated costs finds it.
  void put_unfinished(const plan& made) {
    stored_run_key key = key_of(made, {});
    key.placement = unfinished_run;
    put(key, made);
  }

  /// The usual time of a work of the drift monitor on this machine; 0 if unknown.
  double usual_ms(drift_sign sign) {
    const std::optional<stored_cost> kept = read([&] { return store_.find(drift_key(sign)); });
    return kept ? kept->median_ms : 0;
  }
  void put_usual(drift_sign sign, double ms) {
    if (!problem_.empty() || ms <= 0) return;
    stored_cost kept;
    kept.label = "the work of the drift monitor";
    kept.kernel = sign == drift_sign::exchange ? "exchange between threads" : "walk through the cache";
    kept.median_ms = kept.low_ms = kept.high_ms = kept.sure_low_ms = kept.sure_high_ms = ms;
    kept.samples = 1;
    try {
      store_.put(drift_key(sign), kept);
    } catch (const error& e) { problem_ = e.what(); }
  }

  /// Waits for the right to measure. Gives up if `go_on` returns false while another process has it.
  measuring_lock lock(const std::function<bool(const measuring_process&)>& go_on) {
    return read([&] { return store_.measuring(go_on); });
  }
  const std::string& problem() const { return problem_; }

 private:
  void put(const stored_run_key& key, const plan& made) {
    if (!problem_.empty() || made.runs.empty()) return;
    stored_run kept;
    kept.label = made.network;
    kept.name = made.origin;
    kept.plan = to_text(plan_to_json(made, network_));
    const plan_run& whole = made.runs.front();
    kept.median_ms = whole.median_ms;
    kept.low_ms = whole.low_ms;
    kept.high_ms = whole.high_ms;
    kept.runs = whole.runs;
    if (const std::size_t best = best_single(made.runs); best != 0) {
      const plan_run& other = made.runs[best];
      kept.against = other.name;
      kept.ratio = 1 / other.ratio;
      kept.ratio_low = 1 / other.ratio_high;
      kept.ratio_high = 1 / other.ratio_low;
    }
    try {
      store_.put(key, kept);
    } catch (const error& e) { problem_ = e.what(); }
  }

  /// The result of `work`, which reads the store; an empty one without an optional store.
  template <class Work>
  auto read(Work work) -> decltype(work()) {
    if (is_lost_) return {};
    try {
      return work();
    } catch (const error& e) {
      if (!is_optional_) throw;
      is_lost_ = true;
      problem_ = e.what();
      return {};
    }
  }

  stored_key key_of(const place_candidate& c) const { return keys_.of(c); }

  /// The part of a comparison's key about algorithms. `direct` leaves candidates out, so that the key is another one anyway.
  std::string chosen_from() const {
    const auto is_direct = [&](const place_candidate& c) { return algorithm_of(network_, backends_, c).is_direct(); };
    const bool has_others = algorithms_ == algorithms::all &&
                            !std::ranges::all_of(std::span(candidates_.list).first(first_candidates_), is_direct);
    return has_others ? ", any algorithm" : "";
  }

  /// The key of a comparison without times. It must not be the key of a cost: searches would take its times for measured ones.
  stored_key check_key_of(const place_candidate& c) const {
    stored_key key = key_of(c);
    key.pattern = "check of " + key.pattern;
    return key;
  }

  /// The key of a configuration that a search of a kernel's whole space found, by its place among the fastest. It is no key of a cost,
  /// either.
  stored_key fastest_key_of(const place_candidate& like, std::size_t place) const {
    stored_key key = key_of(like);
    key.pattern.insert(0, fastest_prefix);
    key.choice = configuration(place);
    return key;
  }

  stored_key drift_key(drift_sign sign) const {
    stored_key key = keys_.of_machine();
    key.precision = fp32;
    key.backend = "machine";
    key.library = "1";  // of the work: another version takes another time
    key.pattern = sign == drift_sign::exchange ? "drift" : "drift of a walk";
    return key;
  }

  /// The key of a comparison: the placements with which it begins, and all that its searches choose from. These placements follow
  /// from the costs of kernels, which are in the store, too. All backends of the set count, not only those in the placements.
  stored_run_key key_of(const plan& compared, const view_layouts& views) const {
    std::uint64_t words[] = {0x452821E638D01377, 0xBE5466CF34E90C6C};
    const auto add = [&words](std::uint64_t word) {
      for (std::uint64_t& w : words) w = combine(w, word);
    };
    const auto add_text = [&](const std::string& text) { add(hash(text.data(), text.size())); };
    const auto add_steps = [&](const auto& self, const placement& of) -> void {
      add(of.groups.size());
      for (const plan_group& g : of.groups) {
        add_text(g.backend());
        add_text(g.pattern());
        if (const auto* const kernel = std::get_if<kernel_step>(&g.step)) add_text(kernel->configuration);
        if (const auto* const view = std::get_if<view_step>(&g.step)) add_text(view->form);
        add(g.nodes.size());
        for (const std::uint32_t n : g.nodes) add(n);
        add(g.bodies().size());
        for (const placement& body : g.bodies()) self(self, body);
      }
      add(of.conversions.size());
      for (const plan_conversion& c : of.conversions) {
        add(c.value);
        for (const std::string* text : {&c.step.from, &c.step.to, &c.step.backend, &c.step.configuration})
          add_text(*text);
      }
    };
    // Later searches of a comparison choose from all candidates and views, of which placement constraints may have removed some.
    // Regions that were tried meanwhile come after the first candidates and do not count.
    add(first_candidates_);
    add(divides_ ? 1 : 0);
    for (const place_candidate& c : std::span(candidates_.list).first(first_candidates_)) {
      for (const std::uint32_t word : {c.group, c.backend, c.pattern}) add(word);
      add(c.configuration.hash());
    }
    for (std::uint32_t n = 0; n < views.size(); ++n)
      for (const std::uint32_t order : views[n]) add((std::uint64_t{n} << 32) + order);
    add_steps(add_steps, compared.chosen);
    for (const placement& single : compared.singles) add_steps(add_steps, single);
    return {network_.fingerprint(),
            hex_of(words[0]) + hex_of(words[1]),
            keys_.of_machine().machine,
            keys_.of_machine().threads,
            keys_.of_machine().waiting,
            keys_.of_machine().precision + chosen_from() + bound_,
            keys_.set()};
  }

  cost_store store_;
  cost_keys keys_;
  bool is_optional_, is_lost_ = false;
  const graph& network_;
  backend_table backends_;
  const place_candidates& candidates_;
  std::size_t first_candidates_ = candidates_.list.size();
  algorithms algorithms_;
  std::string bound_;
  bool divides_ = false;  // whether the comparison has a search over regions
  std::string problem_;
  std::vector<std::pair<stored_key, stored_cost>> checks_;  // not written yet
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
