// In which layouts the values between covered and uncovered nodes exist, and what that means for the rest of a plan.
#pragma once

#include <collage/search/detail/space.hpp>
#include <collage/search/objective.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::search::detail {

/// Layouts or runtimes, as bits.
using bit_set = std::uint32_t;

/// What is known of one value when some of the nodes that touch it are covered.
struct form {
  std::uint8_t layout = 0;        ///< in which it was written
  std::uint8_t runtime = nobody;  ///< by which; `nobody` where that can cost nothing any more
  std::uint8_t layouts = 0;       ///< in which it is needed, and paid for where it is written already
  std::uint8_t runtimes = 0;      ///< likewise

  static constexpr std::uint8_t nobody = 0xff;
  friend bool operator==(const form&, const form&) = default;
};

/// What the uncovered nodes can still want of a value.
struct live_value {
  std::uint32_t value = 0;  ///< into `forms::values`
  std::uint8_t layouts = 0, runtimes = 0;
  bool written = false;       ///< its producer is covered
  std::uint32_t readers = 0;  ///< how many are not covered
  std::uint32_t outlook = 0;  ///< into `outlook`
  std::uint64_t open = 0;     ///< of the first 64 readers those that are not covered
};

/// One entry's dealing with a value.
struct touch {
  std::uint32_t value = 0;
  std::uint8_t layout = 0;
  bool writes = false;  ///< otherwise it reads
};

/// The values whose layout or runtime can cost something, with what each entry of a space does to them.
class forms {
 public:
  struct tracked {
    std::uint32_t producer = node_set::none;
    std::uint32_t first = 0, last = 0;  ///< the first and last node that touch it
    bool is_output = false;
    std::vector<std::uint32_t> readers;
    std::vector<bit_set> layouts, runtimes;  ///< by reader: what any of its candidates wants
    bit_set written = 0;                     ///< layouts in which any candidate writes it
    std::vector<std::int64_t> convert;       ///< picoseconds, [from * most_layouts + to]; empty: nothing
    std::array<std::int64_t, problem::most_layouts> dearest{};
  };

  forms(const problem& p, const space& s) : touch_begin_(s.entries.size() + 1) {
    if (!has_borders(p)) return;
    switches_.assign(problem::most_runtimes * problem::most_runtimes, 0);
    for (std::uint32_t from = 0; from < p.runtimes && !p.switch_ms.empty(); ++from)
      for (std::uint32_t to = 0; to < p.runtimes; ++to)
        if (from != to) {
          const std::int64_t cost = picoseconds(p.switch_ms[from * p.runtimes + to]);
          switches_[from * problem::most_runtimes + to] = cost;
          dearest_switch_[to] = std::max(dearest_switch_[to], cost);
          has_switches_ = has_switches_ || cost != 0;
        }
    const std::vector<value> all = values_of(p);
    std::vector<std::uint32_t> tracked_as(all.size(), node_set::none);
    track(p, all, tracked_as);
    list_touches(p, s, all, tracked_as);
  }

  bool empty() const { return values_.empty(); }
  /// Whether handing a value from one runtime to another can cost anything.
  bool has_switches() const { return has_switches_; }
  const std::vector<tracked>& values() const { return values_; }
  std::span<const touch> touches(std::uint32_t entry) const {
    return std::span(touches_).subspan(touch_begin_[entry], touch_begin_[entry + 1] - touch_begin_[entry]);
  }

  /// Before any node touched the value.
  form untouched(const tracked& v) const {
    form f;
    if (v.producer != node_set::none && v.is_output && !v.convert.empty()) f.layouts = 1;
    return f;
  }

  /// After an entry that runs on `runtime` did `t` to a value of form `f`; adds what that costs.
  form after(const touch& t, std::uint8_t runtime, form f, bool written, std::int64_t& cost) const {
    const tracked& v = values_[t.value];
    if (t.writes) {
      f.layout = v.convert.empty() ? std::uint8_t{0} : t.layout;
      f.runtime = has_switches_ ? runtime : form::nobody;
      for (unsigned to = 0; to < problem::most_layouts; ++to)
        if (f.layouts >> to & 1U) cost += conversion(v, f.layout, to);
      for (unsigned to = 0; to < problem::most_runtimes; ++to)
        if (f.runtimes >> to & 1U) cost += exchange(f.runtime, to);
      return f;
    }
    if (!v.convert.empty() && (f.layouts >> t.layout & 1U) == 0) {
      f.layouts = static_cast<std::uint8_t>(f.layouts | 1U << t.layout);
      if (written) cost += conversion(v, f.layout, t.layout);
    }
    if (has_switches_ && v.producer != node_set::none && (f.runtimes >> runtime & 1U) == 0) {
      f.runtimes = static_cast<std::uint8_t>(f.runtimes | 1U << runtime);
      if (written) cost += exchange(f.runtime, runtime);
    }
    return f;
  }

