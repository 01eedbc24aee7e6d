// Plans the arena: where every intermediate value lies, decided before anything runs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// A block of memory that is needed from one step to another, both included.
struct memory_request {
  std::size_t bytes = 0;
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
};

/// Offsets for all requests, their total size, and a lower bound that no plan can beat.
struct memory_plan {
  std::vector<std::size_t> offset;
  std::size_t bytes = 0;
  std::size_t lower_bound = 0;  ///< the largest sum of blocks alive at one step
};

namespace detail {

/// Memory with gaps, which grows at its end.
class gapped_memory {
 public:
  /// Takes bytes from the tightest gap that has them, else from the end. Returns where they begin.
  std::size_t take(std::size_t bytes) {
    if (bytes == 0) return 0;
    std::size_t begin = bytes_;
    if (const auto fits = by_size_.lower_bound({bytes, 0}); fits != by_size_.end()) {
      begin = fits->second;
      const std::size_t size = fits->first;
      remove(begin, size);
      if (size > bytes) add(begin + bytes, size - bytes);
    } else if (!gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == bytes_) {
      begin = gaps_.rbegin()->first;
      remove(begin, bytes_ - begin);
    }
    bytes_ = std::max(bytes_, begin + bytes);
    return begin;
  }
  void give_back(std::size_t begin, std::size_t bytes) {
    if (bytes == 0) return;
    auto after = gaps_.lower_bound(begin);
    if (after != gaps_.end() && after->first == begin + bytes) {
      bytes += after->second;
      remove(after->first, after->second);
      after = gaps_.lower_bound(begin);
    }
    if (after != gaps_.begin())
      if (const auto [first, size] = *std::prev(after); first + size == begin) {
        remove(first, size);
        begin = first;
        bytes += size;
      }
    add(begin, bytes);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void add(std::size_t begin, std::size_t size) {
    gaps_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void remove(std::size_t begin, std::size_t size) {
    gaps_.erase(begin);
    by_size_.erase({size, begin});
  }
  std::map<std::size_t, std::size_t> gaps_;                // sizes by begins
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // sizes and begins
  std::size_t bytes_ = 0;
};

/// The gap between other blocks that a block is put into.
enum class memory_gap : std::uint8_t { lowest, tightest };

/// Places blocks one after the other. Each avoids the placed blocks that live at the same time.
class block_placer {
 public:
  block_placer(std::span<const memory_request> requests, std::size_t alignment)
      : requests_(requests), bytes_(requests.size()), by_start_(requests.size()) {
    std::uint32_t steps = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      bytes_[i] = (requests[i].bytes + alignment - 1) / alignment * alignment;
      steps = std::max(steps, requests[i].last_step + 1);
    }
    // The bytes and blocks that begin and end at each step, summed up along the steps.
    alive_.assign(steps + 1, 0);
    std::vector<std::size_t> begun(steps + 1, 0), ended(steps + 1, 0);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      alive_[requests[i].first_step] += bytes_[i];
      alive_[requests[i].last_step + 1] -= bytes_[i];  // may wrap around; the sum corrects it
      ++begun[requests[i].first_step];
      ++ended[requests[i].last_step + 1];
    }
    std::partial_sum(alive_.begin(), alive_.end(), alive_.begin());
    std::partial_sum(begun.begin(), begun.end(), begun.begin());
    std::partial_sum(ended.begin(), ended.end(), ended.begin());
    for (const memory_request& r : requests) neighbours_ += begun[r.last_step] - ended[r.first_step];

    std::iota(by_start_.begin(), by_start_.end(), 0U);
    std::ranges::stable_sort(by_start_, {}, [&](std::uint32_t i) { return requests_[i].first_step; });
    // The last end in each part of that order, so that a search for blocks alive at a step can skip parts.
    leaves_ = std::bit_ceil(std::max<std::size_t>(requests.size(), 1));
    last_end_.assign(2 * leaves_, 0);
    for (std::size_t k = 0; k < by_start_.size(); ++k) last_end_[leaves_ + k] = requests_[by_start_[k]].last_step + 1;
    for (std::size_t k = leaves_; k-- > 1;) last_end_[k] = std::max(last_end_[2 * k], last_end_[2 * k + 1]);
  }

  std::size_t bound() const { return *std::ranges::max_element(alive_); }
  /// Bytes alive at each step.
  std::span<const std::size_t> alive() const { return alive_; }
  std::size_t bytes(std::uint32_t index) const { return bytes_[index]; }
  /// The time to place all blocks, in units of about 10 ns: for finding the neighbours of each, and for visiting them.
  std::size_t work() const {
    return neighbours_ + requests_.size() * static_cast<std::size_t>(std::bit_width(leaves_));
  }

