// Parts of a problem that are equal, so that one of them is solved: the cells of a network are repeated.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "space.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// The solution of a part, apart from where it stands.
struct part_solution {
  std::int64_t cost = 0;
  std::vector<std::uint32_t> entries;  ///< counted from the part's first
};

/// Writes down all that the solution of a part depends on: equal words, equal solutions. Ties are decided by the order of
/// candidates, so that their ranks are in it.
class part_writer {
 public:
  part_writer(const problem& p, const space& s, const tracked_values& tracked, const neighbour_lists& consumers)
      : problem_(p), space_(s), tracked_(tracked), consumers_(consumers) {}

  /// The nodes between cuts[first] and cuts[last], across which no value lives whose form matters.
  std::vector<std::uint64_t> write(std::size_t first, std::size_t last) {
    begin_ = space_.cuts[first];
    end_ = space_.cuts[last];
    words_.clear();
    put(end_ - begin_);
    for (std::size_t i = first + 1; i < last; ++i) put(space_.cuts[i] - begin_);
    bool may_cycle = false;
    for (std::uint32_t node = begin_; node < end_; ++node) {
      put(space_.end_of(node) - space_.begin[node]);
      for (std::uint32_t e = space_.begin[node]; e < space_.end_of(node); ++e) {
        put_entry(e);
        may_cycle = may_cycle || space_.entries[e].may_cycle;
      }
    }
    put_ranks();
    put_values();
    if (may_cycle) put_edges();
    return words_;
  }

 private:
  void put(std::uint64_t word) { words_.push_back(word); }

  void put_entry(std::uint32_t e) {
    const entry& at = space_.entries[e];
    put(static_cast<std::uint64_t>(at.cost));
    put(static_cast<std::uint64_t>(at.size) << 1 | static_cast<std::uint64_t>(at.may_cycle));
    const std::span<const std::uint64_t> mask = space_.mask(e);
    put(mask.size());
    words_.insert(words_.end(), mask.begin(), mask.end());
    if (tracked_.empty()) return;
    put(problem_.candidates[at.index].runtime);
    const auto touches = tracked_.touches(e);
    put(touches.size());
    for (const touch& t : touches) {
      const auto known = number_of_.try_emplace(t.value, static_cast<std::uint32_t>(touched_.size()));
      if (known.second) touched_.push_back(t.value);
      put(static_cast<std::uint64_t>(known.first->second) << 16 | static_cast<std::uint64_t>(t.form) << 1 |
          static_cast<std::uint64_t>(t.writes));
    }
  }
  void put_ranks() {
    const std::uint32_t from = space_.begin[begin_];
    const std::span<const entry> entries(space_.entries.data() + from, space_.begin[end_] - from);
    if (std::ranges::is_sorted(entries, {}, &entry::index)) return put(0);  // as where candidates are listed by node
    put(1);
    order_.resize(entries.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::ranges::sort(order_, {}, [&](std::uint32_t i) { return entries[i].index; });
    words_.insert(words_.end(), order_.begin(), order_.end());
  }
  void put_values() {
    for (const std::uint32_t v : touched_) {
      const tracked_value& at = tracked_.list()[v];
      put(at.producer == node_set::none ? node_set::none : at.producer - begin_);
      put(std::uint64_t{at.forms} << 2 | static_cast<std::uint64_t>(at.is_output) << 1 |
          static_cast<std::uint64_t>(at.has_forms));
      put(at.readers.size());
      for (const std::uint32_t reader : at.readers) put(reader - begin_);
      for (const std::int64_t cost : at.convert) put(static_cast<std::uint64_t>(cost));
    }
    touched_.clear();
    number_of_.clear();
  }
  void put_edges() {
    for (std::uint32_t node = begin_; node < end_; ++node) {
      const std::size_t count = words_.size();
      put(0);
      for (const std::uint32_t reader : consumers_.of(node))
        if (reader < end_) put(reader - begin_), ++words_[count];
    }
  }

  const problem& problem_;
  const space& space_;
  const tracked_values& tracked_;
  const neighbour_lists& consumers_;
  std::uint32_t begin_ = 0, end_ = 0;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> touched_, order_;
  std::map<std::uint32_t, std::uint32_t> number_of_;  // of tracked values, by first touch
};

}  // namespace collage::inline v0::search::detail
