// A part of a bounded problem at prices of its resources: a problem without resources.
#pragma once

#include <collage/search/objective.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "solve.hpp"

namespace collage::inline v0::search::detail {

/// The weights of time and of each resource in a sum.
struct weights {
  bool time = true;            ///< whether costs count
  std::vector<double> prices;  ///< by resource, in picoseconds for each unit
};

/// The plans that contain certain candidates and do not contain certain others.
///
/// At prices, each candidate and each conversion also pays for what it uses. The weight of the best plan at prices, minus the
/// price of the bounds, is a lower bound. No plan that keeps the bounds costs less (Everett 1963, Geoffrion 1974).
///
/// An item counts once, however many candidates name it. So its amount is divided among the nodes at which such candidates
/// begin. A plan has at most one candidate that begins at a node, so it never pays more than the whole amount. The shares
/// are another kind of price, and any shares give a valid bound. If a candidate that names the item is decided, the item
/// is paid for, and the others pay nothing.
class priced_problem {
 public:
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min() / 4;

  /// The best plan at some weights.
  struct solution {
    std::int64_t lower = 0;             ///< no plan weighs less, after the price of the bounds; may be `unknown`
    std::vector<std::uint32_t> chosen;  ///< empty if a limit ended the search too early
    std::size_t states = 0, transitions = 0;
  };

  /// `decided` must not overlap, and `alive` holds the candidates that a plan may contain. With `reduce`, candidates that
  /// alone exceed a bound are removed from it.
  priced_problem(const problem& p, const std::vector<bool>& may_cycle, std::vector<bool>& alive,
                 std::span<const std::uint32_t> decided, bool reduce)
      : whole_(p), resources_(p.resources.size()), paid_(resources_) {
    part_.nodes = p.nodes;
    part_.edges = p.edges;
    part_.outputs = p.outputs;
    part_.runtimes = p.runtimes;
    part_.values = p.values;
    for (value& v : part_.values) v.convert_amounts.clear();
    for (const std::uint32_t i : decided)
      for (const use& u : p.candidates[i].uses)
        if (u.item != use::own && items_.try_emplace({u.item, u.resource}).second) paid_[u.resource] += u.amount;
    covering_.resize(p.nodes);
    for (std::uint32_t i = 0; i < p.candidates.size(); ++i) {
      if (alive[i] && reduce) alive[i] = is_within(i);
      if (!alive[i]) continue;
      const candidate& c = p.candidates[i];
      for (const std::uint32_t node : c.nodes) ++covering_[node];
      index_.push_back(i);
      may_cycle_.push_back(may_cycle[i]);
      part_.candidates.push_back({c.nodes, c.cost_ms, c.tag, c.runtime, c.borders, {}});
    }
    for (const std::uint32_t i : index_)
      for (const use& u : p.candidates[i].uses) {
        if (u.item == use::own) continue;
        const auto [at, fresh] = items_.try_emplace({u.item, u.resource});
        if (fresh || !at->second.empty()) at->second[p.candidates[i].nodes.first()] = 1;
      }
    for (auto& [key, shares] : items_)
      for (auto& [node, share] : shares) share = 1 / static_cast<double>(shares.size());
    set_own_amounts();
  }

  /// Whether each node has a candidate.
  bool is_covered() const { return std::ranges::find(covering_, 0U) == covering_.end(); }
  /// Whether a plan can contain another candidate instead.
  bool has_alternative(std::uint32_t i) const {
    return std::ranges::any_of(whole_.candidates[i].nodes, [this](std::uint32_t node) { return covering_[node] > 1; });
  }
  /// The amount of a resource that is left for own amounts and unpaid items. It is negative if too much is decided.
  std::int64_t left(std::size_t resource) const { return whole_.resources[resource].bound - paid_[resource]; }
  /// The amount of a resource that a candidate pays for, with its shares of items.
  double counted(std::uint32_t i, std::size_t resource) const { return own_[i * resources_ + resource]; }
  /// Whether the amount of an item is divided among several nodes.
  bool shares_items() const {
    return std::ranges::any_of(items_, [](const auto& item) { return item.second.size() > 1; });
  }

  /// Solves it. Nothing if no plan covers every node.
  std::optional<solution> solve(const weights& w, const limits& l) {
    const double most = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 32) / most_terms(whole_);
    std::vector<std::int64_t> costs;
    for (const std::uint32_t i : index_) {
      double more = 0;
      for (std::size_t r = 0; r < resources_; ++r) more += w.prices[r] * counted(i, r);
      costs.push_back((w.time ? picoseconds(whole_.candidates[i].cost_ms) : 0) + rounded_down(more, most));
    }
    price_conversions(w, most);
    part_.switch_ms = w.time ? whole_.switch_ms : std::vector<double>{};
    std::optional<placement> found = try_solve(costs, l);
    if (!found) return std::nullopt;
    if (found->chosen.empty()) return solution{.lower = unknown, .chosen = {}};
    solution s{.lower = picoseconds(found->lower_bound_ms),
               .chosen = {},
               .states = found->states,
               .transitions = found->transitions};
    s.lower -= s.lower >> 48U;  // a double has the exact sum only below 2^53
    for (const std::uint32_t k : found->chosen) s.chosen.push_back(index_[k]);
    for (std::size_t r = 0; r < resources_ && w.time; ++r) {
      const double of_bound = w.prices[r] * static_cast<double>(left(r));
      if (of_bound > most_exact) s.lower = unknown;
      else if (of_bound != 0 && s.lower != unknown) s.lower -= rounded_down(of_bound * (1 + 1e-14) + 1, 2 * most_exact);
    }
    return s;
  }

