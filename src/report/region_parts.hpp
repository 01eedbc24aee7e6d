// The nodes of a region as a network of their own, for a drawing.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <memory>
#include <optional>

namespace collage::inline v0::report {

/// A region's nodes, one group each. Their times are not known: the library of the region's backend runs them together.
struct region_parts {
  graph network;  ///< what the region reads are its inputs, and what it writes are its outputs
  placement placed;
};

/// The nodes of a group that its backend's rule lists. Nothing for groups that a look at one box shows as well.
std::optional<region_parts> parts_of(const graph& network, const plan_group& region);

}  // namespace collage::inline v0::report
