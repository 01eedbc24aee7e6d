// All ways to cover consecutive nodes, whatever the forms.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "first_fit.hpp"
#include "potentials.hpp"
#include "space.hpp"
#include "state_table.hpp"

namespace collage::inline v0::search::detail {

/// The places between two cuts, and the steps between them. A place is the first uncovered node with the covered set
/// beyond it. A step takes one group: the entries with the same nodes. The class keeps the cost of the cheapest path
/// from the first cut to each place, and from each place to the last cut. A group costs as much as its cheapest entry.
class covers {
 public:
  explicit covers(const space& s) : space_(s), table_(s.words) {}

  /// Lists the places. False if there are more than `most`, or no way to cover the nodes.
  bool list(std::uint32_t begin, std::uint32_t end, std::size_t most) {
    begin_ = begin;
    end_ = end;
    list_groups();
    table_.clear();
    std::vector<std::uint32_t> first_at(end - begin + 1, nothing), next_at;  // linked lists of places by position
    std::vector<std::uint64_t> mask(space_.words), next(space_.words);
    const auto insert = [&](std::uint32_t position, std::span<const std::uint64_t> covered) {
      const auto [id, fresh] = table_.insert(position, covered);
      if (fresh) {
        next_at.push_back(first_at[position - begin_]);
        first_at[position - begin_] = id;
      }
      return id;
    };
    insert(begin, mask);
    order_.clear();
    place_begin_.assign(end - begin + 2, 0);
    std::vector<step> steps;  // between ids of the table
    for (std::uint32_t position = begin; position <= end; ++position) {
      place_begin_[position - begin] = static_cast<std::uint32_t>(order_.size());
      for (std::uint32_t id = first_at[position - begin]; id != nothing; id = next_at[id]) {
        order_.push_back(id);
        if (position == end) continue;
        std::ranges::copy(table_.mask(id), mask.begin());
        for (std::uint32_t g = group_begin_[position - begin]; g < group_begin_[position - begin + 1]; ++g) {
          const std::span<const std::uint64_t> nodes = space_.mask(entries_[groups_[g]]);
          if (overlap(nodes, mask)) continue;
          unite(nodes, mask, next);
          const std::uint32_t to = past_covered(position, next);
          steps.push_back({id, insert(to, next), g});
        }
      }
      if (table_.size() > most || steps.size() > 8 * most) return false;
    }
    place_begin_[end - begin + 1] = static_cast<std::uint32_t>(order_.size());
    if (table_.position(order_.back()) != end) return false;
    const std::uint32_t places = drop_dead_ends(steps);
    // Steps are listed by the place where they start. An index lists them by the place where they arrive.
    out_begin_.assign(places + 1, 0);
    in_begin_.assign(places + 1, 0);
    steps_.clear();
    for (const step& s : steps) {
      if (place_of_[s.from] == nothing || place_of_[s.to] == nothing) continue;
      steps_.push_back({place_of_[s.from], place_of_[s.to], s.group});
      ++out_begin_[place_of_[s.from] + 1];
      ++in_begin_[place_of_[s.to] + 1];
    }
    for (std::uint32_t i = 0; i < places; ++i) {
      out_begin_[i + 1] += out_begin_[i];
      in_begin_[i + 1] += in_begin_[i];
    }
    in_.resize(steps_.size());
    std::vector<std::uint32_t> next_in(in_begin_.begin(), in_begin_.end() - 1);
    for (std::uint32_t i = 0; i < steps_.size(); ++i) in_[next_in[steps_[i].to]++] = i;
    before_.assign(places, 0);
    behind_.assign(places, 0);
    return true;
  }

  std::size_t groups() const { return least_.size(); }
  std::uint32_t first_of(std::uint32_t group) const { return first_[group]; }
  /// The first node of all groups that hold `node`.
  std::uint32_t reach_back(std::uint32_t node) const { return back_[node - begin_]; }
  void set_cost(std::uint32_t group, std::int64_t cost) { least_[group] = cost; }
  std::span<const std::uint32_t> entries_of(std::uint32_t group) const {
    return std::span(entries_).subspan(groups_[group], groups_[group + 1] - groups_[group]);
  }

