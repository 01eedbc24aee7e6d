// Measured costs of kernels, alone and within the network.
#pragma once

#include <collage/measure/statistics.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/run/configuration.hpp>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace collage::inline v0 {

/// A lower bound for a group from its operators. A kernel for the group is expected to take at least this portion of the time of
/// the fastest kernel for any of them. The portion is small for operators that move or map elements, because they can become
/// free inside a group that does not write their results.
inline constexpr double least_of_anchor = 0.8, least_of_other = 0.25;

/// The measurements of one kernel for one structure.
struct measured_cost {
  timing time;          ///< of the kernel alone, in repeated calls
  double alone_ms = 0;  ///< its cost alone, by the race with its rivals: ties cost the same
  timing within;        ///< of the kernel within the network; no samples if it never ran there
  std::string kernel;
  std::string refusal;                                 ///< why it cannot be used; empty if it can
  bool passing = false;                                ///< the refusal may not hold next time, so it is not stored
  bool from_store = false;                             ///< read from the store, not measured now
  bool is_modelled = false;                            ///< it was not measured: `alone_ms` is an estimate
  std::shared_ptr<const cost_estimate> estimate = {};  ///< where it comes from, if placing estimates; null otherwise
};

/// The key of a cost: a kernel for a structure. The numbers are those of place_candidate and place_group.
struct cost_key {
  std::uint32_t structure = 0, backend = 0, pattern = 0;
  collage::configuration configuration;
  friend auto operator<=>(const cost_key&, const cost_key&) = default;
};

inline cost_key key_of(const place_candidates& candidates, const place_candidate& c) {
  return {candidates.groups[c.group].structure, c.backend, c.pattern, c.configuration};
}

using cost_table = std::map<cost_key, measured_cost>;

}  // namespace collage::inline v0
