// Plans: which backend's kernel runs which part of a network, with the costs the choice rests on.
#pragma once

#include <collage/backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/plan_step.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/run/weights.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace collage::inline v0 {

/// Another kernel that could have run a group, and its cost.
struct plan_alternative {
  std::string backend;
  std::string pattern;
  std::string kernel;
  double cost_ms = 0;
};

/// One group of nodes, run by one step.
struct plan_group {
  plan_step step;      ///< a kernel, a group's kernel, a view or control flow
  std::string kernel;  ///< the implementation that was measured
  std::string layout =
      "plain";  ///< for people: the form of what crosses its border; "A to B" where it reads A and writes B
  std::vector<std::uint32_t> nodes;  ///< ascending, but for the root, which stands last
  double cost_ms = 0;                ///< what it takes within the network, median
  double low_ms = 0, high_ms = 0;    ///< the median lies between these with a confidence of 95 %
  double alone_ms = 0;               ///< what the kernel takes alone, called again and again
  double switch_ms = 0;              ///< of its cost, what it takes longer because other backends wrote what it reads
  std::vector<plan_alternative> runners_up;  ///< for the same nodes, cheapest first
  double regret_ms = -1;       ///< how much more the best placement without this kernel costs; -1 where it is not known
  std::string instead;         ///< the backend that runs the nodes in that placement
  std::string why;             ///< in words, why it was chosen
  std::string algorithm = {};  ///< what its kernel computes by; empty: the operator's definition
  double error_bound = 0;      ///< of the algorithm, as in kernel_algorithm
  std::string estimate = {};   ///< in words, where its cost comes from if it was not measured; empty if it was

  bool is_view() const { return std::holds_alternative<view_step>(step); }
  bool is_control() const { return std::holds_alternative<control_step>(step); }
  /// Whether a backend's kernel runs it.
  bool has_kernel() const { return !is_view() && !is_control(); }
  /// The backend, or view_runner or control_runner.
  std::string backend() const { return runner_of(step); }
  /// The pattern of the backend; `by_rule` if its rule lists the group; empty if no backend runs it.
  std::string pattern() const {
    if (const auto* const k = std::get_if<kernel_step>(&step)) return k->pattern;
    return std::holds_alternative<group_step>(step) ? by_rule : "";
  }
  /// The placements of the sub-graphs of control flow; none otherwise.
  std::span<const placement> bodies() const;
};

/// A value that is converted into another form, once for all groups that read it so.
struct plan_conversion {
  std::uint32_t value = 0;
  conversion_step step;
  std::string kernel;
  double cost_ms = 0;  ///< what it takes within the network, median
};

/// A whole network distributed over backends; groups stand in an order in which they can run.
struct placement {
  std::string name;  ///< "plan", or the backend of a single-backend placement
  std::vector<plan_group> groups;
  std::vector<plan_conversion> conversions;  ///< by value; each runs before the first group that needs it
  double cost_ms = 0;                        ///< the sum of the costs of groups and conversions
  std::vector<std::string> borrowed;  ///< single-backend placements: nodes which that backend refuses, run by another
  std::shared_ptr<const value_scales> scales =
      {};  ///< of the values that are stored as integers of 8 bits; null: none is
};

inline std::span<const placement> plan_group::bodies() const {
  const auto* const control = std::get_if<control_step>(&step);
  return control != nullptr ? std::span<const placement>(control->bodies) : std::span<const placement>();
}

/// The conversion of a value into a form; null if the placement has none.
inline const plan_conversion* find_conversion(const placement& p, std::uint32_t value, const std::string& to) {
  for (const plan_conversion& c : p.conversions)
    if (c.value == value && c.step.to == to) return &c;
  return nullptr;
}

/// A backend as it was when the plan was made.
struct plan_backend {
  std::string name;
  std::string version;
  std::string details;
};

/// The time of a placement end to end, over the interleaved rounds that nothing disturbed (end_to_end::time_of). It has the
/// median, the 10th and the 90th percentile, and the number of rounds.
struct plan_run {
  std::string name;
  double median_ms = 0, low_ms = 0, high_ms = 0;
  std::size_t runs = 0;
  /// Its time divided by the plan's, in the same rounds: the median, which lies between the other two with a confidence of
  /// 95 %. Where processors shared a cache in some of the rounds and none in others, the geometric mean of both medians.
  double ratio = 1, ratio_low = 1, ratio_high = 1;
};

/// Names of runs that are no single backend's: the previous plan, the best placement without regions, and the best one in float32.
/// The last one runs where the plan may round values.
inline constexpr const char* previous_run = "previous";
inline constexpr const char* operators_run = "operators";
inline constexpr const char* unrounded_run = "fp32";
/// The origin of plans that the search over regions found.
inline constexpr const char* regions_run = "regions";
/// The origin of plans by estimated costs.
inline constexpr const char* by_estimates_run = "estimates";

/// Precisions of plans: float32, and float32 where NaN and infinity pass through every kernel as in the reference.
inline constexpr const char* fp32 = "fp32";
inline constexpr const char* fp32_non_finite = "fp32 with NaN and infinity kept";
/// Whether a plan made in one precision serves where another is wanted. A plan that keeps NaN and infinity is float32 as well, and
/// float32 serves where values may be rounded.
inline bool serves(const std::string& made, const std::string& wanted) {
  return made == wanted || (made == fp32_non_finite && wanted == fp32) || (made == fp32 && wanted != fp32_non_finite);
}

/// The error of a plan whose kernels round values, as root mean squares relative to the outputs (run/precision.hpp).
struct plan_error {
  double most = 0;          ///< that the user allows
  double predicted = 0;     ///< by the errors of single values; 0 if these need not be known
  double measured = 0;      ///< end to end, on samples that were held back; 0 with `samples`: not tested
  double upper = 0;         ///< the upper end of its confidence interval; at most `most`
  std::size_t samples = 0;  ///< that were held back
  friend bool operator==(const plan_error&, const plan_error&) = default;
};

/// The result of placing: the selected placement, the single-backend placements that it was compared with, and the reasons.
struct plan {
  std::string network;            ///< a name for people
  std::uint64_t fingerprint = 0;  ///< of the graph; the engine refuses another
  int threads = 1;
  std::string precision = fp32;
  collage::algorithms algorithms = collage::algorithms::accurate;  ///< which ones its kernels were chosen from
  std::optional<weight_memory> memory = {};  ///< of the weights; nothing in plans of a time when it was not known
  std::optional<plan_error> error = {};      ///< of a plan that rounds values
  std::string processor;
  std::string
      waiting;  ///< how threads waited for work when it was measured, as waiting_policy() says; empty: not known
  std::vector<plan_backend> backends;
  placement chosen;
  std::vector<placement> singles;
  /// No placement over the same candidates can be cheaper. Kernels that would replace one of this placement count 1 % more, or
  /// 2 % if they never ran within the network; conversions count as they are.
  double lower_bound_ms = 0;
  /// The search finished. The cost equals the lower bound, or exceeds it where whole runs decided otherwise.
  bool optimal = false;
  double first_cost_ms = 0;    ///< what the search predicted before anything had run within the network
  std::vector<plan_run> runs;  ///< end to end: the chosen placement first, then what it was compared with
  /// The origin of the placement: "search", "priority", "estimates", "previous", "operators", "fp32", "regions", or the backend that was faster alone.
  std::string origin = "search";
};

}  // namespace collage::inline v0
