// The difference of two plans of one network.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::report {

/// A smallest set of nodes that both plans divide into whole groups: the numbers of the groups in each plan.
struct compared_region {
  std::vector<std::uint32_t> first, second;
  double first_ms = 0, second_ms = 0;
};

struct difference {
  std::vector<compared_region> other_kernels;  ///< other kernels run the nodes; the largest change of cost first
  std::vector<compared_region> other_costs;    ///< the same kernel, with costs whose 95 % intervals do not overlap
  std::size_t same = 0;                        ///< groups that the same kernel runs in both plans
  std::vector<std::pair<std::string, std::pair<std::string, std::string>>> made_with;  ///< what differs, and its values
};

/// Compares two plans of one network. Only groups of the network itself count, and not those of subgraphs.
difference compare(const graph& network, const plan& first, const plan& second);

}  // namespace collage::inline v0::report
