#include "commands.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "terminal.hpp"

#include <collage/io/plan_file.hpp>

namespace program {

int tune(const options& given) {
  namespace c = collage;
  check(given);
  c::check_writable(given.plan_file);  // before minutes of measuring
  const placed p = place_now(given);
  c::save_plan(p.made, p.network, given.plan_file);
  if (!given.quiet) note_spread(p.made.runs);
  if (given.json) {
    const c::json runs = c::runs_to_json(p.made.runs);
    print(c::to_text({{"network", p.made.network},
                      {"plan", given.plan_file},
                      {"threads", p.made.threads},
                      {"precision", p.made.precision},
                      {"seconds", c::rounded(p.seconds)},
                      {"candidates", p.candidates},
                      {"kernels", p.kernels},
                      {"cost_ms", c::rounded(p.made.chosen.cost_ms)},
                      {"lower_bound_ms", c::rounded(p.made.lower_bound_ms)},
                      {"optimal", p.made.optimal},
                      {"origin", p.made.origin},
                      {"runs", runs}}));
    return 0;
  }
  std::string page = paint(colour::bold, title_of(p.made)) + "\n";
  page += wrap("Measured " + std::to_string(p.kernels) + " kernels for " + std::to_string(p.candidates) +
                   " places in " + format_number("%.1f s", p.seconds) +
                   (p.refused_kernels == 0 ? "" : ", and refused " + std::to_string(p.refused_kernels)) + ". " +
                   certificate_text(p.made),
               0);
  page += "\n" + runs_table(p.made, p.made.runs, ratios_to_first(p.made.runs));
  page += "\nThe plan is in " + given.plan_file + ".\n";
  print(page);
  return 0;
}

}  // namespace program
