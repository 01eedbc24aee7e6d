// The search's view of placing: states problems for the search, and maps its results back to candidates, views and control flow.
#pragma once

#include <algorithm>
#include <chrono>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>
#include <collage/set/candidate.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "conversions.hpp"
#include "cost_book.hpp"
#include "cost_forecast.hpp"
#include "error_limit.hpp"
#include "placing_state.hpp"
#include "weight_limit.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// The meaning of one candidate of a search problem.
struct shown_step {
  enum class kind : std::uint8_t { candidate, view, control } what = kind::candidate;
  std::uint32_t number = 0;  ///< of a candidate, or of a view's form in place_task::forms

  static shown_step of(std::uint32_t candidate) { return {kind::candidate, candidate}; }
  bool is(kind other) const { return what == other; }
  bool is_candidate() const { return is(kind::candidate); }
  friend bool operator==(const shown_step&, const shown_step&) = default;
};

/// A search problem, the meaning of its candidates, and the placement that the search found.
struct search_result {
  search::problem problem;
  std::vector<shown_step> who;  ///< the meaning of each candidate of the problem
  search::placement found;
};

/// Which candidates the search gets, and at which prices.
struct shown_candidates {
  bool not_measured = true;  ///< at the lower bounds of their costs
  bool regions = true;
  outlook costs = outlook::doubtful;
  cost_forecast* expected = nullptr;  ///< of those not measured, whose costs are these if given, and no bounds
  bool rounding = true;               ///< of kernels that round values
  const weight_caps* caps = nullptr;  ///< leaves out what keeps too large weights
  bool packing = false;               ///< forms of weights that no engine has yet count (`weight_limit::packing_ms`)
};

class search_view {
 public:
  explicit search_view(const placing_state& known) : known_(known) {}

  /// From now on, leaves out regions from candidate `first` on, except those for which `shown` is true.
  void hide_regions(std::size_t first, const std::vector<bool>& shown) {
    hidden_.assign(known_.candidates.size(), false);
    for (auto i = static_cast<std::uint32_t>(first); i < hidden_.size(); ++i)
      hidden_[i] = known_.candidates.is_region(i) && !shown[i];
  }

  /// From now on, leaves out the kernel of a candidate wherever the network has it.
  void leave_out(std::uint32_t candidate) {
    const place_candidates& all = known_.candidates.all();
    const cost_key kernel = key_of(all, all.list[candidate]);
    left_out_.resize(all.list.size());
    for (std::uint32_t i = 0; i < all.list.size(); ++i)
      if (key_of(all, all.list[i]) == kernel) left_out_[i] = true;
  }

