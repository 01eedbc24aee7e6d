// The cost of a set of candidates together.
#pragma once

#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::search {

namespace detail {

/// Whether forms or runtimes can cost anything.
inline bool has_borders(const problem& p) {
  return (p.runtimes > 1 && !p.switch_ms.empty()) ||
         std::ranges::any_of(p.values, [](const value& v) { return v.forms > 1; });
}

/// The problem's values, or the values that its edges imply.
inline std::vector<value> values_of(const problem& p) {
  if (!p.values.empty()) return p.values;
  std::vector<value> values(p.nodes);
  const neighbour_lists consumers(p);
  for (std::uint32_t node = 0; node < p.nodes; ++node) {
    values[node].producer = node;
    const auto readers = consumers.of(node);
    values[node].readers.assign(readers.begin(), readers.end());
    std::ranges::sort(values[node].readers);
    const auto twins = std::ranges::unique(values[node].readers);
    values[node].readers.erase(twins.begin(), twins.end());
  }
  return values;
}

inline std::uint32_t form_at(const candidate& c, std::uint32_t value) {
  const auto at = std::ranges::lower_bound(c.borders, value, {}, &border::value);
  return at != c.borders.end() && at->value == value ? at->form : 0;
}

inline std::vector<std::int64_t> costs_of(const problem& p) {
  std::vector<std::int64_t> costs;
  costs.reserve(p.candidates.size());
  for (const candidate& c : p.candidates) costs.push_back(picoseconds(c.cost_ms));
  return costs;
}

/// The cost of converting a value from the form in which it is written to `forms`, in which it is read. Sorts `forms`
/// and removes repetitions.
inline std::int64_t cost_of_conversions(const value& v, std::uint32_t from, std::vector<std::uint32_t>& forms) {
  std::ranges::sort(forms);
  const auto twins = std::ranges::unique(forms);
  forms.erase(twins.begin(), twins.end());
  std::int64_t sum = 0;
  for (const std::uint32_t to : forms)
    if (to != from) sum += picoseconds(v.convert_ms[std::size_t{from} * v.forms + to]);
  return sum;
}

/// The cost in picoseconds if candidate i costs `costs[i]`. Values at nodes without a candidate count as far as they are covered.
inline std::int64_t cost_of(const problem& p, std::span<const std::int64_t> costs,
                            std::span<const std::uint32_t> chosen) {
  std::int64_t sum = 0;
  for (const std::uint32_t i : chosen) sum += costs[i];
  if (!has_borders(p)) return sum;
  constexpr std::uint32_t nothing = node_set::none;
  std::vector<std::uint32_t> group(p.nodes, nothing);
  for (const std::uint32_t i : chosen)
    for (const std::uint32_t node : p.candidates[i].nodes) group[node] = i;
  const std::vector<value> values = values_of(p);
  std::vector<std::uint32_t> forms;  // in which the value is read
  for (std::uint32_t v = 0; v < values.size(); ++v) {
    const value& at = values[v];
    const bool given = at.producer == nothing;
    const std::uint32_t by = given ? nothing : group[at.producer];
    if (!given && by == nothing) continue;
    forms.assign(at.is_output ? 1 : 0, 0);
    std::uint32_t runtimes = 0;
    for (const std::uint32_t reader : at.readers) {
      const std::uint32_t who = group[reader];
      if (who == nothing || who == by) continue;
      if (!at.convert_ms.empty()) forms.push_back(form_at(p.candidates[who], v));
      runtimes |= 1U << p.candidates[who].runtime;
    }
    if (!at.convert_ms.empty()) sum += cost_of_conversions(at, given ? 0 : form_at(p.candidates[by], v), forms);
    if (given) continue;
    const std::uint32_t runtime = p.candidates[by].runtime;
    for (std::uint32_t to = 0; to < p.runtimes && !p.switch_ms.empty(); ++to)
      if (to != runtime && (runtimes >> to & 1U) != 0) sum += picoseconds(p.switch_ms[runtime * p.runtimes + to]);
  }
  return sum;
}

/// An upper bound on the cost of conversions and switches in a plan, in picoseconds.
inline std::int64_t dearest_borders(const problem& p) {
  if (!has_borders(p)) return 0;
  const auto most_to = [](const std::vector<double>& table, std::uint32_t side) {
    std::int64_t sum = 0;
    for (std::uint32_t to = 0; to < side && !table.empty(); ++to) {
      double most = 0;
      for (std::uint32_t from = 0; from < side; ++from) most = std::max(most, table[std::size_t{from} * side + to]);
      sum += picoseconds(most);
    }
    return sum;
  };
  std::int64_t sum = 0;
  const std::int64_t switches = most_to(p.switch_ms, p.runtimes);
  for (const value& v : values_of(p)) sum += most_to(v.convert_ms, v.forms) + switches;
  return sum;
}

}  // namespace detail

/// The cost of a plan in picoseconds: candidates, conversions and switches, as `problem` says. `chosen` must be a
/// partition of the nodes.
inline std::int64_t cost_of(const problem& p, std::span<const std::uint32_t> chosen) {
  return detail::cost_of(p, detail::costs_of(p), chosen);
}

}  // namespace collage::inline v0::search
