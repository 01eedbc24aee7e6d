// The best placement, with its certificate.
#pragma once

#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

namespace collage::inline v0::search {

/// The cheapest set of candidates that covers every node exactly once.
///
/// Canonical order: the next candidate always covers the first uncovered node, so every plan is met in one order only.
/// Before, nodes without producers are moved close to their readers.
/// A state is that node with the covered set beyond it, and the forms and runtimes of the values between covered and
/// uncovered nodes. These are the forms and runtimes in which a value exists or is needed.
///
/// The search is best first over states (A*; Hart, Nilsson, Raphael 1968). It goes piece by piece, between positions
/// across which no value lives whose form matters. If two states differ in forms only, one of them may be dropped. This
/// happens when the other, including the conversions to the dropped state's forms, still costs less.
///
/// The lower bound on the rest of a plan is each node's cheapest share. Where forms matter, it is the cheapest cover at
/// prices of forms that a relaxation finds. Over long stretches it adds the amount by which
/// that cover is known to be too cheap.
///
/// Groups with several entries and several exits may wait for each other. If some do in a best plan, the search forbids
/// these groups together and goes on. The cost of that plan is then a lower bound.
///
/// Parts of the graph that are independent and equal, including candidates and costs, are solved once. In debug builds
/// of the library the checker verifies the result.
///
/// Tie rule: among the plans of least cost (in whole picoseconds), those with the fewest groups win. Among these the plan
/// wins whose sorted list of candidate indices is lexicographically smallest. So the result depends on the costs and on
/// the order of `candidates`, and not on hashing or the numbering of the nodes. A result cut short by `limits::states` is
/// deterministic too, but follows no such rule. A result cut short by `limits::time` depends on the machine.
///
/// If a limit ends the search, the result is the best plan at hand, with its lower bound and gap. The search then
/// throws (`error_kind::failure`) only if no complete plan is in easy reach.
///
/// **Resources.** If the plan without bounds keeps all bounds and contains no excluded set, it is the result. Otherwise
/// prices on resources and branch and bound find a plan that keeps them, to the gap and
/// the time that `limits` gives. That plan is deterministic unless time ended the search, but follows no tie rule. If no
/// plan keeps the bounds, `placement::lacks` says so.
///
/// Throws what `check` throws, and `error_kind::unsupported` if no set of candidates covers every node exactly once.
/// It also throws that if all plans contain an excluded set.
placement exact(const problem& p, const limits& l = {});

}  // namespace collage::inline v0::search
