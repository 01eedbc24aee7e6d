// The exact search between two cuts.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "allowance.hpp"
#include "cycles.hpp"
#include "first_fit.hpp"
#include "labels.hpp"
#include "outlook.hpp"
#include "space.hpp"
#include "state_table.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// The beginning of a plan, or of the part that is searched: the values that live there, with their states.
struct beginning {
  std::vector<live_value> live;
  std::vector<std::vector<value_state>> values;  ///< alternatives, each by live value
  std::int64_t untouched = 0;                    ///< least cost of the values that no covered node touches
  bool is_known = true;                          ///< if false, costs count from the estimate at the beginning
};

/// Searches for the best path over the nodes between two cuts.
class piece_search {
 public:
  enum class outcome : std::uint8_t { found, impossible, stopped };

  /// `consumers` is used only if entries may be part of cycles.
  piece_search(const problem& p, const space& s, const tracked_values& tracked, const neighbour_lists& consumers,
               outlook& ahead)
      : problem_(p),
        space_(s),
        tracked_(tracked),
        consumers_(consumers),
        ahead_(ahead),
        labels_(s, tracked, ahead),
        covered_(s.words) {
    next_.covered.resize(s.words);
  }

  /// Begins with nothing forbidden. `from` is read again whenever the search restarts.
  void start(std::uint32_t begin, std::uint32_t end, const beginning& from, bool keeps_ties) {
    keeps_ties_ = keeps_ties;
    most_ = std::numeric_limits<std::int64_t>::max();
    begin_ = begin;
    end_ = end;
    from_ = &from;
    nogoods_.clear();
    proven_ = std::numeric_limits<std::int64_t>::min();
    restart();
  }

  /// Finds the cheapest path and expands at most `most` states. Ties are decided only if there are no gains: only then
  /// are all paths to a state known before it is expanded.
  template <class Bytes>
  outcome run(allowance& left, Bytes bytes, std::size_t most = ~std::size_t{0}) {
    is_over_ = false;
    while (!open_.empty()) {
      const waiting at = open_.front();
      const bool is_stale = !is_open(at.label);
      if (!is_stale && at.position == end_) {
        best_ = at.label;
        return outcome::found;
      }
      if (!is_stale && most-- == 0) return outcome::stopped;
      if (!is_stale && !left.take(bytes)) {
        is_over_ = true;
        return outcome::stopped;
      }
      std::pop_heap(open_.begin(), open_.end(), std::greater<>());
      open_.pop_back();
      if (is_stale) continue;
      ++expanded_;
      expand(at.position, at.label);
    }
    return outcome::impossible;
  }
  /// Whether a limit of the whole search stopped it.
  bool is_over() const { return is_over_; }
  /// After `found`: the same by position, so that all paths to a state are known before it is expanded, whatever the
  /// gains. Looks only at paths that do not cost more than the path found.
  template <class Bytes>
  outcome run_by_position(allowance& left, Bytes bytes) {
    most_ = labels_[best_].cost;
    keeps_ties_ = true;
    restart();
    sort_by_position();
    for (std::uint32_t position = begin_; position < end_; ++position)
      for (const std::uint32_t l : std::exchange(by_position_[position - begin_], {})) {
        if (!is_open(l)) continue;
        if (!left.take(bytes)) return outcome::stopped;
        ++expanded_;
        expand(position, l);
      }
    best_ = by_position_.back().front();
    return outcome::found;
  }

  /// After `found`: the estimate, the cost and the entries of the path. The estimate adds a lower bound on the rest.
  std::int64_t estimate() const { return labels_[best_].estimate; }
  std::int64_t cost() const { return labels_[best_].cost; }
  std::vector<std::uint32_t> way() const { return labels_.way_to(best_); }
  /// Whether groups of the path wait for each other. If so, they are forbidden together, and the search restarts with
  /// the cost of the path as a lower bound.
  bool forbid_cycle() {
    std::vector<std::uint32_t> entries;
    std::vector<const node_set*> groups;
    for (const std::uint32_t e : way()) {
      if (!space_.entries[e].may_cycle) continue;
      entries.push_back(e);
      groups.push_back(&problem_.candidates[space_.entries[e].index].nodes);
    }
    const std::vector<std::size_t> cycle = find_cycle(consumers_, groups);
    if (cycle.empty()) return false;
    nogood forbidden;
    for (const std::size_t i : cycle) forbidden.members.emplace_back(groups[i]->first(), entries[i]);
    std::ranges::sort(forbidden.members);
    nogoods_.push_back(std::move(forbidden));
    proven_ = std::max(proven_, cost());
    most_ = std::numeric_limits<std::int64_t>::max();
    restart();
    return true;
  }

