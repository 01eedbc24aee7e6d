// Sibling fusion: merges groups that read the same value, and a reader with the group that computes the value.
//
// Such a group may have several entries and several exits. Two of them can close a cycle that neither closes without the other; the
// quotient refuses the second. Sibling fusion saves the second read of a shared value, and the write and read of a
// value that stays inside.
#pragma once

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/kernel.hpp>
#include <collage/fuse/merging.hpp>
#include <collage/fuse/quotient.hpp>
#include <collage/search/node_set.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::fuse {

/// The number of next readers of a value with which each reader is tried. A value with many readers costs no more for
/// each reader than that number.
inline constexpr std::size_t sibling_reach = 4;

/// Merges siblings while this saves bytes, the largest savings first. `log`: see merging.
inline merge_count fuse_siblings(quotient& groups, const kernel_limits& most,
                                 std::vector<search::node_set>* log = nullptr) {
  const dataflow& flow = groups.flow();
  // Convolutions and opaque operators have no siblings: their operands are not read element by element.
  const auto may_share = [&](std::uint32_t group, std::uint32_t value) {
    return std::ranges::all_of(groups.members(group), [&](std::uint32_t n) {
      const bool heavy = flow.kind(n) >= fusion_kind::anchor && !(most.rows && flow.node(n).row > 0);
      return !heavy || std::ranges::find(flow.operands(n), value) == flow.operands(n).end();
    });
  };
  merging merges(groups, most, log);
  std::size_t total = 0;
  for (;;) {
    std::vector<std::uint32_t> parties;
    for (std::uint32_t v = 0; v < flow.values().size(); ++v) {
      const flow_value& value = flow.at(v);
      if (value.is_weight) continue;
      parties.clear();
      if (value.producer != none) parties.push_back(groups.group_of(value.producer));
      for (const std::uint32_t n : flow.readers(v)) parties.push_back(groups.group_of(n));
      std::ranges::sort(parties, {}, [&](std::uint32_t g) { return groups.position(g); });
      parties.erase(std::ranges::unique(parties).begin(), parties.end());
      if (parties.size() < 2) continue;
      std::erase_if(parties, [&](std::uint32_t g) { return !may_share(g, v); });
      for (std::size_t i = 0; i < parties.size(); ++i) {
        for (std::size_t j = i + 1; j < parties.size() && j <= i + sibling_reach; ++j)
          if (merges.is_fresh(parties[i]) || merges.is_fresh(parties[j])) merges.propose({parties[i], parties[j]});
      }
    }
    const std::size_t committed = merges.commit();
    if (committed == 0) return {total, merges.judged()};
    total += committed;
  }
}

}  // namespace collage::inline v0::fuse
