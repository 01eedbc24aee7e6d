// The exact search between two cuts.
#pragma once

#include <collage/error.hpp>
#include <collage/search/detail/cycles.hpp>
#include <collage/search/detail/first_fit.hpp>
#include <collage/search/detail/forms.hpp>
#include <collage/search/detail/space.hpp>
#include <collage/search/detail/state_table.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// Counts down what a search may still spend.
class allowance {
 public:
  explicit allowance(const limits& l)
      : states_(l.states), bytes_(l.bytes), timed_(l.time != std::chrono::nanoseconds::max()) {
    if (!timed_) return;
    const auto now = clock::now();
    // A time beyond the clock's range is no limit.
    timed_ = l.time < clock::time_point::max() - now;
    if (timed_) end_ = now + std::chrono::duration_cast<clock::duration>(l.time);
  }
  /// Takes one state; false when the search has to stop. The clock is read rarely: it costs as much as a state.
  template <class Bytes>
  bool take(Bytes bytes) {
    if (over_ || states_ == 0) return false;
    if (takes_++ % 16 == 0 && ((timed_ && clock::now() >= end_) || bytes() > bytes_)) {
      over_ = true;
      return false;
    }
    --states_;
    return true;
  }

 private:
  using clock = std::chrono::steady_clock;
  std::size_t states_, bytes_;
  bool timed_;
  bool over_ = false;
  unsigned takes_ = 0;
  clock::time_point end_{};
};

/// A plan up to a cut.
struct crossing {
  static constexpr std::uint32_t none = 0xffff'ffffu;

  std::int64_t excess = 0;             ///< what the plan costs above the bound
  std::uint32_t groups = 0;            ///< how many it has
  std::uint32_t before = none;         ///< the crossing of the cut before that it continues
  std::vector<std::uint32_t> entries;  ///< taken since, by first node
  std::vector<form> forms;             ///< of the values that live across the cut
};

/// What is known at a cut: the values that live across it and all ways there that may be part of a best plan.
struct cut_state {
  std::vector<live_value> live;
  std::vector<std::uint32_t> crossings;  ///< into the list of all
};

/// Searches pieces, one at a time.
class piece_search {
 public:
  /// `consumers` is looked at only where entries may be part of cycles.
  piece_search(const problem& p, const space& s, const forms& f, const neighbour_lists& consumers)
      : problem_(p), space_(s), forms_(f), consumers_(consumers), states_(s.words), covered_(s.words), next_(s.words) {}

  enum class outcome : std::uint8_t { found, impossible, stopped };

  /// The nodes from `begin` to `end`, which are cuts. Turns `at`, which is known at `begin`, into what is known at `end`,
  /// and adds the new crossings to `all`.
  outcome solve(std::uint32_t begin, std::uint32_t end, std::vector<crossing>& all, cut_state& at, allowance& left) {
    all_ = &all;
    nogoods_.clear();
    proven_ = 0;
    for (;;) {
      start(begin, at);
      const outcome result = run(end, left);
      if (result != outcome::found) return result;
      if (!has_cycle()) break;                  // otherwise again, without that: what it costs is still a lower bound
      proven_ = labels_[ends_.front()].excess;  // the first is the cheapest
    }
    cut_state next;
    if (!ends_.empty()) {
      const place& last = places_[labels_[ends_.front()].place];
      next.live.assign(lives_.begin() + last.first_live, lives_.begin() + last.first_live + last.live);
    }
    for (const std::uint32_t e : ends_) {
      if (labels_[e].dead) continue;
      next.crossings.push_back(static_cast<std::uint32_t>(all.size()));
      crossing c = path_to(e);
      const auto forms = forms_of(e);
      c.forms.assign(forms.begin(), forms.end());
      all.push_back(std::move(c));
    }
    at = std::move(next);
    return outcome::found;
  }

