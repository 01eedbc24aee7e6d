// Placement as an integer program, solved by CBC (COIN-OR branch and cut): another search behind the same signature, written
// apart from the others. For tests and comparisons.
#pragma once

#include <collage/error.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace search_testing {

namespace search = collage::search;

/// The program in which a column is a candidate (1: chosen) or a charge: a conversion of a value from one form to another,
/// or a switch from one runtime to another. Each node is in one chosen candidate. A charge is at least what it has to be:
///
///     charge(v, from, to) + sum of the candidates that write v, but not in `from`, and do not hold reader r
///                        >= sum of the candidates that hold reader r, do not write v and want it in `to`
///
/// for each reader r of v, so that with candidates of 0 and 1 it is 0 or 1 by itself. That chosen groups must not wait for
/// each other is left out at first; where some of a solution do, a row forbids to choose all of these, and it is solved again.
class integer_placement {
 public:
  explicit integer_placement(const search::problem& p) : problem_(p) {
    search::check(p);
    for (const search::candidate& c : p.candidates) objective_.push_back(scaled(c.cost_ms));
    covering_.resize(p.nodes);
    for (std::uint32_t i = 0; i < p.candidates.size(); ++i)
      for (const std::uint32_t node : p.candidates[i].nodes) covering_[node].push_back(i);
    for (const std::vector<std::uint32_t>& by : covering_) {
      row one{.least = 1, .most = 1};
      for (const std::uint32_t i : by) one.of.emplace_back(i, 1);
      rows_.push_back(std::move(one));
    }
    if (p.values.empty()) {
      std::vector<search::value> implied(p.nodes);
      for (std::uint32_t node = 0; node < p.nodes; ++node) implied[node].producer = node;
      for (const auto& [from, to] : p.edges) implied[from].readers.push_back(to);
      for (std::uint32_t v = 0; v < implied.size(); ++v) add_charges(v, implied[v]);
    } else {
      for (std::uint32_t v = 0; v < p.values.size(); ++v) add_charges(v, p.values[v]);
    }
    add_resources();
    for (const double cost : objective_) grain_ = std::gcd(grain_, std::llround(cost * 1e3));
    find_paths();
  }

  search::placement run(const search::limits& l) {
    const auto begin = std::chrono::steady_clock::now();
    search::placement plan;
    for (;;) {
      const auto spent = std::chrono::steady_clock::now() - begin;
      if (l.time <= spent) throw_limit();
      const std::vector<bool> chosen = solve(std::chrono::duration<double>(l.time - spent).count());
      ++plan.states;
      plan.chosen.clear();
      for (std::uint32_t i = 0; i < chosen.size(); ++i)
        if (chosen[i]) plan.chosen.push_back(i);
      const std::vector<std::uint32_t> cycle = shortest_cycle(plan.chosen);
      if (cycle.empty()) break;
      row cut{.least = -no_limit, .most = static_cast<double>(cycle.size()) - 1};
      for (const std::uint32_t i : cycle) cut.of.emplace_back(i, 1);
      rows_.push_back(std::move(cut));
    }
    std::ranges::sort(plan.chosen, {}, [this](std::uint32_t i) { return problem_.candidates[i].nodes.first(); });
    plan.cost_ms = cost_of(plan.chosen);
    plan.lower_bound_ms = plan.cost_ms;
    plan.optimal = true;
    plan.transitions = rows_.size();
    return plan;
  }

 private:
  static constexpr double no_limit = 1e30;
  /// In nanoseconds: what CBC takes for equal (1e-5, and about 1e-9 of the whole) then stays far below what was measured.
  static double scaled(double ms) { return ms * 1e6; }

  struct row {
    double least = 0, most = no_limit;
    std::vector<std::pair<std::uint32_t, double>> of = {};  // columns
  };

  std::uint32_t form_of(std::uint32_t i, std::uint32_t v) const {
    for (const search::border& b : problem_.candidates[i].borders)
      if (b.value == v) return b.form;
    return 0;
  }

