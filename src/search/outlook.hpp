// A lower bound on the cost of the rest of a plan.
#pragma once

#include <collage/search/problem.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "relaxation.hpp"
#include "space.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// The lower bound of the search: the sum of the uncovered nodes' cheapest shares. If forms matter, potentials.hpp gives prices
/// to forms, and the bound has two parts instead. One is the cheapest cover of the uncovered nodes at these prices. The other
/// is the least that each value can still cost, after the prices are subtracted. The gain of a position is how much too low the
/// bound is known to be from there on.
class outlook {
 public:
  outlook(const problem& p, const space& s, const tracked_values& tracked)
      : space_(s), relaxed_(p, s, tracked), shares_before_(s.nodes + 1) {
    for (std::uint32_t n = 0; n < s.nodes; ++n) shares_before_[n + 1] = shares_before_[n] + s.shares[n];
    first_of_.assign(tracked.list().size(), nothing);
    untouched_.assign(tracked.list().size(), 0);
    gains_.assign(s.nodes + 1, 0);
  }

  /// Moves to the nodes between two cuts across which no value lives. Returns the least cost of the values between them.
  template <class More>
  std::int64_t look(std::uint32_t begin, std::uint32_t end, More more) {
    forget();
    for (const std::uint32_t v : priced_) untouched_[v] = 0;
    priced_.clear();
    end_ = end;
    return relaxed_.prepare(begin, end, more) ? relaxed_.least_of_values([this](std::uint32_t v, std::int64_t least) {
      untouched_[v] = least;
      priced_.push_back(v);
    })
                                              : 0;
  }
  /// The least cost of the nodes that a state has not covered.
  std::int64_t rest(std::uint32_t position, std::span<const std::uint64_t> mask) const {
    if (relaxed_.ready()) return relaxed_.ways().behind(position, mask);
    std::int64_t sum = shares_before_[end_] - shares_before_[position];
    for (std::size_t w = 0; w < mask.size(); ++w)
      for (std::uint64_t rest = mask[w]; rest != 0; rest &= rest - 1)
        sum -= space_.shares[position + 64 * w + static_cast<std::size_t>(std::countr_zero(rest))];
    return sum;
  }
  /// The gain of a position.
  std::int64_t gain(std::uint32_t position) const { return gains_[position]; }
  void set_gain(std::uint32_t position, std::int64_t gain) { gains_[position] = gain; }
  /// The least cost, with prices subtracted, of a value that no covered node touches.
  std::int64_t untouched(std::uint32_t v) const { return untouched_[v]; }

  /// Where `least` stores its results for a value with these readers left; `nothing` if the value has no prices.
  std::uint32_t find(const live_value& at) {
    if (!relaxed_.ready() || !relaxed_.prices().has_prices(at.value)) return nothing;
    std::uint32_t i = first_of_[at.value];
    if (i == nothing) known_.push_back(at.value);
    for (; i != nothing; i = views_[i].next)
      if (views_[i].open == at.open && views_[i].written == at.written) return i;
    const std::uint32_t forms = relaxed_.prices().forms(at.value);
    views_.push_back({at.open, std::exchange(first_of_[at.value], static_cast<std::uint32_t>(views_.size())),
                      static_cast<std::uint32_t>(least_.size()), static_cast<std::uint8_t>(forms), at.written});
    if (forms <= most_forms_in_sets) least_.resize(least_.size() + ((at.written ? forms : 1U) << forms), unknown);
    return first_of_[at.value];
  }
  /// The least that a value in this state can still cost, with prices subtracted.
  std::int64_t least(const live_value& at, const value_state& s) {
    if (at.outlook == nothing) return 0;
    const view& v = views_[at.outlook];
    if (v.forms > most_forms_in_sets) return relaxed_.prices().least_from(at.value, s, at.written, at.open);
    std::int64_t& known = least_[v.first + (at.written ? std::size_t{s.form} << v.forms : 0) + s.forms];
    if (known == unknown) known = relaxed_.prices().least_from(at.value, s, at.written, at.open);
    return known;
  }
  /// Whether the bound includes values, rather than only each node's cheapest share.
  bool is_relaxed() const { return relaxed_.ready(); }
  std::size_t size_in_bytes() const {
    return views_.capacity() * sizeof(view) + least_.capacity() * sizeof(std::int64_t);
  }

 private:
  void forget() {
    for (const std::uint32_t v : known_) first_of_[v] = nothing;
    known_.clear();
    views_.clear();
    least_.clear();
  }

  static constexpr std::uint32_t nothing = 0xffff'ffffu;
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();
  /// A value with certain readers left, and with its producer covered or not.
  struct view {
    std::uint64_t open;
    std::uint32_t next, first;
    std::uint8_t forms;  ///< their number
    bool written;
  };
  const space& space_;
  relaxation relaxed_;
  std::uint32_t end_ = 0;
  std::vector<std::int64_t> shares_before_;
  std::vector<std::int64_t> untouched_, gains_;
  std::vector<std::uint32_t> first_of_, known_, priced_;
  std::vector<view> views_;
  std::vector<std::int64_t> least_;
};

}  // namespace collage::inline v0::search::detail
