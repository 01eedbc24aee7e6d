// The thresholds of placing, in one place.
#pragma once

#include <cstddef>

namespace collage::inline v0 {

namespace detail {

/// The placement in the keys of comparisons that had not ended.
inline constexpr const char* unfinished_run = "unfinished";

/// How rounds of whole runs are counted. Names ending in _ms are milliseconds; other times are multiples of another time.
struct race_policy {
  double settling_ms = 15;        ///< calls this soon after another placement's do not count
  std::size_t least_rounds = 5;   ///< of a race, however long they take
  std::size_t most_rounds = 200;  ///< of a race, however short they are
  double beaten = 1.5;            ///< slower by this in all of `rounds_to_beat` rounds: it stops running
  std::size_t rounds_to_beat = 2;
  /// Slower by this in all of `rounds_to_leave` rounds, or by the confidence interval: it stops running.
  double behind = 1.03;
  std::size_t rounds_to_leave = 5;
  double disturbed = 1.1;             ///< a round that takes this times the 25th percentile was disturbed
  std::size_t least_undisturbed = 3;  ///< with fewer undisturbed rounds all count
  std::size_t undisturbed_part = 3;   ///< all count, too, if less than one in this many was undisturbed
  std::size_t rounds_to_scale = 5;    ///< common undisturbed rounds for scaling by another placement
  std::size_t most_traced = 30;       ///< calls whose steps are timed, for each placement and cache regime
  double short_turn_ms = 10;          ///< a turn counts as many calls as fit, up to `most_calls`
  double most_calls = 3;
  double traced_at_once_ms = 20;  ///< calls this long are timed with their steps: the clock adds nothing to speak of
  double unsettled_ms = 225;      ///< for longer calls settling is negligible
  double most_split_share = 3;    ///< split rounds that come by themselves take up to this times the race's seconds
  int most_splitting_calls = 100'000;  ///< a limit in case the clock does not advance
};

/// How the fastest placement is selected.
struct selection_policy {
  std::size_t least_rounds = 5;     ///< a ratio of fewer rounds has less weight
  std::size_t agreeing_rounds = 3;  ///< fewer rounds that all show a large difference
  double far_behind = 1.03;         ///< above this times the smallest worst-case ratio, a placement is not preferred
  double significant = 1.003;       ///< a baseline that is faster by this replaces the placement
  std::size_t enough_rounds = 15;   ///< undisturbed rounds that the selected placement should have
  int most_races = 4;               ///< races that are run to get them
  int most_split_races = 2;         ///< how many of these races may wait for rounds with a split cache
};

/// How kernels and placements are tried within the network.
struct trial_policy {
  double most_placements = 24;
  double most_share = 4;         ///< of the seconds of the comparison with single backends, for all of them
  double placements_beside = 3;  ///< that run in a trial's round: the new one and those about as fast
  double part_of_race = 6;       ///< a trial takes one part in this many of a race's seconds
  int most_searches = 4;         ///< after trials, each for a placement that has not run
  double telling = 0.995;        ///< a placement that is expected to take more than this part of the fastest is not run
  int most_restarts = 3;         ///< measuring begins again when the machine turns out to have been slow
};

/// How whole configuration spaces are searched.
struct tuning_policy {
  std::size_t points_of_round = 8;  ///< configurations that are measured together
  double first_gain = 0.12;  ///< the part of a kernel's time that the first round may save, before anything is known
  double fading = 0.5;       ///< after a round, the next may save what it saved, or this part of what it might have
  double least_gain = 5e-4;  ///< of the network's time: a group that promises less gets no round
  double most_searching_ms = 500;  ///< before a round, for the searches that say which group gets it
  std::size_t kept = 4;            ///< configurations of a group that are kept for later placings and run end to end
};

/// How measured times become the costs that the search counts.
struct price_policy {
  /// Factors of pessimistic prices: after runs within the network, and without.
  double doubt_within = 1.01, doubt_alone = 1.02;
  /// Factors of optimistic prices: not seen in split caches; seen in few placements.
  double hope_split = 0.94, hope_within = 0.98;
  double least_hope = 0.7, most_hope = 0.9;  ///< limits of the factor for kernels that never ran within the network
  double hope_quantile = 0.1, hope_margin = 0.95;  ///< that factor: this quantile of what others took, times the margin
  std::size_t enough_sightings = 3;                ///< a kernel that ran in this many placements is well known
  std::size_t enough_split_sightings = 2;          ///< the same in split caches
  /// Factor for conversions that were not seen in split caches, where these are possible.
  double presumed_conversion = 2;
  double most_off = 0.02;             ///< if the sum of costs is off by more of the time end to end, switches count
  double most_added = 0.9;            ///< part of a step's time that switches are taken to add at most
  double much_slower = 1.5;           ///< times in a placement that takes this times the fastest's time show little
  std::size_t enough_neighbours = 6;  ///< kernels of which all but none must agree for an interval of 95 %
};

/// How the seconds of a budget are divided.
struct budget_policy {
  double for_kernels = 0.6;  ///< part of it after which kernels are no longer measured alone
  /// A structure's kernels may take this part of the time that is left for kernels, times its share of the network's time.
  double for_structure = 0.5;
  /// The same for kernels for which there was no time at first. It must exceed the milliseconds that measuring another kernel takes.
  double for_structure_again = 3, least_again_ms = 50;
  double for_waiting = 0.1;  ///< the most time spent waiting for an undisturbed machine
  /// The model for kernels that there is no time to measure, with the arithmetic of one thread. Only its proportions matter if
  /// some kernel was measured.
  double flops_per_s = 1e10, bytes_per_s = 5e9, launch_ms = 1e-3;
  double conversions = 20;  ///< times the lower bound of a conversion that is not measured
  /// The largest regions come before all other kernels if building them should take no more than this part of the budget. A library
  /// takes about so many seconds for a region, and more for each of its operators and each byte of its weights.
  double for_regions = 0.4, region_s = 0.3, region_operator_s = 2e-3, region_byte_s = 1e-8;
};

/// How estimated costs are priced. Where costs are about the same, the best known one is preferred.
struct estimate_policy {
  /// Factors for kernels that were measured at no size. `of_others`: other configurations were measured, or other constants. Then
  /// `next_choice` counts for each configuration after the first: backends list promising ones first.
  double of_others = 1.05, next_choice = 1.01, modelled = 1.2;
  /// A factor for each backend before a kernel's own in the set, if nothing like it was measured. The set is in order of preference.
  double next_backend = 2;
  /// The part of a network's modelled time whose kernels must be known, at this size or others. Below it, estimates would rather mislead.
  double least_known = 0.5;
  /// A form of a constant that no engine has costs the time of packing it, divided by the runs that it should serve.
  double packing_ms_per_mib = 0.5, packing_runs = 16;
  /// The most work of the searches for runners-up: their transitions, and for each as many as there are candidates.
  std::size_t most_explaining = 10'000;
};

/// How kernels are compared with the reference where nothing is measured. The speeds are those of a slow machine.
struct check_policy {
  double flops_a_second = 4e9;   ///< of the reference that computes all elements
  double flops_an_element = 32;  ///< beside the arithmetic of a kind, for the loops over its results
  double flops_an_operand = 8;   ///< the same for each element of an operand, which becomes a double
  double reads_a_second = 2e8;   ///< of the reference that computes some elements
  double small_s = 0.005;        ///< all elements are computed if that takes no longer
  double most_s = 0.15;          ///< for some elements of one kernel
  std::size_t most_elements = 4096, least_elements = 256;  ///< of each value, where only some are computed
};

struct placing_policy {
  race_policy race;
  selection_policy selection;
  trial_policy trial;
  tuning_policy tuning;
  price_policy price;
  budget_policy budget;
  check_policy check;
  estimate_policy estimate;
  double most_overtime_ms = 500;  ///< after the budget, for the searches that finish a plan
  /// Divisions into regions of a backend are tried unless its largest regions take so many times as long as those of the fastest.
  double most_slower_regions = 2;
};

/// The thresholds in force. The numbers come from repeated placings of real and simulated networks (docs/repeatability.md).
inline constexpr placing_policy thresholds;

}  // namespace detail
}  // namespace collage::inline v0
