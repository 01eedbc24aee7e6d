// Proves a placement legal without trusting the search that made it. Shares no code with the searches.
#pragma once

#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace collage::inline v0::search {

/// The first reason why the chosen candidates are not a legal placement, as a sentence; nothing if they are. In a legal
/// placement every node is in exactly one group, and every group is convex. The groups can run one after another (the
/// quotient graph is acyclic). Groups may have any number of entries and exits. Never throws for a bad plan.
std::optional<std::string> violation(const problem& p, std::span<const std::uint32_t> chosen);

/// As above, and checks the statements of the placement about itself. Groups must be in the order of their first nodes. The
/// cost must be that of the groups and their borders. The lower bound must not be above it, and must equal it if `optimal`.
/// The amounts of resources must be as stated. Unless the plan says what it lacks, it must keep the bounds and contain no
/// excluded set.
std::optional<std::string> violation(const problem& p, const placement& plan);

}  // namespace collage::inline v0::search
