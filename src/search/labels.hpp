// The paths that a search knows to each of its states.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outlook.hpp"
#include "space.hpp"
#include "state_table.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// A place is a state without its values: the first uncovered node and the covered set beyond it. A label is a path to a place.
/// The labels of one place differ in the states of the values that live there, or in the forbidden sets that they have begun.
class label_table {
 public:
  static constexpr std::uint32_t nothing = 0xffff'ffffu;

  struct arrival {
    std::uint32_t from = nothing;  ///< the label before; `nothing` at the start
    std::uint32_t entry = 0;       ///< the entry taken there
  };
  struct place {
    std::uint32_t first_live, live, first_label;
    std::int64_t rest;       ///< lower bound on the rest of a plan, without the values that live here
    std::int64_t untouched;  ///< the part of it for values that no covered node touches
  };
  struct label {
    std::int64_t cost;      ///< of the path
    std::int64_t estimate;  ///< a lower bound on every plan that continues the path
    std::uint32_t groups, place;
    std::uint32_t next;    ///< at the same place
    std::uint32_t values;  ///< index of its first state in `label_values_`
    arrival by;
    bool expanded, dead;
  };
  /// A path that arrives at a place.
  struct draft {
    std::uint32_t position = 0;
    std::int64_t cost = 0;
    std::uint32_t groups = 0;
    arrival by;
    std::vector<std::uint64_t> covered, bits;  ///< nodes beyond the position; the forbidden sets that it has begun
    std::vector<live_value> live;
    std::vector<value_state> values;  ///< their states, by live value
    std::int64_t untouched = 0;
  };

  label_table(const space& s, const tracked_values& tracked, outlook& ahead)
      : space_(s), tracked_(tracked), ahead_(ahead), states_(s.words), slots_(smallest, nothing) {}

  /// Forgets all labels and places. From here on, labels have `bit_words` words for forbidden sets.
  void clear(std::size_t bit_words, bool keeps_ties) {
    slack_ = keeps_ties ? 0 : 1;
    states_.clear();
    places_.clear();
    lives_.clear();
    labels_.clear();
    label_values_.clear();
    label_bits_.clear();
    bit_words_ = bit_words;
    used_ = smallest;
    std::fill_n(slots_.begin(), used_, nothing);
  }

  /// Notes a path unless a better path is known. Returns its label if the label must be expanded (again), else `nothing`.
  std::uint32_t note(draft& d) {
    const std::uint32_t at = place_at(d);
    const place& here = places_[at];
    const std::int64_t estimate = d.cost + rest_of(here, d) + ahead_.gain(d.position);
    if (here.rest >= unreachable / 2 && ahead_.is_relaxed()) return nothing;  // the rest cannot be covered
    const std::uint32_t live = here.live;
    const bool is_plain = live == 0 && bit_words_ == 0;  // then a place has one label
    std::size_t slot = 0;
    if (!is_plain) {
      if (2 * (labels_.size() + 1) > used_) grow();
      slot = find(hash(at, std::span(d.values).first(live), d.bits), at, d, live);
      if (slots_[slot] != nothing) {
        if (!labels_[slots_[slot]].dead) return improve(slots_[slot], d, estimate);
        if (d.cost >= labels_[slots_[slot]].cost) return nothing;
      }
    } else if (here.first_label != nothing) {
      return improve(here.first_label, d, estimate);
    }
    // If the bound includes the cost of forms, comparing takes longer than it saves.
    const bool compares = !ahead_.is_relaxed() || tracked_.has_switches();
    for (std::uint32_t l = here.first_label, before = nothing; l != nothing && compares; l = labels_[l].next) {
      if (labels_[l].cost < d.cost + slack_ && outdoes(l, d, live)) return nothing;
      if (d.cost < labels_[l].cost + slack_ && !labels_[l].expanded && is_outdone(l, d, live)) {
        labels_[l].dead = true;
        (before == nothing ? places_[at].first_label : labels_[before].next) = labels_[l].next;
        continue;
      }
      before = l;
    }
    const auto fresh = static_cast<std::uint32_t>(labels_.size());
    labels_.push_back({d.cost, estimate, d.groups, at, here.first_label,
                       static_cast<std::uint32_t>(label_values_.size()), d.by, false, false});
    places_[at].first_label = fresh;
    if (!is_plain) slots_[slot] = fresh;
    if (live != 0) label_values_.insert(label_values_.end(), d.values.begin(), d.values.end());
    label_bits_.insert(label_bits_.end(), d.bits.begin(), d.bits.end());
    return fresh;
  }

