// The price of each form, for each node that touches a value.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "space.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// One number for each form of a value. Numbers after its last form have no meaning.
using by_form = std::array<std::int64_t, problem::most_forms>;

/// For values with at most this many forms, the cost of each set of forms is known.
inline constexpr std::uint32_t most_forms_in_sets = 5;
/// One number for each set of forms.
using by_set = std::array<std::int64_t, 1U << most_forms_in_sets>;

/// Far above every cost at prices, and small enough to be added twice.
inline constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max() / 4;

/// Prices for forms. They move the costs of conversions to the candidates, and leave each sum as it is. A candidate that
/// meets a value in a form pays the price of that form, for each of its nodes that touches the value. The value costs
/// less by the same amount. (The Lagrangian of the program in which nodes and values choose forms for themselves.)
///
/// A touch is a node's use of a value: number 0 is the producer's, 1 + i that of reader i. A reader in its producer's
/// group counts as reading the form that is written.
class potentials {
 public:
  potentials(const problem& p, const space& s, const tracked_values& tracked) : tracked_(tracked.list()) {
    if (std::ranges::none_of(tracked_, &tracked_value::has_forms)) return;
    values_.resize(tracked_.size());
    std::uint32_t touches = 0;
    std::size_t prices = 0;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const auto readers = static_cast<std::uint32_t>(tracked_[v].readers.size());
      const bool is_simple = readers == 1 && !tracked_[v].is_output;
      values_[v] = {.first = touches,
                    .first_price = prices,
                    .is_simple = is_simple,
                    .has_prices = tracked_[v].has_forms && readers <= 64 &&
                                  (is_simple || tracked_[v].forms <= most_forms_in_sets)};
      touches += 1 + readers;
      prices += std::size_t{1 + readers} * tracked_[v].forms;
    }
    met_.assign(touches, 0);
    for (std::uint32_t e = 0; e < s.entries.size(); ++e) {
      const node_set& nodes = p.candidates[s.entries[e].index].nodes;
      for (const touch& t : tracked.touches(e)) {
        bit_set* const met = met_.data() + values_[t.value].first;
        const std::vector<std::uint32_t>& readers = tracked_[t.value].readers;
        if (t.writes) *met |= bit_set{1} << t.form;
        for (std::size_t r = 0; r < readers.size(); ++r)
          if (nodes.contains(readers[r])) met[1 + r] |= bit_set{1} << t.form;
      }
    }
    for (std::uint32_t v = 0; v < values_.size(); ++v)
      if (is_given(v)) met_[values_[v].first] = 1;
    prices_.assign(prices, 0);
  }

  /// False if there are too many sets of forms to look at, or more readers than the bits can distinguish.
  bool has_prices(std::uint32_t v) const { return !values_.empty() && values_[v].has_prices; }
  /// The number of a value's forms; whether the value is an input of the network; the number of its readers.
  std::uint32_t forms(std::uint32_t v) const { return tracked_[v].forms; }
  bool is_given(std::uint32_t v) const { return tracked_[v].producer == node_set::none; }
  std::size_t readers(std::uint32_t v) const { return tracked_[v].readers.size(); }
  void add(std::uint32_t v, std::uint32_t number, const by_form& more) {
    std::int64_t* const prices = prices_.data() + values_[v].first_price + std::size_t{number} * forms(v);
    for (std::uint32_t form = 0; form < forms(v); ++form) prices[form] += more[form];
  }
  /// By form.
  const std::int64_t* prices(std::uint32_t v, std::uint32_t number) const {
    return prices_.data() + values_[v].first_price + std::size_t{number} * forms(v);
  }
  /// The forms in which any candidate has the touch.
  bit_set met(std::uint32_t v, std::uint32_t number) const { return met_[values_[v].first + number]; }

  /// For each form, the least cost of a value, less prices, if that touch is in the form. Returns the part of `least`
  /// that it wrote.
  std::span<std::int64_t> find_least(std::uint32_t v, std::uint32_t number, by_form& least) const {
    const std::span<std::int64_t> found = std::span(least).first(forms(v));
    std::ranges::fill(found, unreachable);
    if (values_[v].is_simple) {
      find_least_of_pairs(v, number == 0, least);
      return found;
    }
    const tracked_value& at = tracked_[v];
    const std::int64_t *const written = prices(v, 0), *const read = prices(v, number);
    by_set others, paid;
    take_best(v, others, [&](std::uint32_t r) { return r + 1 != number; });
    const bit_set all = all_forms(v);
    if (number != 0) paid.fill(unreachable);
    for_each_bit(met(v, 0), [&](unsigned a) {
      by_set sums;  // the cost of making each set of forms
      const std::int64_t* const convert = at.converting(a);
      sums[0] = (at.is_output ? convert[0] : 0) - written[a];
      for (bit_set set = 1; set <= all; ++set) {
        const auto low = static_cast<unsigned>(std::countr_zero(set));
        sums[set] = sums[set & (set - 1)] + (low == 0 && at.is_output ? 0 : convert[low]);
        if (!has_bit(set, a)) continue;
        if (number == 0) least[a] = std::min(least[a], sums[set] - others[set]);
        else paid[set] = std::min(paid[set], sums[set]);
      }
    });
    for (bit_set set = all; set != 0 && number != 0; --set)
      for_each_bit(set & met(v, number),
                   [&](unsigned b) { least[b] = std::min(least[b], paid[set] - others[set] - read[b]); });
    return found;
  }

  /// The least that a value in a state can still cost, less prices. Only the readers in `open` are left, and the
  /// producer if the value is not `written`.
  std::int64_t least_from(std::uint32_t v, const value_state& s, bool written, std::uint64_t open) const {
    by_set best;
    if (open != 0 && !std::has_single_bit(open))
      take_best(v, best, [&](std::uint32_t r) { return (open >> r & 1U) != 0; });
    if (written) return least_of_readers(v, s.form, s.forms, open, best);
    std::int64_t least = unreachable;
    for_each_bit(met(v, 0), [&](unsigned a) {
      std::int64_t paid = -prices(v, 0)[a];
      for_each_bit(s.forms & ~(bit_set{1} << a), [&](unsigned to) { paid += tracked_[v].converting(a)[to]; });
      least = std::min(least, open == 0 ? paid : paid + least_of_readers(v, a, s.forms, open, best));
    });
    return least;
  }

 private:
  /// The same for a value with one reader: looks at each pair of forms.
  void find_least_of_pairs(std::uint32_t v, bool of_producer, by_form& least) const {
    const std::int64_t *const written = prices(v, 0), *const read = prices(v, 1);
    const bit_set can_read = met(v, 1);
    for_each_bit(met(v, 0), [&](unsigned a) {
      const std::int64_t* const convert = tracked_[v].converting(a);
      for_each_bit(can_read, [&](unsigned b) {
        std::int64_t& known = least[of_producer ? a : b];
        known = std::min(known, convert[b] - written[a] - read[b]);
      });
    });
  }
  /// The least cost of the readers in `open` if the value is written in form `a`. The forms in `paid` cost nothing more.
  std::int64_t least_of_readers(std::uint32_t v, unsigned a, bit_set paid, std::uint64_t open,
                                const by_set& best) const {
    std::int64_t least = unreachable;
    const std::int64_t* const convert = tracked_[v].converting(a);
    paid |= bit_set{1} << a;
    if (std::has_single_bit(open)) {
      const auto number = static_cast<std::uint32_t>(1 + std::countr_zero(open));
      const std::int64_t* const read = prices(v, number);
      for_each_bit(met(v, number),
                   [&](unsigned b) { least = std::min(least, (has_bit(paid, b) ? 0 : convert[b]) - read[b]); });
      return least;
    }
    for (bit_set set = all_forms(v); set != 0; --set) {
      if (!has_bit(set, a) || best[set] == -unreachable) continue;
      std::int64_t cost = -best[set];
      for_each_bit(set & ~paid, [&](unsigned to) { cost += convert[to]; });
      least = std::min(least, cost);
    }
    return least;
  }

  struct priced {
    std::uint32_t first = 0;      ///< its first touch
    std::size_t first_price = 0;  ///< the index of the price of that touch in form 0
    bool is_simple = false, has_prices = false;
  };
  /// All forms, as bits. Each number up to this is a set of forms.
  bit_set all_forms(std::uint32_t v) const { return (bit_set{1} << forms(v)) - 1; }

  /// For each set of forms, the most that the counted readers pay if each reads in a form of the set.
  template <class Counts>
  void take_best(std::uint32_t v, by_set& best, Counts counts) const {
    const bit_set all = all_forms(v);
    best.fill(0);
    best[0] = -unreachable;
    by_set most;
    most[0] = -unreachable;
    const auto count = static_cast<std::uint32_t>(readers(v));
    for (std::uint32_t r = 0; r < count; ++r) {
      if (!counts(r)) continue;
      const bit_set can_read = met(v, 1 + r);
      const std::int64_t* const read = prices(v, 1 + r);
      for (bit_set set = 1; set <= all; ++set) {
        const auto low = static_cast<unsigned>(std::countr_zero(set));
        most[set] = std::max(most[set & (set - 1)], has_bit(can_read, low) ? read[low] : -unreachable);
        best[set] = most[set] == -unreachable || best[set] == -unreachable ? -unreachable : best[set] + most[set];
      }
    }
  }

  std::span<const tracked_value> tracked_;
  std::vector<priced> values_;
  std::vector<std::int64_t> prices_;  // by value, touch and form
  std::vector<bit_set> met_;          // by touch
};

}  // namespace collage::inline v0::search::detail
