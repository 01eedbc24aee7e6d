// In which order the candidates of one list are built. Time may end before all are.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace collage::inline v0::detail {

/// When a candidate is built.
struct building_turn {
  std::size_t which = 0;     ///< its position in the list
  bool is_fallback = false;  ///< it is tried if no other can be used
  bool is_direct = true;
  std::size_t round = 0;     ///< how many candidates of its backend come before it in the list
  bool direct_left = false;  ///< direct candidates, which are no fallback, come after it
};

/// Direct kernels come before those by other algorithms, because their errors are the measure. Where time may end early, the first
/// candidate of each backend comes before the second of any: backends list promising ones first. Within such a round one
/// direct kernel is followed by those by other algorithms, because these gain most if they gain at all.
inline std::vector<building_turn> building_order(const graph& network, backend_table backends,
                                                 const place_candidates& candidates,
                                                 std::span<const std::uint32_t> asked, bool may_end_early) {
  std::vector<building_turn> order;
  std::map<std::uint32_t, std::size_t> rounds;  // by backend
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const place_candidate& c = candidates.list[asked[i]];
    order.push_back({i, is_last_resort(backends, c), algorithm_of(network, backends, c).is_direct(),
                     may_end_early ? rounds[c.backend]++ : 0, false});
  }
  const auto first = std::ranges::find_if(order, [](const building_turn& t) { return t.is_direct && !t.is_fallback; });
  const std::size_t leader = may_end_early && first != order.end() ? first->which : asked.size();
  std::ranges::stable_sort(order, {}, [&](const building_turn& t) {
    const bool is_late = may_end_early ? t.is_direct && t.which != leader : !t.is_direct;
    return std::tuple(t.is_fallback, t.which != leader, t.round, is_late);
  });
  bool direct_left = false;
  for (auto turn = order.rbegin(); turn != order.rend(); ++turn) {
    turn->direct_left = direct_left;
    direct_left = direct_left || (turn->is_direct && !turn->is_fallback);
  }
  return order;
}

}  // namespace collage::inline v0::detail
