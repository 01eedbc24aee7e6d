// The exact search between two cuts across which no value lives.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "allowance.hpp"
#include "outlook.hpp"
#include "piece_search.hpp"
#include "solve.hpp"
#include "space.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// Consecutive pieces that pass on values whose form matters. Pieces of different segments are independent.
struct segment {
  std::size_t first = 0, last = 0;  ///< into `space::cuts`: from cuts[first] to cuts[last]
};

/// Searches segments, one at a time.
///
/// The gap of the relaxation adds up over many nodes. Best-first search then visits every state whose estimate is within that
/// gap of the optimum. So if a small number of states does not suffice, the search learns gains. The gain of a stretch of the
/// segment is the least amount by which a path across it exceeds the estimate, whatever its first state. The same search finds
/// the gain, and divides long stretches into shorter ones if needed. The bound of states before a stretch then includes its
/// gain.
class segment_search {
 public:
  using outcome = piece_search::outcome;

  segment_search(const problem& p, const space& s, const tracked_values& tracked, const neighbour_lists& consumers,
                 const pace& how)
      : pace_(how),
        space_(s),
        tracked_(tracked),
        ahead_(p, s, tracked),
        search_(p, s, tracked, consumers, ahead_),
        across_(s.nodes + 1) {
    for (const tracked_value& v : tracked.list()) {
      ++across_[v.first + 1];
      --across_[v.last + 1];
    }
    for (std::size_t i = 1; i < across_.size(); ++i) across_[i] += across_[i - 1];
    by_first_.resize(tracked.list().size());
    std::iota(by_first_.begin(), by_first_.end(), 0U);
    std::ranges::sort(by_first_, {}, [&](std::uint32_t v) { return std::pair(tracked.list()[v].first, v); });
  }

  /// The number of values that are touched on both sides of a position.
  std::int32_t across(std::uint32_t position) const { return across_[position]; }

  outcome solve(const segment& s, allowance& left) {
    begin_ = space_.cuts[s.first];
    end_ = space_.cuts[s.last];
    stretches_.clear();
    whole_.untouched = ahead_.look(begin_, end_, [&] { return left.has_time(); });
    search_.start(begin_, end_, whole_, true);
    const bool is_long = ahead_.is_relaxed() && choose_stops(s);
    outcome result = best(left, is_long ? pace_.states * (end_ - begin_) : no_limit);
    if (result != outcome::stopped || search_.is_over()) return result;
    list_values();
    const bool learnt = learn_parts(0, stops_.size() - 1, left);
    learn(begin_, end_);
    search_.start(begin_, end_, whole_, stretches_.empty());
    return learnt ? best(left, no_limit) : outcome::stopped;
  }

  std::uint32_t begin() const { return begin_; }
  std::uint32_t end() const { return end_; }
  /// After `found`: the best path and its cost.
  std::vector<std::uint32_t> way() const { return search_.way(); }
  std::int64_t cost() const { return search_.cost(); }
  /// After `stopped`: a lower bound on the cost of every plan.
  std::int64_t lower_bound() const { return search_.lower_bound(); }
  /// After `stopped`: a plan that continues with the best few states of each position. The search cannot be resumed.
  std::optional<std::vector<std::uint32_t>> dive(bool with_cycles) {
    return search_.dive(width, with_cycles) ? std::optional(search_.way()) : std::nullopt;
  }

  std::size_t expanded() const { return search_.expanded(); }
  std::size_t transitions() const { return search_.transitions(); }

 private:
  static constexpr std::size_t width = 4;
  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

  auto bytes() const {
    return [this] { return search_.size_in_bytes() + ahead_.size_in_bytes(); };
  }

  /// Finds the best path whose groups do not wait for each other.
  outcome best(allowance& left, std::size_t most) {
    for (;;) {
      outcome result = search_.run(left, bytes(), most);
      if (result == outcome::found && !stretches_.empty()) result = search_.run_by_position(left, bytes());
      if (result != outcome::found || !search_.forbid_cycle()) return result;
    }
  }

  /// Chooses cuts about `pace::apart` nodes apart: near each such position, the cut across which the fewest values live. False
  /// if there are none.
  bool choose_stops(const segment& s) {
    stops_.assign(1, begin_);
    for (std::size_t i = s.first + 1; i < s.last;) {
      const std::uint32_t from = stops_.back() + pace_.apart, to = from + pace_.apart;
      while (i < s.last && space_.cuts[i] < from) ++i;
      std::size_t best = i;
      for (; i < s.last && space_.cuts[i] < to; ++i)
        if (across_[space_.cuts[i]] < across_[space_.cuts[best]]) best = i;
      if (best < s.last) stops_.push_back(space_.cuts[best]);
      i = best + 1;
    }
    stops_.push_back(end_);
    return stops_.size() > 2;
  }
  /// Lists the values that live across each stop, and adds up the costs of values that are not touched before it.
  void list_values() {
    live_.assign(stops_.size(), {});
    untouched_.assign(stops_.size(), whole_.untouched);
    const auto first_of = [this](std::uint32_t v) { return tracked_.list()[v].first; };
    auto at = std::ranges::lower_bound(by_first_, begin_, {}, first_of);
    for (std::size_t i = 1; i < stops_.size(); ++i) {
      untouched_[i] = untouched_[i - 1];
      for (; at != by_first_.end() && first_of(*at) < stops_[i]; ++at) {
        untouched_[i] -= ahead_.untouched(*at);
        for (std::size_t k = i; k < stops_.size() && stops_[k] <= tracked_.list()[*at].last; ++k)
          live_[k].push_back(*at);
      }
      std::ranges::sort(live_[i]);
    }
  }

