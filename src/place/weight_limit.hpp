// The bound on the memory of weights: what candidates and placements keep, and whether that is within the bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_weights.hpp>
#include <collage/run/weights.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "candidate_index.hpp"
#include "place_task.hpp"
#include "policy.hpp"
#include "text.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// A constant that a candidate keeps.
struct kept_weight {
  std::uint32_t item = 0;   ///< equal for candidates that share the memory
  std::uint32_t value = 0;  ///< of the network
  std::int64_t kib = 0;     ///< rounded up
  bool is_packed = false;   ///< in another form than the constant itself
};

/// Amounts are whole KiB for each constant. Each network and subgraph has a bound of its own, in proportion to its constants. So the
/// whole plan keeps the bound.
class weight_limit {
 public:
  weight_limit(const place_task& task, const candidate_index& candidates)
      : task_(task), candidates_(candidates), has_forms_(task.options.packed != nullptr && task.packed->size() != 0) {
    weight_sum own, all;
    add_own_weights(task.network, own);
    add_all_weights(task.network, all);
    own_kib_ = own.kib();
    network_bytes_ = all.bytes();
    const weight_bound& given = task.options.memory;
    ratio_ = given.ratio;
    if (given.bytes) {
      bytes_ = std::min(*given.bytes, most_kib * 1024);
      all_kib_ = std::min(*given.bytes / 1024, most_kib);
      ratio_ = all.kib() > 0 ? static_cast<double>(all_kib_) / static_cast<double>(all.kib()) : 1;
    } else {
      all_kib_ = part_of(all.kib());
      bytes_ = all_kib_ * 1024;
    }
    kib_ = own.kib() == all.kib() ? all_kib_ : part_of(own.kib());
    for (std::uint32_t v = 0; v < task.network.values().size(); ++v)
      if (task.network.at(v).role == value_role::constant) readers_[contents_of(v)] += task.network.at(v).uses;
  }

  /// The most that the candidates of a placement may keep, in KiB.
  std::int64_t kib() const { return static_cast<std::int64_t>(kib_); }
  /// The bound of each subgraph, in proportion to its constants.
  weight_bound of_subgraphs() const { return {.ratio = std::max(ratio_, least_ratio)}; }

  /// Whether some placement may keep more. Otherwise nothing needs to be known of candidates.
  bool can_be_exceeded() const {
    if (kib_ < own_kib_) return true;
    const memory_space* space = nullptr;
    for (const place_candidate& c : candidates_.all().list) {
      const backend_entry& b = task_.backends[c.backend];
      if (!c.is_by_rule() && b.patterns[c.pattern].weights != nullptr) return true;
      if (space != nullptr && !(*space == *b.space)) return true;  // each space has its own copies
      space = b.space;
    }
    return false;
  }
  /// A part of the key of comparisons: the bound, if it may make a difference.
  std::string key() const {
    return can_be_exceeded() ? ", weights within " + std::to_string(kib_) + " KiB" : std::string();
  }

  /// The constants that a candidate keeps.
  const std::vector<kept_weight>& of(std::uint32_t candidate) const {
    if (candidate >= kept_.size()) kept_.resize(candidates_.size());
    std::optional<std::vector<kept_weight>>& kept = kept_[candidate];
    if (!kept) kept = find(candidates_[candidate]);
    return *kept;
  }
  /// Whether several candidates of one placement may share an item. Candidates for the only reader of a constant never are in one
  /// placement.
  bool is_shared(const kept_weight& kept) const { return readers_.at(contents_of(kept.value)) > 1; }
  /// The memory that candidates keep together, in KiB.
  std::int64_t kib_of(std::span<const std::uint32_t> candidates) const {
    std::set<std::uint32_t> counted;
    std::int64_t sum = 0;
    for (const std::uint32_t i : candidates)
      for (const kept_weight& kept : of(i))
        if (counted.insert(kept.item).second) sum += kept.kib;
    return sum;
  }
  /// The price of new forms of constants, which no engine has yet: the time of packing them, as a part of one run. It is 0 while no
  /// engine has any form, so that the first plan is the fastest one.
  double packing_ms(std::uint32_t candidate) const {
    if (!has_forms_) return 0;
    double mib = 0;
    for (const kept_weight& kept : of(candidate))
      if (kept.is_packed && !has_form_[kept.item]) mib += static_cast<double>(kept.kib) / 1024;
    return thresholds.estimate.packing_ms_per_mib * mib / thresholds.estimate.packing_runs;
  }
  /// Whether some engine has packed forms, which candidates may share.
  bool has_forms() const { return has_forms_; }
  /// How much more than the constant itself a kept form takes, in KiB.
  std::int64_t excess_of(const kept_weight& kept) const {
    return kept.kib - static_cast<std::int64_t>(in_kib(task_.network.type_of(kept.value).bytes()));
  }

