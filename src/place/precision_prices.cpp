// Prices of precision: each group of a plan with larger elements, while all other groups stay as they are.
#include <algorithm>
#include <cmath>
#include <collage/place/precision_prices.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <collage/search/exact.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "cost_measurer.hpp"
#include "place_task.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "progress.hpp"
#include "region_candidates.hpp"
#include "search_view.hpp"
#include "stack_check.hpp"

namespace collage::inline v0 {

double next_precision::error_per_ms() const {
  if (!less || *less <= 0) return 0;
  return more_ms > 0 ? *less / more_ms : std::numeric_limits<double>::infinity();
}

namespace {

class pricing {
 public:
  pricing(const graph& network, backend_table backends, const plan& made, const place_options& options)
      : how_(without_measuring(options, made)),
        made_(made),
        known_(detail::place_task(network, backends, how_)),
        regions_(known_),
        view_(known_) {}

  precision_prices run() {
    read_costs();
    precision_prices all;
    all.nmse = nmse_of(made_.chosen);
    std::set<rounded_value> by_kernels;
    std::size_t at = 0;
    const auto who = known_.candidates.in(made_.chosen);
    for (std::size_t g = 0; g < made_.chosen.groups.size(); ++g) {
      if (made_.chosen.groups[g].is_view()) continue;
      const std::optional<std::uint32_t> candidate = who[at++];
      if (!candidate || !known_.errors.rounds(*candidate)) continue;
      const std::vector<rounded_value> its = known_.errors.values_of(*candidate);
      by_kernels.insert(its.begin(), its.end());
      all.groups.push_back(price_of(g, *candidate));
    }
    if (all.nmse)
      if (const std::optional<double> kernels = sum_of({by_kernels.begin(), by_kernels.end()}))
        all.conversions = std::max(0.0, *all.nmse - *kernels);
    std::ranges::stable_sort(all.groups, std::greater(),
                             [](const precision_price& p) { return p.next ? p.next->error_per_ms() : -1.0; });
    return all;
  }

  /// Ranks groups by what each one alone gives back, and then takes them together one after another.
  std::vector<greedy_step> greedy() {
    read_costs();
    const std::optional<double> all = cost_ms_ ? nmse_of(made_.chosen) : std::nullopt;
    if (!all) return {};
    std::vector<std::pair<double, greedy_step>> ranked;
    const auto who = known_.candidates.in(made_.chosen);
    std::size_t at = 0;
    for (std::size_t g = 0; g < made_.chosen.groups.size(); ++g) {
      if (made_.chosen.groups[g].is_view()) continue;
      const std::optional<std::uint32_t> candidate = who[at++];
      if (!candidate || !known_.errors.rounds(*candidate)) continue;
      std::vector<bool> exact(known_.task.network.nodes().size());
      for (const std::uint32_t n : made_.chosen.groups[g].nodes) exact[n] = true;
      const std::optional<detail::search_result> alone = search_with(exact, true);
      const std::optional<double> left = alone ? nmse_of(*alone) : std::nullopt;
      if (left) ranked.push_back({*all - *left, {.group = g}});
    }
    std::ranges::stable_sort(ranked, std::greater(), [](const auto& one) { return one.first; });
    std::vector<greedy_step> steps;
    std::vector<bool> exact(known_.task.network.nodes().size());
    for (auto& [back, step] : ranked) {
      for (const std::uint32_t n : made_.chosen.groups[step.group].nodes) exact[n] = true;
      const std::optional<detail::search_result> found = search_with(exact, false);
      const std::optional<double> left = found ? nmse_of(*found) : std::nullopt;
      if (!left) break;
      step.cost_ms = found->found.cost_ms;
      step.nmse = *left;
      steps.push_back(step);
    }
    return steps;
  }

 private:
  void read_costs() {
    recall();
    search_result_of_plan();
  }

