// The figures of a report.
#include "facts.hpp"

#include <collage/graph/totals.hpp>
#include <collage/run/node_group.hpp>
#include <place/plan_text.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <variant>

namespace collage::inline v0::report {
namespace {

/// The operators of a group, at most six of them named.
std::string operators_of(const graph& network, std::span<const std::uint32_t> nodes) {
  constexpr std::size_t named = 6;
  std::string text;
  for (const std::uint32_t n : nodes.first(std::min(nodes.size(), named)))
    text += (text.empty() ? "" : " + ") + std::string(network.node(n).kind->name);
  return nodes.size() <= named ? text : text + " + \u2026 (" + std::to_string(nodes.size()) + " operators)";
}

/// Names as "conv_0 + relu_1" if each begins with its operator; otherwise the operators.
std::string drawn_label(const graph& network, std::span<const std::uint32_t> nodes) {
  std::string names;
  for (const std::uint32_t n : nodes) {
    if (nodes.size() > 4 || network.node_name(n).rfind(network.node(n).kind->name, 0) != 0)
      return operators_of(network, nodes);
    names += (names.empty() ? "" : " + ") + network.node_name(n);
  }
  return names;
}

double bytes_of(const graph& network, const plan_group& g) {
  const node_group group = group_of(network, g.nodes);
  double bytes = 0;
  for (const auto* list : {&group.arguments, &group.outputs})
    for (const std::uint32_t v : *list)
      if (network.type_of(v).dims.is_concrete()) bytes += static_cast<double>(network.type_of(v).bytes());
  return bytes;
}

/// Longer times are shown as the longest, 30 000 years, and shorter ones as the shortest, a femtosecond: sums and rates are then
/// finite. Zero and less stand for times that are not known.
constexpr double shortest_time_ms = 1e-12, longest_time_ms = 1e15;
double bounded_time(double ms) { return ms <= 0 ? ms : std::clamp(ms, shortest_time_ms, longest_time_ms); }

/// Ratios have bounds of their own: a time of a million times another one is absurd already, and its text is short.
constexpr double least_ratio = 1e-6, greatest_ratio = 1e6;
double bounded_ratio(double ratio) { return ratio <= 0 ? ratio : std::clamp(ratio, least_ratio, greatest_ratio); }

/// Calls a function with each time of a placement.
template <class Placement, class Function>
void for_times(Placement& in, const Function& f) {
  f(in.cost_ms);
  for (auto& x : in.conversions) f(x.cost_ms);
  for (auto& g : in.groups) {
    for (auto* ms : {&g.cost_ms, &g.low_ms, &g.high_ms, &g.alone_ms, &g.switch_ms, &g.regret_ms}) f(*ms);
    for (auto& a : g.runners_up) f(a.cost_ms);
    if (auto* const c = std::get_if<control_step>(&g.step))
      for (auto& body : c->bodies) for_times(body, f);
  }
}
/// Calls one function with each time of a plan, and another one with each ratio of times.
template <class Plan, class Function, class OfRatio>
void for_all_times(Plan& in, const Function& f, const OfRatio& of_ratio) {
  f(in.lower_bound_ms);
  f(in.first_cost_ms);
  for (auto& r : in.runs) {
    for (auto* ms : {&r.median_ms, &r.low_ms, &r.high_ms}) f(*ms);
    for (auto* ratio : {&r.ratio, &r.ratio_low, &r.ratio_high}) of_ratio(*ratio);
  }
  for_times(in.chosen, f);
  for (auto& single : in.singles) for_times(single, f);
}

/// The plan; a copy with other times and ratios if some are out of bounds.
const plan* bounded_plan(const plan* given, plan& copy) {
  if (given == nullptr) return nullptr;
  bool is_bounded = true;
  for_all_times(
      *given, [&](double ms) { is_bounded = is_bounded && ms == bounded_time(ms); },
      [&](double ratio) { is_bounded = is_bounded && ratio == bounded_ratio(ratio); });
  if (is_bounded) return given;
  copy = *given;
  for_all_times(copy, [](double& ms) { ms = bounded_time(ms); }, [](double& ratio) { ratio = bounded_ratio(ratio); });
  return &copy;
}

}  // namespace

bounded_source::bounded_source(const source& given) : from_(given) {
  from_.made = bounded_plan(given.made, made_);
  from_.against.made = bounded_plan(given.against.made, other_);
  for (missing_operator& m : from_.missing.operators) m.cost_ms = bounded_time(m.cost_ms);
  for (missing_fusion& m : from_.missing.fusions) m.cost_ms = bounded_time(m.cost_ms);
}

facts::facts(const source& given) : bounded(given), from(bounded.get()), network(*from.network), made(*from.made) {
  for (const plan* p : {from.made, from.against.made}) {
    if (p == nullptr) continue;
    for (const plan_backend& b : p->backends)
      if (std::ranges::find(runners, b.name) == runners.end()) runners.push_back(b.name);
  }
  add_groups(network, made.chosen, "", "network");
  add_rows();
  add_shares();
  add_refusals();
  blocks = repeated_blocks(network, made.chosen, scenes[0].items);
  if (from.against.made != nullptr) add_difference(*from.against.made);
  add_regions();
}

std::size_t facts::runner_of(const std::string& name) const {
  return static_cast<std::size_t>(std::ranges::find(runners, name) - runners.begin());
}

void facts::add_scene(const graph& in, const placement& placed, const std::string& name, const program* code) {
  scenes.push_back({&in, &placed, name, static_cast<std::uint32_t>(groups.size()),
                    static_cast<std::uint32_t>(conversions.size()), items_of(in, placed, code)});
}

group_facts facts::facts_of(const graph& in, const plan_group& g) {
  group_facts made_of;
  made_of.network = &in;
  made_of.group = &g;
  made_of.label = detail::label_of(in, g.nodes);
  made_of.drawn = drawn_label(in, g.nodes);
  if (runner_of(g.backend()) == runners.size()) runners.push_back(g.backend());
  made_of.runner = runner_of(g.backend());
  for (const std::uint32_t n : g.nodes) made_of.flops += work_of(in, n).flops;
  made_of.bytes = bytes_of(in, g);
  return made_of;
}

void facts::add_groups(const graph& in, const placement& placed, const std::string& prefix, const std::string& name) {
  const std::size_t first = groups.size();
  add_scene(in, placed, name, prefix.empty() ? from.code : nullptr);
  for (const plan_conversion& x : placed.conversions) conversions.emplace_back(&in, &x);
  std::size_t number = 0;
  for (const plan_group& g : placed.groups) {
    group_facts made_of = facts_of(in, g);
    if (!g.is_view()) made_of.number = prefix + std::to_string(++number);
    made_of.is_inner = !prefix.empty();
    groups.push_back(std::move(made_of));
  }
  for (std::size_t i = 0; i < placed.groups.size(); ++i) {
    const plan_group& g = placed.groups[i];
    for (std::size_t b = 0; b < g.bodies().size(); ++b)
      add_groups(*in.bodies_of(g.nodes[0])[b], g.bodies()[b],
                 groups[first + i].number + "." + std::to_string(b + 1) + ".",
                 "group " + groups[first + i].number + ", part " + std::to_string(b + 1));
  }
}

/// Opens regions: a plan may be a single one, and a drawing of one box says nothing.
void facts::add_regions() {
  for (std::size_t i = 0, all = groups.size(); i < all; ++i) {
    std::optional<region_parts> parts = parts_of(*groups[i].network, *groups[i].group);
    if (!parts) continue;
    const region_parts& kept = regions.emplace_back(std::move(*parts));
    add_scene(kept.network, kept.placed, "group " + groups[i].number + ", its nodes", nullptr);
    for (const plan_group& part : kept.placed.groups) {
      group_facts made_of = facts_of(kept.network, part);
      made_of.is_inner = made_of.is_part = true;
      groups.push_back(std::move(made_of));
    }
  }
}

void facts::add_rows() {
  std::map<const plan_group*, std::uint32_t> index;
  for (std::uint32_t i = 0; i < groups.size(); ++i) index.emplace(groups[i].group, i);
  const std::function<void(const placement&)> add = [&](const placement& placed) {
    for (const plan_group& g : placed.groups) {
      rows.push_back(index.at(&g));
      for (const placement& body : g.bodies()) add(body);
    }
  };
  add(made.chosen);
}

void facts::add_shares() {
  shares.resize(runners.size());
  for (std::size_t r = 0; r < runners.size(); ++r) shares[r].runner = r;
  for (const group_facts& f : groups) {
    if (f.is_inner) continue;
    flops += f.flops;
    if (f.group->is_view()) {
      ++views;
      continue;
    }
    share& of = shares[f.runner];
    ++of.groups;
    of.nodes += f.group->nodes.size();
    of.cost_ms += f.group->cost_ms;
    longest_ms = std::max(longest_ms, f.group->cost_ms);
    alone_ms += f.group->alone_ms;
    switch_ms += f.group->switch_ms;
  }
  for (const plan_conversion& x : made.chosen.conversions) {
    conversions_ms += x.cost_ms;
    longest_ms = std::max(longest_ms, x.cost_ms);
    if (const std::size_t r = runner_of(x.step.backend); r < shares.size()) shares[r].cost_ms += x.cost_ms;
  }
  std::erase_if(shares, [](const share& s) { return s.groups == 0 && s.cost_ms == 0; });
  std::ranges::stable_sort(shares, std::ranges::greater{}, &share::cost_ms);
}

void facts::add_refusals() {
  refusals = joined(from.refusals);
  std::map<std::pair<const graph*, std::string>, std::vector<std::uint32_t>> by_place;
  std::uint32_t number = 0;
  for (const graph_refusals& in : from.refusals)
    for (const place_refusal& r : in.list) by_place[{in.network, r.where}].push_back(number++);
  for (group_facts& f : groups)
    for (const std::uint32_t n : f.group->nodes)
      if (const auto at = by_place.find({f.network, f.network->node_name(n)}); at != by_place.end())
        f.refusals.insert(f.refusals.end(), at->second.begin(), at->second.end());
}

void facts::add_difference(const plan& second) {
  other = compare(made, second, {from.name, from.against.name});
  std::map<const plan_group*, std::uint32_t> index;
  for (std::uint32_t i = 0; i < groups.size(); ++i) index.emplace(groups[i].group, i);
  for (std::vector<compared_region>* list : {&other.other_kernels, &other.other_costs})
    for (compared_region& r : *list)
      for (std::uint32_t& g : r.first) g = index.at(other.first[g]);
  other.first.clear();
  for (const group_facts& f : groups) other.first.push_back(f.group);
}

const plan_run* facts::run_of(const std::string& name) const {
  const auto at = std::ranges::find(made.runs, name, &plan_run::name);
  return at == made.runs.end() ? nullptr : &*at;
}

const plan_run* facts::best_single() const {
  const plan_run* best = nullptr;
  for (const placement& single : made.singles)
    if (const plan_run* run = run_of(single.name); run != nullptr && (best == nullptr || run->ratio < best->ratio))
      best = run;
  return best;
}

}  // namespace collage::inline v0::report
