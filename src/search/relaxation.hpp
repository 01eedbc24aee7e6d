// A lower bound on the cost of plans, conversions included.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "covers.hpp"
#include "potentials.hpp"
#include "space.hpp"
#include "tracked_values.hpp"

namespace collage::inline v0::search::detail {

/// Finds prices of forms that make the lower bound as high as possible. The bound is the cheapest cover at prices, plus
/// the least cost of the values, less prices.
///
/// It sweeps over the nodes forwards and backwards (sequential reweighted message passing; Kolmogorov 2015). At each
/// node it takes over the least costs of the values, by the form of the node's touches. Then it passes on the costs of
/// covers through the node, by form. They go in equal parts to the values that the sweep still meets and to the
/// neighbouring nodes. No step lowers the bound.
class relaxation {
 public:
  relaxation(const problem& p, const space& s, const tracked_values& tracked)
      : space_(s), tracked_(tracked), prices_(p, s, tracked), covers_(s), costs_(s.entries.size()) {
    if (tracked.empty() || !has_room(p)) return;
    at_begin_.assign(s.nodes + 1, 0);
    values_before_.assign(s.nodes + 1, 0);
    for (const tracked_value& v : tracked.list()) ++values_before_[v.first + 1];
    const auto for_each_touch = [&](auto visit) {
      for (std::uint32_t v = 0; v < tracked.list().size(); ++v) {
        if (!prices_.has_prices(v)) continue;
        const tracked_value& t = tracked.list()[v];
        if (t.producer != node_set::none) visit(t.producer, node_touch{v, 0});
        for (std::uint32_t r = 0; r < t.readers.size(); ++r) visit(t.readers[r], node_touch{v, r + 1});
      }
    };
    for_each_touch([&](std::uint32_t node, node_touch) { ++at_begin_[node + 1]; });
    for (std::size_t i = 1; i < at_begin_.size(); ++i) {
      at_begin_[i] += at_begin_[i - 1];
      values_before_[i] += values_before_[i - 1];
    }
    at_.resize(at_begin_.back());
    std::vector<std::uint32_t> next(at_begin_.begin(), at_begin_.end());
    for_each_touch([&](std::uint32_t node, node_touch t) { at_[next[node]++] = t; });
  }

  /// Prepares the bound between two cuts across which no value lives, for as long as `goes_on()` holds. False if values
  /// play no part, or if there are too many ways to cover the nodes.
  template <class GoesOn>
  bool prepare(std::uint32_t begin, std::uint32_t end, GoesOn goes_on) {
    ready_ = false;
    if (at_begin_.empty() || values_before_[begin] == values_before_[end]) return false;
    if (!covers_.list(begin, end, std::min<std::size_t>(1000 + 256 * std::size_t{end - begin}, 1'000'000)))
      return false;
    begin_ = begin;
    end_ = end;
    list_members();
    for (std::uint32_t e = space_.begin[begin]; e < space_.begin[end]; ++e) costs_[e] = space_.entries[e].cost;
    for (std::uint32_t g = 0; g < covers_.groups(); ++g) {
      std::int64_t least = unreachable;
      for (const std::uint32_t e : covers_.entries_of(g)) least = std::min(least, costs_[e]);
      covers_.set_cost(g, least);
    }
    covers_.update_behind(begin, end);
    if (at_begin_[begin] != at_begin_[end]) improve(goes_on);
    covers_.update_behind(begin, end);
    ready_ = true;
    return true;
  }
  bool ready() const { return ready_; }
  const covers& ways() const { return covers_; }
  const potentials& prices() const { return prices_; }

  /// Visits each value with its least cost, less prices. Returns the sum.
  template <class Visit>
  std::int64_t least_of_values(Visit visit) const {
    std::int64_t sum = 0;
    for (std::uint32_t i = at_begin_[begin_]; i < at_begin_[end_]; ++i) {
      const node_touch& t = at_[i];
      if (t.number != (prices_.is_given(t.value) ? 1U : 0U)) continue;
      by_form costs;
      const std::int64_t least = std::ranges::min(prices_.find_least(t.value, 0, costs));
      visit(t.value, least);
      sum += least;
    }
    return sum;
  }