  /// The lower bound on the rest of a plan where a path arrives, without gains.
  std::int64_t estimate(draft& d) { return rest_of(places_[place_at(d)], d); }

  label& operator[](std::uint32_t l) { return labels_[l]; }
  const label& operator[](std::uint32_t l) const { return labels_[l]; }
  const place& place_of(std::uint32_t l) const { return places_[labels_[l].place]; }
  std::uint32_t position(std::uint32_t l) const { return states_.position(labels_[l].place); }
  /// Valid until the next `note`.
  std::span<const std::uint64_t> covered(std::uint32_t l) const { return states_.mask(labels_[l].place); }
  std::span<const live_value> live(std::uint32_t l) const {
    return std::span(lives_).subspan(place_of(l).first_live, place_of(l).live);
  }
  std::span<const value_state> values_of(std::uint32_t l) const {
    return std::span(label_values_).subspan(labels_[l].values, place_of(l).live);
  }
  std::span<const std::uint64_t> bits(std::uint32_t l) const {
    return std::span(label_bits_).subspan(l * bit_words_, bit_words_);
  }
  /// The entries on the path to a label.
  std::vector<std::uint32_t> way_to(std::uint32_t l) const {
    std::vector<std::uint32_t> entries;
    for (arrival by = labels_[l].by; by.from != nothing; by = labels_[by.from].by) entries.push_back(by.entry);
    std::ranges::reverse(entries);
    return entries;
  }
  std::size_t size_in_bytes() const {
    return states_.size_in_bytes() + places_.capacity() * sizeof(place) + lives_.capacity() * sizeof(live_value) +
           labels_.capacity() * sizeof(label) + label_values_.capacity() * sizeof(value_state) +
           label_bits_.capacity() * sizeof(std::uint64_t);
  }

 private:
  std::uint32_t place_at(draft& d) {
    const auto [at, is_new] = states_.insert(d.position, d.covered);
    if (is_new) add_place(d);
    return at;
  }
  std::int64_t rest_of(const place& here, const draft& d) {
    std::int64_t sum = here.rest;
    for (std::uint32_t i = 0; i < here.live; ++i) sum += ahead_.least(lives_[here.first_live + i], d.values[i]);
    return sum;
  }
  void add_place(draft& d) {
    places_.push_back({static_cast<std::uint32_t>(lives_.size()), static_cast<std::uint32_t>(d.live.size()), nothing,
                       ahead_.rest(d.position, d.covered) + d.untouched, d.untouched});
    for (live_value& v : d.live) v.outlook = ahead_.find(v);
    lives_.insert(lives_.end(), d.live.begin(), d.live.end());
  }

  std::uint32_t improve(std::uint32_t l, const draft& d, std::int64_t estimate) {
    label& known = labels_[l];
    if (d.cost > known.cost) return nothing;
    const bool is_cheaper = d.cost < known.cost;
    if (!is_cheaper && (d.groups > known.groups || (d.groups == known.groups && !precedes(d.by, known.by))))
      return nothing;
    known.cost = d.cost;
    known.estimate = estimate;
    known.groups = d.groups;
    known.by = d.by;
    return is_cheaper ? l : nothing;
  }

