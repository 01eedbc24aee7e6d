// The amounts that a plan uses of the problem's resources, and the candidates that it must not contain together.
#pragma once

#include <collage/error.hpp>
#include <collage/search/objective.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::search {

namespace detail {

/// The amounts that the conversions of a plan use, by resource.
inline std::vector<std::int64_t> amounts_of_conversions(const problem& p, std::span<const std::uint32_t> chosen) {
  constexpr std::uint32_t nothing = node_set::none;
  std::vector<std::int64_t> sums(p.resources.size());
  if (std::ranges::all_of(p.values, [](const value& v) { return v.convert_amounts.empty(); })) return sums;
  std::vector<std::uint32_t> group(p.nodes, nothing);
  for (const std::uint32_t i : chosen)
    for (const std::uint32_t node : p.candidates[i].nodes) group[node] = i;
  std::vector<std::uint32_t> forms;  // in which the value is read
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    const value& at = p.values[v];
    if (at.convert_amounts.empty()) continue;
    const std::uint32_t by = at.producer == nothing ? nothing : group[at.producer];
    const std::uint32_t from = by == nothing ? 0 : form_at(p.candidates[by], v);
    forms.assign(at.is_output ? 1 : 0, 0);
    for (const std::uint32_t reader : at.readers)
      if (group[reader] != by) forms.push_back(form_at(p.candidates[group[reader]], v));
    std::ranges::sort(forms);
    const auto repeated = std::ranges::unique(forms);
    forms.erase(repeated.begin(), repeated.end());
    for (std::size_t r = 0; r < sums.size(); ++r)
      for (const std::uint32_t to : forms)
        if (to != from) sums[r] += at.convert_amounts[(r * at.forms + from) * at.forms + to];
  }
  return sums;
}

}  // namespace detail

/// The amount of each resource that a plan uses. `chosen` must be a partition of the nodes.
inline std::vector<std::int64_t> amounts_of(const problem& p, std::span<const std::uint32_t> chosen) {
  std::vector<std::int64_t> sums = detail::amounts_of_conversions(p, chosen);
  std::set<std::pair<std::uint32_t, std::uint32_t>> counted;  // items with their resources
  for (const std::uint32_t i : chosen)
    for (const use& u : p.candidates[i].uses)
      if (u.item == use::own || counted.emplace(u.item, u.resource).second) sums[u.resource] += u.amount;
  return sums;
}

/// Whether these amounts are within all bounds.
inline bool keeps_bounds(const problem& p, std::span<const std::int64_t> amounts) {
  for (std::size_t r = 0; r < p.resources.size(); ++r)
    if (amounts[r] > p.resources[r].bound) return false;
  return true;
}

/// The first of `problem::excluded` that the plan contains, or the number of these sets.
inline std::size_t excluded_in(const problem& p, std::span<const std::uint32_t> chosen) {
  for (std::size_t i = 0; i < p.excluded.size(); ++i)
    if (std::ranges::all_of(p.excluded[i],
                            [&](std::uint32_t c) { return std::ranges::find(chosen, c) != chosen.end(); }))
      return i;
  return p.excluded.size();
}

/// Throws `error` unless all amounts can be added: none is negative or too large. All names must exist. An item must have one
/// amount of a resource, and a candidate may name it once.
inline void check_resources(const problem& p) {
  using enum error_kind;
  double terms = static_cast<double>(p.nodes + 1);
  for (const value& v : p.values) terms += v.convert_amounts.empty() ? 0 : v.forms;
  for (const candidate& c : p.candidates) terms = std::max(terms, static_cast<double>(p.nodes * c.uses.size() + 1));
  const auto most = static_cast<std::int64_t>(static_cast<double>(std::int64_t{1} << 52U) / terms);
  const auto check_amount = [&](std::int64_t amount, const std::string& where) {
    if (amount < 0) throw error(invalid_argument, "an amount of a resource is negative", where);
    if (amount > most)
      throw error(invalid_argument, "an amount of a resource is too large to be added exactly", where,
                  "count in larger units");
  };
  for (const resource& r : p.resources)
    if (r.bound < 0) throw error(invalid_argument, "its bound is negative", "resource " + r.name);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> items;
  for (std::size_t i = 0; i < p.candidates.size(); ++i) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> named;
    for (const use& u : p.candidates[i].uses) {
      if (u.resource >= p.resources.size())
        throw error(invalid_argument, "it uses resource " + std::to_string(u.resource) + ", which does not exist",
                    detail::name_of(p, i));
      check_amount(u.amount, detail::name_of(p, i));
      if (u.item == use::own) continue;
      if (items.try_emplace({u.item, u.resource}, u.amount).first->second != u.amount)
        throw error(invalid_argument,
                    "it gives item " + std::to_string(u.item) + " another amount of " + p.resources[u.resource].name +
                        " than a candidate before",
                    detail::name_of(p, i));
      if (!named.emplace(u.item, u.resource).second)
        throw error(invalid_argument, "it names item " + std::to_string(u.item) + " twice", detail::name_of(p, i));
    }
  }
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    const value& at = p.values[v];
    if (at.convert_amounts.empty()) continue;
    const std::string where = "value " + std::to_string(v);
    const std::size_t size = p.resources.size() * at.forms * at.forms;
    if (at.convert_amounts.size() != size)
      throw error(invalid_argument,
                  "the amounts of conversions have " + std::to_string(at.convert_amounts.size()) + " entries, not " +
                      std::to_string(size),
                  where, "give resources * forms * forms entries");
    for (const std::int64_t amount : at.convert_amounts) check_amount(amount, where);
  }
  for (const std::vector<std::uint32_t>& set : p.excluded) {
    if (set.empty()) throw error(invalid_argument, "an excluded set is empty", "search", "name at least one candidate");
    for (const std::uint32_t i : set)
      if (i >= p.candidates.size())
        throw error(invalid_argument, "an excluded set names candidate " + std::to_string(i) + ", which does not exist",
                    "search");
  }
}

}  // namespace collage::inline v0::search
