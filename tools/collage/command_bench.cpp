#include "backends.hpp"
#include "commands.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "terminal.hpp"

#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place/compare.hpp>

#include <memory>
#include <vector>

namespace program {

namespace c = collage;

namespace {

c::json to_json(const c::plan& made, const c::comparison& measured, const c::comparison_ratio& best) {
  return {{"network", made.network},
          {"threads", made.threads},
          {"precision", made.precision},
          {"best_single", best.best_single == 0 ? c::json() : c::json(measured.runs[best.best_single].name)},
          {"ratio", c::rounded(best.ratio)},
          {"plans", c::runs_to_json(measured.runs)}};
}

}  // namespace

int bench(const options& given) {
  check(given);
  const placed p = get_plan(given);
  std::vector<const c::placement*> all{&p.made.chosen};
  for (const c::placement& s : p.made.singles) all.push_back(&s);

  progress_line line(given.quiet);
  line.show("running " + std::to_string(all.size()) + " placements in turns for about " +
            format_number("%.0f s", given.seconds));
  const c::comparison measured = c::compare_placements(p.network, all, backends(), p.made.threads, given.seconds,
                                                       given.seed, std::make_shared<c::packed_weights>());
  line.clear();
  if (!given.quiet) {
    note_spread(measured.runs);
    note_slower(p.made, measured.runs[0].median_ms);
  }
  const c::comparison_ratio best = c::ratio_of(measured);
  if (given.json) {
    print(c::to_text(to_json(p.made, measured, best)));
    return 0;
  }
  std::vector<double> ratios;
  for (const std::vector<double>& samples : measured.samples)
    ratios.push_back(c::paired_ratio(samples, measured.samples[0]));
  std::string page = paint(colour::bold, title_of(p.made)) + "\n\n" + runs_table(p.made, measured.runs, ratios) + "\n";
  if (best.best_single != 0)
    page += wrap("Ratio of the best single backend, " + measured.runs[best.best_single].name + ", to the plan: " +
                     format_number("%.3f", best.ratio) + " (median over rounds; above 1 the plan is faster).",
                 0);
  page += borrowed_text(p.made, 12);
  print(page);
  return 0;
}

}  // namespace program
