// Random placement problems, and their best plans by trying everything: written apart from the searches.
#pragma once

#include "support/random_numbers.hpp"

#include <collage/search/node_set.hpp>
#include <collage/search/problem.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace search_testing {

namespace search = collage::search;
using index_list = std::vector<std::uint32_t>;

class random_source : public collage_test::random_numbers {
 public:
  random_source() { ::testing::Test::RecordProperty("seed", std::to_string(seed())); }
  /// Uniform in [low, high].
  std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(engine());
  }
};

inline std::uint32_t narrow(std::size_t number) { return static_cast<std::uint32_t>(number); }

/// Cost in picoseconds, number of groups, sorted list of candidates: the tie rule is the order of these.
using judged = std::tuple<std::int64_t, std::size_t, index_list>;

inline std::string describe(const search::problem& p) {
  std::string text = std::to_string(p.nodes) + " nodes, " + std::to_string(p.runtimes) + " runtimes; forms";
  for (const search::value& v : p.values) text += " " + std::to_string(v.forms);
  text += ";";
  for (const auto& [from, to] : p.edges) text += " " + std::to_string(from) + "->" + std::to_string(to);
  for (const search::candidate& c : p.candidates) {
    text += "\n  " + to_string(c.nodes) + " " + std::to_string(c.cost_ms) + " runtime " + std::to_string(c.runtime);
    for (const search::border& b : c.borders) text += " " + std::to_string(b.value) + ":" + std::to_string(b.form);
  }
  return text;
}

/// Of what kind a random problem with borders is.
struct random_shape {
  std::uint32_t least_nodes = 1, most_nodes = 9;
  std::uint32_t forms = 1;
  std::uint32_t least_forms = 0;  ///< 0: each value has `forms`, otherwise so many at least
  std::uint32_t runtimes = 1;
  bool ties = false;                              ///< costs are small whole numbers
  std::uint32_t window = search::node_set::none;  ///< how far apart a producer and its reader, or two members, may be
  double most_density = 0.5;                      ///< of edges within the window
  double listed_borders = 0.5;                    ///< how many a candidate has in other forms than 0
  double groups_per_node = 4;                     ///< at most
};

