// The description of a plan that another search than the exact one found.
#pragma once

#include <collage/search/objective.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "space.hpp"

namespace collage::inline v0::search::detail {

/// Completes the description of a plan that the exact search did not find.
inline placement describe(const problem& p, const space& s, std::vector<std::uint32_t> chosen) {
  placement plan;
  plan.chosen = std::move(chosen);
  std::ranges::sort(plan.chosen, {}, [&](std::uint32_t i) { return p.candidates[i].nodes.first(); });
  const std::int64_t cost = cost_of(p, plan.chosen);
  plan.cost_ms = milliseconds(cost);
  plan.lower_bound_ms = milliseconds(s.bound);
  plan.optimal = cost == s.bound;
  return plan;
}

}  // namespace collage::inline v0::search::detail
