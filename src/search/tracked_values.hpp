// In which forms the values between covered and uncovered nodes exist, and what that means for the rest of a plan.
#pragma once

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

#include "space.hpp"

namespace collage::inline v0::search::detail {

/// Forms or runtimes, as bits.
using bit_set = std::uint32_t;

/// Visits the members, ascending.
template <class Visit>
void for_each_bit(bit_set set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(static_cast<unsigned>(std::countr_zero(set)));
}
inline bool has_bit(bit_set set, unsigned bit) { return (set >> bit & 1U) != 0; }

/// The state of one value when some of the nodes that touch it are covered. Searches keep millions of them: four bytes instead
/// of eight make a long search a few per cent faster.
struct value_state {
  std::uint16_t forms = 0;                ///< in which it is needed so far; paid for once it is written
  std::uint8_t runtimes = 0;              ///< on which it is needed so far; paid for once it is written
  std::uint8_t form : 4 = 0;              ///< in which it was written
  std::uint8_t runtime : 4 = no_runtime;  ///< by which it was written; `no_runtime` once it costs nothing

  static constexpr std::uint8_t no_runtime = 15;
  friend bool operator==(const value_state&, const value_state&) = default;
};
static_assert(problem::most_forms <= 16 && problem::most_runtimes <= 8 && sizeof(value_state) == 4);

/// The needs that uncovered nodes can still have of a value.
struct live_value {
  std::uint32_t value = 0;  ///< into `tracked_values::list`
  std::uint16_t forms = 0;
  std::uint8_t runtimes = 0;
  bool written = false;       ///< its producer is covered
  std::uint32_t readers = 0;  ///< how many are not covered
  std::uint32_t outlook = 0;  ///< into `outlook`
  std::uint64_t open = 0;     ///< bits: which of the first 64 readers are not covered
};

/// How one entry of a space touches a value.
struct touch {
  std::uint32_t value = 0;
  std::uint8_t form = 0;
  bool writes = false;  ///< otherwise it reads
};

/// A value whose form or runtime can cost something. Its forms are those in which an entry touches it, and form 0: they have
/// numbers of their own here, in the problem's order.
struct tracked_value {
  std::uint32_t value = 0;  ///< into `problem::values`
  std::uint32_t producer = node_set::none;
  std::uint32_t first = 0, last = 0;  ///< the first and last node that touch it
  bool is_output = false;
  bool has_forms = false;  ///< whether converting it can cost anything
  std::vector<std::uint32_t> readers;
  std::vector<bit_set> read, runtimes;  ///< by reader: what any of its candidates wants
  bit_set written = 0;                  ///< forms in which any candidate writes it
  std::uint32_t forms = 1;              ///< how many
  std::vector<std::int64_t> convert;    ///< picoseconds, [from * forms + to]; empty without `has_forms`
  std::vector<std::int64_t> dearest;    ///< by form: the most that converting to it costs

  const std::int64_t* converting(unsigned from) const { return convert.data() + std::size_t{from} * forms; }
};

/// All tracked values, and how each entry of a space touches them.
class tracked_values {
 public:
  tracked_values(const problem& p, const space& s) : touch_begin_(s.entries.size() + 1) {
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
    track(p, all);
    number_forms(all, list_touches(p, s));
    list_wanted(p, s);
  }

  bool empty() const { return values_.empty(); }
  /// Whether handing a value from one runtime to another can cost anything.
  bool has_switches() const { return has_switches_; }
  const std::vector<tracked_value>& list() const { return values_; }
  std::span<const touch> touches(std::uint32_t entry) const {
    return std::span(touches_).subspan(touch_begin_[entry], touch_begin_[entry + 1] - touch_begin_[entry]);
  }

  /// The state of a value before any node touches it.
  value_state untouched(const tracked_value& v) const {
    value_state s;
    if (v.producer != node_set::none && v.is_output && v.has_forms) s.forms = 1;
    return s;
  }

