// The task of placing: the network, the backends, the options and the deadline. It does not change during placing.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>
#include <collage/set/candidate.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Thrown where the caller's `cancel` returns true. No std::exception, so that nothing takes it for a fault of a kernel.
struct cancellation {};

/// Thrown where the time is long over before a round of whole runs is complete. No std::exception, either.
struct no_round {};

/// The end of placing: the budget is used up, or the caller's `stop` returns true.
class deadline {
 public:
  explicit deadline(const place_options& options) : options_(options), start_ms_(now_ms()) {}
  /// Throws `cancellation` if the caller wants the end at once, but only once: what finishes the plan then asks, too.
  void check() const {
    if (is_cancelled_ || !options_.cancel || !options_.cancel()) return;
    is_cancelled_ = true;
    throw cancellation();
  }
  /// Also checks, so every loop that asks for the end of placing can be cancelled.
  bool is_over() const {
    check();
    return is_past();
  }
  /// The same for work that must not be lost to a cancellation: it does not check.
  bool is_past() const {
    const bool over = is_cancelled_ || is_used(1) || was_stopped();
    if (over && over_ms_ < 0) over_ms_ = now_ms();
    return over;
  }
  /// Whether `stop` returned true.
  bool was_stopped() const { return options_.stop && options_.stop(); }
  /// The same as is_over for measuring kernels alone, which leaves time for comparing placements end to end.
  bool is_over_for_kernels() const { return is_over() || is_used(thresholds.budget.for_kernels); }
  /// Whether it is over for longer than finishing should take. Searches then return what they have, and what the plan can do
  /// without is left out.
  bool is_long_over() const { return is_over() && now_ms() - over_ms_ > thresholds.most_overtime_ms; }
  /// The time until `is_over_for_kernels`, or until the end if that is over already.
  double left_for_kernels_s() const {
    const double left = left_s() - (1 - thresholds.budget.for_kernels) * options_.budget_s;
    return left > 0 ? left : std::max(left_s(), 0.0);
  }
  double left_s() const { return options_.budget_s > 0 ? options_.budget_s - (now_ms() - start_ms_) / 1e3 : 1e9; }

 private:
  bool is_used(double part) const {
    return options_.budget_s > 0 && now_ms() - start_ms_ > part * options_.budget_s * 1e3;
  }

  const place_options& options_;
  double start_ms_;
  mutable double over_ms_ = -1;  // when it was over first
  mutable bool is_cancelled_ = false;
};

/// The element types in which values may be stored that the network has in another one.
inline std::vector<dtype> elements_of(const precision_options& how) {
  std::vector<dtype> list;
  if (!how.may_round()) return list;
  for (const dtype element : {dtype::bf16, dtype::u8, dtype::i8}) {
    const bool has_scales = !is_8_bit_integer(element) || (how.scales != nullptr && !how.scales->empty());
    if (allows(how.elements, element) && has_scales) list.push_back(element);
  }
  return list;
}

struct place_task {
  const graph& network;
  backend_table backends;
  const place_options& options;
  deadline until;
  int threads;
  const char* precision;       ///< of kernels that round nothing; a part of the keys of costs
  std::string plan_precision;  ///< of the plan: what its kernels may round, and how far its outputs may err for it
  std::vector<bool> use;       ///< by backend: the user allows it, and it can run here
  std::vector<place_refusal> missing;      ///< backends that cannot run here
  std::vector<bool> is_alias;              ///< by node: a reshape, which never needs a kernel
  std::vector<form> forms;                 ///< in which backends can pass values to each other (forms_between)
  std::shared_ptr<packed_weights> packed;  ///< shared by all kernels that are built

