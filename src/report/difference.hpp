// The difference of two plans of one network.
#pragma once

#include <array>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::report {

/// A group of a plan, or of a subgraph of one of its nodes, as far as plans are compared.
struct compared_group {
  std::vector<std::string>
      nodes;  ///< numbers; in a subgraph, after those of its owner and of the subgraph, as in "7.0.3"
  std::string backend, pattern, configuration, kernel, layout;
  double cost_ms = 0, low_ms = 0, high_ms = 0;
};

/// Whether the same kernel runs both groups.
bool is_same_kernel(const compared_group& a, const compared_group& b);

/// A smallest set of nodes that both plans divide into whole groups: the numbers of the groups in each plan.
struct compared_region {
  std::vector<std::uint32_t> first, second;
  double first_ms = 0, second_ms = 0;
};

/// Regions in the order of the first plan's groups. Views that are the same in both plans do not count.
struct compared_regions {
  std::vector<compared_region> other_kernels;  ///< other kernels run the nodes
  std::vector<compared_region> other_costs;    ///< the same kernel, with costs whose 95 % intervals do not overlap
  std::size_t same = 0;                        ///< groups that the same kernel runs in both plans
};

/// Compares the groups of two plans, which are called by `names` in errors. Throws if a plan runs a node twice, or if one does not run
/// a node that the other one runs.
compared_regions compare(const std::vector<const compared_group*>& first,
                         const std::vector<const compared_group*>& second, const std::array<std::string, 2>& names);

/// The regions of two plans, the largest change of cost first, and all else that differs.
struct difference : compared_regions {
  std::vector<const plan_group*> first, second;  ///< the groups of each plan, as regions number them; owners come first
  std::vector<std::pair<std::string, std::pair<std::string, std::string>>> made_with;  ///< what differs, and its values
};

/// Compares two plans of one network, with the subgraphs of branches and loops. Throws as above.
difference compare(const plan& first, const plan& second,
                   const std::array<std::string, 2>& names = {"the first plan", "the second plan"});

}  // namespace collage::inline v0::report