  /// After `stopped`: a lower bound on the cost of every path.
  std::int64_t lower_bound() const {
    std::int64_t least = most_;
    for (const waiting& w : open_)
      if (is_open(w.label)) least = std::min(least, labels_[w.label].estimate);
    return std::max(least, proven_);
  }
  /// Continues from the open states to the end, with the best `width` states of each position. False if it does not get
  /// there. Afterwards the path is not known to be the best.
  bool dive(std::size_t width, bool with_cycles) {
    if (!with_cycles) restart();
    if (!is_by_position_) sort_by_position();
    shuns_cycles_ = !with_cycles;
    for (std::uint32_t position = begin_; position < end_; ++position) {
      std::vector<std::uint32_t> here = std::exchange(by_position_[position - begin_], {});
      std::erase_if(here, [this](std::uint32_t l) { return !is_open(l); });
      const auto rank = [this](std::uint32_t l) { return std::pair(labels_[l].estimate, l); };
      if (here.size() > width) {
        std::ranges::nth_element(here, here.begin() + static_cast<std::ptrdiff_t>(width), {}, rank);
        here.resize(width);
      }
      std::ranges::sort(here, {}, rank);
      for (const std::uint32_t l : here)
        if (is_open(l)) expand(position, l);
    }
    shuns_cycles_ = false;
    const std::vector<std::uint32_t>& arrived = by_position_.back();
    if (arrived.empty()) return false;
    best_ = *std::ranges::min_element(arrived, {}, [this](std::uint32_t l) { return labels_[l].estimate; });
    return true;
  }

  std::size_t size_in_bytes() const { return labels_.size_in_bytes() + open_.capacity() * sizeof(waiting); }
  std::size_t expanded() const { return expanded_; }
  std::size_t transitions() const { return transitions_; }

 private:
  static constexpr std::uint32_t nothing = label_table::nothing;

  /// Ordered by estimate, then by position. A path to a state comes from an earlier position, at no greater estimate. So all
  /// paths that tie for a state are known before it is expanded, and its label is final then. The tie rule depends on this.
  struct waiting {
    std::int64_t estimate;
    std::uint32_t position;
    std::uint32_t label;
    friend auto operator<=>(const waiting&, const waiting&) = default;
  };
  /// Entries that must not all be chosen, because they would wait for each other.
  struct nogood {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // (first node, entry)
  };

  bool is_open(std::uint32_t l) const { return !labels_[l].expanded && !labels_[l].dead; }

  void restart() {
    const std::size_t bit_words = (nogoods_.size() + 63) / 64;
    labels_.clear(bit_words, keeps_ties_);
    open_.clear();
    is_by_position_ = false;
    bits_.assign(bit_words, 0);
    next_.bits.assign(bit_words, 0);
    std::ranges::fill(next_.covered, 0);
    next_.position = begin_;
    next_.groups = 0;
    next_.by = {};
    next_.live = from_->live;
    next_.untouched = from_->untouched;
    for (const std::vector<value_state>& values : from_->values) {
      next_.values = values;
      next_.cost = from_->is_known ? 0 : -labels_.estimate(next_);
      note();
    }
  }

  void note() {
    const std::uint32_t l = labels_.note(next_);
    if (l == label_table::nothing || labels_[l].estimate > most_) return;
    labels_[l].expanded = false;
    if (is_by_position_) {
      by_position_[next_.position - begin_].push_back(l);
      return;
    }
    open_.push_back({labels_[l].estimate, next_.position, l});
    std::push_heap(open_.begin(), open_.end(), std::greater<>());
  }
  void sort_by_position() {
    by_position_.assign(end_ - begin_ + 1, {});
    for (const waiting& w : open_)
      if (is_open(w.label)) by_position_[w.position - begin_].push_back(w.label);
    is_by_position_ = true;
  }