  /// The state of a value after an entry on `runtime` touched it as `t` says. Adds the costs to `cost`.
  value_state after(const touch& t, std::uint8_t runtime, value_state s, bool written, std::int64_t& cost) const {
    const tracked_value& v = values_[t.value];
    if (t.writes) {
      s.form = t.form & 15U;
      s.runtime = (has_switches_ ? runtime : value_state::no_runtime) & 15U;
      for_each_bit(s.forms, [&](unsigned to) { cost += conversion(v, s.form, to); });
      for_each_bit(s.runtimes, [&](unsigned to) { cost += exchange(s.runtime, to); });
      return s;
    }
    if (v.has_forms && !has_bit(s.forms, t.form)) {
      s.forms = static_cast<std::uint16_t>(s.forms | 1U << t.form);
      if (written) cost += conversion(v, s.form, t.form);
    }
    if (has_switches_ && v.producer != node_set::none && !has_bit(s.runtimes, runtime)) {
      s.runtimes = static_cast<std::uint8_t>(s.runtimes | 1U << runtime);
      if (written) cost += exchange(s.runtime, runtime);
    }
    return s;
  }

  /// A written value when all nodes before a position are covered, and no others.
  live_value live_at(std::uint32_t value, std::uint32_t position) const {
    const tracked_value& v = values_[value];
    live_value at{.value = value, .written = true};
    for (std::uint32_t r = 0; r < v.readers.size(); ++r)
      if (v.readers[r] >= position) add_reader(at, r);
    return at;
  }
  /// Counts a reader that is not covered.
  void add_reader(live_value& at, std::uint32_t reader) const {
    const tracked_value& v = values_[at.value];
    ++at.readers;
    if (reader < 64) at.open |= std::uint64_t{1} << reader;
    at.forms = static_cast<std::uint16_t>(at.forms | v.read[reader]);
    at.runtimes = static_cast<std::uint8_t>(at.runtimes | v.runtimes[reader]);
  }
  /// All states that such a value may have, without runtimes.
  std::vector<value_state> possible(const live_value& at, std::uint32_t position) const {
    const tracked_value& v = values_[at.value];
    bit_set paid = v.is_output ? 1U : 0U;
    for (std::size_t r = 0; r < v.readers.size(); ++r)
      if (v.readers[r] < position) paid |= v.read[r];
    paid &= at.forms;
    std::vector<value_state> list;
    for_each_bit(v.written, [&](unsigned form) {
      for (bit_set some = paid;; some = (some - 1) & paid) {
        value_state s{.forms = static_cast<std::uint16_t>(some)};
        s.form = form & 15U;
        s = normal(s, at);
        if (std::ranges::find(list, s) == list.end()) list.push_back(s);
        if (some == 0) break;
      }
    });
    return list;
  }

  /// Makes states equal that cost the same whatever follows.
  value_state normal(value_state s, const live_value& at) const {
    if (!at.written) return s;
    const tracked_value& v = values_[at.value];
    s.forms &= at.forms;
    s.runtimes &= at.runtimes;
    if (is_free(at.forms & ~bit_set{s.forms}, [&](unsigned to) { return conversion(v, s.form, to); })) {
      s.form = 0;
      s.forms = at.forms;
    }
    if (is_free(at.runtimes & ~bit_set{s.runtimes}, [&](unsigned to) { return exchange(s.runtime, to); })) {
      s.runtime = value_state::no_runtime;
      s.runtimes = 0;
    }
    return s;
  }

