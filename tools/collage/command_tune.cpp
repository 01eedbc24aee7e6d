#include "budget_curve.hpp"
#include "commands.hpp"
#include "output_file.hpp"
#include "placing.hpp"
#include "plan_keeper.hpp"
#include "report.hpp"
#include "terminal.hpp"
#include "tune_several.hpp"

#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <front_end.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace program {

namespace {

/// How many candidates there were, and what became of them, in a sentence.
std::string candidates_text(const collage::place_report& r) {
  const auto part = [](std::size_t count, const char* what) {
    return count == 0 ? std::string() : ", " + std::to_string(count) + what;
  };
  return count_of(r.candidates, "candidate") + ", " + std::to_string(r.distinct) +
         " of them different: " + std::to_string(r.measured) + " measured in " +
         format_number("%.1f s", r.measuring_s + r.comparing_s) +
         (r.waited_s < 1 ? ""
                         : " (" + format_number("%.0f s", r.waited_s) + " of it waiting for an undisturbed machine)") +
         part(r.from_store, " from the store") + part(r.interpolated, " estimated from other shapes") +
         part(r.modelled, " modelled") + part(r.refused, " refused") + part(r.skipped, " skipped") + ".";
}

/// The result of the search of whole spaces, in sentences; empty if there was no such search.
std::string autotune_text(const collage::tuning_report& tuning) {
  if (tuning.seconds <= 0) return {};
  const double gained = tuning.before_ms > 0 ? 1 - tuning.after_ms / tuning.before_ms : 0;
  return "The search of whole configuration spaces measured " + count_of(tuning.measured, "configuration") + " in " +
         format_number("%.0f s", tuning.seconds) + ". " +
         (gained < 0.0005
              ? "None made the network faster, by the kernels' times alone."
              : "By the kernels' times alone, the network takes " + format_number("%.1f %%", 100 * gained) + " less.") +
         (tuning.is_exhausted ? " It ended because no other configuration promised anything to speak of."
                              : " It ended at its time limit (--autotune, or --budget).") +
         (tuning.without_model.empty() ? "" : " It had no cost model: " + tuning.without_model + ".");
}

/// The result of the search over regions, in sentences; empty if there was no such search.
std::string regions_text(const collage::region_report& regions) {
  if (regions.tried == 0 || regions.by_generation.empty()) return {};
  const double gained = 1 - regions.ratio;
  return "The search over regions tried " + count_of(regions.tried, "way") +
         " to divide the network into regions, in " + count_of(regions.by_generation.size(), "generation") + ". " +
         (gained < 0.0005 ? "None was significantly faster than the placements before it."
                          : "The best took " + format_number("%.1f %%", 100 * gained) +
                                " less than the fastest placement before it.") +
         (regions.is_saturated ? "" : " The search ended at its time limit (--regions).");
}

}  // namespace

int tune(const options& given) {
  namespace c = collage;
  check(given);
  check_curve(given);
  if (names_several_shapes(given)) return tune_several(given);
  if (given.plan_file.empty())
    throw c::error(c::error_kind::invalid_argument, "--plan is required", "tune", "see collage tune --help");
  check_plan_output(given.plan_file, given);  // fails now, not after minutes of measuring
  plan_keeper keeper(given.plan_file);
  const placed p = place_now(given, &keeper);
  if (!p.is_worth_keeping && ending_signal() != 0) keeper.end_program_without_plan();
  std::optional<c::error> unwritten;  // a full disk, for example: the summary is shown all the same
  try {
    if (p.is_worth_keeping) keeper.write(p.made, p.network);
    else
      complain("note: the time was up before this plan could run against the one in " + given.plan_file +
               ", which stays as it is; repeat the command to continue");
  } catch (const c::error& e) { unwritten.emplace(e); }
  const auto end = [&] {
    if (!unwritten) return 0;
    complain(unwritten->what());
    return unwritten->exit_code();
  };
  if (!given.quiet) note_spread(p.made.runs);
  const c::place_report& r = p.report;
  if (given.json) {
    const std::size_t best = c::best_single(p.made.runs);
    c::json all = {{"network", p.made.network},
                   {"plan", unwritten ? c::json() : c::json(given.plan_file)},
                   {"threads", p.made.threads},
                   {"precision", p.made.precision}};
    all.update(c::report_to_json(r, p.store));
    all.update({{"compared_before", r.compared_before},
                {"cost_ms", c::rounded(p.made.chosen.cost_ms)},
                {"lower_bound_ms", c::rounded(p.made.lower_bound_ms)},
                {"optimal", p.made.optimal},
                {"first_cost_ms", c::rounded(p.made.first_cost_ms)},
                {"additive_error", c::rounded(prediction_error(p.made))},
                {"origin", p.made.origin},
                {"gap", p.made.chosen.cost_ms > 0
                            ? c::rounded(std::max(0.0, 1 - p.made.lower_bound_ms / p.made.chosen.cost_ms))
                            : 0.0},
                {"best_single", best == 0 ? c::json() : c::json(p.made.runs[best].name)},
                {"ratio", best == 0 ? 1.0 : c::rounded(p.made.runs[best].ratio)},
                {"runs", c::runs_to_json(p.made.runs)}});
    if (!given.curve_file.empty()) all["curve"] = curve_to_json(make_curve(given, p.network));
    print(c::to_text(all));
    return end();
  }
  std::string page = heading_of(p.made, paint);
  page += wrap(candidates_text(r) + " " + certificate_text(p.made), 0);
  for (const std::string& text : {error_text(p.made), kept_text(p.made, p.network)})
    if (!text.empty()) page += wrap(text, 0);
  if (!p.made.runs.empty()) page += "\n" + runs_table(p.made, p.made.runs);
  if (const std::string text = autotune_text(r.tuning); !text.empty()) page += wrap(text, 0);
  if (const std::string text = regions_text(r.regions); !text.empty()) page += wrap(text, 0);
  if (r.rounds_apart >= c::enough_of_a_regime && r.rounds_apart < r.rounds)
    page +=
        wrap("In " + std::to_string(r.rounds_apart) + " of " + std::to_string(r.rounds) +
                 " rounds the processors shared no cache. The times with and without a shared cache have equal weight.",
             0);
  if (!r.holdups.advice.empty()) page += wrap(r.holdups.advice, 0);
  if (r.compared_before)
    page += wrap("The store has the end-to-end comparison of these placements; --recheck runs it again.", 0);
  if (r.interrupted)
    page += wrap("Measuring was ended early: this is the best placement so far. Repeat the command to continue.", 0);
  if (const std::string error = prediction_text(p.made); !error.empty()) page += "\n" + wrap(error, 0);
  if (!unwritten) page += "\nThe plan is in " + given.plan_file + ".\n";
  print(page);
  if (!given.curve_file.empty())
    print(curve_page(make_curve(given, p.network)) + "\nThe curve is in " + given.curve_file + ".\n");
  return end();
}

}  // namespace program
