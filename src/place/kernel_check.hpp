// Placing without measuring: builds kernels, and compares each with the reference before it is used.
#pragma once

#include <algorithm>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/graph/totals.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/limits.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "compared_elements.hpp"
#include "kept_costs.hpp"
#include "place_task.hpp"
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Builds the kernel of a candidate. Records its name, or the reason why it cannot be built. Returns whether it was built.
inline bool is_built(const place_task& task, const graph& network, const place_candidates& all,
                     const place_candidate& c, measured_cost& cost) {
  try {
    const backend_entry& b = task.backends[c.backend];
    build_context context(network, task.threads, *task.packed, *b.space);
    context.set_configuration(c.configuration);
    // Whether a kernel can be built does not depend on scales.
    const value_scales any({1.0F / 16, 8});
    context.set_scales(&any);
    const thread_scope scope(b, task.threads);
    cost.kernel = build_candidate(network, task.backends, all, c, context).name();
  } catch (const error& e) {
    cost.refusal = e.what();
    cost.passing = e.kind() == error_kind::environment;
  }
  return cost.refusal.empty();
}

/// The bytes of a node's operands and results.
inline std::size_t bytes_of_values(const graph& network, std::uint32_t node) {
  std::size_t bytes = 0;
  for (const std::uint32_t v : network.view().inputs_of(node)) bytes += network.type_of(v).bytes();
  for (std::uint32_t i = 0; i < network.node(node).outputs; ++i)
    bytes += network.type_of(network.view().output_of(node, i)).bytes();
  return bytes;
}

/// Libraries have faults that only a comparison shows. Measuring compares every kernel; without it, this does, as far as
/// `place_options::check_s` goes. In large results only some elements are compared. A result is kept in the store, if there is one,
/// so that each workload is compared once for each build of a library.
class kernel_check {
 public:
  kernel_check(const place_task& task, place_report& report)
      : task_(task), report_(report), left_s_(task.options.check_s) {}
  kernel_check(const kernel_check&) = delete;
  kernel_check& operator=(const kernel_check&) = delete;
  ~kernel_check() {
    for (auto& [network, store] : stores_) {
      if (!store) continue;
      store->keep_checks();
      if (report_.unstored.empty()) report_.unstored = store->problem();
    }
  }

  /// Builds the kernel of candidate `which` of a list, and compares it. Sets its name, or the reason why it cannot be used. Returns
  /// whether it can. `network` is the task's or that of conversions. A kernel that was refused at another size is not used without a
  /// comparison.
  bool can_be_used(const graph& network, const place_candidates& all, std::uint32_t which, measured_cost& cost) {
    const place_candidate& c = all.list[which];
    std::optional<kept_costs>& store = store_for(network, all);
    const std::optional<std::string> known = store ? store->find_check(c) : std::nullopt;
    if (known && !known->empty()) {
      cost.refusal = *known;
      return false;
    }
    if (known || is_last_resort(task_.backends, c)) return is_built(task_, network, all, c, cost);
    const std::optional<comparison> how = affordable(network, all, c);
    if (!how) return can_be_used_unchecked(network, all, c, cost);
    const bool was_compared = compare(network, all, which, *how, cost);
    if (store && was_compared) store->put_check(c, cost);
    return cost.refusal.empty();
  }

 private:
  /// The elements that are compared, for each value that the kernel writes. Empty: all.
  using comparison = std::vector<selected_elements>;

  /// Builds a kernel that cannot be compared, unless it was refused at another size.
  bool can_be_used_unchecked(const graph& network, const place_candidates& all, const place_candidate& c,
                             measured_cost& cost) {
    ++report_.unchecked;
    if (!cost.estimate || !cost.estimate->was_refused) return is_built(task_, network, all, c, cost);
    cost.refusal = "it was refused at another size, and could not be compared at this one";
    return false;
  }