  void expand(std::uint32_t at, std::uint32_t from) {
    labels_[from].expanded = true;
    std::ranges::copy(labels_.covered(from), covered_.begin());
    std::ranges::copy(labels_.bits(from), bits_.begin());
    const std::int64_t cost = labels_[from].cost;
    next_.groups = labels_[from].groups + 1;
    for (std::uint32_t e = space_.begin[at]; e < space_.end_of(at); ++e) {
      const std::span<const std::uint64_t> mask = space_.mask(e);
      if (overlap(mask, covered_) || (shuns_cycles_ && space_.entries[e].may_cycle)) continue;
      unite(mask, covered_, next_.covered);
      next_.position = past_covered(at, next_.covered);
      if (!bits_.empty() && !choose(at, e)) continue;
      ++transitions_;
      next_.cost = cost + space_.entries[e].cost;
      next_.by = {from, e};
      if (!tracked_.empty()) pass_values(from, e);
      note();
    }
  }

  static bool is_covered(std::uint32_t node, std::uint32_t position, std::span<const std::uint64_t> mask) {
    if (node < position) return true;
    const std::uint32_t bit = node - position;
    return bit / 64 < mask.size() && (mask[bit / 64] >> bit % 64 & 1U) != 0;
  }

  /// The values that live after an entry, and their states. Adds their costs.
  void pass_values(std::uint32_t from, std::uint32_t e) {
    next_.live.clear();
    next_.values.clear();
    next_.untouched = labels_.place_of(from).untouched;
    const std::span<const live_value> live = labels_.live(from);
    const std::span<const value_state> states = labels_.values_of(from);
    const auto runtime = static_cast<std::uint8_t>(problem_.candidates[space_.entries[e].index].runtime);
    const std::span<const touch> touches = tracked_.touches(e);
    std::size_t t = 0;
    for (std::size_t i = 0; i < live.size() || t < touches.size();) {
      if (i < live.size() && (t == touches.size() || live[i].value < touches[t].value)) {
        next_.live.push_back(live[i]);
        next_.values.push_back(states[i++]);
        continue;
      }
      const touch& by = touches[t++];
      const tracked_value& v = tracked_.list()[by.value];
      const bool known = i < live.size() && live[i].value == by.value;
      live_value now{.value = by.value, .written = known ? live[i].written : v.producer == node_set::none};
      if (!known) next_.untouched -= ahead_.untouched(by.value);
      const value_state before = known ? states[i++] : tracked_.untouched(v);
      const value_state after = tracked_.after(by, runtime, before, now.written, next_.cost);
      now.written = now.written || by.writes;
      for (std::uint32_t r = 0; r < v.readers.size(); ++r) {
        if (!is_covered(v.readers[r], next_.position, next_.covered)) tracked_.add_reader(now, r);
      }
      if (now.written && now.readers == 0) continue;
      next_.live.push_back(now);
      next_.values.push_back(tracked_.normal(after, now));
    }
  }

  /// Notes for each forbidden set whether all members decided so far are chosen once `e` is. False if `e` would complete a set.
  bool choose(std::uint32_t position, std::uint32_t e) {
    std::ranges::fill(next_.bits, 0);
    for (std::size_t g = 0; g < nogoods_.size(); ++g) {
      std::size_t decided = 0, fresh = 0;
      bool all = true;
      for (const auto& [first, entry] : nogoods_[g].members) {
        if (is_covered(first, position, covered_)) {
          ++decided;
        } else if (is_covered(first, next_.position, next_.covered)) {
          ++fresh;
          all = all && entry == e;
        }
      }
      const bool so_far = decided == 0 || (bits_[g / 64] >> g % 64 & 1U) != 0;
      const bool chosen = so_far && all && decided + fresh != 0;
      if (chosen && decided + fresh == nogoods_[g].members.size()) return false;
      if (chosen) next_.bits[g / 64] |= std::uint64_t{1} << g % 64;
    }
    return true;
  }

  const problem& problem_;
  const space& space_;
  const tracked_values& tracked_;
  const neighbour_lists& consumers_;
  outlook& ahead_;
  std::uint32_t begin_ = 0, end_ = 0;
  const beginning* from_ = nullptr;
  label_table labels_;
  std::vector<waiting> open_;                            // a heap; an improved label is in it more than once
  std::vector<std::vector<std::uint32_t>> by_position_;  // used instead when labels are taken by position
  bool is_over_ = false, keeps_ties_ = true, is_by_position_ = false, shuns_cycles_ = false;
  std::uint32_t best_ = 0;
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  // paths that cost more are not followed
  std::vector<nogood> nogoods_;
  std::vector<std::uint64_t> covered_, bits_;
  label_table::draft next_;
  std::size_t expanded_ = 0;
  std::size_t transitions_ = 0;
  std::int64_t proven_ = 0;  // a lower bound on every path
};

}  // namespace collage::inline v0::search::detail