  /// A written value when all nodes before a position are covered, and no others.
  live_value live_at(std::uint32_t value, std::uint32_t position) const {
    const tracked& v = values_[value];
    live_value at{.value = value, .written = true};
    for (std::uint32_t r = 0; r < v.readers.size(); ++r)
      if (v.readers[r] >= position) add_reader(at, r);
    return at;
  }
  /// Counts a reader that is not covered.
  void add_reader(live_value& at, std::uint32_t reader) const {
    const tracked& v = values_[at.value];
    ++at.readers;
    if (reader < 64) at.open |= std::uint64_t{1} << reader;
    at.layouts = static_cast<std::uint8_t>(at.layouts | v.layouts[reader]);
    at.runtimes = static_cast<std::uint8_t>(at.runtimes | v.runtimes[reader]);
  }
  /// All forms of such a value, but for runtimes.
  std::vector<form> possible(const live_value& at, std::uint32_t position) const {
    const tracked& v = values_[at.value];
    bit_set paid = v.is_output ? 1U : 0U;
    for (std::size_t r = 0; r < v.readers.size(); ++r)
      if (v.readers[r] < position) paid |= v.layouts[r];
    paid &= at.layouts;
    std::vector<form> list;
    for (unsigned layout = 0; layout < problem::most_layouts; ++layout) {
      if ((v.written >> layout & 1U) == 0) continue;
      for (bit_set some = paid;; some = (some - 1) & paid) {
        const form f =
            normal({.layout = static_cast<std::uint8_t>(layout), .layouts = static_cast<std::uint8_t>(some)}, at);
        if (std::ranges::find(list, f) == list.end()) list.push_back(f);
        if (some == 0) break;
      }
    }
    return list;
  }

  /// Makes forms equal that cost the same whatever follows.
  form normal(form f, const live_value& at) const {
    if (!at.written) return f;
    const tracked& v = values_[at.value];
    f.layouts &= at.layouts;
    f.runtimes &= at.runtimes;
    bool free = true;
    for (unsigned to = 0; to < problem::most_layouts && free; ++to)
      free = (at.layouts >> to & 1U) == 0 || wants(v, f, to) == 0;
    if (free) {
      f.layout = 0;
      f.layouts = at.layouts;
    }
    free = true;
    for (unsigned to = 0; to < problem::most_runtimes && free; ++to)
      free = (at.runtimes >> to & 1U) == 0 || wants_runtime(f, to) == 0;
    if (free) {
      f.runtime = form::nobody;
      f.runtimes = 0;
    }
    return f;
  }

  /// No way onwards costs more from `a` than from `b` by more than this.
  std::int64_t handicap(const form& a, const form& b, const live_value& at) const {
    if (a == b) return 0;
    const tracked& v = values_[at.value];
    std::int64_t sum = 0;
    // Bit by bit: this is where a search with layouts spends its time.
    const auto for_each = [](unsigned layouts, auto visit) {
      for (; layouts != 0; layouts &= layouts - 1) visit(static_cast<unsigned>(std::countr_zero(layouts)));
    };
    if (!at.written) {
      for_each(unsigned{a.layouts} & ~unsigned{b.layouts}, [&](unsigned to) { sum += v.dearest[to]; });
    } else if (!v.convert.empty()) {
      const std::int64_t* const from_a = v.convert.data() + a.layout * problem::most_layouts;
      const std::int64_t* const from_b = v.convert.data() + b.layout * problem::most_layouts;
      std::int64_t most = 0;
      for_each(unsigned{at.layouts} & ~unsigned{a.layouts}, [&](unsigned to) {
        const std::int64_t more =
            std::max<std::int64_t>(0, from_a[to] - ((b.layouts >> to & 1U) != 0 ? 0 : from_b[to]));
        sum += more;
        most = std::max(most, more);
      });
      sum = std::min(sum, most * at.readers);  // each is read in one of them
    }
    for (unsigned to = 0; to < problem::most_runtimes && has_switches_; ++to) {
      if (at.written && (at.runtimes >> to & 1U))
        sum += std::max<std::int64_t>(0, wants_runtime(a, to) - wants_runtime(b, to));
      if (!at.written && (a.runtimes & ~b.runtimes) >> to & 1U) sum += dearest_switch_[to];
    }
    return sum;
  }