  /// Builds a kernel and compares it. Returns whether its result or refusal is worth keeping.
  bool compare(const graph& network, const place_candidates& all, std::uint32_t which, const comparison& how,
               measured_cost& cost) {
    double building_ms = 0;
    measuring_setup setup;
    setup.threads = task_.threads;
    setup.seed = task_.options.seed;
    setup.packed = task_.packed.get();
    setup.compared = how;
    setup.note = [&](std::size_t, measuring_step step) {
      building_ms += step == measuring_step::build ? -now_ms() : step == measuring_step::first_call ? now_ms() : 0;
    };
    const std::uint32_t only[] = {which};
    const double start = now_ms();
    std::optional<structure_rivals> trial;
    try {
      trial.emplace(network, task_.backends, all, only, setup);
    } catch (const std::exception&) {  // the reference lacks the kind, or cannot compute it for random operands
      (void)can_be_used_unchecked(network, all, all.list[which], cost);
      return false;
    }
    measured_candidate found;
    cost.refusal = trial->add(all.list[which], building_turn{}, found);
    cost.kernel = found.kernel;
    ++report_.checked;
    // Building takes the same time without a comparison.
    if (building_ms < 0) building_ms += now_ms();  // no kernel was built
    left_s_ -= (now_ms() - start - building_ms) / 1e3;
    return !found.passing;
  }

  /// Returns what can be compared in the time and the memory that are left. Nothing if that is not enough.
  std::optional<comparison> affordable(const graph& network, const place_candidates& all,
                                       const place_candidate& c) const {
    if (task_.until.is_over() || left_s_ <= 0) return {};
    const std::vector<std::uint32_t>& nodes = all.groups[c.group].nodes;
    constexpr std::size_t copies = 4;  // in double precision, and for the kernel
    const double all_s = seconds_of_all(network, nodes);
    const bool can_compare_all = all_s <= left_s_ && has_room(copies * bytes_of_all(network, nodes));
    if (can_compare_all && all_s <= thresholds.check.small_s) return comparison();
    if (!has_room(bytes_of_all(network, nodes))) return {};
    std::vector<std::uint32_t> written;
    for (const std::uint32_t v : values_of(network, task_.backends, all, c).outputs)
      if (is_wanted(network, v)) written.push_back(v);
    std::ranges::sort(written);
    // Few elements are compared only if all of them, or many, would take too long.
    const check_policy& policy = thresholds.check;
    const std::size_t least = can_compare_all && all_s <= policy.most_s ? policy.most_elements : policy.least_elements;
    std::optional<comparison> some =
        elements_within(network, nodes, written, std::min(left_s_, all_s), least, task_.options.seed);
    return some || !can_compare_all ? some : comparison();
  }

  /// About how long the reference takes for a group.
  static double seconds_of_all(const graph& network, std::span<const std::uint32_t> nodes) {
    const check_policy& policy = thresholds.check;
    const auto elements = [&](std::uint32_t v) { return static_cast<double>(network.type_of(v).dims.elements()); };
    double flops = 0;
    for (const std::uint32_t n : nodes) {
      flops += work_of(network, n).flops;
      // Loops over elements are slower than products, and kinds that only move elements count no arithmetic.
      for (std::uint32_t i = 0; i < network.node(n).outputs; ++i)
        flops += policy.flops_an_element * elements(network.view().output_of(n, i));
      for (const std::uint32_t v : network.view().inputs_of(n)) flops += policy.flops_an_operand * elements(v);
    }
    return flops / policy.flops_a_second;
  }

  /// The bytes of the operands and results of all nodes.
  static std::size_t bytes_of_all(const graph& network, std::span<const std::uint32_t> nodes) {
    std::size_t bytes = 0;
    for (const std::uint32_t n : nodes) bytes += bytes_of_values(network, n);
    return bytes;
  }

  bool has_room(std::size_t bytes) const {
    constexpr std::size_t small = 4 << 20;
    return bytes < small || !limits_.memory_without_room_for(bytes);
  }

  /// The store for candidates of a network, opened at its first kernel. Faults of the store only cost time: each kernel is then
  /// compared again.
  std::optional<kept_costs>& store_for(const graph& network, const place_candidates& all) {
    const auto [at, is_new] = stores_.try_emplace(&network);
    if (!is_new || task_.options.store.empty() || task_.options.check_s <= 0) return at->second;
    try {
      at->second.emplace(task_.options.store, network, task_.backends, all, task_.use, task_.threads, task_.precision,
                         task_.options.algorithms, "", false, true);
    } catch (const error& e) { report_.unstored = e.what(); }
    return at->second;
  }

  const place_task& task_;
  place_report& report_;
  process_limits limits_;
  double left_s_;
  std::map<const graph*, std::optional<kept_costs>> stores_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
