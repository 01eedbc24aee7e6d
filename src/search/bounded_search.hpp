// The best placement within bounds on resources: prices, and branch and bound.
#pragma once

#include <collage/error.hpp>
#include <collage/search/objective.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>
#include <collage/search/resources.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "equal_parts.hpp"
#include "plan_pool.hpp"
#include "price_model.hpp"
#include "priced_problem.hpp"
#include "solve.hpp"

namespace collage::inline v0::search::detail {

/// The bounds that amounts exceed.
struct exceeded_bounds {
  std::size_t count = 0;
  std::uint32_t worst = 0;  ///< the resource whose bound is exceeded by most
  double sum = 0;           ///< by how much, as parts of the bounds

  exceeded_bounds(const problem& p, std::span<const std::int64_t> amounts) {
    double most = 0;
    for (std::uint32_t r = 0; r < p.resources.size(); ++r) {
      const auto bound = static_cast<double>(p.resources[r].bound);
      const double over = (static_cast<double>(amounts[r]) - bound) / std::max(1.0, bound);
      if (over <= 0) continue;
      ++count;
      sum += over;
      if (over > most) {
        most = over;
        worst = r;
      }
    }
  }
};

/// Lagrangian relaxation (Everett 1963, Geoffrion 1974) with branch and bound (Land, Doig 1960), as for shortest paths with
/// resources (Handler, Zang 1980).
///
/// A branch is the set of plans that contain certain candidates and do not contain others. The search takes the branch of the
/// least bound and looks for the prices that raise the bound most. Each search at prices also gives a plan. Two plans, one
/// within the bounds and one beyond them, are combined where they differ. If the bound of a branch stays below the best plan,
/// the branch is divided: a candidate is decided or left out.
///
/// Prices hold for the whole graph, so parts that are independent without bounds are coupled by them alone.
class bounded_search {
 public:
  bounded_search(const problem& p, const std::vector<bool>& may_cycle, const limits& l)
      : problem_(p), may_cycle_(may_cycle), limits_(l), pool_(p, may_cycle) {}

  /// `free` is the best plan without bounds. The problem must have passed `check_resources`. Nothing if each plan that keeps the
  /// bounds contains an excluded set.
  std::optional<placement> run(placement free) {
    free.amounts = amounts_of(problem_, free.chosen);
    if (keeps_bounds(problem_, free.amounts) && excluded_in(problem_, free.chosen) == problem_.excluded.size())
      return free;
    begin_ = clock::now();
    parts_.emplace(problem_);
    states_ = free.states;
    transitions_ = free.transitions;
    branch root{.bound = picoseconds(free.lower_bound_ms), .prices = std::vector<double>(problem_.resources.size())};
    root.plans.push_back(pool_.add(free.chosen));
    root.bound -= root.bound >> 48U;
    open_.push_back(std::move(root));
    while (!open_.empty() && !is_close() && !is_over()) {
      std::ranges::pop_heap(open_, is_later);
      branch at = std::move(open_.back());
      open_.pop_back();
      if (solve(at)) continue;
      open_.push_back(std::move(at));  // a limit ended it, and its bound still counts
      std::ranges::push_heap(open_, is_later);
      break;
    }
    return result(std::move(free));
  }

 private:
  using clock = std::chrono::steady_clock;

  struct branch {
    std::int64_t bound = 0;
    std::vector<double> prices;
    std::vector<std::uint32_t> decided = {}, left_out = {};
    std::vector<std::size_t> plans = {};  ///< known plans of the branch, or of the branch before, by number
    std::size_t number = 0;
  };
  /// The branch of the least bound comes first, then the latest.
  static bool is_later(const branch& a, const branch& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.number < b.number;
  }

  static constexpr unsigned most_rounds_first = 60, most_rounds = 12;
  static constexpr std::size_t most_plans = 32;  // of a branch

  std::int64_t best_cost() const {
    return pool_.best() == nullptr ? std::numeric_limits<std::int64_t>::max() : pool_.best()->cost;
  }
  std::int64_t least_open() const {
    std::int64_t least = best_cost();
    for (const branch& b : open_) least = std::min(least, b.bound);
    return least;
  }
  bool is_close() const {
    if (pool_.best() == nullptr) return false;
    const auto cost = static_cast<double>(best_cost());
    const std::int64_t bound = open_.front().bound;  // the least
    return bound >= best_cost() || cost - static_cast<double>(bound) <= limits_.gap * cost;
  }
  bool is_over() const {
    return time_left() <= std::chrono::nanoseconds(0) || states_ >= limits_.states || (limits_.stop && limits_.stop());
  }
  limits what_is_left() const {
    limits l = limits_;
    l.states -= std::min(l.states, states_);
    l.time = std::max(std::chrono::nanoseconds(0), time_left());
    return l;
  }
  std::chrono::nanoseconds time_left() const {
    const auto now = clock::now();
    return std::min<std::chrono::nanoseconds>(limits_.time - (now - first_), limits_.bounded_time - (now - begin_));
  }

