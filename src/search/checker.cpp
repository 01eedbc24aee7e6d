#include <collage/search/checker.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::search {

namespace {

/// The cost of values at the borders of a legal plan's groups, in milliseconds. Adds the number of costs to `added`.
double cost_of_borders(const problem& p, std::span<const std::uint32_t> chosen, std::size_t& added) {
  std::map<std::uint32_t, std::uint32_t> group;  // by node: the candidate that covers it
  for (const std::uint32_t index : chosen)
    for (const std::uint32_t node : p.candidates[index].nodes) group[node] = index;
  const auto form_in = [&](std::uint32_t index, std::size_t value) -> std::uint32_t {
    for (const border& at : p.candidates[index].borders)
      if (at.value == value) return at.form;
    return 0;
  };
  double sum = 0;
  // Each conversion and each switch once: (value, from, to).
  std::set<std::array<std::size_t, 3>> conversions, switches;
  const auto read = [&](std::size_t value, std::optional<std::uint32_t> producer, std::optional<std::uint32_t> reader) {
    if (producer && reader && group.at(*producer) == group.at(*reader)) return;
    const std::size_t from = producer ? form_in(group.at(*producer), value) : 0;
    const std::size_t to = reader ? form_in(group.at(*reader), value) : 0;
    if (from != to && !p.values.empty() && !p.values[value].convert_ms.empty() &&
        conversions.insert({value, from, to}).second) {
      sum += p.values[value].convert_ms[from * p.values[value].forms + to];
      ++added;
    }
    if (!producer || !reader || p.switch_ms.empty()) return;
    const std::size_t here = p.candidates[group.at(*producer)].runtime, there = p.candidates[group.at(*reader)].runtime;
    if (here == there || !switches.insert({value, here, there}).second) return;
    sum += p.switch_ms[here * p.runtimes + there];
    ++added;
  };
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    const value& at = p.values[v];
    const auto producer = at.producer == node_set::none ? std::nullopt : std::optional(at.producer);
    for (const std::uint32_t reader : at.readers) read(v, producer, reader);
    if (at.is_output) read(v, producer, std::nullopt);
  }
  if (p.values.empty())
    for (const auto& [from, to] : p.edges) read(from, from, to);
  return sum;
}

/// The amount of one resource that a legal plan uses.
std::int64_t amount_of(const problem& p, std::span<const std::uint32_t> chosen, std::uint32_t resource) {
  std::int64_t sum = 0;
  std::map<std::uint32_t, std::int64_t> items;
  std::map<std::uint32_t, std::uint32_t> group;  // by node: the candidate that covers it
  for (const std::uint32_t index : chosen) {
    for (const std::uint32_t node : p.candidates[index].nodes) group[node] = index;
    for (const use& u : p.candidates[index].uses) {
      if (u.resource != resource) continue;
      if (u.item == use::own) sum += u.amount;
      else items[u.item] = u.amount;
    }
  }
  for (const auto& [item, amount] : items) sum += amount;
  const auto form_in = [&](std::uint32_t index, std::size_t value) {
    for (const border& at : p.candidates[index].borders)
      if (at.value == value) return at.form;
    return std::uint32_t{0};
  };
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    const value& at = p.values[v];
    if (at.convert_amounts.empty()) continue;
    const bool given = at.producer == node_set::none;
    const std::size_t from = given ? 0 : form_in(group.at(at.producer), v);
    std::set<std::size_t> wanted;
    if (at.is_output) wanted.insert(0);
    for (const std::uint32_t reader : at.readers)
      if (given || group.at(reader) != group.at(at.producer)) wanted.insert(form_in(group.at(reader), v));
    wanted.erase(from);
    for (const std::size_t to : wanted) sum += at.convert_amounts[(resource * at.forms + from) * at.forms + to];
  }
  return sum;
}