 private:
  static constexpr int most_sweeps = 24;
  static constexpr std::int64_t worth_it = 300'000;  // a sweep must add one part in this many
  static constexpr std::size_t most_work = 20'000;   // steps between places that sweeps may look at, for each node

  /// Whether sums of prices cannot overflow. The costs of plans are far below the limit of `check`.
  bool has_room(const problem& p) const {
    std::vector<std::int64_t> dearest(p.nodes);
    double sum = 0;
    for (std::uint32_t node = 0; node < space_.nodes; ++node)
      for (std::uint32_t e = space_.begin[node]; e < space_.end_of(node); ++e)
        dearest[node] = std::max(dearest[node], space_.entries[e].cost);
    for (const std::int64_t cost : dearest) sum += static_cast<double>(cost);
    for (const tracked_value& v : tracked_.list())
      for (const std::int64_t cost : v.dearest) sum += static_cast<double>(cost);
    return sum < static_cast<double>(unreachable) / 1024;
  }

  struct node_touch {
    std::uint32_t value, number;  // numbered as in `potentials`
  };

  template <class GoesOn>
  void improve(GoesOn goes_on) {
    const auto bound = [this] { return covers_.whole() + least_of_values([](std::uint32_t, std::int64_t) {}); };
    std::int64_t before = bound();
    std::size_t left = most_work * std::size_t{end_ - begin_};
    for (int i = 0; i < most_sweeps && goes_on(); ++i) {
      const std::size_t done = covers_.work();
      sweep_forwards();
      sweep_backwards();
      const std::int64_t now = bound();
      if (now - before < now / worth_it || 2 * (covers_.work() - done) > left) break;
      left -= covers_.work() - done;
      before = now;
    }
  }

  /// Lists the groups that hold each node. For each of their entries, lists the form of each touch of the node.
  void list_members() {
    group_begin_.assign(end_ - begin_ + 1, 0);
    const auto for_each_member = [&](auto visit) {
      for (std::uint32_t g = 0; g < covers_.groups(); ++g)
        for_each_node(space_, covers_.first_of(g), covers_.entries_of(g).front(),
                      [&](std::uint32_t member) { visit(member - begin_, g); });
    };
    for_each_member([&](std::uint32_t at, std::uint32_t) { ++group_begin_[at + 1]; });
    for (std::size_t i = 1; i < group_begin_.size(); ++i) group_begin_[i] += group_begin_[i - 1];
    groups_.resize(group_begin_.back());
    std::vector<std::uint32_t> next(group_begin_.begin(), group_begin_.end() - 1);
    for_each_member([&](std::uint32_t at, std::uint32_t g) { groups_[next[at]++] = g; });
    form_begin_.clear();
    forms_.clear();
    for (std::uint32_t n = begin_; n < end_; ++n) {
      form_begin_.push_back(forms_.size());
      for (const std::uint32_t g : groups_at(n))
        for (const std::uint32_t e : covers_.entries_of(g))
          for (std::uint32_t i = at_begin_[n]; i < at_begin_[n + 1]; ++i)
            forms_.push_back(std::ranges::lower_bound(tracked_.touches(e), at_[i].value, {}, &touch::value)->form);
    }
    through_.assign(covers_.groups(), unreachable);
  }
  std::span<const std::uint32_t> groups_at(std::uint32_t n) const {
    return std::span(groups_).subspan(group_begin_[n - begin_],
                                      group_begin_[n + 1 - begin_] - group_begin_[n - begin_]);
  }

  /// Updates the costs of covers around the node only, since elsewhere they do not depend on the changes. The costs of
  /// paths from a node onwards are known once a sweep has passed towards it. The costs of paths to a node must be found
  /// anew, since groups that hold it may begin before it.
  void sweep_forwards() {
    for (std::uint32_t n = begin_; n < end_; ++n) {
      if (n != begin_) {
        covers_.update_before(covers_.reach_back(n - 1), n);
        if (covers_.reach_back(n) < n) covers_.update_behind(covers_.reach_back(n), n - 1);
      }
      balance(n, true);
    }
  }
  void sweep_backwards() {
    covers_.update_before(begin_, end_);
    for (std::uint32_t n = end_; n-- > begin_;) {
      covers_.update_behind(covers_.reach_back(n), n + 1);
      if (n + 1 != end_) covers_.update_before(covers_.reach_back(n + 1), n);
      balance(n, false);
    }
    covers_.update_behind(begin_, begin_);
  }