  std::vector<bool> alive(const branch& at) const {
    std::vector<bool> list(problem_.candidates.size(), true);
    std::vector<bool> taken(problem_.nodes);
    for (const std::uint32_t i : at.decided)
      for (const std::uint32_t n : problem_.candidates[i].nodes) taken[n] = true;
    for (std::size_t i = 0; i < list.size() && !at.decided.empty(); ++i)
      for (const std::uint32_t n : problem_.candidates[i].nodes) list[i] = list[i] && !taken[n];
    for (const std::uint32_t i : at.decided) list[i] = true;
    for (const std::uint32_t i : at.left_out) list[i] = false;
    return list;
  }

  /// Solves the part and adds the plan. Nothing if there is none.
  std::optional<priced_problem::solution> at_weights(priced_problem& part, const weights& w) {
    auto found = part.solve(w, what_is_left());
    if (!found) return found;
    states_ += std::max<std::size_t>(found->states, 1);
    transitions_ += found->transitions;
    return found;
  }

  /// Adds a plan of a branch.
  std::size_t add(branch& at, std::vector<std::uint32_t> chosen) {
    const std::size_t plan = pool_.add(std::move(chosen));
    std::erase(at.plans, plan);
    at.plans.push_back(plan);
    return plan;
  }
  /// Leaves only plans of the branch in its list, the latest, and adds the best plan if it is one.
  void update_plans(branch& at, const std::vector<bool>& alive) const {
    if (const auto best = pool_.best_number()) {
      std::erase(at.plans, *best);
      at.plans.push_back(*best);
    }
    std::erase_if(at.plans, [&](std::size_t i) { return !contains(at, alive, pool_[i]); });
    if (at.plans.size() > most_plans)
      at.plans.erase(at.plans.begin(), at.plans.end() - static_cast<std::ptrdiff_t>(most_plans));
  }
  bool contains(const branch& at, const std::vector<bool>& alive, const known_plan& plan) const {
    return std::ranges::all_of(plan.chosen, [&](std::uint32_t i) { return alive[i]; }) &&
           std::ranges::all_of(at.decided, [&](std::uint32_t i) { return std::ranges::binary_search(plan.chosen, i); });
  }
  price_model model_of(const branch& at, const priced_problem& part) const {
    std::vector<plan_line> lines;
    for (const std::size_t i : at.plans) lines.push_back(pool_.line(i, part));
    return price_model(std::move(lines));
  }

  /// Looks for a plan within the bound of each resource of which no plan is known. False if there is none.
  bool find_within(branch& at, priced_problem& part, price_model& model) {
    for (std::size_t r = 0; r < problem_.resources.size(); ++r) {
      if (part.left(r) < 0) return false;
      if (model.has_within(r)) continue;
      weights w{.time = false, .prices = std::vector<double>(problem_.resources.size())};
      w.prices[r] = 1;
      for (unsigned round = 0; round < most_rounds; ++round) {
        const auto found = at_weights(part, w);
        if (!found) return false;
        if (found->chosen.empty()) return true;
        const std::size_t plan = add(at, found->chosen);
        if (found->lower > part.left(r)) return false;
        if (is_over() || !part.shares_items() || pool_[plan].amounts[r] <= problem_.resources[r].bound) break;
        part.move_shares(found->chosen, 1.0 / (round + 2.0));
      }
      model = model_of(at, part);
    }
    return true;
  }

  /// Bounds a branch, and divides it if needed. False if a limit ended it: then it is still open.
  bool solve(branch& at) {
    std::vector<bool> list = alive(at);
    // At the root even plans that exceed a bound say what the least amount is.
    priced_problem part(problem_, may_cycle_, list, at.decided, at.number != 0);
    if (!part.is_covered()) return true;
    update_plans(at, list);
    price_model model = model_of(at, part);
    if (!find_within(at, part, model)) return true;
    const std::optional<std::size_t> low = raise(at, part, model);
    if (at.bound >= best_cost()) return true;
    if (!low) return false;
    const std::optional<std::size_t> other = opposite(at, part, *low);
    if (const auto best = pool_.best_number()) {
      combine(*best, *low);
      if (other) combine(*best, *other);
    }
    if (at.bound >= best_cost()) return true;
    divide(at, part, *low, other);
    return true;
  }