  /// Finds the least amount by which a path from one stop to another exceeds the estimate. First it expands only a few states.
  /// If they do not suffice, it learns the gains of the parts and searches again. False if a limit ends the search.
  bool learn(std::size_t first, std::size_t last, allowance& left) {
    const std::uint32_t begin = stops_[first], end = stops_[last];
    const beginning from = first == 0 ? whole_ : anywhere(first);
    if (from.values.empty()) return true;
    const bool is_short = last - first == 1;
    for (const bool knows_parts : {false, true}) {
      learn(begin, end);
      search_.start(begin, end, from, false);
      const std::size_t few = pace_.states * (end - begin) + from.values.size();
      if (search_.run(left, bytes(), is_short || knows_parts ? no_limit : few) == outcome::found) {
        if (first != 0) stretches_[begin].emplace_back(end, search_.estimate());
        return true;
      }
      if (search_.is_over()) return false;
      if (is_short || knows_parts) return true;
      if (!learn_parts(first, last, left)) return false;
    }
    return true;
  }
  bool learn_parts(std::size_t first, std::size_t last, allowance& left) {
    const std::size_t parts = std::min<std::size_t>(pace_.parts, last - first);
    for (std::size_t i = parts; i-- > 0;)
      if (!learn(first + (last - first) * i / parts, first + (last - first) * (i + 1) / parts, left)) return false;
    return true;
  }
  /// Sets the gains of the bound from the known stretches between each position and `end`.
  void learn(std::uint32_t begin, std::uint32_t end) {
    ahead_.set_gain(end, 0);
    for (std::uint32_t n = end; n-- > begin;) {
      std::int64_t most = ahead_.gain(n + 1);
      if (const auto at = stretches_.find(n); at != stretches_.end())
        for (const auto& [to, more] : at->second)
          if (to <= end) most = std::max(most, more + ahead_.gain(to));
      ahead_.set_gain(n, most);
    }
  }

  /// All states that values may have at a stop, whatever came before, except states that are never better than others.
  /// The runtimes that wrote the values count as free. Empty if there are too many.
  beginning anywhere(std::size_t stop) {
    beginning from{.live = {}, .values = {{}}, .untouched = untouched_[stop], .is_known = false};
    for (const std::uint32_t v : live_[stop]) {
      live_value at = tracked_.live_at(v, stops_[stop]);
      at.outlook = ahead_.find(at);
      const std::vector<value_state> choices = states_of(at, stops_[stop]);
      if (from.values.size() * choices.size() > pace_.most_beginnings) return {};
      std::vector<std::vector<value_state>> all;
      for (const std::vector<value_state>& some : from.values)
        for (const value_state& s : choices) {
          all.push_back(some);
          all.back().push_back(s);
        }
      from.values = std::move(all);
      from.live.push_back(at);
    }
    return from;
  }
  std::vector<value_state> states_of(const live_value& at, std::uint32_t cut) {
    std::vector<value_state> list = tracked_.possible(at, cut);
    for (std::size_t i = 0; i < list.size();) {
      const bool is_needless = std::ranges::any_of(list, [&](const value_state& other) {
        return &other != &list[i] &&
               tracked_.handicap(other, list[i], at) <= ahead_.least(at, other) - ahead_.least(at, list[i]);
      });
      if (is_needless) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      else ++i;
    }
    return list;
  }

  const pace pace_;
  const space& space_;
  const tracked_values& tracked_;
  outlook ahead_;
  piece_search search_;
  std::vector<std::int32_t> across_;
  std::uint32_t begin_ = 0, end_ = 0;
  beginning whole_{.live = {}, .values = {{}}};
  std::vector<std::uint32_t> by_first_;           // values
  std::vector<std::uint32_t> stops_;              // positions
  std::vector<std::vector<std::uint32_t>> live_;  // by stop: values
  std::vector<std::int64_t> untouched_;           // by stop
  /// By the position where a stretch begins: where it ends, and its gain.
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::int64_t>>> stretches_;
};

}  // namespace collage::inline v0::search::detail