  static std::uint64_t hash(std::uint32_t at, std::span<const value_state> values,
                            std::span<const std::uint64_t> bits) {
    std::uint64_t h = at * 0x9e37'79b9'7f4a'7c15u;
    const auto mix = [&h](std::uint64_t word) {
      h = (h ^ word) * 0xff51'afd7'ed55'8ccdu;
      h ^= h >> 32u;
    };
    for (const value_state& s : values) mix(std::bit_cast<std::uint32_t>(s));
    for (const std::uint64_t word : bits) mix(word);
    return h;
  }
  std::size_t find(std::uint64_t h, std::uint32_t at, const draft& d, std::uint32_t live) const {
    std::size_t slot = static_cast<std::size_t>(h) & (used_ - 1);
    while (slots_[slot] != nothing && !(labels_[slots_[slot]].place == at && is_same(slots_[slot], d, live)))
      slot = (slot + 1) & (used_ - 1);
    return slot;
  }
  void grow() {
    used_ *= 2;
    if (slots_.size() < used_) slots_.resize(used_);
    std::fill_n(slots_.begin(), used_, nothing);
    for (std::uint32_t l = 0; l < labels_.size(); ++l) {
      std::size_t slot = static_cast<std::size_t>(hash(labels_[l].place, values_of(l), bits(l))) & (used_ - 1);
      while (slots_[slot] != nothing) slot = (slot + 1) & (used_ - 1);
      slots_[slot] = l;
    }
  }

  bool is_same(std::uint32_t l, const draft& d, std::uint32_t live) const {
    return std::equal(d.values.begin(), d.values.begin() + live, label_values_.begin() + labels_[l].values) &&
           std::ranges::equal(bits(l), d.bits);
  }
  static bool is_part_of(std::span<const std::uint64_t> some, std::span<const std::uint64_t> others) {
    for (std::size_t i = 0; i < some.size(); ++i)
      if ((some[i] & ~others[i]) != 0) return false;
    return true;
  }
  /// Whether each continuation costs more in total after the new path than after `l`.
  bool outdoes(std::uint32_t l, const draft& d, std::uint32_t live) const {
    std::int64_t sum = labels_[l].cost;
    const live_value* at = lives_.data() + places_[labels_[l].place].first_live;
    const value_state* ours = label_values_.data() + labels_[l].values;
    for (std::uint32_t i = 0; i < live && sum < d.cost + slack_; ++i)
      sum += tracked_.handicap(ours[i], d.values[i], at[i]);
    return sum < d.cost + slack_ && is_part_of(bits(l), d.bits);
  }
  bool is_outdone(std::uint32_t l, const draft& d, std::uint32_t live) const {
    std::int64_t sum = d.cost;
    const live_value* at = lives_.data() + places_[labels_[l].place].first_live;
    const value_state* theirs = label_values_.data() + labels_[l].values;
    for (std::uint32_t i = 0; i < live && sum < labels_[l].cost + slack_; ++i)
      sum += tracked_.handicap(d.values[i], theirs[i], at[i]);
    return sum < labels_[l].cost + slack_ && is_part_of(d.bits, bits(l));
  }

  /// Whether the plan that arrives by `a` has the lexicographically smaller sorted list of candidates than the plan by
  /// `b`. Both have equally many candidates and cover the same nodes. So the part that they share does not matter, now
  /// or later. Only the paths since they parted are compared.
  bool precedes(arrival a, arrival b) {
    ours_.clear();
    theirs_.clear();
    const auto note = [this](std::vector<std::uint32_t>& list, std::uint32_t entry) {
      list.push_back(space_.entries[entry].index);
    };
    while (a.from != b.from || a.entry != b.entry) {
      const bool a_is_further = b.from == nothing || (a.from != nothing && position(a.from) >= position(b.from));
      arrival& at = a_is_further ? a : b;
      note(a_is_further ? ours_ : theirs_, at.entry);
      at = labels_[at.from].by;
    }
    std::ranges::sort(ours_);
    std::ranges::sort(theirs_);
    return ours_ < theirs_;
  }

  const space& space_;
  const tracked_values& tracked_;
  outlook& ahead_;
  state_table states_;
  std::vector<place> places_;  // by state
  std::vector<live_value> lives_;
  std::vector<label> labels_;
  std::vector<value_state> label_values_;
  std::vector<std::uint64_t> label_bits_;
  static constexpr std::size_t smallest = 64;  // a power of two
  std::size_t used_ = smallest;                // number of slots in use
  std::vector<std::uint32_t> slots_;           // labels by place, values and bits
  std::size_t bit_words_ = 0;
  std::int64_t slack_ = 0;  // 1 if ties need not be decided
  std::vector<std::uint32_t> ours_, theirs_;
};

}  // namespace collage::inline v0::search::detail
