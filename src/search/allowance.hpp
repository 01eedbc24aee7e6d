// The states, memory and time that a search may still spend.
#pragma once

#include <collage/search/placement.hpp>

#include <chrono>
#include <cstddef>
#include <functional>

namespace collage::inline v0::search::detail {

/// Counts down the limits of a search.
class allowance {
 public:
  explicit allowance(const limits& l)
      : states_(l.states), bytes_(l.bytes), timed_(l.time != std::chrono::nanoseconds::max()), stop_(l.stop) {
    if (!timed_) return;
    const auto now = clock::now();
    // A time beyond the clock's range is no limit.
    timed_ = l.time < clock::time_point::max() - now;
    if (timed_) end_ = now + std::chrono::duration_cast<clock::duration>(l.time);
  }
  /// Whether time is left.
  bool has_time() const { return (!timed_ || clock::now() < end_) && !(stop_ && stop_()); }
  /// Counts one more state of the search. Returns false if the search has to stop. Only each 16th call reads the clock, because
  /// reading it takes as long as a state.
  template <class Bytes>
  bool take(Bytes bytes) {
    if (over_ || states_ == 0) return false;
    if (takes_++ % 16 == 0 && (!has_time() || bytes() > bytes_)) {
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
  std::function<bool()> stop_;
};

}  // namespace collage::inline v0::search::detail