  void add_charges(std::uint32_t v, const search::value& at) {
    const bool given = at.producer == search::node_set::none;
    if (!at.convert_ms.empty() || !at.convert_amounts.empty()) {
      std::vector<double> ms = at.convert_ms;
      ms.resize(std::size_t{at.forms} * at.forms);
      add_charges(at, at.forms, ms, at.is_output, [this, v](std::uint32_t i) { return form_of(i, v); }, true);
    }
    if (!problem_.switch_ms.empty() && !given)
      add_charges(
          at, problem_.runtimes, problem_.switch_ms, false,
          [this](std::uint32_t i) { return problem_.candidates[i].runtime; }, false);
  }

  /// Each resource is a row. A shared item is a column that is 1 if any candidate that names it is chosen. Excluded sets are
  /// rows too.
  void add_resources() {
    for (std::uint32_t r = 0; r < problem_.resources.size(); ++r) {
      row sum{.least = -no_limit, .most = static_cast<double>(problem_.resources[r].bound)};
      std::map<std::uint32_t, std::uint32_t> items;  // columns
      for (std::uint32_t i = 0; i < problem_.candidates.size(); ++i) {
        double own = 0;
        for (const search::use& u : problem_.candidates[i].uses) {
          if (u.resource != r) continue;
          if (u.item == search::use::own) {
            own += static_cast<double>(u.amount);
            continue;
          }
          const auto column = static_cast<std::uint32_t>(objective_.size());
          const auto [at, fresh] = items.try_emplace(u.item, column);
          if (fresh) {
            objective_.push_back(0);
            sum.of.emplace_back(column, static_cast<double>(u.amount));
          }
          rows_.push_back({.least = 0, .of = {{at->second, 1}, {i, -1}}});
        }
        if (own != 0) sum.of.emplace_back(i, own);
      }
      for (const auto& [column, amounts] : charged_)
        if (amounts[r] != 0) sum.of.emplace_back(column, amounts[r]);
      rows_.push_back(std::move(sum));
    }
    for (const std::vector<std::uint32_t>& set : problem_.excluded) {
      row cut{.least = -no_limit, .most = static_cast<double>(set.size()) - 1};
      for (const std::uint32_t i : set) cut.of.emplace_back(i, 1);
      rows_.push_back(std::move(cut));
    }
  }

  /// `what` is with which of the `kinds`, forms or runtimes, a candidate meets the value; it may have to be left in the
  /// first.
  template <class What>
  void add_charges(const search::value& at, std::uint32_t kinds, const std::vector<double>& ms, bool left_in_first,
                   const What& what, bool converts) {
    const std::size_t size = std::size_t{kinds} * kinds;
    const auto amounts_of = [&](std::uint32_t from, std::uint32_t to) {
      std::vector<double> amounts(problem_.resources.size());
      for (std::size_t r = 0; r < amounts.size() && converts && !at.convert_amounts.empty(); ++r)
        amounts[r] = static_cast<double>(at.convert_amounts[r * size + from * kinds + to]);
      return amounts;
    };
    const bool given = at.producer == search::node_set::none;
    for (std::uint32_t from = 0; from < (given ? 1 : kinds); ++from)
      for (std::uint32_t to = 0; to < kinds; ++to) {
        std::vector<double> amounts = amounts_of(from, to);
        if (from == to || (ms[from * kinds + to] == 0 && std::ranges::count(amounts, 0.0) == std::ssize(amounts)))
          continue;
        const auto charge = static_cast<std::uint32_t>(objective_.size());
        charged_.emplace_back(charge, std::move(amounts));
        objective_.push_back(scaled(ms[from * kinds + to]));
        const auto add = [&](row r, std::optional<std::uint32_t> reader) {
          if (!given)
            for (const std::uint32_t i : covering_[at.producer])
              if (what(i) != from && !(reader && problem_.candidates[i].nodes.contains(*reader)))
                r.of.emplace_back(i, 1);
          rows_.push_back(std::move(r));
        };
        for (const std::uint32_t reader : at.readers) {
          row r{.least = 0, .of = {{charge, 1}}};
          for (const std::uint32_t i : covering_[reader])
            if (what(i) == to && (given || !problem_.candidates[i].nodes.contains(at.producer)))
              r.of.emplace_back(i, -1);
          if (r.of.size() > 1) add(std::move(r), reader);
        }
        if (left_in_first && to == 0) add({.least = 1, .of = {{charge, 1}}}, std::nullopt);
      }
  }

