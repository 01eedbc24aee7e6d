// What each node's layout is worth to the values that it touches.
#pragma once

#include <collage/search/detail/forms.hpp>
#include <collage/search/detail/space.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace collage::inline v0::search::detail {

/// One number for each layout.
using by_layout = std::array<std::int64_t, problem::most_layouts>;

/// One number for each set of layouts.
using by_set = std::array<std::int64_t, 1U << problem::most_layouts>;

/// Far more than anything that has prices costs, and small enough to be added twice.
inline constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max() / 4;

/// Prices for layouts that move the costs of conversions to the candidates, and leave each sum as it is: a candidate that
/// meets a value in a layout pays the price of that layout for each of its nodes that touches the value, and what the value
/// costs is less by as much. (The Lagrangian of the program in which nodes and values choose layouts for themselves.)
///
/// A touch is a node's dealing with a value: number 0 is the producer's, 1 + i that of reader i. A reader in its producer's
/// group counts as one that reads what is written.
class potentials {
 public:
  potentials(const problem& p, const space& s, const forms& f) : layouts_(p.layouts) {
    if (f.empty() || p.layouts == 1) return;
    values_.resize(f.values().size());
    convert_.resize(values_.size() * layouts_ * layouts_);
    std::uint32_t touches = 0;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const forms::tracked& from = f.values()[v];
      const auto readers = static_cast<std::uint32_t>(from.readers.size());
      values_[v] = {.first = touches,
                    .readers = readers,
                    .is_given = from.producer == node_set::none,
                    .is_output = from.is_output,
                    .is_simple = readers == 1 && !from.is_output,
                    .has_prices = !from.convert.empty() && readers <= 64};
      touches += 1 + readers;
      for (std::uint32_t a = 0; a < layouts_ && !from.convert.empty(); ++a)
        std::copy_n(from.convert.data() + a * problem::most_layouts, layouts_,
                    convert_.data() + (v * layouts_ + a) * layouts_);
    }
    met_.assign(touches, 0);
    for (std::uint32_t e = 0; e < s.entries.size(); ++e) {
      const node_set& nodes = p.candidates[s.entries[e].index].nodes;
      for (const touch& t : f.touches(e)) {
        const forms::tracked& v = f.values()[t.value];
        const auto bit = static_cast<std::uint8_t>(1U << t.layout);
        if (t.writes) met_[values_[t.value].first] |= bit;
        for (std::uint32_t r = 0; r < v.readers.size(); ++r)
          if (nodes.contains(v.readers[r])) met_[values_[t.value].first + 1 + r] |= bit;
      }
    }
    for (priced& v : values_) {
      if (v.is_given) met_[v.first] = 1;
      v.used = 1;  // of outputs, and of forms that are equal whatever follows
      for (std::uint32_t i = 0; i <= v.readers; ++i) v.used |= met_[v.first + i];
      v.has_prices = v.has_prices && (v.is_simple || std::popcount(v.used) <= 5);
    }
    prices_.assign(std::size_t{touches} * layouts_, 0);
  }

  /// Not where too many sets of layouts would have to be looked at, or too many readers to be told apart by bits.
  bool has_prices(std::uint32_t v) const { return !values_.empty() && values_[v].has_prices; }
  /// Whether a value is the network's input; how many nodes read it.
  bool is_given(std::uint32_t v) const { return values_[v].is_given; }
  std::uint32_t readers(std::uint32_t v) const { return values_[v].readers; }
  void add(std::uint32_t v, std::uint32_t number, const by_layout& more) {
    for (unsigned l = 0; l < layouts_; ++l) prices_[std::size_t{values_[v].first + number} * layouts_ + l] += more[l];
  }
  std::int64_t price(std::uint32_t v, std::uint32_t number, unsigned layout) const {
    return prices_[std::size_t{values_[v].first + number} * layouts_ + layout];
  }
  /// The layouts in which any candidate has the touch.
  bit_set met(std::uint32_t v, std::uint32_t number) const { return met_[values_[v].first + number]; }

  /// For each layout the least that a value costs, prices taken off, when that touch is in the layout.
  by_layout least(std::uint32_t v, std::uint32_t number) const {
    const priced& at = values_[v];
    by_layout least;
    least.fill(unreachable);
    if (at.is_simple) {
      for_each(met(v, 0), [&](unsigned a) {
        for_each(met(v, 1), [&](unsigned b) {
          const std::int64_t cost = converting(v, a)[b] - price(v, 0, a) - price(v, 1, b);
          std::int64_t& known = least[number == 0 ? a : b];
          known = std::min(known, cost);
        });
      });
      return least;
    }
    by_set others, paid;
    take_best(v, others, [&](std::uint32_t r) { return r + 1 != number; });
    const bit_set all = values_[v].used;
    if (number != 0) paid.fill(unreachable);
    for_each(met(v, 0), [&](unsigned a) {
      by_set sums;  // what making a set of layouts costs
      const std::int64_t* const convert = converting(v, a);
      const std::int64_t always = at.is_output ? convert[0] : 0;
      sums[0] = always - price(v, 0, a);
      for (bit_set set = all & (~all + 1); set != 0; set = (set - all) & all) {  // ascending
        const auto low = static_cast<unsigned>(std::countr_zero(set));
        sums[set] = sums[set & (set - 1)] + (low == 0 && at.is_output ? 0 : convert[low]);
        if ((set >> a & 1U) == 0) continue;
        if (number == 0) least[a] = std::min(least[a], sums[set] - others[set]);
        else paid[set] = std::min(paid[set], sums[set]);
      }
    });
    for (bit_set set = all; set != 0 && number != 0; set = (set - 1) & all)
      for_each(set & met(v, number),
               [&](unsigned b) { least[b] = std::min(least[b], paid[set] - others[set] - price(v, number, b)); });
    return least;
  }

  /// The least that a value of form `f` can still cost, prices taken off, when only the readers in `open` are left, and the
  /// producer where it is not `written`.
  std::int64_t least_from(std::uint32_t v, const form& f, bool written, std::uint64_t open) const {
    std::int64_t least = unreachable;
    if (open == 0 && !written) {  // nobody reads it
      for_each(met(v, 0), [&](unsigned a) {
        std::int64_t paid = -price(v, 0, a);
        for_each(bit_set{f.layouts} & ~(1U << a), [&](unsigned to) { paid += converting(v, a)[to]; });
        least = std::min(least, paid);
      });
      return least;
    }
    by_set best;
    if (!std::has_single_bit(open)) take_best(v, best, [&](std::uint32_t r) { return (open >> r & 1U) != 0; });
    const auto from = [&](unsigned a, std::int64_t paid) {
      const std::int64_t* const convert = converting(v, a);
      if (std::has_single_bit(open)) {
        const auto r = static_cast<std::uint32_t>(std::countr_zero(open));
        for_each(met(v, 1 + r), [&](unsigned b) {
          least = std::min(least, paid + (a == b || (f.layouts >> b & 1U) != 0 ? 0 : convert[b]) - price(v, 1 + r, b));
        });
        return;
      }
      const bit_set all = values_[v].used;
      for (bit_set set = all; set != 0; set = (set - 1) & all) {
        if ((set >> a & 1U) == 0 || best[set] == -unreachable) continue;
        std::int64_t cost = paid - best[set];
        for_each(set & ~(1U << a) & ~bit_set{f.layouts}, [&](unsigned to) { cost += convert[to]; });
        least = std::min(least, cost);
      }
    };
    if (written) {
      from(f.layout, 0);
    } else {
      for_each(met(v, 0), [&](unsigned a) {
        std::int64_t paid = -price(v, 0, a);
        for_each(bit_set{f.layouts} & ~(1U << a), [&](unsigned to) { paid += converting(v, a)[to]; });
        from(a, paid);
      });
    }
    return least;
  }

 private:
  template <class Visit>
  static void for_each(bit_set layouts, Visit visit) {
    for (; layouts != 0; layouts &= layouts - 1) visit(static_cast<unsigned>(std::countr_zero(layouts)));
  }

  struct priced {
    std::uint32_t first = 0, readers = 0;  ///< its first touch
    bool is_given = false, is_output = false, is_simple = false, has_prices = false;
    bit_set used = 0;  ///< layouts in any touch
  };
  const std::int64_t* converting(std::uint32_t v, unsigned from) const {
    return convert_.data() + (std::size_t{v} * layouts_ + from) * layouts_;
  }
  /// For each set of layouts: what the readers that count pay at most when each reads in one of them.
  template <class Counts>
  void take_best(std::uint32_t v, by_set& best, Counts counts) const {
    const bit_set all = values_[v].used;
    best[0] = -unreachable;
    for (bit_set set = all; set != 0; set = (set - 1) & all) best[set] = 0;
    const std::uint32_t readers = values_[v].readers;
    by_set most;
    most[0] = -unreachable;
    for (std::uint32_t r = 0; r < readers; ++r) {
      if (!counts(r)) continue;
      for (bit_set set = all & (~all + 1); set != 0; set = (set - all) & all) {  // ascending
        const auto low = static_cast<unsigned>(std::countr_zero(set));
        most[set] =
            std::max(most[set & (set - 1)], (met(v, 1 + r) >> low & 1U) != 0 ? price(v, 1 + r, low) : -unreachable);
        best[set] = most[set] == -unreachable || best[set] == -unreachable ? -unreachable : best[set] + most[set];
      }
    }
  }

  std::uint32_t layouts_;
  std::vector<priced> values_;
  std::vector<std::int64_t> convert_;  // picoseconds, [(value * layouts + from) * layouts + to]
  std::vector<std::int64_t> prices_;   // [touch * layouts + layout]
  std::vector<std::uint8_t> met_;      // by touch
};

}  // namespace collage::inline v0::search::detail