/// The first reason why the amounts of a legal plan are not as stated or not within the bounds.
std::optional<std::string> violation_of_bounds(const problem& p, const placement& plan) {
  if (plan.amounts.size() != p.resources.size()) return "the plan does not state what it uses of each resource";
  bool exceeds = false;
  for (std::uint32_t r = 0; r < p.resources.size(); ++r) {
    const std::int64_t amount = amount_of(p, plan.chosen, r);
    if (amount != plan.amounts[r])
      return "the amount of " + p.resources[r].name + " is given as " + std::to_string(plan.amounts[r]) +
             " but the plan uses " + std::to_string(amount);
    exceeds = exceeds || amount > p.resources[r].bound;
    if (amount > p.resources[r].bound && !plan.lacks)
      return "the plan uses " + std::to_string(amount) + " of " + p.resources[r].name + ", more than the bound of " +
             std::to_string(p.resources[r].bound);
  }
  if (plan.lacks && (!exceeds || plan.lacks->resource >= p.resources.size() ||
                     plan.lacks->least != plan.amounts[plan.lacks->resource]))
    return "the plan names a shortage that it does not have";
  for (std::size_t i = 0; i < p.excluded.size() && !plan.lacks; ++i) {
    const std::set<std::uint32_t> all(plan.chosen.begin(), plan.chosen.end());
    bool contains = true;
    for (const std::uint32_t index : p.excluded[i]) contains = contains && all.count(index) != 0;
    if (contains) return "the plan contains excluded set " + std::to_string(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> violation(const problem& p, std::span<const std::uint32_t> chosen) {
  const auto text = [](auto number) { return std::to_string(number); };
  for (const auto& [from, to] : p.edges) {
    if (from < to && to < p.nodes) continue;
    return "edge " + text(from) + " -> " + text(to) + " does not ascend within the " + text(p.nodes) + " nodes";
  }

  // A partition: group[node] is the position in `chosen`.
  const std::size_t uncovered = chosen.size();
  std::vector<std::size_t> group(p.nodes, uncovered);
  for (std::size_t g = 0; g < chosen.size(); ++g) {
    if (chosen[g] >= p.candidates.size()) return "there is no candidate " + text(chosen[g]);
    const node_set& members = p.candidates[chosen[g]].nodes;
    if (members.empty()) return "candidate " + text(chosen[g]) + " covers no node";
    for (const std::uint32_t node : members) {
      if (node >= p.nodes)
        return "candidate " + text(chosen[g]) + " covers node " + text(node) + ", which does not exist";
      if (group[node] != uncovered) {
        return "node " + text(node) + " is covered twice, by candidates " + text(chosen[group[node]]) + " and " +
               text(chosen[g]);
      }
      group[node] = g;
    }
  }
  for (std::size_t node = 0; node < p.nodes; ++node) {
    if (group[node] == uncovered) return "node " + text(node) + " is not covered";
  }

  // Convex: no path leaves a group and comes back into it.
  std::vector<std::vector<std::uint32_t>> producers(p.nodes);
  for (const auto& [from, to] : p.edges) producers[to].push_back(from);
  std::vector<bool> tainted(p.nodes);
  for (std::size_t g = 0; g < chosen.size(); ++g) {
    const node_set& members = p.candidates[chosen[g]].nodes;
    const std::uint32_t first = members.first();
    for (std::uint32_t node = first; node <= members.last(); ++node) {
      bool after_outside = false;
      bool after_member = false;
      for (const std::uint32_t producer : producers[node]) {
        after_outside = after_outside || tainted[producer];
        after_member = after_member || group[producer] == g;
      }
      if (group[node] == g && after_outside) {
        return "candidate " + text(chosen[g]) + " is not convex: a path leaves it and comes back at node " + text(node);
      }
      tainted[node] = group[node] != g && (after_outside || after_member);
    }
    for (std::uint32_t node = first; node <= members.last(); ++node) tainted[node] = false;
  }

  // The quotient graph: runs every group whose producers have run, until none is left (Kahn 1962).
  std::vector<std::vector<std::size_t>> readers(chosen.size());
  std::vector<std::size_t> missing(chosen.size());
  for (const auto& [from, to] : p.edges) {
    if (group[from] == group[to]) continue;
    readers[group[from]].push_back(group[to]);
    ++missing[group[to]];
  }
  std::vector<std::size_t> ready;
  for (std::size_t g = 0; g < chosen.size(); ++g) {
    if (missing[g] == 0) ready.push_back(g);
  }
  std::size_t ran = 0;
  for (; !ready.empty(); ++ran) {
    const std::size_t g = ready.back();
    ready.pop_back();
    for (const std::size_t reader : readers[g]) {
      if (--missing[reader] == 0) ready.push_back(reader);
    }
  }
  if (ran == chosen.size()) return std::nullopt;
  std::string stuck;
  for (std::size_t g = 0; g < chosen.size(); ++g) {
    if (missing[g] != 0) stuck += (stuck.empty() ? "" : ", ") + text(chosen[g]);
  }
  return "the groups depend on each other in a cycle; in it or after it are candidates " + stuck;
}

std::optional<std::string> violation(const problem& p, const placement& plan) {
  if (auto found = violation(p, std::span(plan.chosen))) return found;
  std::size_t added = plan.chosen.size();
  double sum = cost_of_borders(p, plan.chosen, added);
  std::uint32_t last = 0;
  for (const std::uint32_t index : plan.chosen) {
    const candidate& c = p.candidates[index];
    if (c.nodes.first() < last) return "candidate " + std::to_string(index) + " is out of order";
    last = c.nodes.first();
    sum += c.cost_ms;
  }
  // Half a picosecond of rounding for each cost, and the rounding of doubles in the sum.
  const double allowed = 1e-9 * static_cast<double>(added + 1) + 1e-12 * sum;
  if (!(std::abs(sum - plan.cost_ms) <= allowed)) {
    return "the cost is given as " + std::to_string(plan.cost_ms) + " ms but the groups cost " + std::to_string(sum) +
           " ms";
  }
  if (!(plan.lower_bound_ms <= plan.cost_ms)) return "the lower bound is above the cost";
  if (plan.optimal && plan.lower_bound_ms != plan.cost_ms) return "the plan is called optimal but has a gap";
  return violation_of_bounds(p, plan);
}

}  // namespace collage::inline v0::search