  /// Places all blocks in an order. Returns the bytes that they take.
  std::size_t place(std::span<const std::uint32_t> order, memory_gap which, std::vector<std::size_t>& offset) {
    constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
    offset.assign(requests_.size(), nowhere);
    // If most blocks live at the same time, they are kept in the order of their offsets instead of being sorted each time.
    const bool crowded = neighbours_ > requests_.size() * requests_.size() / 16;
    placed_.clear();
    std::size_t whole = 0;
    for (const std::uint32_t index : order) {
      const memory_request& r = requests_[index];
      gap_search gap{bytes_[index], which};
      if (crowded) {
        for (const std::uint32_t other : placed_) {
          const memory_request& o = requests_[other];
          if (o.first_step > r.last_step || r.first_step > o.last_step) continue;
          if (gap.pass(offset[other], offset[other] + bytes_[other])) break;
        }
      } else {
        beside_.clear();
        collect(1, 0, leaves_, r, [&](std::uint32_t other) {
          if (offset[other] != nowhere) beside_.emplace_back(offset[other], offset[other] + bytes_[other]);
        });
        std::ranges::sort(beside_);
        for (const auto& [begin, end] : beside_)
          if (gap.pass(begin, end)) break;
      }
      const std::size_t at = gap.found();
      offset[index] = at;
      whole = std::max(whole, at + bytes_[index]);
      if (crowded)
        placed_.insert(std::ranges::upper_bound(placed_, at, {}, [&](std::uint32_t other) { return offset[other]; }),
                       index);
    }
    return whole;
  }

  /// Places all blocks in the order of their starts, each into the tightest gap between those that are alive then. Returns the bytes that
  /// they take. However many live at the same time, it takes n log n steps.
  std::size_t place_by_start(std::vector<std::size_t>& offset) const {
    offset.assign(requests_.size(), 0);
    gapped_memory memory;
    using end = std::pair<std::uint32_t, std::uint32_t>;  // a last step and a block
    std::priority_queue<end, std::vector<end>, std::greater<>> ends;
    for (const std::uint32_t index : by_start_) {
      for (; !ends.empty() && ends.top().first < requests_[index].first_step; ends.pop())
        memory.give_back(offset[ends.top().second], bytes_[ends.top().second]);
      offset[index] = memory.take(bytes_[index]);
      ends.emplace(requests_[index].last_step, index);
    }
    return memory.bytes();
  }

 private:
  /// Finds a gap for a block between other blocks, which are passed by offset.
  class gap_search {
   public:
    gap_search(std::size_t bytes, memory_gap which) : bytes_(bytes), which_(which) {}
    /// Passes a block. Returns true if no later block matters.
    bool pass(std::size_t begin, std::size_t end) {
      if (begin >= end_ + bytes_ && begin - end_ < least_) {
        best_ = end_;
        least_ = begin - end_;
        if (which_ == memory_gap::lowest) return true;
      }
      end_ = std::max(end_, end);
      return false;
    }
    std::size_t found() const { return least_ == none ? end_ : best_; }

   private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    std::size_t bytes_;
    memory_gap which_;
    std::size_t end_ = 0, best_ = 0, least_ = none;  // the end of all passed blocks; the best gap and its size
  };

  /// Calls f for each request alive at a time of r, in the part of the order of starts that begins at `first`.
  template <class F>
  void collect(std::size_t part, std::size_t first, std::size_t size, const memory_request& r, const F& f) const {
    if (last_end_[part] <= r.first_step || first >= by_start_.size() ||
        requests_[by_start_[first]].first_step > r.last_step)
      return;
    if (size == 1) return f(by_start_[first]);
    collect(2 * part, first, size / 2, r, f);
    collect(2 * part + 1, first + size / 2, size / 2, r, f);
  }

  std::span<const memory_request> requests_;
  std::vector<std::size_t> bytes_;       // of each, rounded up to the alignment
  std::vector<std::size_t> alive_;       // by step
  std::vector<std::uint32_t> by_start_;  // requests by their first step
  std::vector<std::uint32_t> last_end_;  // a tree over them: the step after the last of each part
  std::size_t leaves_ = 1;
  std::size_t neighbours_ = 0;                               // pairs that live at the same time, each counted twice
  std::vector<std::uint32_t> placed_;                        // by offset; only if crowded
  std::vector<std::pair<std::size_t, std::size_t>> beside_;  // begins and ends
};

}  // namespace detail