  /// The problem of all candidates that can be built. Candidates for views follow, one for each form in which a node may be a view,
  /// and for control flow.
  search_result problem(const shown_candidates& shown) const {
    search_result result;
    search::problem& p = result.problem;
    const graph& network = known_.task.network;
    const graph_view view = network.view();
    p.nodes = network.nodes().size();
    for (std::uint32_t n = 0; n < p.nodes; ++n)
      for (const std::uint32_t v : view.inputs_of(n))
        if (network.at(v).producer >= 0) p.edges.emplace_back(static_cast<std::uint32_t>(network.at(v).producer), n);
    for (const std::uint32_t v : network.outputs())
      if (network.at(v).producer >= 0) p.outputs.push_back(static_cast<std::uint32_t>(network.at(v).producer));
    const std::vector<std::uint32_t> runtimes = known_.neighbours.runtimes();
    p.runtimes = known_.neighbours.any() ? 1 + *std::ranges::max_element(runtimes) : 1;
    const auto add = [&](std::span<const std::uint32_t> nodes, double cost, const shown_step& what,
                         std::uint32_t runtime = 0) {
      p.candidates.push_back({search::node_set(nodes), cost, what.number, runtime});
      result.who.push_back(what);
      const value_forms* const its = borders_of(what, nodes.front());
      if (its == nullptr) return;
      std::vector<search::border>& borders = p.candidates.back().borders;
      for (const auto& [v, order] : its->list())
        borders.push_back(
            {known_.layouts.numbers().at(v), static_cast<std::uint32_t>(known_.layouts.number_of(v, order))});
      std::ranges::sort(borders, {}, &search::border::value);
    };
    add_values(p, shown.costs);
    add_switches(p, runtimes);
    for (std::uint32_t i = 0; i < known_.candidates.size(); ++i) {
      const place_candidate& c = known_.candidates[i];
      if (i < left_out_.size() && left_out_[i]) continue;
      if (known_.candidates.is_region(i) && (!shown.regions || (i < hidden_.size() && hidden_[i]))) continue;
      const known_cost cost = known_.costs.price_of(c, shown.costs);
      if (cost.state == cost_state::refused || (cost.state == cost_state::bounded && !shown.not_measured)) continue;
      if (!known_.layouts.can_be_converted(known_.layouts.borders_of(i))) continue;
      if (!shown.rounding && known_.errors.rounds(i)) continue;
      if (shown.caps != nullptr && !shown.caps->is_empty() && !shown.caps->allow(known_.weights.of(i))) continue;
      const bool is_expected = shown.expected != nullptr && cost.state == cost_state::bounded;
      const double ms = is_expected ? shown.expected->ms(i) : cost.ms;
      add(known_.candidates.nodes_of(i), shown.packing ? ms + known_.weights.packing_ms(i) : ms, shown_step::of(i),
          runtimes[c.backend]);
    }
    // A view has the runtime of its reader, and control flow belongs to no backend, so both get a candidate for each runtime.
    // Runtime 0 is for backends without known switches. No view gets it: as a stop between two runtimes, it would save the switch.
    for (std::uint32_t runtime = 0; runtime < p.runtimes; ++runtime)
      for (std::uint32_t n = 0; n < p.nodes; ++n) {
        const std::uint32_t nodes[] = {n};
        if (runtime != 0 || p.runtimes == 1)
          for (const std::uint32_t order : known_.views[n])
            if (known_.can_be_view(n, order)) add(nodes, 0.0, {shown_step::kind::view, order}, runtime);
        if (is_control(view, n)) add(nodes, known_.bodies.cost_of(n), {shown_step::kind::control, 0}, runtime);
      }
    return result;
  }

  /// Leaves the candidates that read and write plain values only.
  void leave_plain(search_result& of) const {
    leave(of, [&](std::size_t k) {
      const value_forms* const its = borders_of(of.who[k], of.problem.candidates[k].nodes.first());
      return its == nullptr || its->list().empty();
    });
  }

  /// Leaves the candidates that round nothing.
  void leave_unrounded(search_result& of) const {
    leave(of, [&](std::size_t k) { return !of.who[k].is_candidate() || !known_.errors.rounds(of.who[k].number); });
  }

  /// Solves a problem. If conversions are expensive and switches count, a large network may have millions of states. Then the
  /// search has a limit: it runs some dozens of times, and costs are known only to some per cent. The plan says whether the result
  /// was proved optimal.
  ///
  /// If the best placement exceeds a bound, on weights or on the error, the problem gets the bounds. The result is then the best one
  /// within them.
  search::placement solve(search_result& of) const {
    search::limits most = limits();
    if (known_.neighbours.any()) most.states = 200'000;
    of.found = search::exact(of.problem, most);
    if (keeps_bound(of) && keeps_error(of)) return std::move(of.found);
    if (known_.weights.can_be_exceeded()) bound_weights(of);
    if (known_.errors.is_needed()) bound_errors(of);
    of.found = search::exact(of.problem, most);
    if (!keeps_error(of)) {  // it ended before it found a placement within the bound
      leave_unrounded(of);
      of.found = search::exact(of.problem, most);
    }
    return std::move(of.found);
  }

