// Other ways to choose: the rule that engines use today, and searches under a preference. They serve comparisons and baselines.
#pragma once

#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

#include <cstdint>
#include <functional>
#include <span>

namespace collage::inline v0::search {

/// Greedy placement by priority, as other inference engines do it. Candidates of rank 0 claim the nodes that they can, then
/// candidates of rank 1, and so on. Within a rank, nodes are walked in order, and each gets the largest group that fits.
/// Ties go to the cheaper group, then to the lower index.
///
/// `rank` has one number per candidate. Costs have no other influence. Throws as `exact` does, and if the number of ranks is wrong.
/// A candidate is taken only if `can_use(candidate)` returns true. It is called when the candidate's turn has come and its nodes
/// are free. If the others cannot cover all nodes, the result may have candidates for which it was not called.
placement priority_list(const problem& p, std::span<const std::uint32_t> rank,
                        const std::function<bool(std::uint32_t)>& can_use);
/// As above, with every candidate.
placement priority_list(const problem& p, std::span<const std::uint32_t> rank);

/// Takes the largest group of the whole graph first, then the largest that still fits, and so on. Ties go to the
/// cheaper group, then to the earlier, then to the lower index. Throws as `exact` does.
placement greedy_by_size(const problem& p);

/// The exact search under a preference. It minimises the sum, over all nodes, of the rank of the candidate that covers
/// the node. Cost decides only between plans with equal sums. With one backend's candidates at rank 0 and the others at
/// 1, 2, ..., the result is the baseline of that backend. Nodes that it refuses go to the next backend that takes them,
/// and a plan is found whenever there is one.
///
/// `cost_ms` is the plan's cost. `optimal` and `lower_bound_ms` compare it with the plans of the same sum of ranks. A
/// search that is cut short claims only the bound 0. Throws as `exact` does, if the number of ranks is wrong, and if
/// ranks times costs are too large to add exactly.
placement exact_by_rank(const problem& p, std::span<const std::uint32_t> rank, const limits& l = {});

}  // namespace collage::inline v0::search
