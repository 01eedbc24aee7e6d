// The best placement of candidates whose costs are given in picoseconds.
#pragma once

#include <collage/error.hpp>
#include <collage/search/objective.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "allowance.hpp"
#include "cycles.hpp"
#include "first_fit.hpp"
#include "repeats.hpp"
#include "segment_search.hpp"
#include "space.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// The exact search over costs given in picoseconds.
class exact_search {
 public:
  /// `may_cycle` is the result of `check(p)`: whether a candidate can be part of a cycle of groups.
  exact_search(const problem& p, std::span<const std::int64_t> costs, const std::vector<bool>& may_cycle,
               const limits& l, const pace& how)
      : problem_(p),
        costs_(costs),
        space_(make_space(p, costs, may_cycle, true)),
        tracked_(p, space_),
        consumers_(p),
        search_(p, space_, tracked_, consumers_, how),
        writer_(p, space_, tracked_, consumers_),
        left_(l) {}

  placement run() {
    std::vector<segment> order = segments();
    // Small segments first: a segment that exhausts the limit then leaves no other without a result.
    const auto width = [this](const segment& s) { return space_.cuts[s.last] - space_.cuts[s.first]; };
    std::ranges::sort(order, {}, [&](const segment& s) { return std::pair(width(s), s.first); });
    found_.optimal = true;
    repeats_ = order.size() > 1;
    for (const segment& s : order) solve(s);
    std::ranges::sort(found_.chosen, {}, [this](std::uint32_t i) { return problem_.candidates[i].nodes.first(); });
    found_.cost_ms = milliseconds(cost_of(problem_, costs_, found_.chosen));
    found_.lower_bound_ms = milliseconds(lower_);
    found_.states = search_.expanded();
    found_.transitions = search_.transitions();
    return std::move(found_);
  }

 private:
  using outcome = segment_search::outcome;

  std::vector<segment> segments() const {
    std::vector<segment> list;
    for (std::size_t i = 0, first = 0; i + 1 < space_.cuts.size(); ++i)
      if (i + 2 == space_.cuts.size() || search_.across(space_.cuts[i + 1]) == 0) {
        list.push_back({first, i + 1});
        first = i + 1;
      }
    return list;
  }

  /// Repeated segments with fewer nodes are solved again: writing a segment down costs about as much as solving a few nodes.
  static constexpr std::uint32_t least_repeated = 4;

  void solve(const segment& s) {
    part_solution* solution = nullptr;
    const std::uint32_t first_entry = space_.begin[space_.cuts[s.first]];
    if (repeats_ && space_.cuts[s.last] - space_.cuts[s.first] >= least_repeated) {
      const auto [known, fresh] = solved_.try_emplace(writer_.write(s.first, s.last));
      solution = &known->second;
      if (!fresh && !solution->entries.empty()) {
        ++found_.repeated;
        lower_ += solution->cost;
        for (const std::uint32_t e : solution->entries) found_.chosen.push_back(space_.entries[first_entry + e].index);
        return;
      }
    }
    switch (search_.solve(s, left_)) {
      case outcome::impossible:
        throw error(error_kind::unsupported, "no set of candidates covers every node exactly once",
                    "search, " + range_of(problem_, search_.begin(), search_.end()),
                    "give every node a candidate of its own");
      case outcome::stopped: settle(s); return;
      default: break;
    }
    lower_ += search_.cost();
    for (const std::uint32_t e : search_.way()) {
      found_.chosen.push_back(space_.entries[e].index);
      if (solution != nullptr) solution->entries.push_back(e - first_entry);
    }
    if (solution != nullptr) solution->cost = search_.cost();
  }

  /// Takes the best plan at hand when the search has to stop. The first plan continues from the best few states of each
  /// position. The second is the greedy plan of the segment (least cost per node). The cheaper plan is taken.
  void settle(const segment& s) {
    const std::int64_t lower = search_.lower_bound();
    std::optional<std::vector<std::uint32_t>> plan;
    for (const bool with_cycles : {true, false}) {
      plan = search_.dive(with_cycles);
      if (plan && !has_cycle(*plan)) break;
      plan.reset();
    }
    const std::vector<std::uint32_t> order = preference(space_, [](const entry& a, const entry& b) {
      const double per_node_a = static_cast<double>(a.excess) / a.size;
      const double per_node_b = static_cast<double>(b.excess) / b.size;
      if (per_node_a != per_node_b) return per_node_a < per_node_b;
      return a.size != b.size ? a.size > b.size : a.index < b.index;
    });
    auto other = greedy(s, order);
    if (!plan || (other && cost_of_part(*other) < cost_of_part(*plan))) plan = std::move(other);
    if (!plan) {
      throw error(error_kind::failure, "the limit ended the search before any complete plan was found",
                  "search, " + range_of(problem_, space_.cuts[s.first], space_.cuts[s.last]),
                  "raise the limit, or give every node a candidate of its own");
    }
    found_.optimal = found_.optimal && cost_of_part(*plan) == lower;
    lower_ += lower;
    for (const std::uint32_t e : *plan) found_.chosen.push_back(space_.entries[e].index);
  }

  bool has_cycle(std::span<const std::uint32_t> plan) const {
    std::vector<const node_set*> groups;
    for (const std::uint32_t e : plan)
      if (space_.entries[e].may_cycle) groups.push_back(&problem_.candidates[space_.entries[e].index].nodes);
    return !find_cycle(consumers_, groups).empty();
  }

  /// Covers a segment greedily, piece by piece. Nothing if that takes too long or if groups would wait for each other.
  std::optional<std::vector<std::uint32_t>> greedy(const segment& s, std::span<const std::uint32_t> order) const {
    const std::vector<std::uint64_t> nothing(space_.words);
    for (const bool with_cycles : {true, false}) {
      std::vector<std::uint32_t> plan;
      // Enough to complete a plan wherever nodes can be covered alone. Bounded, since a limit must end the search.
      std::size_t steps = 64 * space_.entries.size() + 1'000'000;
      std::size_t i = s.first;
      for (; i < s.last; ++i) {
        const auto rest = first_fit(space_, order, space_.cuts[i], nothing, space_.cuts[i + 1], steps, with_cycles);
        if (!rest) break;
        plan.insert(plan.end(), rest->begin(), rest->end());
      }
      if (i == s.last && !has_cycle(plan)) return plan;
    }
    return std::nullopt;
  }

  /// The cost of the entries that cover a segment, borders included.
  std::int64_t cost_of_part(std::span<const std::uint32_t> entries) const {
    std::vector<std::uint32_t> chosen;
    for (const std::uint32_t e : entries) chosen.push_back(space_.entries[e].index);
    return cost_of(problem_, costs_, chosen);
  }

  const problem& problem_;
  std::span<const std::int64_t> costs_;
  const space space_;
  const tracked_values tracked_;
  const neighbour_lists consumers_;
  segment_search search_;
  part_writer writer_;
  std::map<std::vector<std::uint64_t>, part_solution> solved_;  // no entries if a limit ended the search
  bool repeats_ = false;
  allowance left_;
  placement found_;
  std::int64_t lower_ = 0;
};

}  // namespace collage::inline v0::search::detail