  /// Whether the placement that was found keeps the bound on weights.
  bool keeps_bound(const search_result& r) const {
    return !known_.weights.can_be_exceeded() || known_.weights.kib_of(candidates_in(r)) <= known_.weights.kib();
  }
  /// The error that a placement is expected to cause, as an amount of `error_limit`.
  std::int64_t error_in(const search_result& r) const {
    if (!known_.errors.is_needed()) return 0;
    std::int64_t sum = known_.errors.of_all(candidates_in(r));
    for (const auto& [c, by] : conversions_of(r)) sum += known_.errors.of_conversion(c.value, c.from, c.to);
    return sum;
  }
  /// Whether it keeps the bound on the error.
  bool keeps_error(const search_result& r) const { return error_in(r) <= error_limit::bound(); }
  /// Error: it does not, because no placement that does was found.
  void require_bound(const search_result& r) const {
    if (!keeps_bound(r)) throw known_.weights.shortage(known_.weights.kib_of(candidates_in(r)));
  }
  /// The same for a choice by rank. If it exceeds the bound, says how to choose the next one. Error: as of require_bound.
  bool may_be_chosen(const search_result& r, weight_caps& caps, bool& is_exact) const {
    if (keeps_bound(r)) return true;
    if (is_exact) require_bound(r);
    is_exact =
        !caps.lower(known_.weights, candidates_in(r)) || !search::uncovered(problem({.caps = &caps}).problem).empty();
    if (is_exact) caps = {};
    return false;
  }
  /// The candidates of the placement that was found, without views and control flow.
  std::vector<std::uint32_t> candidates_in(const search_result& r) const {
    std::vector<std::uint32_t> list;
    for (const std::uint32_t chosen : r.found.chosen)
      if (r.who[chosen].is_candidate()) list.push_back(r.who[chosen].number);
    return list;
  }

  /// The limits of each search: it ends soon after the budget.
  search::limits limits() const {
    search::limits most{.stop = [this] { return known_.task.until.is_long_over(); }};
    most.bounded_time = bounded_time_;
    return most;
  }
  /// The longest time of a search for finding and proving plans within the bounds (`search::limits::bounded_time`).
  void set_bounded_time(std::chrono::nanoseconds most) { bounded_time_ = most; }

  /// Whether there is a placement without regions.
  bool is_covered_by_operators() const { return search::uncovered(problem({.regions = false}).problem).empty(); }

  /// Whether a candidate has a kernel, as far as is known, and its values can be converted for their other readers and writers.
  bool can_be_used(const place_candidate& c) const {
    return known_.costs.cost_of(c).state != cost_state::refused &&
           known_.layouts.can_be_converted(
               forms_of(known_.task.network, known_.task.backends, known_.candidates.all(), c));
  }

  /// Ranks of a problem's candidates if the backend `first` comes first. The other backends follow in the order of the set, as in
  /// an engine with a priority list. If costs are measured and `first` takes regions, the others share a rank: the fastest of them
  /// runs each node that `first` cannot run. So the baseline shows the gain where `first` can run. Fallback kernels come last.
  std::vector<std::uint32_t> ranks(const search_result& of, std::uint32_t first) const {
    // A node that is no view in the plain layout may need conversions as a view. So the view is only for nodes without kernels.
    const auto last = 2 * static_cast<std::uint32_t>(known_.task.backends.size()) + 1;
    const std::vector<std::uint32_t> view_rank = ranks_of_views(of, first);
    std::vector<std::uint32_t> rank;
    for (std::size_t k = 0; k < of.who.size(); ++k) {
      const std::uint32_t i = of.who[k].number;
      if (of.who[k].is(shown_step::kind::view))
        rank.push_back(known_.views[of.problem.candidates[k].nodes.first()][0] == 0
                           ? view_rank[of.problem.candidates[k].nodes.first()]
                           : last);
      else if (of.who[k].is(shown_step::kind::control)) rank.push_back(0);
      else if (!known_.task.backends[first].takes_regions || !known_.task.has_costs())
        rank.push_back(rank_of(known_.candidates[i], first));
      else
        rank.push_back(known_.candidates[i].backend == first                        ? 0
                       : is_last_resort(known_.task.backends, known_.candidates[i]) ? 2
                                                                                    : 1);
    }
    return rank;
  }

  /// The conversions that a search result needs.
  std::vector<served_conversion> conversions_of(const search_result& from) const {
    std::vector<std::vector<std::uint32_t>> nodes;
    std::vector<const value_forms*> borders;
    if (known_.layouts.conversions())
      for (const std::uint32_t chosen : from.found.chosen) {
        const search::node_set& members = from.problem.candidates[chosen].nodes;
        nodes.emplace_back(members.begin(), members.end());
        borders.push_back(borders_of(from.who[chosen], members.first()));
      }
    return known_.layouts.conversions_between_groups(nodes, borders);
  }

