// Conversions between forms: which backends can make them, and what they cost.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "cost_book.hpp"
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// The conversions that the values of a network may need. They are candidates of a second network, with one node for each type.
class conversion_book {
 public:
  /// `met` are the forms in which each value may lie. Only layouts that backends share are considered (`shared_layouts`), and for
  /// tensors without channels only the plain layout. `may_split`: place_task::may_split.
  conversion_book(const graph& network, backend_table backends, const std::vector<bool>& use,
                  const std::map<std::uint32_t, std::vector<form>>& met, int threads, bool may_split)
      : backends_(backends), threads_(threads), may_split_(may_split) {
    graph_builder g;
    std::map<std::string, std::size_t> node_of_type;
    std::vector<std::vector<form>> met_at;  // by node
    for (const auto& [v, layouts] : met) {
      const tensor_type& type = network.type_of(v);
      const auto [known, is_new] = node_of_type.try_emplace(to_string(type), node_of_type.size());
      node_of_.emplace(v, known->second);
      met_at.resize(node_of_type.size());
      met_at[known->second].insert(met_at[known->second].end(), layouts.begin(), layouts.end());
      if (!is_new) continue;
      const std::string number = std::to_string(known->second);
      g.output("to " + number, g(ops::convert_layout, g.input("from " + number, type)));
    }
    graph_.emplace(g.finish());
    candidates_ = find_candidates(*graph_, backends, use);
    // Candidates with equal forms at both ends convert nothing, and forms that no kernel has are not needed.
    std::erase_if(candidates_.list, [&](const place_candidate& c) {
      const auto [from, to] = ends_of(c);
      const std::vector<form>& wanted = met_at[node_of(c)];
      const auto is_wanted = [&](const form& l) {
        return std::ranges::any_of(shared_layouts, [&](const layout& known) { return l.order == known; }) &&
               (l == plain || std::ranges::find(wanted, l) != wanted.end());
      };
      const bool has_channels = from.order != plain || to.order != plain;
      return from == to || !is_wanted(from) || !is_wanted(to) ||
             (has_channels && graph_->type_of(graph_->view().output_of(node_of(c))).dims.rank < 2);
    });
    for (std::uint32_t i = 0; i < candidates_.list.size(); ++i) {
      ends_.push_back(ends_of(candidates_.list[i]));
      ways_[node_of(candidates_.list[i])].push_back(i);
    }
    book_.emplace(*graph_, backends, candidates_);
  }

  const graph& network() const { return *graph_; }
  const place_candidates& candidates() const { return candidates_; }
  cost_book& book() { return *book_; }
  const cost_book& book() const { return *book_; }
  std::uint32_t structure_of(std::uint32_t candidate) const {
    return candidates_.groups[candidates_.list[candidate].group].structure;
  }