/// Plans the arena. Offsets are multiples of `alignment`. Blocks are placed one after the other, each beside the blocks that
/// live at the same time. The first of these orders that reaches the lower bound is taken, or else the best:
///
/// - the largest first, each into the lowest gap, and into the tightest (Pisarchyk and Lee, "Efficient memory management for
///   deep neural net inference", 2020: greedy by size);
/// - blocks of the step with most bytes alive first (ibid.: greedy by breadth);
/// - blocks that live longest first, and by bytes times steps (Sekiyama et al., "Profile-guided memory optimization for deep
///   neural networks", 2018, place long-lived blocks first);
/// - the order of the requests;
/// - the best of these, improved repeatedly: the block that ends last moves before the blocks that it lies on (as in the
///   allocator by hill climbing in TVM's unified static memory planner).
///
/// The result depends only on the requests. It visits at most a few million pairs of blocks that live at the same time, or
/// all pairs once if there are more. It visits none if there are more than 50 million: then blocks are placed in the order of their
/// starts, each into the tightest gap. A network of 10,000 values takes a few milliseconds if the bound is reached at once, and otherwise
/// up to 0.1 s.
inline memory_plan plan_memory(std::span<const memory_request> requests, std::size_t alignment = 64) {
  if (requests.empty()) return {};
  detail::block_placer placer(requests, alignment);
  memory_plan plan;
  plan.lower_bound = placer.bound();
  plan.bytes = std::numeric_limits<std::size_t>::max();

  using index_list = std::vector<std::uint32_t>;
  using detail::memory_gap;
  constexpr std::size_t most_work = 2'000'000, most_for_one_order = 50'000'000;
  if (placer.work() > most_for_one_order) {
    plan.bytes = placer.place_by_start(plan.offset);
    return plan;
  }
  std::size_t work = 0;
  index_list best_order;
  memory_gap best_gap = memory_gap::lowest;
  std::vector<std::size_t> offset;
  const auto is_done = [&] {
    return !best_order.empty() && (plan.bytes == plan.lower_bound || work + placer.work() > most_work);
  };
  // Returns the bytes that an order takes; all bits set if it was not tried.
  const auto try_order = [&](const index_list& order, memory_gap gap) {
    if (is_done()) return std::numeric_limits<std::size_t>::max();
    work += placer.work();
    const std::size_t bytes = placer.place(order, gap, offset);
    if (bytes < plan.bytes) {
      plan.bytes = bytes;
      plan.offset = offset;
      best_order = order;
      best_gap = gap;
    }
    return bytes;
  };

  index_list as_asked(requests.size());
  std::iota(as_asked.begin(), as_asked.end(), 0U);
  // Sorts by a number of each block; its bytes decide between equals.
  const auto largest_first = [&](const auto& number_of) {
    std::vector<std::pair<std::size_t, std::size_t>> key;
    for (const std::uint32_t i : as_asked) key.emplace_back(number_of(i), requests[i].bytes);
    index_list order = as_asked;
    std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t i) { return key[i]; });
    return order;
  };
  const auto bytes_of = [&](std::uint32_t i) { return requests[i].bytes; };
  const auto steps_of = [&](std::uint32_t i) {
    return std::size_t{requests[i].last_step} - requests[i].first_step + 1;
  };
  const auto breadth_of = [&](std::uint32_t i) {
    return *std::ranges::max_element(placer.alive().subspan(requests[i].first_step, steps_of(i)));
  };
  const auto area_of = [&](std::uint32_t i) { return steps_of(i) * requests[i].bytes; };
  for (const memory_gap gap : {memory_gap::lowest, memory_gap::tightest}) {
    try_order(largest_first(bytes_of), gap);
    if (is_done()) return plan;  // nearly always, and the other orders are not even made
    try_order(largest_first(breadth_of), gap);
    try_order(largest_first(steps_of), gap);
    try_order(largest_first(area_of), gap);
    try_order(as_asked, gap);
  }

  index_list order = best_order;
  const memory_gap gap = best_gap;
  offset = plan.offset;
  std::size_t bytes = plan.bytes;
  for (int round = 0; round < 100 && !is_done(); ++round) {
    // Among the blocks that end last, the first in the order moves before the first block that lives at the same time.
    const auto ends_last = [&](std::uint32_t i) { return offset[i] + placer.bytes(i) == bytes; };
    const auto top = std::ranges::find_if(order, ends_last);
    const memory_request& r = requests[*top];
    const auto below = std::find_if(order.begin(), top, [&](std::uint32_t i) {
      return requests[i].first_step <= r.last_step && r.first_step <= requests[i].last_step;
    });
    if (below == top) break;  // it lies on no block, and is as large as the whole
    std::rotate(below, top, top + 1);
    bytes = try_order(order, gap);
  }
  return plan;
}

}  // namespace collage::inline v0