 private:
  /// Leaves the candidates for which `stays` is true.
  template <class Stays>
  static void leave(search_result& of, const Stays& stays) {
    std::vector<search::candidate> kept;
    std::vector<shown_step> who;
    for (std::size_t k = 0; k < of.who.size(); ++k) {
      if (!stays(k)) continue;
      kept.push_back(of.problem.candidates[k]);
      who.push_back(of.who[k]);
    }
    of.problem.candidates = std::move(kept);
    of.who = std::move(who);
  }

  /// The forms that a candidate, view or control flow reads and writes; null if all of them are plain.
  const value_forms* borders_of(const shown_step& what, std::uint32_t node) const {
    if (what.is_candidate()) return &known_.layouts.borders_of(what.number);
    return what.is(shown_step::kind::view) ? known_.layouts.borders_of_view(node, what.number) : nullptr;
  }

  /// By node: the rank of a plain view. A view costs nothing, so it comes first. But without measuring, a region may need the node.
  /// Then the view comes after the region, unless another kernel takes the node before that.
  std::vector<std::uint32_t> ranks_of_views(const search_result& of, std::uint32_t first) const {
    std::vector<std::uint32_t> rank(of.problem.nodes, 0);
    if (known_.task.has_costs()) return rank;
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> region(of.problem.nodes, none), other(of.problem.nodes, none);
    for (std::size_t k = 0; k < of.who.size(); ++k) {
      if (!of.who[k].is_candidate()) continue;
      const std::vector<std::uint32_t>& nodes = known_.candidates.nodes_of(of.who[k].number);
      const bool is_region = known_.candidates.is_region(of.who[k].number) && nodes.size() > 1;
      for (const std::uint32_t n : nodes) {
        std::uint32_t& least = (is_region ? region : other)[n];
        least = std::min(least, rank_of(known_.candidates[of.who[k].number], first));
      }
    }
    for (std::size_t n = 0; n < rank.size(); ++n)
      if (region[n] < other[n]) rank[n] = region[n];
    return rank;
  }

  /// The price of a conversion that no backend makes. No kernel needs such a conversion.
  static constexpr double impossible_ms = 1e4;