  /// Which candidates are chosen in a best solution of the program as it stands.
  std::vector<bool> solve(double seconds) const {
    const std::size_t columns = objective_.size();
    // By columns, as CBC takes it.
    std::vector<int> start(columns + 1), index;
    std::vector<double> value, low(columns, 0.0), high(columns, 1.0), least, most;
    for (const row& r : rows_) {
      for (const auto& [column, factor] : r.of) ++start[column + 1];
      least.push_back(r.least);
      most.push_back(r.most);
    }
    for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    index.resize(static_cast<std::size_t>(start.back()));
    value.resize(index.size());
    std::vector<int> next(start.begin(), start.end());
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (const auto& [column, factor] : rows_[r].of) {
        const auto at = static_cast<std::size_t>(next[column]++);
        index[at] = static_cast<int>(r);
        value[at] = factor;
      }
    const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
    // Every plan costs a multiple of the grain. CBC's cuts and heuristics take longer here than what they spare.
    const std::string increment = std::to_string(static_cast<double>(grain_) * 1e-3 * 0.99);
    for (const auto& [name, setting] : {std::pair("log", "0"),
                                        {"allowableGap", "0"},
                                        {"ratioGap", "0"},
                                        {"increment", increment.c_str()},
                                        {"cuts", "off"},
                                        {"heuristicsOnOff", "off"},
                                        {"preprocess", "off"}})
      Cbc_setParameter(model.get(), name, setting);
    Cbc_setLogLevel(model.get(), 0);
    Cbc_loadProblem(model.get(), static_cast<int>(columns), static_cast<int>(rows_.size()), start.data(), index.data(),
                    value.data(), low.data(), high.data(), objective_.data(), least.data(), most.data());
    for (std::size_t i = 0; i < problem_.candidates.size(); ++i) Cbc_setInteger(model.get(), static_cast<int>(i));
    if (seconds < 1e9) Cbc_setMaximumSeconds(model.get(), seconds);
    Cbc_solve(model.get());
    if (Cbc_isProvenInfeasible(model.get()) != 0)
      throw collage::error(collage::error_kind::unsupported, "no set of candidates covers every node exactly once",
                           "integer program", "give every node a candidate of its own");
    if (Cbc_isProvenOptimal(model.get()) == 0) throw_limit();
    const double* solution = Cbc_getColSolution(model.get());
    std::vector<bool> chosen;
    for (std::size_t i = 0; i < problem_.candidates.size(); ++i) chosen.push_back(solution[i] > 0.5);
    return chosen;
  }

  [[noreturn]] static void throw_limit() {
    throw collage::error(collage::error_kind::failure, "the limit ended it before a solution was proven best",
                         "integer program", "raise the limit, or take another search");
  }

  /// Which nodes each node reaches.
  void find_paths() {
    reaches_.resize(problem_.nodes);
    std::vector<std::vector<std::uint32_t>> readers(problem_.nodes);
    for (const auto& [from, to] : problem_.edges) readers[from].push_back(to);
    for (std::uint32_t node = static_cast<std::uint32_t>(problem_.nodes); node-- > 0;)
      for (const std::uint32_t reader : readers[node]) {
        reaches_[node] = reaches_[node] | reaches_[reader];
        reaches_[node].insert(reader);
      }
  }