  /// Whether a placement of this network keeps the bound, subgraphs included.
  bool keeps(const placement& p) const {
    if (p.groups.empty()) return true;
    weight_sum sum;
    add_weights(task_.network, task_.backends, p, sum);
    return sum.kib() <= all_kib_;
  }
  /// The memory of a placement's weights, with the bound.
  weight_memory memory_of(const placement& p) const {
    weight_sum sum;
    add_weights(task_.network, task_.backends, p, sum);
    return {sum.bytes(), network_bytes_, bytes_};
  }

  /// The error that no plan keeps the bound. `least` is the least amount that was found, in KiB.
  error shortage(std::int64_t least) const {
    const std::string needed = size_text(static_cast<std::uint64_t>(least) * 1024);
    return {error_kind::invalid_argument,
            "no plan was found whose weights take at most " + size_text(kib_ * 1024) +
                "; the smallest one that was found needs " + needed,
            "network " + task_.options.network,
            "allow so much memory for weights (--memory, place_options::memory), or more backends"};
  }

 private:
  static constexpr std::uint64_t most_kib = std::uint64_t{1} << 42U;  // more than any machine has
  static constexpr double least_ratio = 1e-9;                         // a ratio is above 0

  std::uint64_t part_of(std::uint64_t kib) const {
    return static_cast<std::uint64_t>(
        std::min(std::floor(ratio_ * static_cast<double>(kib)), static_cast<double>(most_kib)));
  }
  const void* contents_of(std::uint32_t value) const {
    const void* const contents = task_.network.constant(value).bytes.get();
    return contents != nullptr ? contents : &task_.network.at(value);
  }

  std::vector<kept_weight> find(const place_candidate& c) const {
    const backend_entry& b = task_.backends[c.backend];
    const std::vector<weight_item> items =
        c.is_by_rule() ? weights_of(task_.network, b, group_of(task_.network, candidates_.all().groups[c.group].nodes))
                       : weights_of(task_.network, b, b.patterns[c.pattern],
                                    record_of(task_.network, task_.backends, c), c.configuration);
    std::vector<kept_weight> kept;
    for (const weight_item& item : items) {
      const auto number =
          numbers_.try_emplace(key_of(task_.network, item), static_cast<std::uint32_t>(numbers_.size())).first->second;
      if (number == has_form_.size())
        has_form_.push_back(task_.packed->has(task_.network.constant(item.value).bytes, item.packing, *b.space));
      if (std::ranges::find(kept, number, &kept_weight::item) == kept.end())
        kept.push_back({number, item.value, static_cast<std::int64_t>(in_kib(item.bytes)), !item.packing.empty()});
    }
    return kept;
  }

  const place_task& task_;
  const candidate_index& candidates_;
  bool has_forms_;
  double ratio_ = 1;
  std::uint64_t own_kib_ = 0, kib_ = 0;           // of this network alone: its constants, and the bound
  std::uint64_t all_kib_ = 0;                     // the bound with subgraphs
  std::uint64_t network_bytes_ = 0, bytes_ = 0;   // with subgraphs: the constants, and the bound
  std::map<const void*, std::uint32_t> readers_;  // by contents; looked up, never walked
  // Found when they are needed: most placings never exceed the bound.
  mutable std::vector<std::optional<std::vector<kept_weight>>> kept_;  // by candidate
  mutable std::map<weight_key, std::uint32_t> numbers_;                // of items
  mutable std::vector<bool> has_form_;                                 // by item: some engine has this form
};

/// For searches that choose by rank, and not by cost: leaves out the candidates that keep some constants in too large a form.
class weight_caps {
 public:
  bool is_empty() const { return caps_.empty(); }
  bool allow(const std::vector<kept_weight>& kept) const {
    return std::ranges::all_of(kept, [&](const kept_weight& k) {
      const auto cap = caps_.find(k.value);
      return cap == caps_.end() || k.kib < cap->second;
    });
  }
  /// Forbids the form of a constant that takes most more than the constant itself, and all that are as large. False if these
  /// candidates keep no constant in a larger form.
  bool lower(const weight_limit& limit, std::span<const std::uint32_t> candidates) {
    const kept_weight* most = nullptr;
    for (const std::uint32_t i : candidates)
      for (const kept_weight& kept : limit.of(i))
        if (limit.excess_of(kept) > (most != nullptr ? limit.excess_of(*most) : 0)) most = &kept;
    if (most == nullptr) return false;
    caps_[most->value] = most->kib;
    return true;
  }

 private:
  std::map<std::uint32_t, std::int64_t> caps_;  // by value: so many KiB are too much
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