  void balance(std::uint32_t n, bool forwards) {
    const std::uint32_t touches = at_begin_[n + 1] - at_begin_[n];
    if (touches == 0) return;
    const std::span<const std::uint32_t> groups = groups_at(n);
    for (const std::uint32_t g : groups) through_[g] = unreachable;
    covers_.for_each_step(covers_.reach_back(n), n, [&](std::uint32_t group, std::int64_t cost) {
      through_[group] = std::min(through_[group], cost);
    });
    const auto goes_on = [&](const node_touch& t) {
      return forwards ? t.number != prices_.readers(t.value)
                      : t.number > 1 || (t.number == 1 && !prices_.is_given(t.value));
    };
    // Adds the least costs of the values, by form, to the prices of the node's entries.
    std::int64_t parts = 1;
    more_.resize(touches);
    for (std::uint32_t i = 0; i < touches; ++i) {
      const node_touch& t = at_[at_begin_[n] + i];
      parts += goes_on(t);
      const std::span<std::int64_t> more = prices_.find_least(t.value, t.number, more_[i]);
      const std::int64_t least = std::ranges::min(more);
      for (std::int64_t& m : more) m = m >= unreachable / 2 ? 0 : m - least;
      prices_.add(t.value, t.number, more_[i]);
    }
    const std::uint8_t* const forms = forms_.data() + form_begin_[n - begin_];
    totals_.clear();
    const std::uint8_t* at = forms;
    for (const std::uint32_t g : groups)
      for (const std::uint32_t e : covers_.entries_of(g)) {
        std::int64_t total = through_[g] + costs_[e];
        for (std::uint32_t i = 0; i < touches; ++i) total += more_[i][*at++];
        totals_.push_back(total);
      }
    // Subtracts again, for the values that go on, the costs of covers through the node, by form.
    for (std::uint32_t i = 0; i < touches; ++i) {
      const node_touch& t = at_[at_begin_[n] + i];
      if (!goes_on(t)) continue;
      by_form less;
      const std::span<std::int64_t> of_value = std::span(less).first(prices_.forms(t.value));
      std::ranges::fill(of_value, unreachable);
      at = forms + i;
      for (std::size_t k = 0; k < totals_.size(); ++k, at += touches) less[*at] = std::min(less[*at], totals_[k]);
      const std::int64_t least = std::ranges::min(of_value);
      for (std::int64_t& l : of_value) l = l >= unreachable / 2 ? 0 : (least - l) / parts;
      --parts;
      prices_.add(t.value, t.number, less);
      at = forms + i;
      for (std::size_t k = 0; k < totals_.size(); ++k, at += touches) totals_[k] += less[*at];
    }
    const std::int64_t* total = totals_.data();
    for (const std::uint32_t g : groups) {
      std::int64_t least = unreachable;
      for (const std::uint32_t e : covers_.entries_of(g)) {
        costs_[e] = *total++ - through_[g];
        least = std::min(least, costs_[e]);
      }
      covers_.set_cost(g, least);
    }
  }

  const space& space_;
  const tracked_values& tracked_;
  potentials prices_;
  covers covers_;
  std::vector<std::int64_t> costs_;                      // by entry, at prices
  std::vector<std::uint32_t> at_begin_, values_before_;  // by node
  std::vector<node_touch> at_;
  std::vector<std::uint32_t> group_begin_, groups_;  // by node
  std::vector<std::size_t> form_begin_;              // by node
  std::vector<std::uint8_t> forms_;                  // by group at the node, its entries, and touches
  std::vector<std::int64_t> through_;  // by group: the least cost of a cover with it, without its own cost
  std::vector<by_form> more_;          // of one node, by touch
  std::vector<std::int64_t> totals_;   // of one node, by group and entry
  std::uint32_t begin_ = 0, end_ = 0;
  bool ready_ = false;
};

}  // namespace collage::inline v0::search::detail