  /// The cheapest candidate for a conversion of a value; nothing if there is none.
  std::optional<std::uint32_t> best(std::uint32_t value, const form& from, const form& to) const {
    std::optional<std::uint32_t> found;
    const auto ways = ways_.find(node_of_.at(value));
    if (ways == ways_.end()) return found;
    for (const std::uint32_t i : ways->second) {
      const place_candidate& c = candidates_.list[i];
      if (ends_[i] != std::pair(from, to) || book_->cost_of(c).state == cost_state::refused) continue;
      if (!found || price_of(i) < price_of(*found)) found = i;
    }
    return found;
  }
  /// The conversions from one form of a value to another, in order. This is the cheapest single conversion, or else the cheapest
  /// chain. Empty if there is neither.
  std::vector<std::uint32_t> path(std::uint32_t value, const form& from, const form& to,
                                  outlook how = outlook::doubtful) const {
    if (const auto single = best(value, from, to)) return {*single};
    const auto ways = ways_.find(node_of_.at(value));
    if (ways == ways_.end()) return {};
    struct stop {
      form at;
      double ms = 0;
      std::vector<std::uint32_t> path;
    };
    // The Bellman-Ford algorithm. There are few forms, and prices are positive.
    std::vector<stop> known{{from, 0, {}}};
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t i : ways->second) {
        if (book_->cost_of(candidates_.list[i]).state == cost_state::refused) continue;
        const auto before = std::ranges::find(known, ends_[i].first, &stop::at);
        if (before == known.end()) continue;
        // Between two values of one type, no other type may lie: it would round them, and nothing counts that.
        if (from.element == to.element && ends_[i].second.element != to.element) continue;
        stop next{ends_[i].second, before->ms + price_of(i, how), before->path};
        next.path.push_back(i);
        const auto after = std::ranges::find(known, next.at, &stop::at);
        if (after != known.end() && after->ms <= next.ms) continue;
        changed = true;
        if (after == known.end()) known.push_back(std::move(next));
        else *after = std::move(next);
      }
    }
    const auto found = std::ranges::find(known, to, &stop::at);
    return found == known.end() ? std::vector<std::uint32_t>() : found->path;
  }
  const std::pair<form, form>& ends_of(std::uint32_t candidate) const { return ends_[candidate]; }

  /// The price of a conversion for the search. In split caches conversions take about four times as long (docs/measuring.md). If
  /// caches may be split at times, half of all rounds are presumed to be so until the conversion ran in such rounds. Optimistic
  /// prices leave the presumption out. Otherwise kernels that need an expensive conversion would never run within the network,
  /// which shows what they gain.
  double price_of(std::uint32_t candidate, outlook how = outlook::doubtful) const {
    if (how == outlook::hopeful || how == outlook::hopeful_split) return cost_of(candidate);
    const place_candidate& c = candidates_.list[candidate];
    // The expected cost of a conversion that never ran within the network comes from conversions of its backend that did.
    const bool is_known =
        book_->cost_of(c).state == cost_state::within ? book_->is_known_split(c) : book_->knows_split(c.backend);
    return cost_of(candidate) * (may_split_ && !is_known ? thresholds.price.presumed_conversion : 1);
  }
  /// The difference between the prices and the known costs of a placement's conversions.
  double presumed_ms(const placement& p) const {
    double sum = 0;
    for (const plan_conversion& one : p.conversions)
      if (const std::optional<std::uint32_t> c = find(one)) sum += price_of(*c) - cost_of(*c);
    return sum;
  }
  /// The cost of a conversion in milliseconds. Before it is measured: a lower bound for reading and writing its bytes.
  double cost_of(std::uint32_t candidate) const {
    const place_candidate& c = candidates_.list[candidate];
    const known_cost known = book_->cost_of(c);
    if (known.state != cost_state::bounded) return known.ms;
    const double bytes_per_ms = 2e8 * threads_;  // of a near cache; no memory is that fast
    const auto& [from, to] = ends_[candidate];
    const tensor_type& type = graph_->type_of(graph_->view().output_of(node_of(c)));
    return static_cast<double>(bytes_in(type, from) + bytes_in(type, to)) / bytes_per_ms;
  }

  bool is_measured(std::uint32_t candidate) const { return book_->find(candidates_.list[candidate]) != nullptr; }

  /// The candidate for a conversion of a plan; nothing if there is none any more.
  std::optional<std::uint32_t> find(const plan_conversion& c) const {
    if (!node_of_.contains(c.value)) return {};
    const auto ways = ways_.find(node_of_.at(c.value));
    if (ways == ways_.end()) return {};
    for (const std::uint32_t i : ways->second) {
      const place_candidate& known = candidates_.list[i];
      const conversion_step its{to_text(ends_[i].first), to_text(ends_[i].second), backends_[known.backend].name,
                                known.configuration.text()};
      if (c.step == its) return i;
    }
    return {};
  }

 private:
  std::uint32_t node_of(const place_candidate& c) const { return candidates_.groups[c.group].nodes.front(); }
  /// The forms before and after the conversion.
  std::pair<form, form> ends_of(const place_candidate& c) const {
    const value_forms found = forms_of(*graph_, backends_, candidates_, c);
    const graph_view view = graph_->view();
    return {found.of(view.inputs_of(node_of(c))[0]), found.of(view.output_of(node_of(c)))};
  }

  backend_table backends_;
  int threads_;
  bool may_split_;  // place_task::may_split
  std::optional<graph> graph_;
  place_candidates candidates_;
  std::optional<cost_book> book_;
  std::map<std::uint32_t, std::size_t> node_of_;            // by value of the placed network
  std::map<std::size_t, std::vector<std::uint32_t>> ways_;  // by node: candidates
  std::vector<std::pair<form, form>> ends_;                 // by candidate
};

struct needed_conversion {
  std::uint32_t value = 0;
  form from, to;
};

/// The conversions that groups need to read each other's values. `borders[g]` has the forms of the values that group g reads
/// and writes. It is null if all of them are plain.
inline std::vector<needed_conversion> conversions_between(const graph& network,
                                                          std::span<const std::vector<std::uint32_t>> nodes,
                                                          std::span<const value_forms* const> borders) {
  std::vector<std::size_t> group_of(network.nodes().size());
  for (std::size_t g = 0; g < nodes.size(); ++g)
    for (const std::uint32_t n : nodes[g]) group_of[n] = g;
  const auto producer_group = [&](std::uint32_t v) {
    const std::int32_t producer = network.at(v).producer;
    return producer < 0 ? nodes.size() : group_of[static_cast<std::size_t>(producer)];
  };
  std::set<std::uint32_t> touched;
  for (const value_forms* b : borders)
    if (b != nullptr)
      for (const auto& [v, order] : b->list()) touched.insert(v);
  std::vector<needed_conversion> list;
  for (const std::uint32_t v : touched) {
    const std::size_t from_group = producer_group(v);
    const bool is_told = from_group < nodes.size() && borders[from_group] != nullptr;
    const form written = is_told ? borders[from_group]->of(v) : form();
    const std::size_t first = list.size();  // of this value
    const auto need = [&](const form& order) {
      if (order == written) return;
      for (std::size_t i = first; i < list.size(); ++i)
        if (list[i].to == order) return;
      list.push_back({v, written, order});
    };
    for (const use& reader : network.view().uses_of(v)) {
      const std::size_t g = group_of[reader.node];
      if (g != from_group) need(borders[g] != nullptr ? borders[g]->of(v) : form());
    }
    if (network.at(v).is_output) need(plain);
  }
  return list;
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