  /// The fewest groups of which each has a path to the next, and the last to the first: breadth first from each.
  std::vector<std::uint32_t> shortest_cycle(const std::vector<std::uint32_t>& chosen) const {
    const std::size_t count = chosen.size();
    std::vector<std::uint32_t> group(problem_.nodes);
    for (std::uint32_t g = 0; g < count; ++g)
      for (const std::uint32_t node : problem_.candidates[chosen[g]].nodes) group[node] = g;
    // Only where the groups cannot be executed one after another is there anything to look for.
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> between;
    for (const auto& [from, to] : problem_.edges)
      if (group[from] != group[to]) between[{group[from], group[to]}] = true;
    std::vector<std::size_t> waits(count);
    for (const auto& [pair, yes] : between) ++waits[pair.second];
    std::vector<std::uint32_t> ready;
    for (std::uint32_t g = 0; g < count; ++g)
      if (waits[g] == 0) ready.push_back(g);
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (auto at = between.lower_bound({ready[i], 0}); at != between.end() && at->first.first == ready[i]; ++at)
        if (--waits[at->first.second] == 0) ready.push_back(at->first.second);
    if (ready.size() == count) return {};

    std::vector<std::vector<std::uint32_t>> next(count);
    for (std::uint32_t g = 0; g < count; ++g) {
      search::node_set behind;
      for (const std::uint32_t node : problem_.candidates[chosen[g]].nodes) behind = behind | reaches_[node];
      for (std::uint32_t other = 0; other < count; ++other)
        if (other != g && behind.intersects(problem_.candidates[chosen[other]].nodes)) next[g].push_back(other);
    }
    constexpr std::uint32_t nobody = search::node_set::none;
    std::vector<std::uint32_t> shortest;
    for (std::uint32_t start = 0; start < count; ++start) {
      std::vector<std::uint32_t> by(count, nobody), queue{start};
      for (std::size_t i = 0; i < queue.size() && by[start] == nobody; ++i)
        for (const std::uint32_t to : next[queue[i]])
          if (by[to] == nobody) {
            by[to] = queue[i];
            queue.push_back(to);
          }
      if (by[start] == nobody) continue;
      std::vector<std::uint32_t> cycle{chosen[start]};
      for (std::uint32_t g = by[start]; g != start; g = by[g]) cycle.push_back(chosen[g]);
      if (shortest.empty() || cycle.size() < shortest.size()) shortest = std::move(cycle);
    }
    return shortest;
  }

  /// By the words of `problem`: each conversion and each switch once.
  double cost_of(const std::vector<std::uint32_t>& chosen) const {
    std::int64_t sum = 0;
    std::vector<std::uint32_t> who(problem_.nodes);
    for (const std::uint32_t i : chosen) {
      sum += search::picoseconds(problem_.candidates[i].cost_ms);
      for (const std::uint32_t node : problem_.candidates[i].nodes) who[node] = i;
    }
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, double> conversions, switches;  // value, from, to
    const auto pass = [&](std::uint32_t v, std::uint32_t producer, std::optional<std::uint32_t> reader) {
      const bool given = producer == search::node_set::none;
      if (!given && reader && who[producer] == who[*reader]) return;
      const std::uint32_t from = given ? 0 : form_of(who[producer], v), to = reader ? form_of(who[*reader], v) : 0;
      if (from != to && !problem_.values.empty() && !problem_.values[v].convert_ms.empty())
        conversions[{v, from, to}] = problem_.values[v].convert_ms[from * problem_.values[v].forms + to];
      if (given || !reader || problem_.switch_ms.empty()) return;
      const std::uint32_t here = problem_.candidates[who[producer]].runtime;
      const std::uint32_t there = problem_.candidates[who[*reader]].runtime;
      if (here != there) switches[{v, here, there}] = problem_.switch_ms[here * problem_.runtimes + there];
    };
    for (std::uint32_t v = 0; v < problem_.values.size(); ++v) {
      for (const std::uint32_t reader : problem_.values[v].readers) pass(v, problem_.values[v].producer, reader);
      if (problem_.values[v].is_output) pass(v, problem_.values[v].producer, std::nullopt);
    }
    if (problem_.values.empty())
      for (const auto& [from, to] : problem_.edges) pass(from, from, to);
    for (const auto& [key, ms] : conversions) sum += search::picoseconds(ms);
    for (const auto& [key, ms] : switches) sum += search::picoseconds(ms);
    return search::milliseconds(sum);
  }

  const search::problem& problem_;
  std::vector<double> objective_;  // by column: the candidates, then the charges
  long long grain_ = 0;            // the greatest common divisor of all costs, in picoseconds
  std::vector<row> rows_;
  std::vector<std::vector<std::uint32_t>> covering_;                    // by node
  std::vector<std::pair<std::uint32_t, std::vector<double>>> charged_;  // columns with what they use of each resource
  std::vector<search::node_set> reaches_;
};

/// As `search::exact`, but without its tie rule; of the limits the time counts, and one that ends it is an error. `states` is
/// how often it was solved, `transitions` its rows.
inline search::placement integer_program(const search::problem& p, const search::limits& l = {}) {
  if (p.nodes != 0) return integer_placement(p).run(l);
  search::placement nothing;
  nothing.optimal = true;
  return nothing;
}

}  // namespace search_testing