  /// Errors: a named backend that is unknown or cannot run here; no backend that can run here; a network with unknown extents;
  /// contradictory options.
  place_task(const graph& placed, backend_table table, const place_options& how)
      : network(placed),
        backends(table),
        options(how),
        until(how),
        threads(concurrent_threads(how.threads > 0 ? how.threads : available_threads())),
        precision(how.keep_non_finite ? fp32_non_finite : fp32),
        plan_precision(how.precision.may_round() ? precision_text(how.precision, how.kept) : std::string(precision)),
        forms(forms_between(table, elements_of(how.precision))),
        packed(how.packed ? how.packed : std::make_shared<packed_weights>()) {
    if (how.keep_non_finite && !measures())
      throw error(error_kind::invalid_argument, "only measuring shows which kernels keep NaN and infinity",
                  "keep_non_finite", "measure, or leave it out");
    if (how.precision.may_round() && (how.keep_non_finite || !measures()))
      throw error(error_kind::invalid_argument,
                  how.keep_non_finite ? "kernels that round values need not keep NaN and infinity"
                                      : "only measuring shows whether lower precision pays",
                  "precision", how.keep_non_finite ? "leave keep_non_finite out" : "measure, or place in fp32");
    if (const double ratio = how.memory.ratio; !std::isfinite(ratio) || ratio <= 0)
      throw error(error_kind::invalid_argument, "the ratio for the memory of weights is not a number above 0", "memory",
                  "give a ratio such as 1.5, or bytes");
    choose_backends();
    for (const value_record& v : network.values())
      if (!v.type.dims.is_concrete())
        throw error(error_kind::invalid_argument, "has extents that are not known", "network " + options.network,
                    "bind every symbolic extent before placing");
    is_alias.resize(network.nodes().size());
    for (std::uint32_t n = 0; n < is_alias.size(); ++n) is_alias[n] = collage::is_alias(network.view(), n);
  }

  bool measures() const { return options.costs == placing_costs::measured; }
  /// Whether kernels have costs, measured or estimated.
  bool has_costs() const { return options.costs != placing_costs::none; }

  /// The index in `forms` of the form with this text; `forms.size()` if there is none.
  std::uint32_t number_of_form(const std::string& text) const {
    const auto at = std::ranges::find_if(forms, [&](const form& f) { return text == to_text(f); });
    return static_cast<std::uint32_t>(at - forms.begin());
  }
  /// Whether to expect a split cache: a host may move virtual processors, so that threads share a cache only at times.
  bool may_split() const { return threads > 1 && options.measuring.splits_caches.value_or(is_virtual_machine()); }

 private:
  /// Whether kernels may store values in an element type.
  bool may_round_to(dtype element) const {
    const std::vector<dtype> allowed = elements_of(options.precision);
    return std::ranges::find(allowed, element) != allowed.end();
  }
  void choose_backends() {
    for (const std::string& name : options.backends)
      if (find_backend(backends, name) == nullptr) {
        std::string known;
        for (const backend_entry& b : backends) known += (known.empty() ? "" : ", ") + std::string(b.name);
        throw error(error_kind::invalid_argument, "there is no backend " + name, "backends",
                    "this program has " + known);
      }
    std::string reasons;
    for (const backend_entry& b : backends) {
      const auto is_named = [&](const char* name) {
        return name != nullptr && std::ranges::find(options.backends, name) != options.backends.end();
      };
      // Variants in another element type take part where they may round.
      const bool may_take_part = !b.rounds_to || may_round_to(*b.rounds_to);
      if (!may_take_part && is_named(b.name)) {
        const std::string reason =
            std::string("it computes in ") + name_of(*b.rounds_to) + ", which is not allowed here";
        missing.push_back({b.name, "", "this placing", reason});
        reasons += std::string("; ") + b.name + ": " + reason;
      }
      const bool wanted = may_take_part && (options.backends.empty() || is_named(b.name) || is_named(b.variant_of));
      // A probe opens the library, which may take some MB. So only the wanted backends are probed.
      const probe_result found = wanted ? b.probe() : probe_result{.available = false};
      use.push_back(found.available);
      if (wanted && !found.available) {
        if (is_named(b.name)) throw error(error_kind::environment, found.reason, std::string("backend ") + b.name);
        missing.push_back({b.name, "", "this machine", found.reason});
        reasons += std::string("; ") + b.name + ": " + found.reason;
      }
    }
    if (std::none_of(use.begin(), use.end(), [](bool used) { return used; }))
      throw error(error_kind::environment, "no backend is available" + reasons, "backends");
  }
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
