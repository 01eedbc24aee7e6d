// A text that explains a plan.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <string>

namespace collage::inline v0 {

struct placed_plan;

/// Explains a plan in tables and sentences of at most 100 columns, in English, as `collage explain` prints them.
///
/// Each group has its backend, kernel, cost and runner-up. The runner-up is the backend that runs its nodes in the best placement
/// without this kernel; that placement costs so much more. Then follow conversions, the share of each backend, the
/// certificate and the memory of the weights. Last are the times end to end and the nodes that single backends leave to others.
///
/// The plan must be of this network. Its backends need not be there.
std::string explain(const graph& network, const plan& made);

/// The same, and why backends refused matches and kernels.
std::string explain(const graph& network, const placed_plan& made);

}  // namespace collage::inline v0
