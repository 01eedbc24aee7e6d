// The sentences of the log about a placing.
#pragma once

#include <collage/place.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/log.hpp>

#include <string>

#include "text.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

inline void log_report(const placed_plan& made) {
  if (!has_log()) return;
  const place_report& r = made.report;
  const auto say = [&](log_level level, const std::string& text) { log(level, (made.network + ": " + text).c_str()); };
  if (!r.unstored.empty()) say(log_level::warning, "measured costs were not stored: " + r.unstored);
  if (!r.where.empty() && r.where != in_a_worker)
    say(log_level::warning, "kernels were measured " + r.where + "; a kernel that crashes there ends the program");
  for (const merged_refusal& refusal : merged(r.refusals))
    say(log_level::note, refusal.backend + (refusal.pattern.empty() ? "" : " " + refusal.pattern) +
                             " cannot be used at " + refusal.where + ": " + refusal.reason);
  say(log_level::note, std::string(r.interrupted ? "placing ended early" : "placed") +
                           format_number(" in %.1f s: ", r.measuring_s + r.comparing_s) +
                           count_of(r.distinct, "kernel") + ", " + std::to_string(r.measured) + " measured, " +
                           std::to_string(r.from_store) + " from the store, " + std::to_string(r.refused) +
                           " refused, " + std::to_string(r.skipped) + " skipped");
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