  /// Moves the shares of items towards the nodes at which this plan uses them. `step` is in (0, 1].
  void move_shares(std::span<const std::uint32_t> chosen, double step) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> used;  // by item: nodes
    for (const std::uint32_t i : chosen)
      for (const use& u : whole_.candidates[i].uses)
        if (u.item != use::own) used[{u.item, u.resource}].push_back(whole_.candidates[i].nodes.first());
    for (const auto& [key, nodes] : used) {
      auto& shares = items_.at(key);
      if (shares.size() < 2) continue;
      for (auto& [node, share] : shares) share *= 1 - step;
      for (const std::uint32_t node : nodes) shares[node] += step / static_cast<double>(nodes.size());
    }
    set_own_amounts();
  }

 private:
  static constexpr double most_exact = 1e18;

  /// At most `most`. The price of the bounds is rounded up by more than all errors of the operations before.
  static std::int64_t rounded_down(double amount, double most) {
    return static_cast<std::int64_t>(std::floor(std::min(amount, most)));
  }

  /// Whether a candidate and the items that are not paid for are within what is left.
  bool is_within(std::uint32_t i) const {
    std::vector<std::int64_t> needed(resources_);
    for (const use& u : whole_.candidates[i].uses) {
      const auto item = u.item == use::own ? items_.end() : items_.find({u.item, u.resource});
      if (item == items_.end()) needed[u.resource] += u.amount;
    }
    for (std::size_t r = 0; r < resources_; ++r)
      if (needed[r] > left(r)) return false;
    return true;
  }

  void set_own_amounts() {
    own_.assign(whole_.candidates.size() * resources_, 0);
    for (const std::uint32_t i : index_)
      for (const use& u : whole_.candidates[i].uses) {
        double part = 1;
        if (u.item != use::own) {
          const auto& shares = items_.at({u.item, u.resource});
          part = shares.empty() ? 0 : shares.at(whole_.candidates[i].nodes.first());
        }
        // A little less, so that rounded shares never add up to more than the amount.
        own_[i * resources_ + u.resource] +=
            part == 1 ? static_cast<double>(u.amount) : part * static_cast<double>(u.amount) * (1 - 1e-12);
      }
  }

  void price_conversions(const weights& w, double most) {
    // A conversion's cost passes through milliseconds, which is exact up to here. A lower cost keeps the bound valid.
    constexpr double exact = static_cast<double>(std::int64_t{1} << 50U);
    for (std::size_t v = 0; v < part_.values.size(); ++v) {
      const value& from = whole_.values[v];
      value& to = part_.values[v];
      const std::size_t size = std::size_t{from.forms} * from.forms;
      to.convert_ms = w.time ? from.convert_ms : std::vector<double>{};
      if (from.convert_amounts.empty()) continue;
      to.convert_ms.resize(size);
      for (std::size_t k = 0; k < size; ++k) {
        double more = 0;
        for (std::size_t r = 0; r < resources_; ++r)
          more += w.prices[r] * static_cast<double>(from.convert_amounts[r * size + k]);
        const std::int64_t cost = picoseconds(to.convert_ms[k]);
        const double room = std::min(most, exact - static_cast<double>(cost));
        if (room > 0) to.convert_ms[k] = milliseconds(cost + rounded_down(more, room));
      }
    }
  }

  std::optional<placement> try_solve(std::span<const std::int64_t> costs, const limits& l) const {
    try {
      return detail::solve(part_, costs, may_cycle_, l);
    } catch (const error& e) {
      if (e.kind() == error_kind::unsupported) return std::nullopt;
      if (e.kind() == error_kind::failure) return placement{};
      throw;
    }
  }

  const problem& whole_;
  std::size_t resources_;
  problem part_;
  std::vector<std::uint32_t> index_;     // of the part's candidates in the whole
  std::vector<bool> may_cycle_;          // by candidate of the part
  std::vector<std::uint32_t> covering_;  // by node: how many candidates of the part
  // By item and resource: the shares by node; none if the item is paid for.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::uint32_t, double>> items_;
  std::vector<std::int64_t> paid_;  // by resource, for items
  std::vector<double> own_;         // [candidate * resources + resource]
};

}  // namespace collage::inline v0::search::detail