  /// Updates the costs of the cheapest paths to the places at positions from `low` to `high`.
  void update_before(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t first = std::max(1U, place_begin_[low - begin_]), last = place_begin_[high - begin_ + 1];
    for (std::uint32_t i = first; i < last; ++i) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (std::uint32_t k = in_begin_[i]; k < in_begin_[i + 1]; ++k) {
        const step& by = steps_[in_[k]];
        least = std::min(least, before_[by.from] + least_[by.group]);
      }
      before_[i] = least;
    }
    if (first < last) work_ += in_begin_[last] - in_begin_[first];
  }
  /// Updates the costs of the cheapest paths from these places to the end.
  void update_behind(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t first = place_begin_[low - begin_], last = place_begin_[std::min(high, end_ - 1) - begin_ + 1];
    for (std::uint32_t i = last; i-- > first;) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (std::uint32_t k = out_begin_[i]; k < out_begin_[i + 1]; ++k)
        least = std::min(least, behind_[steps_[k].to] + least_[steps_[k].group]);
      behind_[i] = least;
    }
    if (first < last) work_ += out_begin_[last] - out_begin_[first];
  }
  /// Visits each group that starts at a position from `low` to `high`, with the least cost of a path through it. The
  /// group's own cost is taken off.
  template <class Visit>
  void for_each_step(std::uint32_t low, std::uint32_t high, Visit visit) const {
    for (std::uint32_t k = out_begin_[place_begin_[low - begin_]]; k < out_begin_[place_begin_[high - begin_ + 1]]; ++k)
      visit(steps_[k].group, before_[steps_[k].from] + behind_[steps_[k].to]);
  }

  std::int64_t whole() const { return behind_[0]; }
  /// The number of steps looked at.
  std::size_t work() const { return work_; }
  /// The least cost of covering the rest from a state; `unreachable` if it cannot be covered.
  std::int64_t behind(std::uint32_t position, std::span<const std::uint64_t> mask) const {
    const auto id = table_.find_id(position, mask);
    return id && place_of_[*id] != nothing ? behind_[place_of_[*id]] : unreachable;
  }

 private:
  static constexpr std::uint32_t nothing = 0xffff'ffffu;
  struct step {
    std::uint32_t from, to, group;
  };

  /// Numbers the places that have a path to the end, by position. Returns their number.
  std::uint32_t drop_dead_ends(std::span<const step> steps) {
    place_of_.assign(order_.size(), nothing);
    place_of_[order_.back()] = 0;
    for (std::size_t i = steps.size(); i-- > 0;)  // last start first, so later places are known
      if (place_of_[steps[i].to] != nothing) place_of_[steps[i].from] = 0;
    std::uint32_t kept = 0;
    for (std::uint32_t position = begin_, i = 0; position <= end_; ++position) {
      const std::uint32_t stop = place_begin_[position - begin_ + 1];
      place_begin_[position - begin_] = kept;
      for (; i < stop; ++i)
        if (place_of_[order_[i]] != nothing) place_of_[order_[i]] = kept++;
    }
    place_begin_[end_ - begin_ + 1] = kept;
    return kept;
  }

  void list_groups() {
    entries_.clear();
    groups_.clear();
    first_.clear();
    group_begin_.assign(1, 0);
    back_.resize(end_ - begin_);
    for (std::uint32_t node = begin_; node < end_; ++node) back_[node - begin_] = node;
    for (std::uint32_t node = begin_; node < end_; ++node) {
      const std::size_t first = entries_.size();
      for (std::uint32_t e = space_.begin[node]; e < space_.end_of(node); ++e) entries_.push_back(e);
      std::sort(entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end(),
                [&](std::uint32_t a, std::uint32_t b) {
                  const auto one = space_.mask(a), other = space_.mask(b);
                  const auto order =
                      std::lexicographical_compare_three_way(one.begin(), one.end(), other.begin(), other.end());
                  return order != 0 ? order < 0 : a < b;
                });
      for (std::size_t i = first; i < entries_.size(); ++i) {
        if (i == first || !std::ranges::equal(space_.mask(entries_[i]), space_.mask(entries_[i - 1]))) {
          groups_.push_back(static_cast<std::uint32_t>(i));
          first_.push_back(node);
          for_each_node(space_, node, entries_[i],
                        [&](std::uint32_t member) { back_[member - begin_] = std::min(back_[member - begin_], node); });
        }
      }
      group_begin_.push_back(static_cast<std::uint32_t>(groups_.size()));
    }
    least_.assign(groups_.size(), 0);
    groups_.push_back(static_cast<std::uint32_t>(entries_.size()));
  }

  const space& space_;
  state_table table_;
  std::uint32_t begin_ = 0, end_ = 0;
  std::vector<std::uint32_t> entries_, groups_;      // entries by group; for each group, the index of its first entry
  std::vector<std::uint32_t> first_;                 // by group: its first node
  std::vector<std::uint32_t> group_begin_;           // by node
  std::vector<std::uint32_t> back_;                  // by node
  std::vector<std::int64_t> least_;                  // by group
  std::vector<std::uint32_t> order_, place_of_;      // ids of the table by position, and the inverse
  std::vector<std::uint32_t> place_begin_;           // by position
  std::vector<std::uint32_t> out_begin_, in_begin_;  // by place
  std::vector<step> steps_;
  std::vector<std::uint32_t> in_;
  std::vector<std::int64_t> before_, behind_;  // by place
  std::size_t work_ = 0;
};

}  // namespace collage::inline v0::search::detail
