// The searches that earlier systems published, for comparison. They know neither forms nor runtimes, and leave out
// groups that could wait for each other.
#pragma once

#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>

namespace collage::inline v0::search {

/// Algorithm 1 of "Collage: Seamless Integration of Deep Learning Backends with Automatic Placement" (Jeon et al.,
/// 2022): dynamic programming over covered sets. It takes nodes by depth. Each candidate that begins at a node
/// continues every plan that covers all lower depths and none of the candidate's nodes. Every group costs `epsilon_ms`
/// more, which stands for the launch of a kernel. The plan's cost leaves this out again.
///
/// It is exact for the costs that it adds, but a depth of width w can have 2^w plans. `l.states` bounds them. If that
/// does not suffice, it throws (`error_kind::failure`). Otherwise throws as `exact` does.
placement algorithm_one(const problem& p, double epsilon_ms, const limits& l = {});

/// The search of TVM's Collage (src/relay/collage, 2022 to 2025): Dijkstra's algorithm over covered sets. The next
/// candidate begins at the first uncovered node. Among sets of equal cost the lexicographically smaller set comes
/// first. There are no bounds and no pieces. `l.states` bounds the sets as in `algorithm_one`. Throws as `exact` does.
placement shortest_path(const problem& p, const limits& l = {});

}  // namespace collage::inline v0::search
