// Random resources for the random problems of oracle.hpp.
#pragma once

#include <collage/search/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oracle.hpp"

namespace search_testing {

/// Adds resources that candidates, items and conversions use. Cheap candidates tend to use more. The bounds are left at 0.
inline void add_random_resources(random_source& random, search::problem& p, std::uint32_t count, bool ties) {
  const bool with_items = random.chance(0.5), with_conversions = random.chance(0.5);
  std::vector<std::vector<std::int64_t>> items(random.number(1, 4));  // amounts
  const auto amount = [&](double scale) {
    return ties ? std::int64_t{random.number(0, 3)} : static_cast<std::int64_t>(random.real(0, 1000) * scale);
  };
  for (std::uint32_t r = 0; r < count; ++r) p.resources.push_back({"resource " + std::to_string(r), 0});
  for (std::vector<std::int64_t>& item : items)
    for (std::uint32_t r = 0; r < count; ++r) item.push_back(amount(1));
  for (search::candidate& c : p.candidates) {
    for (std::uint32_t r = 0; r < count; ++r)
      if (random.chance(0.7)) c.uses.push_back({r, amount(1 / (0.5 + c.cost_ms))});
    if (!with_items || !random.chance(0.4)) continue;
    const std::uint32_t item = random.number(0, narrow(items.size()) - 1);
    for (std::uint32_t r = 0; r < count; ++r) c.uses.push_back({r, items[item][r], item});
  }
  if (!with_conversions) return;
  for (search::value& v : p.values)
    if (random.chance(0.5))
      for (std::uint32_t i = 0; i < count * v.forms * v.forms; ++i) v.convert_amounts.push_back(amount(0.5));
}

}  // namespace search_testing