  /// A bound on how much more the rest of a plan can cost from `a` than from `b`.
  std::int64_t handicap(const value_state& a, const value_state& b, const live_value& at) const {
    if (a == b) return 0;
    const tracked_value& v = values_[at.value];
    std::int64_t sum = 0;
    // Bit by bit: this is where a search with forms spends its time.
    if (!at.written) {
      for_each_bit(a.forms & ~bit_set{b.forms}, [&](unsigned to) { sum += v.dearest[to]; });
    } else if (v.has_forms) {
      const std::int64_t* const from_a = v.converting(a.form);
      const std::int64_t* const from_b = v.converting(b.form);
      std::int64_t most = 0;
      for_each_bit(at.forms & ~bit_set{a.forms}, [&](unsigned to) {
        const std::int64_t more = std::max<std::int64_t>(0, from_a[to] - (has_bit(b.forms, to) ? 0 : from_b[to]));
        sum += more;
        most = std::max(most, more);
      });
      sum = std::min(sum, most * at.readers);  // each is read in one of them
    }
    return has_switches_ ? sum + handicap_of_runtimes(a, b, at) : sum;
  }

 private:
  std::int64_t handicap_of_runtimes(const value_state& a, const value_state& b, const live_value& at) const {
    std::int64_t sum = 0;
    if (at.written)
      for_each_bit(at.runtimes,
                   [&](unsigned to) { sum += std::max<std::int64_t>(0, wants_runtime(a, to) - wants_runtime(b, to)); });
    else for_each_bit(a.runtimes & ~bit_set{b.runtimes}, [&](unsigned to) { sum += dearest_switch_[to]; });
    return sum;
  }
  static std::int64_t conversion(const tracked_value& v, unsigned from, unsigned to) { return v.converting(from)[to]; }
  std::int64_t exchange(unsigned from, unsigned to) const {
    return from == value_state::no_runtime ? 0 : switches_[from * problem::most_runtimes + to];
  }
  std::int64_t wants_runtime(const value_state& s, unsigned to) const {
    return has_bit(s.runtimes, to) ? 0 : exchange(s.runtime, to);
  }
  /// Whether all of these cost nothing.
  template <class Cost>
  static bool is_free(bit_set set, Cost cost) {
    for (; set != 0; set &= set - 1)
      if (cost(static_cast<unsigned>(std::countr_zero(set))) != 0) return false;
    return true;
  }

  void track(const problem& p, const std::vector<value>& all) {
    std::vector<bool> differs(all.size());
    for (const candidate& c : p.candidates)
      for (const border& at : c.borders) differs[at.value] = differs[at.value] || at.form != 0;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const value& from = all[i];
      if (from.readers.empty() && !(from.is_output && differs[i])) continue;
      const bool has_forms = differs[i] && std::ranges::any_of(from.convert_ms, [](double c) { return c != 0; });
      if (!has_forms && !(has_switches_ && from.producer != node_set::none)) continue;
      tracked_value v;
      v.value = i;
      v.has_forms = has_forms;
      v.producer = from.producer;
      v.readers = from.readers;
      v.is_output = from.is_output;
      v.first = v.producer != node_set::none ? v.producer : v.readers.front();
      v.last = v.readers.empty() ? v.producer : v.readers.back();
      v.read.resize(v.readers.size());
      v.runtimes.resize(v.readers.size());
      if (v.producer == node_set::none) v.written = 1;
      values_.push_back(std::move(v));
    }
  }

