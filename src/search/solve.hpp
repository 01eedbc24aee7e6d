// The exact search over costs in picoseconds, without bounds and in the order of the problem.
#pragma once

#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::search::detail {

/// How a search over many nodes proceeds. The result does not depend on it.
struct pace {
  std::uint32_t apart = 128;           ///< nodes between positions for which gains are learnt
  std::uint32_t parts = 8;             ///< into how many parts a stretch is divided
  std::size_t states = 2;              ///< expanded for each node before gains are learnt
  std::size_t most_beginnings = 1024;  ///< most states of values with which a stretch may begin
};

/// The best placement at these costs, one for each candidate. `may_cycle`: what `check` says of each candidate.
placement solve(const problem& p, std::span<const std::int64_t> costs, const std::vector<bool>& may_cycle,
                const limits& l, const pace& how = {});

}  // namespace collage::inline v0::search::detail
