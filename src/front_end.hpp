// Shared by the program and the C library: the path of the store, and the report of placing as JSON.
#pragma once

#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>
#include <collage/place.hpp>

#include <string>

namespace collage::inline v0 {

/// The path of the store with this name: the default path if `name` is null, and empty, no store, if it is "none". If there is no
/// default path, returns an empty path, and `problem` says why.
inline std::string store_named(const std::string* name, std::string& problem) {
  if (name != nullptr) return *name == "none" ? std::string() : *name;
  try {
    return default_store_path();
  } catch (const error& e) {
    problem = e.what();
    return {};
  }
}

/// The hold-ups of the process, as JSON.
inline json holdups_to_json(const process_holdups& held) {
  const double part = held.periods == 0 ? 0.0 : static_cast<double>(held.throttled) / static_cast<double>(held.periods);
  return {{"periods", held.periods},
          {"throttled", held.throttled},
          {"throttled_part", rounded(part)},
          {"throttled_s", rounded(held.throttled_s)},
          {"waited_s", rounded(held.waited_s)},
          {"preempted", held.preempted},
          {"advice", held.advice}};
}

/// null without a search of whole spaces.
inline json autotune_to_json(const tuning_report& tuning) {
  if (tuning.seconds <= 0) return {};
  return {{"measured", tuning.measured},
          {"rounds", tuning.rounds},
          {"before_ms", rounded(tuning.before_ms)},
          {"after_ms", rounded(tuning.after_ms)},
          {"seconds", rounded(tuning.seconds)},
          {"training_s", rounded(tuning.training_s)},
          {"searching_s", rounded(tuning.searching_s)},
          {"exhausted", tuning.is_exhausted},
          {"without_model", tuning.without_model.empty() ? json() : json(tuning.without_model)}};
}

/// The report of placing as JSON. `store` is the path of the store; empty: there was none.
inline json report_to_json(const place_report& report, const std::string& store) {
  json generations = json::array();
  for (const double best : report.regions.by_generation) generations.push_back(rounded(best));
  json switches = json::array();
  for (const place_switch& s : report.switches)
    switches.push_back({{"from", s.from}, {"to", s.to}, {"ms", rounded(s.ms)}, {"kernels", s.kernels}});
  return {{"store", store.empty() ? json() : json(store)},
          {"seconds", rounded(report.measuring_s + report.comparing_s)},
          {"waited_s", rounded(report.waited_s)},
          {"holdups", holdups_to_json(report.holdups)},
          {"rounds", report.rounds},
          {"rounds_apart", report.rounds_apart},
          {"candidates", report.candidates},
          {"distinct", report.distinct},
          {"measured", report.measured},
          {"from_store", report.from_store},
          {"interpolated", report.interpolated},
          {"modelled", report.modelled},
          {"skipped", report.skipped},
          {"refused", report.refused},
          {"checked", report.checked},
          {"unchecked", report.unchecked},
          {"conversions", report.conversions},
          {"where", report.where},
          {"searches", report.searches},
          {"search_ms", rounded(report.search_ms)},
          {"states", report.states},
          {"interrupted", report.interrupted},
          {"switches", switches},
          {"autotune", autotune_to_json(report.tuning)},
          {"regions",
           {{"tried", report.regions.tried},
            {"ratio", rounded(report.regions.ratio)},
            {"saturated", report.regions.is_saturated},
            {"by_generation", generations}}}};
}

}  // namespace collage::inline v0