  /// Which tracked values each node touches, as one array: first where the list of each node begins, then all lists.
  std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> values_by_node(std::size_t nodes) const {
    std::vector<std::uint32_t> begin(nodes + 1);
    const auto for_each = [&](auto visit) {
      for (std::uint32_t v = 0; v < values_.size(); ++v) {
        if (values_[v].producer != node_set::none) visit(values_[v].producer, v);
        for (const std::uint32_t reader : values_[v].readers) visit(reader, v);
      }
    };
    for_each([&](std::uint32_t node, std::uint32_t) { ++begin[node + 1]; });
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<std::uint32_t> list(begin.back()), next(begin.begin(), begin.end());
    for_each([&](std::uint32_t node, std::uint32_t v) { list[next[node]++] = v; });
    return {std::move(begin), std::move(list)};
  }
  /// Returns which of the problem's forms are met, by value; touches number them in this order.
  std::vector<std::vector<std::uint32_t>> list_touches(const problem& p, const space& s) {
    const auto [begin, list] = values_by_node(p.nodes);
    std::vector<std::vector<std::uint32_t>> met(values_.size(), {0});
    std::vector<std::uint32_t> mine;
    for (std::uint32_t e = 0; e < s.entries.size(); ++e) {
      const candidate& c = p.candidates[s.entries[e].index];
      mine.clear();
      for (const std::uint32_t member : c.nodes)
        mine.insert(mine.end(), list.begin() + begin[member], list.begin() + begin[member + 1]);
      std::ranges::sort(mine);
      const auto twins = std::ranges::unique(mine);
      mine.erase(twins.begin(), twins.end());
      for (const std::uint32_t v : mine) {
        const tracked_value& at = values_[v];
        const std::uint32_t form = at.has_forms ? form_at(c, at.value) : 0;
        const auto known = std::ranges::find(met[v], form);
        touches_.push_back({.value = v,
                            .form = static_cast<std::uint8_t>(known - met[v].begin()),
                            .writes = at.producer != node_set::none && c.nodes.contains(at.producer)});
        if (known == met[v].end()) met[v].push_back(form);
      }
      touch_begin_[e + 1] = static_cast<std::uint32_t>(touches_.size());
    }
    return met;
  }

  /// Numbers forms in the problem's order, and takes over what conversions between them cost.
  void number_forms(const std::vector<value>& all, std::vector<std::vector<std::uint32_t>> met) {
    std::vector<std::array<std::uint8_t, problem::most_forms>> rank(values_.size());  // by the order in `met`
    for (std::uint32_t v = 0; v < values_.size(); ++v) {
      if (!values_[v].has_forms) continue;
      for (std::size_t i = 0; i < met[v].size(); ++i)
        rank[v][i] = static_cast<std::uint8_t>(
            std::ranges::count_if(met[v], [&](std::uint32_t form) { return form < met[v][i]; }));
      std::ranges::sort(met[v]);
      convert_between(met[v], all[values_[v].value], values_[v]);
    }
    for (touch& t : touches_) t.form = rank[t.value][t.form];
  }
  static void convert_between(std::span<const std::uint32_t> forms, const value& from, tracked_value& v) {
    const std::size_t count = forms.size();
    v.forms = static_cast<std::uint32_t>(count);
    v.convert.assign(count * count, 0);
    v.dearest.assign(count, 0);
    for (std::size_t to = 0; to < count; ++to)
      for (std::uint32_t a = 0; a < from.forms; ++a) {
        if (a == forms[to]) continue;
        const std::int64_t cost = picoseconds(from.convert_ms[std::size_t{a} * from.forms + forms[to]]);
        v.dearest[to] = std::max(v.dearest[to], cost);
        const auto known = std::ranges::find(forms, a);
        if (known != forms.end()) v.convert[static_cast<std::size_t>(known - forms.begin()) * count + to] = cost;
      }
  }

  /// Lists the forms that candidates write, and those that the candidates of each reader want.
  void list_wanted(const problem& p, const space& s) {
    for (std::uint32_t e = 0; e < s.entries.size(); ++e) {
      const candidate& c = p.candidates[s.entries[e].index];
      for (const touch& t : touches(e)) {
        tracked_value& at = values_[t.value];
        if (t.writes) at.written |= bit_set{1} << t.form;
        for (std::size_t r = 0; r < at.readers.size() && !t.writes; ++r) {
          if (!c.nodes.contains(at.readers[r])) continue;
          if (at.has_forms) at.read[r] |= bit_set{1} << t.form;
          if (has_switches_ && at.producer != node_set::none) at.runtimes[r] |= bit_set{1} << c.runtime;
        }
      }
    }
  }

  std::vector<tracked_value> values_;
  std::vector<std::uint32_t> touch_begin_;
  std::vector<touch> touches_;
  std::vector<std::int64_t> switches_;
  std::array<std::int64_t, problem::most_runtimes> dearest_switch_{};
  bool has_switches_ = false;
};

}  // namespace collage::inline v0::search::detail
