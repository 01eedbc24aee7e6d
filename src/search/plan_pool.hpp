// The plans that a bounded search has found.
#pragma once

#include <collage/search/objective.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>
#include <collage/search/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cycles.hpp"
#include "price_model.hpp"
#include "priced_problem.hpp"

namespace collage::inline v0::search::detail {

/// A complete plan that can be executed.
struct known_plan {
  std::vector<std::uint32_t> chosen;  ///< ascending
  std::int64_t cost = 0;
  std::vector<std::int64_t> amounts = {}, converted = {};  ///< by resource: in all, and of conversions
  bool keeps = false;                                      ///< all bounds, and it contains no excluded set
};

/// Keeps plans, the best that keeps the bounds, and the least amounts.
class plan_pool {
 public:
  plan_pool(const problem& p, const std::vector<bool>& may_cycle)
      : problem_(p), may_cycle_(may_cycle), costs_(costs_of(p)), consumers_(p) {}

  std::optional<std::size_t> best_number() const { return best_; }

  /// Adds a plan. Returns its number.
  std::size_t add(std::vector<std::uint32_t> chosen) {
    std::ranges::sort(chosen);
    const auto [known, fresh] = numbers_.try_emplace(chosen, plans_.size());
    if (!fresh) return known->second;
    plans_.push_back(judged(std::move(chosen)));
    const known_plan& plan = plans_.back();
    if (plan.keeps && (!best_ || precedes(plan, plans_[*best_]))) best_ = plans_.size() - 1;
    return plans_.size() - 1;
  }
  const known_plan& operator[](std::size_t i) const { return plans_[i]; }
  std::size_t size() const { return plans_.size(); }
  /// The cheapest plan that keeps the bounds.
  const known_plan* best() const { return best_ ? &plans_[*best_] : nullptr; }

  /// A plan as the prices of a part see it.
  plan_line line(std::size_t i, const priced_problem& part) const {
    const known_plan& plan = plans_[i];
    plan_line l{.cost = static_cast<double>(plan.cost), .excess = {}};
    for (std::size_t r = 0; r < problem_.resources.size(); ++r) {
      double sum = static_cast<double>(plan.converted[r]) - static_cast<double>(part.left(r));
      for (const std::uint32_t c : plan.chosen) sum += part.counted(c, r);
      l.excess.push_back(sum);
    }
    return l;
  }

  /// Makes plans from two: wherever they differ, the nodes of that difference may be taken from either. Begins with `base`,
  /// which keeps the bounds, and takes what saves the most cost for each unit of the bounds.
  void combine(std::size_t base, std::size_t other) {
    const std::vector<std::vector<std::uint32_t>> groups = differences(plans_[base].chosen, plans_[other].chosen);
    if (groups.size() < 2 || groups.size() * problem_.nodes > most_work) return;
    known_plan now = plans_[base];
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const known_plan with = judged(exchanged(now.chosen, groups[g], plans_[other].chosen));
      double more = 1e-9;
      for (std::size_t r = 0; r < problem_.resources.size(); ++r) {
        const auto bound = static_cast<double>(problem_.resources[r].bound) + 1;
        more += std::max(0.0, static_cast<double>(with.amounts[r] - now.amounts[r])) / bound;
      }
      order.emplace_back(static_cast<double>(with.cost - now.cost) / more, g);
    }
    std::ranges::sort(order);
    for (const auto& [ratio, g] : order) {
      known_plan with = judged(exchanged(now.chosen, groups[g], plans_[other].chosen));
      if (with.keeps && with.cost < now.cost) now = std::move(with);
    }
    if (now.chosen != plans_[base].chosen) add(std::move(now.chosen));
  }

 private:
  static constexpr std::size_t most_work = 1'000'000;  // differences times nodes: some tens of milliseconds

  static bool precedes(const known_plan& a, const known_plan& b) {
    const std::size_t groups = a.chosen.size();
    return std::tie(a.cost, groups, a.chosen) < std::make_tuple(b.cost, b.chosen.size(), b.chosen);
  }

  known_plan judged(std::vector<std::uint32_t> chosen) const {
    known_plan plan{.chosen = std::move(chosen)};
    plan.cost = cost_of(problem_, costs_, plan.chosen);
    plan.converted = amounts_of_conversions(problem_, plan.chosen);
    plan.amounts = amounts_of(problem_, plan.chosen);
    plan.keeps = keeps_bounds(problem_, plan.amounts) &&
                 excluded_in(problem_, plan.chosen) == problem_.excluded.size() && !has_cycle(plan.chosen);
    return plan;
  }
  bool has_cycle(std::span<const std::uint32_t> chosen) const {
    std::vector<const node_set*> groups;
    for (const std::uint32_t i : chosen)
      if (may_cycle_[i]) groups.push_back(&problem_.candidates[i].nodes);
    return !find_cycle(consumers_, groups).empty();
  }

  /// The nodes that differ, in the smallest parts of which each is covered by whole candidates of both plans.
  std::vector<std::vector<std::uint32_t>> differences(std::span<const std::uint32_t> a,
                                                      std::span<const std::uint32_t> b) const {
    std::vector<std::uint32_t> parent(problem_.nodes);
    std::iota(parent.begin(), parent.end(), 0U);
    const auto root = [&](std::uint32_t n) {
      while (parent[n] != n) n = parent[n] = parent[parent[n]];
      return n;
    };
    std::vector<bool> differs(problem_.nodes);
    const auto join = [&](std::span<const std::uint32_t> one, std::span<const std::uint32_t> not_in) {
      for (const std::uint32_t i : one) {
        if (std::ranges::binary_search(not_in, i)) continue;
        const node_set& nodes = problem_.candidates[i].nodes;
        for (const std::uint32_t n : nodes) {
          parent[root(n)] = root(nodes.first());
          differs[n] = true;
        }
      }
    };
    join(a, b);
    join(b, a);
    std::map<std::uint32_t, std::vector<std::uint32_t>> parts;
    for (std::uint32_t n = 0; n < problem_.nodes; ++n)
      if (differs[n]) parts[root(n)].push_back(n);
    std::vector<std::vector<std::uint32_t>> list;
    for (auto& [first, nodes] : parts) list.push_back(std::move(nodes));
    return list;
  }
  std::vector<std::uint32_t> exchanged(std::span<const std::uint32_t> base, std::span<const std::uint32_t> nodes,
                                       std::span<const std::uint32_t> other) const {
    const auto is_inside = [&](std::uint32_t i) {
      return std::ranges::binary_search(nodes, problem_.candidates[i].nodes.first());
    };
    std::vector<std::uint32_t> chosen;
    std::ranges::copy_if(base, std::back_inserter(chosen), [&](std::uint32_t i) { return !is_inside(i); });
    std::ranges::copy_if(other, std::back_inserter(chosen), is_inside);
    std::ranges::sort(chosen);
    return chosen;
  }

  const problem& problem_;
  const std::vector<bool>& may_cycle_;
  std::vector<std::int64_t> costs_;
  neighbour_lists consumers_;
  std::vector<known_plan> plans_;
  std::map<std::vector<std::uint32_t>, std::size_t> numbers_;
  std::optional<std::size_t> best_;
};

}  // namespace collage::inline v0::search::detail