  void combine(std::size_t best, std::size_t other) {
    if (pool_[other].keeps || !combined_.emplace(best, other).second) return;
    pool_.combine(best, other);
  }

  /// The plan of least weight among those on the other side of the bounds: within them if plan `low` is not, or beyond.
  std::optional<std::size_t> opposite(const branch& at, const priced_problem& part, std::size_t low) const {
    std::optional<std::size_t> least;
    double weight = 0;
    for (const std::size_t i : at.plans) {
      if (keeps_bounds(problem_, pool_[i].amounts) == keeps_bounds(problem_, pool_[low].amounts)) continue;
      const plan_line line = pool_.line(i, part);
      const double its = weight_of(line, at.prices);
      if (least && !(its < weight)) continue;
      least = i;
      weight = its;
    }
    return least;
  }

  /// Looks for the best prices. Returns the number of the plan at the best prices. Nothing if the branch is closed, or if a limit
  /// ended it before there was a plan.
  std::optional<std::size_t> raise(branch& at, priced_problem& part, price_model& model) {
    std::optional<std::size_t> low;
    std::int64_t highest = std::numeric_limits<std::int64_t>::min();
    std::vector<double> best_prices = at.prices, prices = at.prices;
    if (at.number == 0) model.maximise(prices);
    const unsigned rounds = at.number == 0 ? most_rounds_first : most_rounds;
    for (unsigned round = 0; round < rounds; ++round) {
      const auto found = at_weights(part, {.time = true, .prices = prices});
      if (!found) {
        at.bound = std::numeric_limits<std::int64_t>::max();  // no plan
        return std::nullopt;
      }
      if (found->chosen.empty()) break;
      const std::size_t plan = add(at, found->chosen);
      const plan_line line = pool_.line(plan, part);
      model.add(line);
      if (found->lower > highest) {
        highest = found->lower;
        best_prices = prices;
        low = plan;
      }
      at.bound = std::max(at.bound, found->lower);
      if (at.bound >= best_cost() || is_over()) break;
      if (pool_[plan].keeps && found->lower >= pool_[plan].cost) break;
      if (part.shares_items()) {
        part.move_shares(found->chosen, 1.0 / (round + 2.0));
        model = model_of(at, part);
      }
      std::vector<double> next = best_prices;
      if (problem_.resources.size() > 1 && round % 2 == 1) step(next, highest, line, model);
      else model.maximise(next);
      if (next == prices && !part.shares_items()) break;
      // As far as the known plans show, other prices raise the bound by no more than this.
      const double more = model.least(next) - static_cast<double>(highest);
      if (problem_.resources.size() == 1 && !part.shares_items() && more <= enough()) break;
      prices = std::move(next);
    }
    at.prices = std::move(best_prices);
    return low;
  }

  double enough() const {
    return pool_.best() == nullptr ? 1 : 1 + 0.1 * limits_.gap * static_cast<double>(best_cost());
  }

  /// A subgradient step (Polyak 1969) towards the bound that the known plans allow.
  void step(std::vector<double>& prices, std::int64_t highest, const plan_line& line, const price_model& model) const {
    const double aim = pool_.best() != nullptr ? static_cast<double>(best_cost()) : model.least(prices) * 1.05 + 1;
    double length = 0;
    for (const double e : line.excess) length += e * e;
    if (length == 0) return;
    const double size = 0.5 * std::max(1.0, aim - static_cast<double>(highest)) / length;
    for (std::size_t r = 0; r < prices.size(); ++r) prices[r] = std::max(0.0, prices[r] + size * line.excess[r]);
  }

  /// The candidate on which to divide: one that the plan at the best prices contains, and for which a plan may contain others.
  /// Members of an excluded set come first, then candidates that the opposite plan lacks, then those that pay most.
  std::optional<std::uint32_t> choice(const branch& at, const priced_problem& part, std::size_t low,
                                      std::optional<std::size_t> other) const {
    const bool is_over = !keeps_bounds(problem_, pool_[low].amounts);
    const known_plan& plan = pool_[is_over || !other ? low : *other];
    const known_plan* const against = !other ? nullptr : is_over ? &pool_[*other] : &pool_[low];
    const std::size_t excluded = excluded_in(problem_, plan.chosen);
    std::optional<std::uint32_t> choice;
    std::pair<int, double> most{-1, 0};
    for (const std::uint32_t i : plan.chosen) {
      if (!part.has_alternative(i)) continue;
      int rank = 0;
      if (excluded != problem_.excluded.size() && std::ranges::count(problem_.excluded[excluded], i) != 0) rank = 2;
      else if (against != nullptr && !std::ranges::binary_search(against->chosen, i)) rank = 1;
      double paid = problem_.candidates[i].cost_ms;  // decides if nothing is paid
      for (const use& u : problem_.candidates[i].uses) paid += at.prices[u.resource] * static_cast<double>(u.amount);
      if (std::pair(rank, paid) > most) {
        most = {rank, paid};
        choice = i;
      }
    }
    return choice;
  }

