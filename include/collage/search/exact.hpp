// The best placement, with its certificate.
#pragma once

#include <collage/error.hpp>
#include <collage/search/detail/first_fit.hpp>
#include <collage/search/detail/space.hpp>
#include <collage/search/detail/state_table.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::search {

namespace detail {

/// Counts down what a search may still spend.
class allowance {
 public:
  explicit allowance(const limits& l) : states_(l.states), timed_(l.time != std::chrono::nanoseconds::max()) {
    if (!timed_) return;
    const auto now = clock::now();
    // A time beyond the clock's range is no limit.
    timed_ = l.time < clock::time_point::max() - now;
    if (timed_) end_ = now + std::chrono::duration_cast<clock::duration>(l.time);
  }
  /// Takes one state; false when the search has to stop. The clock is read rarely: it costs as much as a state.
  bool take() {
    if (over_ || states_ == 0) return false;
    if (timed_ && reads_++ % 16 == 0 && clock::now() >= end_) {
      over_ = true;
      return false;
    }
    --states_;
    return true;
  }

 private:
  using clock = std::chrono::steady_clock;
  std::size_t states_;
  bool timed_;
  bool over_ = false;
  unsigned reads_ = 0;
  clock::time_point end_{};
};

/// Searches the pieces of a space between its cuts, one at a time.
class piece_search {
 public:
  explicit piece_search(const space& s) : space_(s), states_(s.words), covered_(s.words), next_(s.words) {}

  struct result {
    std::vector<std::uint32_t> entries;  // ordered by first node
    std::int64_t lower_excess = 0;       // no plan of the piece has less excess
    bool optimal = false;
  };

  /// The nodes from `begin` to `end`, which are cuts. Empty when no set of entries covers them exactly.
  std::optional<result> solve(std::uint32_t begin, std::uint32_t end, allowance& left) {
    states_.clear();
    records_.clear();
    open_.clear();
    std::fill(next_.begin(), next_.end(), 0);
    reach(begin, 0, 0, {no_state, 0});
    while (!open_.empty()) {
      const waiting best = open_.front();
      const bool stale = records_[best.state].expanded;
      if (!stale && best.position == end) return result{path_to(best.state), best.excess, true};
      if (!stale && !left.take()) return incumbent(begin, end);
      std::pop_heap(open_.begin(), open_.end(), std::greater<>());
      open_.pop_back();
      if (!stale) expand(best);
    }
    return std::nullopt;
  }

  std::size_t expanded() const { return expanded_; }
  std::size_t transitions() const { return transitions_; }

 private:
  static constexpr std::uint32_t no_state = 0xffff'ffffu;

  struct arrival {
    std::uint32_t from;   // a state
    std::uint32_t entry;  // taken there
  };
  struct record {
    std::int64_t excess;
    std::uint32_t groups;
    arrival by;
    bool expanded;
  };
  /// Ordered by excess, then by position: a way to a state comes from an earlier position at no greater excess, so all
  /// ways that tie for a state are known before it is expanded, and its record is final then. The tie rule rests on it.
  struct waiting {
    std::int64_t excess;
    std::uint32_t position;
    std::uint32_t state;
    friend auto operator<=>(const waiting&, const waiting&) = default;
  };

  void expand(const waiting& at) {
    ++expanded_;
    records_[at.state].expanded = true;
    const std::uint32_t groups = records_[at.state].groups + 1;
    std::ranges::copy(states_.mask(at.state), covered_.begin());
    for (std::uint32_t e = space_.begin[at.position]; e < space_.end_of(at.position); ++e) {
      const std::uint64_t* mask = space_.mask(e);
      if (overlap(mask, covered_)) continue;
      ++transitions_;
      std::transform(covered_.begin(), covered_.end(), mask, next_.begin(), std::bit_or<>());
      const std::uint32_t position = past_covered(at.position, next_);
      reach(position, at.excess + space_.entries[e].excess, groups, {at.state, e});
    }
  }

  /// Notes a way to the state (position, next_), if it is the best one so far.
  void reach(std::uint32_t position, std::int64_t excess, std::uint32_t groups, arrival by) {
    const auto [state, is_new] = states_.insert(position, next_);
    if (is_new) {
      records_.push_back({excess, groups, by, false});
    } else {
      record& known = records_[state];
      if (excess > known.excess) return;
      if (excess == known.excess) {
        if (groups < known.groups || (groups == known.groups && precedes(by, known.by))) {
          known.groups = groups;
          known.by = by;
        }
        return;
      }
      known = {excess, groups, by, false};
    }
    open_.push_back({excess, position, state});
    std::push_heap(open_.begin(), open_.end(), std::greater<>());
  }

  /// Whether the plan that arrives by `a` has the lexicographically smaller sorted list of candidates than the one by
  /// `b`. They have equally many and cover the same nodes, so what they share does not matter, now or later, and only
  /// the ways since they parted are looked at.
  bool precedes(arrival a, arrival b) {
    const auto index = [this](arrival by) { return space_.entries[by.entry].index; };
    ours_.assign(1, index(a));
    theirs_.assign(1, index(b));
    while (a.from != b.from) {
      const bool a_is_further = states_.position(a.from) >= states_.position(b.from);
      arrival& further = a_is_further ? a : b;
      further = records_[further.from].by;
      (a_is_further ? ours_ : theirs_).push_back(index(further));
    }
    std::ranges::sort(ours_);
    std::ranges::sort(theirs_);
    return ours_ < theirs_;
  }

  std::vector<std::uint32_t> path_to(std::uint32_t state) const {
    std::vector<std::uint32_t> entries;
    for (arrival by = records_[state].by; by.from != no_state; by = records_[by.from].by) entries.push_back(by.entry);
    std::ranges::reverse(entries);
    return entries;
  }

