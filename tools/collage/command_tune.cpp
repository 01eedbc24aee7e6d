#include "commands.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "terminal.hpp"

#include <collage/io/plan_file.hpp>
#include <collage/place/compare.hpp>

#include <algorithm>
#include <string>

namespace program {

int tune(const options& given) {
  namespace c = collage;
  check(given);
  c::check_writable(given.plan_file);  // before minutes of measuring
  const placed p = place_now(given, purpose::tuning);
  c::save_plan(p.made, p.network, given.plan_file);
  if (!given.quiet) note_spread(p.made.runs);
  if (given.json) {
    const c::json runs = c::runs_to_json(p.made.runs);
    const std::size_t best = c::best_single(p.made.runs);
    print(c::to_text({{"network", p.made.network},
                      {"plan", given.plan_file},
                      {"store", p.store.empty() ? c::json() : c::json(p.store)},
                      {"threads", p.made.threads},
                      {"precision", p.made.precision},
                      {"seconds", c::rounded(p.seconds)},
                      {"waited_s", c::rounded(p.waited)},
                      {"candidates", p.candidates},
                      {"distinct", p.distinct},
                      {"measured", p.kernels},
                      {"from_store", p.from_store},
                      {"skipped", p.skipped},
                      {"where", p.where},
                      {"compared_before", p.compared_before},
                      {"interrupted", p.interrupted},
                      {"refused", p.refused_kernels},
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
                      {"runs", runs}}));
    return 0;
  }
  std::string page = paint(colour::bold, title_of(p.made)) + "\n";
  page +=
      wrap("Measured " + std::to_string(p.kernels) + " kernels for " + std::to_string(p.candidates) + " places in " +
               format_number("%.1f s", p.seconds) +
               (p.waited < 1 ? "" : ", of which " + format_number("%.0f s", p.waited) + " until the machine was calm") +
               (p.from_store == 0 ? "" : ", took " + std::to_string(p.from_store) + " from the store") +
               (p.refused_kernels == 0 ? "" : ", and refused " + std::to_string(p.refused_kernels)) + ". " +
               certificate_text(p.made),
           0);
  if (!p.made.runs.empty()) page += "\n" + runs_table(p.made, p.made.runs);
  if (p.compared_before)
    page += wrap("The placements were compared at an earlier time; --recheck compares them again.", 0);
  if (p.interrupted)
    page +=
        wrap("It was ended before everything was measured: this is the best placement so far. Tune again to go on.", 0);
  if (const std::string error = prediction_text(p.made); !error.empty()) page += "\n" + wrap(error, 0);
  page += "\nThe plan is in " + given.plan_file + ".\n";
  print(page);
  return 0;
}

}  // namespace program