  /// After `stopped`: no plan of the piece has less excess, together with what comes before it.
  std::int64_t lower_excess() const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const std::uint32_t e : ends_) least = std::min(least, labels_[e].excess);
    for (const waiting& w : open_)
      if (!labels_[w.label].expanded && !labels_[w.label].dead) least = std::min(least, w.excess);
    return std::max(least, proven_);
  }
  /// After `stopped`: the open state that is furthest, the way to it, and where it stands.
  struct frontier {
    crossing way;
    std::uint32_t position = 0;
    std::vector<std::uint64_t> covered;
  };
  frontier furthest() const {
    std::uint32_t best = crossing::none;
    const auto rank = [this](std::uint32_t l) {
      return std::pair(states_.position(labels_[l].place), -labels_[l].excess);
    };
    for (const waiting& w : open_)
      if (!labels_[w.label].expanded && !labels_[w.label].dead &&
          (best == crossing::none || rank(best) < rank(w.label)))
        best = w.label;
    const auto mask = states_.mask(labels_[best].place);
    return {path_to(best), states_.position(labels_[best].place), {mask.begin(), mask.end()}};
  }

  std::size_t expanded() const { return expanded_; }
  std::size_t transitions() const { return transitions_; }

 private:
  static constexpr std::uint32_t nothing = 0xffff'ffffu;

  struct arrival {
    std::uint32_t from;   // a label; `nothing` at the start, and then the crossing:
    std::uint32_t entry;  // taken there
  };
  struct place {
    std::uint32_t first_live, live;
    std::uint32_t first_label;
  };
  /// The ways to a place that differ in the forms of the values that live there, or in what they may no longer choose.
  struct label {
    std::int64_t excess;
    std::uint32_t groups;
    std::uint32_t place;
    std::uint32_t next;   // at the same place
    std::uint32_t forms;  // into label_forms_
    arrival by;
    bool expanded, dead;
  };
  /// Ordered by excess, then by position: a way to a state comes from an earlier position at no greater excess, so all
  /// ways that tie for a state are known before it is expanded, and its label is final then. The tie rule rests on it.
  struct waiting {
    std::int64_t excess;
    std::uint32_t position;
    std::uint32_t label;
    friend auto operator<=>(const waiting&, const waiting&) = default;
  };
  /// Entries that must not all be chosen, because they would wait for each other.
  struct nogood {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // (first node, entry)
  };

  void start(std::uint32_t begin, const cut_state& at) {
    states_.clear();
    places_.clear();
    lives_.clear();
    labels_.clear();
    label_forms_.clear();
    label_bits_.clear();
    open_.clear();
    ends_.clear();
    bit_words_ = (nogoods_.size() + 63) / 64;
    bits_.assign(bit_words_, 0);
    next_bits_.assign(bit_words_, 0);
    std::fill(next_.begin(), next_.end(), 0);
    next_live_ = at.live;
    for (const std::uint32_t c : at.crossings) {
      next_forms_ = (*all_)[c].forms;
      reach(begin, (*all_)[c].excess, (*all_)[c].groups, {nothing, c});
    }
  }

  outcome run(std::uint32_t end, allowance& left) {
    std::int64_t enough = std::numeric_limits<std::int64_t>::max();
    const auto bytes = [this] { return size_in_bytes(); };
    while (!open_.empty()) {
      const waiting best = open_.front();
      const label& at = labels_[best.label];
      const bool is_stale = at.expanded || at.dead;
      if (!is_stale && best.excess > enough) break;
      if (!is_stale && best.position != end && !left.take(bytes)) return outcome::stopped;
      std::pop_heap(open_.begin(), open_.end(), std::greater<>());
      open_.pop_back();
      if (is_stale) continue;
      if (best.position != end) {
        expand(best);
        continue;
      }
      ends_.push_back(best.label);
      labels_[best.label].expanded = true;
      const place& here = places_[at.place];
      if (here.live == 0) break;
      // A way that costs more than this one with all that it might have to make up for is not needed.
      std::int64_t most = at.excess;
      for (std::uint32_t i = 0; i < here.live; ++i)
        most += forms_.most(label_forms_[at.forms + i], lives_[here.first_live + i]);
      enough = std::min(enough, most);
    }
    return ends_.empty() ? outcome::impossible : outcome::found;
  }

  void expand(const waiting& from) {
    ++expanded_;
    labels_[from.label].expanded = true;
    const std::uint32_t groups = labels_[from.label].groups + 1;
    const std::uint32_t at = labels_[from.label].place;
    std::ranges::copy(states_.mask(at), covered_.begin());
    std::copy_n(label_bits_.begin() + static_cast<std::ptrdiff_t>(from.label * bit_words_), bit_words_, bits_.begin());
    for (std::uint32_t e = space_.begin[from.position]; e < space_.end_of(from.position); ++e) {
      const std::uint64_t* mask = space_.mask(e);
      if (overlap(mask, covered_)) continue;
      std::transform(covered_.begin(), covered_.end(), mask, next_.begin(), std::bit_or<>());
      const std::uint32_t position = past_covered(from.position, next_);
      if (bit_words_ != 0 && !choose(from.position, e, position)) continue;
      ++transitions_;
      std::int64_t excess = from.excess + space_.entries[e].excess;
      if (!forms_.empty()) pass_values(from.label, e, position, excess);
      reach(position, excess, groups, {from.label, e});
    }
  }

  static bool is_covered(std::uint32_t node, std::uint32_t position, std::span<const std::uint64_t> mask) {
    if (node < position) return true;
    const std::uint32_t bit = node - position;
    return bit / 64 < mask.size() && (mask[bit / 64] >> bit % 64 & 1U) != 0;
  }

  /// The values that live behind an entry, and their forms, into next_live_ and next_forms_.
  void pass_values(std::uint32_t from, std::uint32_t e, std::uint32_t position, std::int64_t& excess) {
    next_live_.clear();
    next_forms_.clear();
    const place& here = places_[labels_[from].place];
    const auto runtime = static_cast<std::uint8_t>(problem_.candidates[space_.entries[e].index].runtime);
    const std::span<const touch> touches = forms_.touches(e);
    std::size_t t = 0;
    for (std::uint32_t i = 0; i < here.live || t < touches.size();) {
      const live_value* old = i < here.live ? &lives_[here.first_live + i] : nullptr;
      if (old != nullptr && (t == touches.size() || old->value < touches[t].value)) {
        next_live_.push_back(*old);
        next_forms_.push_back(label_forms_[labels_[from].forms + i++]);
        continue;
      }
      const touch& by = touches[t++];
      const forms::tracked& v = forms_.values()[by.value];
      const bool known = old != nullptr && old->value == by.value;
      live_value now{by.value, 0, 0, known ? old->written : v.producer == node_set::none};
      const form before = known ? label_forms_[labels_[from].forms + i++] : forms_.untouched(v);
      const form after = forms_.after(by, runtime, before, now.written, excess);
      now.written = now.written || by.writes;
      bool open = !now.written;
      for (std::size_t r = 0; r < v.readers.size(); ++r) {
        if (is_covered(v.readers[r], position, next_)) continue;
        open = true;
        now.layouts = static_cast<std::uint8_t>(now.layouts | v.layouts[r]);
        now.runtimes = static_cast<std::uint8_t>(now.runtimes | v.runtimes[r]);
      }
      if (!open) continue;
      next_live_.push_back(now);
      next_forms_.push_back(forms_.normal(after, now));
    }
  }

  /// Notes in next_bits_ of which forbidden sets all members decided so far are chosen once `e` is; false when it would
  /// complete one.
  bool choose(std::uint32_t position, std::uint32_t e, std::uint32_t next) {
    std::ranges::fill(next_bits_, 0);
    for (std::size_t g = 0; g < nogoods_.size(); ++g) {
      std::size_t decided = 0, fresh = 0;
      bool all = true;
      for (const auto& [first, entry] : nogoods_[g].members) {
        if (is_covered(first, position, covered_)) {
          ++decided;
        } else if (is_covered(first, next, next_)) {
          ++fresh;
          all = all && entry == e;
        }
      }
      const bool so_far = decided == 0 || (bits_[g / 64] >> g % 64 & 1U) != 0;
      const bool chosen = so_far && all && decided + fresh != 0;
      if (chosen && decided + fresh == nogoods_[g].members.size()) return false;
      if (chosen) next_bits_[g / 64] |= std::uint64_t{1} << g % 64;
    }
    return true;
  }

  /// Notes a way to the state (position, next_, next_forms_, next_bits_), unless another is better.
  void reach(std::uint32_t position, std::int64_t excess, std::uint32_t groups, arrival by) {
    const auto [at, is_new] = states_.insert(position, next_);
    if (is_new) {
      places_.push_back({static_cast<std::uint32_t>(lives_.size()), 0, nothing});
      if (!forms_.empty()) {
        places_[at].live = static_cast<std::uint32_t>(next_live_.size());
        lives_.insert(lives_.end(), next_live_.begin(), next_live_.end());
      }
    }
    const std::uint32_t live = places_[at].live;
    const bool is_plain = live == 0 && bit_words_ == 0;  // then a place has one label
    for (std::uint32_t l = places_[at].first_label, before = nothing; l != nothing; l = labels_[l].next) {
      if (is_plain || is_same(l, live)) {
        improve(l, position, excess, groups, by);
        return;
      }
      if (labels_[l].excess < excess && outdoes(l, excess, live)) return;
      if (excess < labels_[l].excess && !labels_[l].expanded && is_outdone(l, excess, live)) {
        labels_[l].dead = true;
        (before == nothing ? places_[at].first_label : labels_[before].next) = labels_[l].next;
        continue;
      }
      before = l;
    }
    const auto fresh = static_cast<std::uint32_t>(labels_.size());
    labels_.push_back({excess, groups, at, places_[at].first_label, static_cast<std::uint32_t>(label_forms_.size()), by,
                       false, false});
    places_[at].first_label = fresh;
    if (live != 0) label_forms_.insert(label_forms_.end(), next_forms_.begin(), next_forms_.end());
    label_bits_.insert(label_bits_.end(), next_bits_.begin(), next_bits_.end());
    push({excess, position, fresh});
  }

  void improve(std::uint32_t l, std::uint32_t position, std::int64_t excess, std::uint32_t groups, arrival by) {
    label& known = labels_[l];
    if (excess > known.excess) return;
    if (excess == known.excess) {
      if (groups < known.groups || (groups == known.groups && precedes(by, known.by))) {
        known.groups = groups;
        known.by = by;
      }
      return;
    }
    known.excess = excess;
    known.groups = groups;
    known.by = by;
    push({excess, position, l});
  }

  void push(waiting w) {
    open_.push_back(w);
    std::push_heap(open_.begin(), open_.end(), std::greater<>());
  }

  std::span<const form> forms_of(std::uint32_t l) const {
    return std::span(label_forms_).subspan(labels_[l].forms, places_[labels_[l].place].live);
  }
  std::span<const std::uint64_t> bits_of(std::uint32_t l) const {
    return std::span(label_bits_).subspan(l * bit_words_, bit_words_);
  }
  bool is_same(std::uint32_t l, std::uint32_t live) const {
    return std::equal(next_forms_.begin(), next_forms_.begin() + live, label_forms_.begin() + labels_[l].forms) &&
           std::ranges::equal(bits_of(l), next_bits_);
  }

  static bool is_part_of(std::span<const std::uint64_t> some, std::span<const std::uint64_t> others) {
    for (std::size_t i = 0; i < some.size(); ++i)
      if ((some[i] & ~others[i]) != 0) return false;
    return true;
  }
  /// Whether any way onwards from the new state costs more than the same from `l`, all in all.
  bool outdoes(std::uint32_t l, std::int64_t excess, std::uint32_t live) const {
    std::int64_t sum = labels_[l].excess;
    const live_value* at = lives_.data() + places_[labels_[l].place].first_live;
    const form* ours = label_forms_.data() + labels_[l].forms;
    for (std::uint32_t i = 0; i < live && sum < excess; ++i) sum += forms_.handicap(ours[i], next_forms_[i], at[i]);
    return sum < excess && is_part_of(bits_of(l), next_bits_);
  }
  bool is_outdone(std::uint32_t l, std::int64_t excess, std::uint32_t live) const {
    const live_value* at = lives_.data() + places_[labels_[l].place].first_live;
    const form* theirs = label_forms_.data() + labels_[l].forms;
    for (std::uint32_t i = 0; i < live && excess < labels_[l].excess; ++i)
      excess += forms_.handicap(next_forms_[i], theirs[i], at[i]);
    return excess < labels_[l].excess && is_part_of(next_bits_, bits_of(l));
  }

  /// Whether the plan that arrives by `a` has the lexicographically smaller sorted list of candidates than the one by
  /// `b`. They have equally many and cover the same nodes, so what they share does not matter, now or later, and only
  /// the ways since they parted are looked at.
  bool precedes(arrival a, arrival b) {
    ours_.clear();
    theirs_.clear();
    const auto note = [this](std::vector<std::uint32_t>& list, std::uint32_t entry) {
      list.push_back(space_.entries[entry].index);
    };
    std::uint32_t crossed_a = a.entry, crossed_b = b.entry;
    if (a.from != nothing) note(ours_, a.entry);
    if (b.from != nothing) note(theirs_, b.entry);
    std::uint32_t at_a = a.from, at_b = b.from;
    while (at_a != at_b) {
      const bool a_is_further = at_b == nothing || (at_a != nothing && states_.position(labels_[at_a].place) >=
                                                                           states_.position(labels_[at_b].place));
      std::uint32_t& at = a_is_further ? at_a : at_b;
      const arrival by = labels_[at].by;
      if (by.from == nothing) (a_is_further ? crossed_a : crossed_b) = by.entry;
      else note(a_is_further ? ours_ : theirs_, by.entry);
      at = by.from;
    }
    if (at_a == nothing && crossed_a != crossed_b) {
      for (; crossed_a != crossed_b; crossed_a = (*all_)[crossed_a].before, crossed_b = (*all_)[crossed_b].before) {
        for (const std::uint32_t e : (*all_)[crossed_a].entries) note(ours_, e);
        for (const std::uint32_t e : (*all_)[crossed_b].entries) note(theirs_, e);
      }
    }
    std::ranges::sort(ours_);
    std::ranges::sort(theirs_);
    return ours_ < theirs_;
  }

  crossing path_to(std::uint32_t l) const {
    crossing way{labels_[l].excess, labels_[l].groups, nothing, {}, {}};
    arrival by = labels_[l].by;
    for (; by.from != nothing; by = labels_[by.from].by) way.entries.push_back(by.entry);
    way.before = by.entry;
    std::ranges::reverse(way.entries);
    return way;
  }

  /// Whether a way that was found has groups that wait for each other, which are then forbidden.
  bool has_cycle() {
    bool found = false;
    std::vector<std::uint32_t> entries;
    std::vector<const node_set*> groups;
    for (const std::uint32_t end : ends_) {
      entries.clear();
      groups.clear();
      for (arrival by = labels_[end].by; by.from != nothing; by = labels_[by.from].by)
        if (space_.entries[by.entry].may_cycle) entries.push_back(by.entry);
      for (const std::uint32_t e : entries) groups.push_back(&problem_.candidates[space_.entries[e].index].nodes);
      const std::vector<std::size_t> cycle = find_cycle(consumers_, groups);
      if (cycle.empty()) continue;
      nogood forbidden;
      for (const std::size_t i : cycle) forbidden.members.emplace_back(groups[i]->first(), entries[i]);
      std::ranges::sort(forbidden.members);
      const bool is_known =
          std::ranges::any_of(nogoods_, [&](const nogood& other) { return other.members == forbidden.members; });
      if (!is_known) nogoods_.push_back(std::move(forbidden));
      found = true;
    }
    return found;
  }

  std::size_t size_in_bytes() const {
    return states_.size_in_bytes() + places_.capacity() * sizeof(place) + lives_.capacity() * sizeof(live_value) +
           labels_.capacity() * sizeof(label) + label_forms_.capacity() * sizeof(form) +
           label_bits_.capacity() * sizeof(std::uint64_t) + open_.capacity() * sizeof(waiting);
  }

  const problem& problem_;
  const space& space_;
  const forms& forms_;
  const neighbour_lists& consumers_;
  std::vector<crossing>* all_ = nullptr;
  state_table states_;
  std::vector<place> places_;  // by state
  std::vector<live_value> lives_;
  std::vector<label> labels_;
  std::vector<form> label_forms_;
  std::vector<std::uint64_t> label_bits_;
  std::vector<waiting> open_;  // a heap; a label that got better is in it more than once
  std::vector<std::uint32_t> ends_;
  std::vector<nogood> nogoods_;
  std::size_t bit_words_ = 0;
  std::vector<std::uint64_t> covered_, next_, bits_, next_bits_;
  std::vector<live_value> next_live_;
  std::vector<form> next_forms_;
  std::vector<std::uint32_t> ours_, theirs_;
  std::size_t expanded_ = 0;
  std::size_t transitions_ = 0;
  std::int64_t proven_ = 0;  // no way across the piece has less excess
};

}  // namespace collage::inline v0::search::detail