  std::int64_t excess_of(std::span<const std::uint32_t> entries) const {
    std::int64_t sum = 0;
    for (const std::uint32_t e : entries) sum += space_.entries[e].excess;
    return sum;
  }

  /// The plan to answer with when the search has to stop: the better of the greedy plan of the piece and the greedy
  /// completion of the open state that is furthest. Greedy is least excess per node.
  result incumbent(std::uint32_t begin, std::uint32_t end) {
    const std::vector<std::uint32_t> order = preference(space_, [](const entry& a, const entry& b) {
      const double per_node_a = static_cast<double>(a.excess) / a.size;
      const double per_node_b = static_cast<double>(b.excess) / b.size;
      if (per_node_a != per_node_b) return per_node_a < per_node_b;
      return a.size != b.size ? a.size > b.size : a.index < b.index;
    });
    // Enough to complete a plan wherever nodes can be covered alone, and bounded: a limit must end the search.
    const std::size_t most_steps = 64 * space_.entries.size() + 1'000'000;
    std::size_t steps = most_steps;
    const std::vector<std::uint64_t> nothing(space_.words);
    auto plan = first_fit(space_, order, begin, nothing, end, steps);
    const auto furthest = std::ranges::max_element(open_, [this](const waiting& a, const waiting& b) {
      return std::pair(a.position, -records_[a.state].excess) < std::pair(b.position, -records_[b.state].excess);
    });
    steps = most_steps;
    if (auto rest = first_fit(space_, order, furthest->position, states_.mask(furthest->state), end, steps)) {
      std::vector<std::uint32_t> other = path_to(furthest->state);
      other.insert(other.end(), rest->begin(), rest->end());
      if (!plan || excess_of(other) < excess_of(*plan)) plan = std::move(other);
    }
    if (!plan) {
      throw error(error_kind::failure, "the limit ended the search before any complete plan was found",
                  "search, nodes " + std::to_string(begin) + " to " + std::to_string(end - 1),
                  "raise the limit, or give every node a candidate of its own");
    }
    const std::int64_t lower = open_.front().excess;  // the least that any way onwards can still end with
    const bool optimal = excess_of(*plan) == lower;
    return {std::move(*plan), lower, optimal};
  }

  const space& space_;
  state_table states_;
  std::vector<record> records_;  // by state
  std::vector<waiting> open_;    // a heap; a state that got better is in it more than once
  std::vector<std::uint64_t> covered_, next_;
  std::vector<std::uint32_t> ours_, theirs_;
  std::size_t expanded_ = 0;
  std::size_t transitions_ = 0;
};

/// The exact search over costs given in picoseconds; `p` must have passed `check`.
inline placement solve(const problem& p, std::span<const std::int64_t> costs, const limits& l) {
  const space s = make_space(p, costs, true);
  const std::size_t pieces = s.cuts.empty() ? 0 : s.cuts.size() - 1;
  std::vector<std::size_t> order(pieces);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Small pieces first, so that one that exhausts the limit leaves no other without an answer.
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(s.cuts[i + 1] - s.cuts[i], i); });

  allowance left(l);
  piece_search search(s);
  std::vector<std::vector<std::uint32_t>> plans(pieces);
  std::int64_t lower = s.bound;
  placement found;
  found.optimal = true;
  for (const std::size_t i : order) {
    auto solved = search.solve(s.cuts[i], s.cuts[i + 1], left);
    if (!solved) {
      throw error(error_kind::unsupported, "no set of candidates covers every node exactly once",
                  "search, nodes " + std::to_string(s.cuts[i]) + " to " + std::to_string(s.cuts[i + 1] - 1),
                  "give every node a candidate of its own");
    }
    plans[i] = std::move(solved->entries);
    lower += solved->lower_excess;
    found.optimal = found.optimal && solved->optimal;
  }
  std::int64_t cost = 0;
  for (const auto& plan : plans) {
    for (const std::uint32_t e : plan) {
      found.chosen.push_back(s.entries[e].index);
      cost += s.entries[e].cost;
    }
  }
  found.cost_ms = milliseconds(cost);
  found.lower_bound_ms = milliseconds(lower);
  found.states = search.expanded();
  found.transitions = search.transitions();
  return found;
}

inline std::vector<std::int64_t> costs_of(const problem& p) {
  std::vector<std::int64_t> costs;
  costs.reserve(p.candidates.size());
  for (const candidate& c : p.candidates) costs.push_back(picoseconds(c.cost_ms));
  return costs;
}

}  // namespace detail

/// The cheapest set of candidates that covers every node exactly once.
///
/// Canonical order: the next candidate always covers the first uncovered node, so every plan is met in one order only
/// and a state is that node with the covered set beyond it. Best first over states (A*; Hart, Nilsson, Raphael 1968)
/// with the bound from each node's cheapest share, piece by piece between positions that no candidate straddles.
///
/// Tie rule: of the plans of least cost (in whole picoseconds) those with the fewest groups, of these the one whose
/// sorted list of candidate indices is lexicographically smallest. So the answer depends on the costs and on the order
/// of `candidates`, and on nothing else: not on hashing, not on the numbering of the nodes. (An answer cut short by
/// `limits::states` is deterministic too, but follows no such rule; one cut short by `limits::time` depends on the
/// machine.)
///
/// When a limit ends the search, the answer is the best plan at hand with its lower bound and gap. Only a problem
/// without a complete plan in easy reach then throws (`error_kind::failure`).
///
/// Throws what `check` throws, and `error_kind::unsupported` when no set of candidates covers every node exactly once.
inline placement exact(const problem& p, const limits& l = {}) {
  check(p);
  return detail::solve(p, detail::costs_of(p), l);
}

}  // namespace collage::inline v0::search