 private:
  std::int64_t conversion(const tracked& v, unsigned from, unsigned to) const {
    return from == to ? 0 : v.convert[from * problem::most_layouts + to];
  }
  std::int64_t exchange(unsigned from, unsigned to) const {
    return from == form::nobody ? 0 : switches_[from * problem::most_runtimes + to];
  }
  /// What reading a written value in layout `to` costs.
  std::int64_t wants(const tracked& v, const form& f, unsigned to) const {
    return v.convert.empty() || (f.layouts >> to & 1U) ? 0 : conversion(v, f.layout, to);
  }
  std::int64_t wants_runtime(const form& f, unsigned to) const {
    return (f.runtimes >> to & 1U) ? 0 : exchange(f.runtime, to);
  }

  void track(const problem& p, const std::vector<value>& all, std::vector<std::uint32_t>& tracked_as) {
    std::vector<bool> differs(all.size());
    for (const candidate& c : p.candidates)
      for (const border& at : c.borders) differs[at.value] = differs[at.value] || at.layout != 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const value& from = all[i];
      if (from.readers.empty() && !(from.is_output && differs[i])) continue;
      const bool has_layouts = differs[i] && std::ranges::any_of(from.convert_ms, [](double c) { return c != 0; });
      if (!has_layouts && !(has_switches_ && from.producer != node_set::none)) continue;
      tracked v;
      v.producer = from.producer;
      v.readers = from.readers;
      v.is_output = from.is_output;
      v.first = v.producer != node_set::none ? v.producer : v.readers.front();
      v.last = v.readers.empty() ? v.producer : v.readers.back();
      v.layouts.resize(v.readers.size());
      v.runtimes.resize(v.readers.size());
      if (has_layouts) {
        v.convert.assign(problem::most_layouts * problem::most_layouts, 0);
        for (std::uint32_t a = 0; a < p.layouts; ++a)
          for (std::uint32_t b = 0; b < p.layouts; ++b)
            if (a != b) {
              const std::int64_t cost = picoseconds(from.convert_ms[a * p.layouts + b]);
              v.convert[a * problem::most_layouts + b] = cost;
              v.dearest[b] = std::max(v.dearest[b], cost);
            }
      }
      if (v.producer == node_set::none) v.written = 1;
      tracked_as[i] = static_cast<std::uint32_t>(values_.size());
      values_.push_back(std::move(v));
    }
  }

  void list_touches(const problem& p, const space& s, const std::vector<value>& all,
                    const std::vector<std::uint32_t>& tracked_as) {
    // Which tracked values a node touches, in one array.
    std::vector<std::uint32_t> begin(p.nodes + 1), list;
    const auto for_each = [&](auto visit) {
      for (std::uint32_t v = 0; v < values_.size(); ++v) {
        if (values_[v].producer != node_set::none) visit(values_[v].producer, v);
        for (const std::uint32_t reader : values_[v].readers) visit(reader, v);
      }
    };
    for_each([&](std::uint32_t node, std::uint32_t) { ++begin[node + 1]; });
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    list.resize(begin.back());
    std::vector<std::uint32_t> next(begin.begin(), begin.end());
    for_each([&](std::uint32_t node, std::uint32_t v) { list[next[node]++] = v; });

    std::vector<std::uint32_t> problem_value(values_.size());
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (tracked_as[i] != node_set::none) problem_value[tracked_as[i]] = i;
    std::vector<std::uint32_t> mine;
    for (std::uint32_t node = 0; node < s.nodes; ++node)
      for (std::uint32_t e = s.begin[node]; e < s.end_of(node); ++e) {
        const candidate& c = p.candidates[s.entries[e].index];
        mine.clear();
        for (const std::uint32_t member : c.nodes)
          mine.insert(mine.end(), list.begin() + begin[member], list.begin() + begin[member + 1]);
        std::ranges::sort(mine);
        const auto twins = std::ranges::unique(mine);
        mine.erase(twins.begin(), twins.end());
        for (const std::uint32_t v : mine) {
          tracked& at = values_[v];
          const bool writes = at.producer != node_set::none && c.nodes.contains(at.producer);
          const auto layout = static_cast<std::uint8_t>(layout_at(c, problem_value[v]));
          touches_.push_back({v, layout, writes});
          if (writes) at.written |= 1U << layout;
          for (std::size_t r = 0; r < at.readers.size() && !writes; ++r) {
            if (!c.nodes.contains(at.readers[r])) continue;
            at.layouts[r] |= at.convert.empty() ? 0 : 1U << layout;
            at.runtimes[r] |= has_switches_ && at.producer != node_set::none ? 1U << c.runtime : 0;
          }
        }
        touch_begin_[e + 1] = static_cast<std::uint32_t>(touches_.size());
      }
  }

  std::vector<tracked> values_;
  std::vector<std::uint32_t> touch_begin_;
  std::vector<touch> touches_;
  std::vector<std::int64_t> switches_;
  std::array<std::int64_t, problem::most_runtimes> dearest_switch_{};
  bool has_switches_ = false;
};

}  // namespace collage::inline v0::search::detail
