// What is known of kernels: how long each takes, alone and within whole runs.
#pragma once

#include <collage/measure/statistics.hpp>
#include <collage/place/candidates.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace collage::inline v0 {

/// A bound from measured parts: no kernel for a group is expected to take less than this portion of what the fastest kernel
/// takes for one of its operators, an anchor or another. What moves or maps elements can become free inside a group that need
/// not write them.
inline constexpr double least_of_anchor = 0.8, least_of_other = 0.25;

/// What is known of one kernel for one structure.
struct measured_cost {
  timing time;          ///< of the kernel alone, called again and again
  double alone_ms = 0;  ///< what it costs alone, decided among its rivals: those as good as each other cost the same
  timing within;        ///< inside whole runs of the network; no samples where it was never part of one
  std::string kernel;
  std::string refusal;      ///< why it cannot be used; empty when it can
  bool passing = false;     ///< the refusal may not hold another time: it is not stored
  bool from_store = false;  ///< measured at an earlier time
};

/// (structure, backend, pattern, choice): the key under which a cost is known.
using cost_key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

inline cost_key key_of(const place_candidates& candidates, const place_candidate& c) {
  return {candidates.groups[c.group].structure, c.backend, c.pattern, c.choice};
}

using cost_table = std::map<cost_key, measured_cost>;

}  // namespace collage::inline v0