  void divide(branch& at, const priced_problem& part, std::size_t low, std::optional<std::size_t> other) {
    std::optional<std::uint32_t> on = choice(at, part, low, other);
    if (!on && other) on = choice(at, part, low, std::nullopt);
    // Without an alternative there is no other plan, and this one has been judged.
    if (!on) return;
    branch with = at, without = std::move(at);
    // In which of several equal parts it is decided does not matter: if not in this one, then in none of them.
    for (const std::uint32_t i : parts_->orbit(*on, with.decided, with.left_out)) without.left_out.push_back(i);
    with.decided.push_back(*on);
    with.number = ++branches_;
    without.number = ++branches_;
    for (branch* b : {&with, &without}) {
      open_.push_back(std::move(*b));
      std::ranges::push_heap(open_, is_later);
    }
  }

  std::optional<placement> result(placement free) const {
    placement plan;
    plan.states = states_;
    plan.transitions = transitions_;
    plan.repeated = free.repeated;
    const std::int64_t least = least_open();
    const known_plan* from = pool_.best();
    if (from == nullptr) {
      from = least_exceeding(plan);
      if (from == nullptr) return std::nullopt;
      plan.lower_bound_ms = std::min(free.lower_bound_ms, milliseconds(from->cost));
    } else {
      plan.lower_bound_ms = milliseconds(std::min(least, from->cost));
      plan.optimal = least >= from->cost;
    }
    plan.cost_ms = milliseconds(from->cost);
    plan.chosen = from->chosen;
    plan.amounts = from->amounts;
    std::ranges::sort(plan.chosen, {}, [&](std::uint32_t i) { return problem_.candidates[i].nodes.first(); });
    return plan;
  }

  /// The plan that is nearest to the bounds if none keeps them. Says of which resource there is too little. None if each plan
  /// keeps the bounds, and was looked at.
  const known_plan* least_exceeding(placement& plan) const {
    const known_plan* nearest = nullptr;
    std::tuple<bool, std::size_t, double> least{};  // excluded, how many bounds it breaks, and by how much
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      const known_plan& at = pool_[i];
      const exceeded_bounds over(problem_, at.amounts);
      if (over.count == 0) continue;  // it contains an excluded set
      const std::tuple excess(excluded_in(problem_, at.chosen) != problem_.excluded.size(), over.count, over.sum);
      if (nearest != nullptr && !(excess < least)) continue;
      nearest = &at;
      least = excess;
      plan.lacks = shortage{over.worst, at.amounts[over.worst], open_.empty()};
    }
    if (nearest != nullptr || open_.empty()) return nearest;
    throw error(error_kind::failure, "the limit ended the search before a plan without an excluded set was found",
                "search", "raise the limit");
  }

  const problem& problem_;
  const std::vector<bool>& may_cycle_;
  const limits& limits_;
  plan_pool pool_;
  std::optional<equal_parts> parts_;
  std::vector<branch> open_;  // a heap
  std::size_t branches_ = 0, states_ = 0, transitions_ = 0;
  std::set<std::pair<std::size_t, std::size_t>> combined_;  // plans, by number
  clock::time_point first_ = clock::now(), begin_ = first_;
};

/// The best plan of a problem with resources or excluded sets.
inline placement solve_bounded(const problem& p, const std::vector<bool>& may_cycle, const limits& l) {
  check_resources(p);
  constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max() >> 2U;
  bounded_search search(p, may_cycle, l);
  if (auto plan = search.run(solve(p, costs_of(p), may_cycle, l))) return std::move(*plan);
  // Plans without an excluded set exceed a bound, or there are none.
  problem loose = p;
  for (resource& r : loose.resources) r.bound = unbounded;
  if (std::ranges::all_of(p.resources, [](const resource& r) { return r.bound >= unbounded; }))
    throw error(error_kind::unsupported, "each plan contains an excluded set of candidates", "search",
                "exclude fewer sets");
  placement plan = solve_bounded(loose, may_cycle, l);
  plan.optimal = false;
  const std::uint32_t worst = exceeded_bounds(p, plan.amounts).worst;
  plan.lacks = shortage{worst, plan.amounts[worst], true};
  return plan;
}

}  // namespace collage::inline v0::search::detail