  /// The fastest placement in which the nodes marked in `exact` round nothing. The others keep the kernels of the plan, or may have any.
  std::optional<detail::search_result> search_with(const std::vector<bool>& exact, bool keeps_others) const {
    return search_among([&](std::size_t k) {
      const search::node_set& its = all_.problem.candidates[k].nodes;
      const auto is_exact = [&](std::uint32_t n) { return bool{exact[n]}; };
      if (!std::ranges::any_of(its, is_exact)) return !keeps_others || is_of_plan_[k];
      if (keeps_others && !std::ranges::all_of(its, is_exact)) return false;
      return !all_.who[k].is_candidate() || !known_.errors.rounds(all_.who[k].number);
    });
  }

  /// Whatever the bound, prices are of a plan that was made. Without errors, groups have prices in time alone.
  static place_options without_measuring(const place_options& options, const plan& made) {
    place_options how = options;
    if (how.precision.scales == nullptr) how.precision.scales = made.chosen.scales;
    how.precision.most_error = 1;
    if (how.precision.errors == nullptr) how.precision.errors = std::make_shared<rounding_errors>();
    how.improved = {};
    how.previous = nullptr;
    return how;
  }

  /// Reads the costs of all kernels and conversions that the store has.
  void recall() {
    const detail::progress quiet{how_};
    detail::cost_measurer store(known_, quiet);
    regions_.add_those_of(made_.chosen);
    const place_candidates& all = known_.candidates.all();
    for (std::uint32_t s = 0; s < all.structures.size(); ++s)
      (void)store.is_known_to_have_kernel(known_.costs.rivals_of(s).front());
    if (const auto& conversions = known_.layouts.conversions())
      for (std::uint32_t i = 0; i < conversions->candidates().list.size(); ++i) (void)store.is_known_to_convert(i);
  }

  /// States the problem of all known kernels, says which of its candidates are the plan's, and what these cost together.
  void search_result_of_plan() {
    all_ = view_.problem({.not_measured = false, .costs = detail::outlook::as_known});
    std::map<std::uint32_t, detail::shown_step> steps;  // by first node
    std::size_t at = 0;
    const auto who = known_.candidates.in(made_.chosen);
    for (const plan_group& g : made_.chosen.groups) {
      const std::uint32_t first = std::ranges::min(g.nodes);
      if (const auto* const view = std::get_if<view_step>(&g.step)) {
        steps[first] = {detail::shown_step::kind::view, known_.task.number_of_form(view->form)};
        continue;
      }
      const std::optional<std::uint32_t> candidate = who[at++];
      if (g.is_control()) steps[first] = {detail::shown_step::kind::control, 0};
      else if (candidate) steps[first] = detail::shown_step::of(*candidate);
    }
    for (std::size_t k = 0; k < all_.who.size(); ++k) {
      const auto step = steps.find(all_.problem.candidates[k].nodes.first());
      is_of_plan_.push_back(step != steps.end() && step->second == all_.who[k]);
    }
    cost_ms_ = cost_of([this](std::size_t k) { return bool{is_of_plan_[k]}; });
  }

  /// The cheapest placement of the candidates for which `stays` is true; nothing if they do not cover the network.
  template <class Stays>
  std::optional<detail::search_result> search_among(const Stays& stays) const {
    detail::search_result part;
    part.problem = all_.problem;
    part.problem.candidates.clear();
    for (std::size_t k = 0; k < all_.who.size(); ++k) {
      if (!stays(k)) continue;
      part.problem.candidates.push_back(all_.problem.candidates[k]);
      part.who.push_back(all_.who[k]);
    }
    if (!search::uncovered(part.problem).empty()) return {};
    part.found = search::exact(part.problem, view_.limits());
    return part;
  }
  template <class Stays>
  std::optional<double> cost_of(const Stays& stays) const {
    const std::optional<detail::search_result> found = search_among(stays);
    return found ? std::optional(found->found.cost_ms) : std::nullopt;
  }