/// A graph with candidates of any number of entries and exits (some are nodes that read the same value, some are connected,
/// some are neither), values in several forms, and several runtimes.
inline search::problem random_bordered_problem(random_source& random, const random_shape& shape) {
  search::problem p;
  p.nodes = random.number(shape.least_nodes, shape.most_nodes);
  p.runtimes = shape.runtimes;
  const auto nodes = narrow(p.nodes);
  const double density = random.real(0.1, shape.most_density);
  const auto cost = [&](double most) { return shape.ties ? random.number(0, 3) : random.real(0, most); };
  // Values: what the network is given, and one or two of each node.
  const auto add_value = [&](std::uint32_t producer) {
    search::value v{.producer = producer, .readers = {}};
    const bool given = producer == search::node_set::none;
    const std::uint32_t first =
        given ? random.number(0, shape.window == search::node_set::none ? 0 : nodes - 1) : producer + 1;
    for (std::uint32_t to = first; to < nodes && to - first < shape.window; ++to)
      if (random.chance(density)) v.readers.push_back(to);
    v.is_output = !given && random.chance(0.15);
    v.forms = shape.least_forms == 0 ? shape.forms : random.number(shape.least_forms, shape.forms);
    if (random.chance(0.8))
      for (std::uint32_t i = 0; i < v.forms * v.forms; ++i) v.convert_ms.push_back(cost(0.6));
    for (const std::uint32_t to : v.readers)
      if (!given) p.edges.emplace_back(producer, to);
    if (v.is_output) p.outputs.push_back(producer);
    p.values.push_back(std::move(v));
  };
  for (std::uint32_t given = random.number(0, 2); given > 0; --given) add_value(search::node_set::none);
  for (std::uint32_t node = 0; node < nodes; ++node)
    for (std::uint32_t outputs = random.chance(0.2) ? 2 : 1; outputs > 0; --outputs) add_value(node);
  if (p.runtimes > 1)
    for (std::uint32_t i = 0; i < p.runtimes * p.runtimes; ++i) p.switch_ms.push_back(cost(0.4));
  std::vector<std::vector<bool>> reaches(p.nodes, std::vector<bool>(p.nodes));
  for (std::uint32_t from = nodes; from-- > 0;)
    for (const auto& [producer, consumer] : p.edges)
      if (producer == from) {
        reaches[from][consumer] = true;
        for (std::uint32_t to = 0; to < nodes; ++to)
          if (reaches[consumer][to]) reaches[from][to] = true;
      }
  const std::size_t listed = shape.forms == 1 && random.chance(0.5) ? 0 : p.values.size();
  const auto add = [&](const search::node_set& members) {
    search::candidate c{
        .nodes = members, .tag = narrow(p.candidates.size()), .runtime = random.number(0, p.runtimes - 1)};
    const double size = static_cast<double>(members.size());
    c.cost_ms = shape.ties ? random.number(0, 4) : random.real(0.1, 1) * (0.5 + 0.5 * size);
    for (std::uint32_t v = 0; v < listed; ++v)
      if (random.chance(shape.listed_borders)) c.borders.push_back({v, random.number(0, p.values[v].forms - 1)});
    p.candidates.push_back(std::move(c));
  };
  for (std::uint32_t node = 0; node < nodes; ++node)
    for (std::uint32_t ways = random.number(1, 3); ways > 0; --ways) add({node});
  const auto some_of = [&random](const index_list& list) { return list[random.number(0, narrow(list.size()) - 1)]; };
  const auto most_groups = static_cast<std::uint32_t>(shape.groups_per_node * shape.most_nodes);
  for (std::uint32_t more = random.number(0, most_groups); more > 0; --more) {
    search::node_set group;
    const std::uint32_t kind = random.number(0, 2);
    const search::value& read = p.values[random.number(0, narrow(p.values.size()) - 1)];
    const std::uint32_t start = random.number(0, nodes - 1);
    if (kind != 0) group.insert(start);
    for (std::uint32_t size = random.number(2, 4); size > 0; --size) {
      if (kind == 0) {  // siblings
        if (!read.readers.empty()) group.insert(some_of(read.readers));
      } else if (kind == 1) {  // a neighbour of a member
        index_list near;
        for (const auto& [from, to] : p.edges)
          if (group.contains(from) != group.contains(to)) near.push_back(group.contains(from) ? to : from);
        if (!near.empty()) group.insert(some_of(near));
      } else {
        const std::uint32_t reach = std::min(shape.window, nodes);
        group.insert(random.number(start - std::min(start, reach), std::min(start + reach, nodes - 1)));
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {  // what lies between belongs to it
      bool after = false, before = false;
      for (const std::uint32_t member : group) {
        after = after || reaches[member][node];
        before = before || reaches[node][member];
      }
      if (after && before) group.insert(node);
    }
    if (!group.empty() && group.size() < 8) add(group);
  }
  if (listed == 0) p.values.clear();
  return p;
}

/// The best plan by dynamic programming over the orders in which groups can be executed: a state is the set of nodes that
/// have been executed, with what has been paid for each value that will still be read. A group may run next when nothing of
/// it has run and all that it reads from outside has.
class executable_orders {
 public:
  /// At most 24 nodes and 256 candidates.
  explicit executable_orders(const search::problem& p)
      : problem_(p), values_(p.values), executed_(std::size_t{1} << p.nodes) {
    if (values_.empty())
      for (std::uint32_t node = 0; node < p.nodes; ++node) {
        values_.push_back({.producer = node, .readers = {}});
        for (std::uint32_t to = node + 1; to < p.nodes; ++to)
          if (std::ranges::find(p.edges, std::pair(node, to)) != p.edges.end()) values_.back().readers.push_back(to);
      }
    for (const search::candidate& c : p.candidates) {
      groups_.push_back({mask_of(c.nodes), 0});
      for (const auto& [from, to] : p.edges)
        if (c.nodes.contains(to) && !c.nodes.contains(from)) groups_.back().reads |= std::size_t{1} << from;
    }
    for (const search::value& v : values_) {
      readers_.push_back(0);
      for (const std::uint32_t reader : v.readers) readers_.back() |= std::size_t{1} << reader;
      has_forms_ = has_forms_ || v.forms > 1;
    }
    paid start(values_.size());
    executed_[0].emplace(text_of(start, 0), plan{});
    for (std::size_t done = 0; done + 1 < executed_.size(); ++done) {
      for (const auto& [text, so_far] : executed_[done]) continue_with(done, text, so_far);
      executed_[done].clear();
    }
    for (const auto& [text, found] : executed_.back())
      if (!best_ || found < *best_) best_ = found;
  }

  std::optional<judged> best() const {
    if (!best_) return std::nullopt;
    index_list chosen;
    for (std::uint32_t i = 0; i < best_->chosen.size(); ++i)
      if (best_->chosen[i]) chosen.push_back(i);
    return judged{best_->cost, best_->groups, chosen};
  }
  std::size_t states() const { return states_; }

 private:
  struct plan {
    std::int64_t cost = 0;
    std::size_t groups = 0;
    std::bitset<256> chosen = {};

    /// The tie rule; of lists of one length that has the smaller that has the least number which is in one alone.
    friend bool operator<(const plan& a, const plan& b) {
      if (a.cost != b.cost) return a.cost < b.cost;
      if (a.groups != b.groups) return a.groups < b.groups;
      const std::bitset<256> apart = a.chosen ^ b.chosen;
      for (std::size_t i = 0; i < apart.size(); ++i)
        if (apart[i]) return a.chosen[i];
      return false;
    }
  };
  struct group {
    std::size_t nodes, reads;
  };
  /// Of each value: the form and the runtime it was written in and by, and which others have been paid for.
  struct payment {
    std::uint32_t form = 0, runtime = 0, forms = 0, runtimes = 0;
  };
  using paid = std::vector<payment>;

  static std::size_t mask_of(const search::node_set& nodes) {
    std::size_t mask = 0;
    for (const std::uint32_t node : nodes) mask |= std::size_t{1} << node;
    return mask;
  }
  std::uint32_t form_of(std::uint32_t i, std::uint32_t v) const {
    for (const search::border& b : problem_.candidates[i].borders)
      if (b.value == v) return b.form;
    return 0;
  }
  std::size_t writer(std::uint32_t v) const {
    return values_[v].producer == search::node_set::none ? 0 : std::size_t{1} << values_[v].producer;
  }

  /// What matters from here on, as text: values that are there and will be read again.
  std::u32string text_of(const paid& values, std::size_t done) const {
    std::u32string text;
    if (!has_forms_ && problem_.switch_ms.empty()) return text;
    for (std::uint32_t v = 0; v < values.size(); ++v) {
      if ((writer(v) & ~done) != 0 || (readers_[v] & ~done) == 0) continue;
      const payment& at = values[v];
      text += static_cast<char32_t>(at.form | at.runtime << 8U | at.runtimes << 16U);
      text += static_cast<char32_t>(at.forms);
    }
    return text;
  }
  paid values_of(const std::u32string& text, std::size_t done) const {
    paid values(values_.size());
    std::size_t i = 0;
    for (std::uint32_t v = 0; v < values.size() && !text.empty(); ++v) {
      if ((writer(v) & ~done) != 0 || (readers_[v] & ~done) == 0) continue;
      const std::uint32_t word = text[i++];
      values[v] = {word & 255U, word >> 8U & 255U, text[i++], word >> 16U};
    }
    return values;
  }

  void pay_form(std::uint32_t v, payment& at, std::uint32_t to, std::int64_t& cost) const {
    const std::vector<double>& convert = values_[v].convert_ms;
    if (to == at.form || (at.forms >> to & 1U) != 0 || convert.empty()) return;
    at.forms |= 1U << to;
    cost += search::picoseconds(convert[at.form * values_[v].forms + to]);
  }
  void pay_runtime(payment& at, std::uint32_t to, std::int64_t& cost) const {
    if (to == at.runtime || (at.runtimes >> to & 1U) != 0 || problem_.switch_ms.empty()) return;
    at.runtimes |= 1U << to;
    cost += search::picoseconds(problem_.switch_ms[at.runtime * problem_.runtimes + to]);
  }

  void continue_with(std::size_t done, const std::u32string& text, const plan& so_far) {
    ++states_;
    const paid before = values_of(text, done);
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      const group& g = groups_[i];
      if ((g.nodes & done) != 0 || (g.reads & ~done) != 0) continue;
      const std::uint32_t runtime = problem_.candidates[i].runtime;
      plan next = so_far;
      next.cost += search::picoseconds(problem_.candidates[i].cost_ms);
      ++next.groups;
      next.chosen.set(i);
      paid values = before;
      for (std::uint32_t v = 0; v < values.size(); ++v) {
        const bool given = writer(v) == 0;
        if ((writer(v) & g.nodes) != 0) {
          values[v] = {form_of(i, v), runtime, 0, 0};
          if (values_[v].is_output) pay_form(v, values[v], 0, next.cost);
        } else if ((readers_[v] & g.nodes) != 0) {
          pay_form(v, values[v], form_of(i, v), next.cost);
          if (!given) pay_runtime(values[v], runtime, next.cost);
        }
      }
      const auto [at, fresh] = executed_[done | g.nodes].emplace(text_of(values, done | g.nodes), next);
      if (!fresh && next < at->second) at->second = next;
    }
  }

  const search::problem& problem_;
  std::vector<search::value> values_;
  std::vector<group> groups_;
  std::vector<std::size_t> readers_;  // by value
  bool has_forms_ = false;            // any value has several
  std::vector<std::unordered_map<std::u32string, plan>> executed_;
  std::optional<plan> best_;
  std::size_t states_ = 0;
};

/// The least that any exact cover costs whose groups pay nothing at their borders, whether it can be executed or not.
inline std::int64_t cheapest_cover(const search::problem& p) {
  constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> least(std::size_t{1} << p.nodes, nothing);  // by the set that is covered
  least[0] = 0;
  for (std::size_t covered = 0; covered + 1 < least.size(); ++covered) {
    if (least[covered] == nothing) continue;
    std::uint32_t first = 0;
    while ((covered >> first & 1U) != 0) ++first;
    for (const search::candidate& c : p.candidates) {
      if (c.nodes.first() != first) continue;
      std::size_t members = 0;
      for (const std::uint32_t node : c.nodes) members |= std::size_t{1} << node;
      if ((members & covered) != 0) continue;
      std::int64_t& at = least[covered | members];
      at = std::min(at, least[covered] + search::picoseconds(c.cost_ms));
    }
  }
  return least.back();
}

}  // namespace search_testing