  /// Adds the values that some candidate reads or writes in another form than plain, with the prices of their conversions.
  void add_values(search::problem& p, outlook costs) const {
    if (known_.layouts.numbers().empty()) return;
    const conversion_book& conversions = *known_.layouts.conversions();
    for (const auto& [v, number] : known_.layouts.numbers()) {
      search::value at = to_search_value(v);
      const std::vector<form>& forms = known_.layouts.forms_of_value(v);
      at.forms = static_cast<std::uint32_t>(forms.size());
      for (const form& from : forms)
        for (const form& to : forms) {
          double ms = 0;
          const std::vector<std::uint32_t> path = conversions.path(v, from, to, costs);
          for (const std::uint32_t one : path) ms += conversions.price_of(one, costs);
          at.convert_ms.push_back(from == to ? 0 : path.empty() ? impossible_ms : ms);
        }
      p.values.push_back(std::move(at));
    }
  }
  /// Adds the costs of switches, and the values that `add_values` did not add.
  void add_switches(search::problem& p, std::span<const std::uint32_t> runtimes) const {
    if (p.runtimes == 1) return;
    p.switch_ms.assign(std::size_t{p.runtimes} * p.runtimes, 0.0);
    for (std::uint32_t from = 0; from < runtimes.size(); ++from)
      for (std::uint32_t to = 0; to < runtimes.size(); ++to)
        if (runtimes[from] != runtimes[to])
          p.switch_ms[runtimes[from] * p.runtimes + runtimes[to]] = known_.neighbours.of(from, to);
    const graph& network = known_.task.network;
    const graph_view view = network.view();
    for (std::uint32_t v = 0; v < network.values().size(); ++v) {
      if (network.at(v).producer < 0) continue;
      const auto producer = static_cast<std::uint32_t>(network.at(v).producer);
      if (known_.task.is_alias[producer] || is_control(view, producer)) continue;
      // A reader of a view of the value reads what the kernel wrote.
      std::vector<std::uint32_t> behind;
      add_readers_behind_views(v, behind);
      for (const std::uint32_t reader : behind) p.edges.emplace_back(producer, reader);
      if (const auto number = known_.layouts.numbers().find(v); number != known_.layouts.numbers().end()) {
        std::vector<std::uint32_t>& readers = p.values[number->second].readers;
        readers.insert(readers.end(), behind.begin(), behind.end());
        sort_once(readers);
        continue;
      }
      search::value at = to_search_value(v);
      at.readers.insert(at.readers.end(), behind.begin(), behind.end());
      std::erase_if(at.readers, [&](std::uint32_t n) { return known_.task.is_alias[n] || is_control(view, n); });
      sort_once(at.readers);
      p.values.push_back(std::move(at));
    }
  }
  /// Collects the nodes that read a value through reshapes, as far as the results of these are always plain.
  void add_readers_behind_views(std::uint32_t v, std::vector<std::uint32_t>& readers) const {
    const graph_view view = known_.task.network.view();
    for (const use& one : view.uses_of(v)) {
      if (!known_.task.is_alias[one.node] || view.inputs_of(one.node)[0] != v) continue;
      const std::uint32_t seen = view.output_of(one.node);
      if (known_.layouts.numbers().count(seen) != 0) continue;
      for (const use& reader : view.uses_of(seen))
        if (!known_.task.is_alias[reader.node] && !is_control(view, reader.node)) readers.push_back(reader.node);
      add_readers_behind_views(seen, readers);
    }
  }
  /// Adds the memory of weights to a problem, as a resource.
  void bound_weights(search_result& of) const {
    const std::uint32_t resource = add_resource(of.problem, "KiB of weights", known_.weights.kib());
    for (std::size_t k = 0; k < of.who.size(); ++k) {
      if (!of.who[k].is_candidate()) continue;
      for (const kept_weight& kept : known_.weights.of(of.who[k].number))
        of.problem.candidates[k].uses.push_back(
            {resource, kept.kib, known_.weights.is_shared(kept) ? kept.item : search::use::own});
    }
  }
  /// Adds the error of rounded values to a problem, as a resource.
  void bound_errors(search_result& of) const {
    const std::uint32_t resource = add_resource(of.problem, "error", error_limit::bound());
    for (std::size_t k = 0; k < of.who.size(); ++k) {
      if (!of.who[k].is_candidate()) continue;
      for (const error_use& r : known_.errors.of(of.who[k].number))
        of.problem.candidates[k].uses.push_back({resource, r.amount, r.item});
    }
    for (const auto& [v, number] : known_.layouts.numbers()) {
      const std::vector<form>& forms = known_.layouts.forms_of_value(v);
      std::vector<std::int64_t>& amounts = of.problem.values[number].convert_amounts;
      amounts.resize(resource * forms.size() * forms.size());
      for (const form& from : forms)
        for (const form& to : forms) amounts.push_back(known_.errors.of_conversion(v, from, to));
    }
  }
  static std::uint32_t add_resource(search::problem& p, const char* name, std::int64_t bound) {
    p.resources.push_back({.name = name, .bound = bound});
    return static_cast<std::uint32_t>(p.resources.size() - 1);
  }
  static void sort_once(std::vector<std::uint32_t>& list) {
    std::ranges::sort(list);
    const auto twins = std::ranges::unique(list);
    list.erase(twins.begin(), twins.end());
  }
  search::value to_search_value(std::uint32_t v) const {
    const graph& network = known_.task.network;
    search::value at;
    if (network.at(v).producer >= 0) at.producer = static_cast<std::uint32_t>(network.at(v).producer);
    for (const use& reader : network.view().uses_of(v)) at.readers.push_back(reader.node);
    sort_once(at.readers);
    at.is_output = network.at(v).is_output;
    return at;
  }

  /// The rank of a candidate: `first` comes first, then the other backends in the order of the set, then fallback kernels.
  std::uint32_t rank_of(const place_candidate& c, std::uint32_t first) const {
    const std::size_t count = known_.task.backends.size();
    const std::size_t turn = (c.backend + count - first) % count;
    const bool last = is_last_resort(known_.task.backends, c);
    return static_cast<std::uint32_t>(turn + (last ? count : 0));
  }

  const placing_state& known_;
  std::vector<bool> hidden_;    // by candidate
  std::vector<bool> left_out_;  // the same
  std::chrono::nanoseconds bounded_time_ = search::limits().bounded_time;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