  precision_price price_of(std::size_t group, std::uint32_t candidate) const {
    const plan_group& g = made_.chosen.groups[group];
    precision_price p;
    p.group = group;
    p.element = *element_of(candidate);
    const bool is_known = known_.costs.find(known_.candidates[candidate]) != nullptr;
    p.cost_ms = is_known ? known_.costs.cost_of(known_.candidates[candidate]).ms : g.alone_ms;
    for (const std::uint32_t other : known_.candidates.covering(known_.candidates.nodes_of(candidate))) {
      const measured_cost* const cost = known_.costs.find(known_.candidates[other]);
      if (cost == nullptr || !cost->refusal.empty() || known_.errors.rounds(other)) continue;
      const double ms = known_.costs.cost_of(known_.candidates[other]).ms;
      if (!p.exact_ms || ms < *p.exact_ms) p.exact_ms = ms;
    }
    p.nmse = sum_of(known_.errors.values_of(candidate));
    if (cost_ms_) p.next = next_of(g, p.element);
    return p;
  }

  /// The plan with larger elements in one group. Any kernels may run its nodes.
  std::optional<next_precision> next_of(const plan_group& g, dtype element) const {
    std::vector<std::uint32_t> nodes = g.nodes;
    std::ranges::sort(nodes);
    const auto is_in_group = [&](std::uint32_t n) { return std::ranges::binary_search(nodes, n); };
    const auto found = search_among([&](std::size_t k) {
      const search::node_set& its = all_.problem.candidates[k].nodes;
      if (!std::ranges::any_of(its, is_in_group)) return bool{is_of_plan_[k]};
      return std::ranges::all_of(its, is_in_group) &&
             (!all_.who[k].is_candidate() || is_larger(all_.who[k].number, element));
    });
    if (!found) return {};
    next_precision next;
    next.more_ms = found->found.cost_ms - *cost_ms_;
    next.is_least = std::ranges::any_of(view_.conversions_of(*found), [this](const auto& needed) {
      return needed.second && !known_.layouts.conversions()->is_measured(*needed.second);
    });
    for (const std::uint32_t chosen : found->found.chosen) {
      if (!found->who[chosen].is_candidate() || !is_in_group(found->problem.candidates[chosen].nodes.first())) continue;
      if (const auto its = element_of(found->who[chosen].number); its && size_of(*its) < size_of(next.element))
        next.element = *its;
    }
    const std::optional<double> before = nmse_of(made_.chosen);
    const std::optional<double> after = nmse_of(*found);
    if (before && after) next.less = *before - *after;
    return next;
  }

  /// The smallest type in which a candidate computes; nothing if it rounds nothing.
  std::optional<dtype> element_of(std::uint32_t candidate) const { return known_.errors.rounding_of(candidate); }
  bool is_larger(std::uint32_t candidate, dtype than) const {
    const std::optional<dtype> its = element_of(candidate);
    return !its || size_of(*its) > size_of(than);
  }

  std::optional<double> sum_of(const std::vector<rounded_value>& values) const {
    double sum = 0;
    for (const rounded_value& v : values) sum += how_.precision.errors->of(v.value, v.element);
    return std::isfinite(sum) ? std::optional(sum) : std::nullopt;
  }
  std::optional<double> nmse_of(const placement& p) const {
    return sum_of(rounded_in(known_.task.network, known_.task.backends, p));
  }
  std::optional<double> nmse_of(const detail::search_result& found) const {
    return nmse_of(detail::placement_writer(known_).write("plan", found));
  }

  place_options how_;
  const plan& made_;
  detail::placing_state known_;
  detail::region_candidates regions_;
  detail::search_view view_;
  detail::search_result all_;      // the problem of all kernels whose costs are known
  std::vector<bool> is_of_plan_;   // by candidate of the problem
  std::optional<double> cost_ms_;  // of the plan, if all its costs are known
};

}  // namespace

precision_prices prices_of_precision(const graph& network, backend_table backends, const plan& made,
                                     const place_options& options) {
  detail::check_stack();
  check_contents(network);
  if (options.precision.elements == precisions::f32) return {};
  return pricing(network, backends, made, options).run();
}

std::vector<greedy_step> greedy_steps(const graph& network, backend_table backends, const plan& made,
                                      const place_options& options) {
  detail::check_stack();
  check_contents(network);
  if (options.precision.elements == precisions::f32) return {};
  return pricing(network, backends, made, options).greedy();
}

}  // namespace collage::inline v0
