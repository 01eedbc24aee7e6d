#include "backends.hpp"
#include "commands.hpp"
#include "front_end.hpp"
#include "network.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "terminal.hpp"
#include "trace_file.hpp"

#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/monitor.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/holdups.hpp>
#include <collage/run/kernel.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace program {

namespace c = collage;

namespace {

c::json to_json(const c::plan& made, const std::vector<c::plan_run>& runs, std::size_t best) {
  return {{"network", made.network},
          {"threads", made.threads},
          {"precision", made.precision},
          {"best_single", best == 0 ? c::json() : c::json(runs[best].name)},
          {"ratio", c::rounded(runs[best].ratio)},
          {"plans", c::runs_to_json(runs)}};
}

/// Adds runs of each placement to the trace, one placement after the other.
void add_runs(trace_file& to, const placed& p, const std::vector<const c::placement*>& all,
              const std::shared_ptr<c::packed_weights>& packed, std::uint64_t seed) {
  if (!to.is_wanted()) return;
  c::run_buffers memory(p.network);
  memory.randomise(seed);
  for (const c::placement* which : all)
    to.add(c::dynamic_engine(p.network, *which, backends(), p.made.threads, packed), p.network, which->name, memory,
           traced_runs);
}

}  // namespace

int bench(const options& asked) {
  check(asked);
  const options given = with_shapes(asked);
  trace_file trace(given);
  const placed p = get_plan(given);
  std::vector<const c::placement*> all{&p.made.chosen};
  for (const c::placement& s : p.made.singles) all.push_back(&s);

  progress_line line(given.quiet);
  line.show("running " + std::to_string(all.size()) + " placements in turns for about " +
            format_number("%.0f s", given.seconds));
  const auto packed = std::make_shared<c::packed_weights>();
  const c::dynamic_engine engine(p.network, p.made.chosen, backends(), p.made.threads, packed);
  c::drift_monitor monitor = c::watch_machine(p.made.threads);
  const c::holdup_watch watch;
  const std::vector<c::plan_run> runs =
      c::compare_placements(p.network, all, backends(), p.made.threads, given.seconds, given.seed, packed, &monitor);
  const c::process_holdups held = watch.report(p.made.threads);
  add_runs(trace, p, all, packed, given.seed);
  trace.save(p.made.network);
  line.clear();
  if (!given.quiet) {
    note_spread(runs);
    note_slower(p.made, runs[0].median_ms);
    note_holdups(held);
  }
  const std::size_t best = c::best_single(runs);
  if (given.json) {
    c::json figures = to_json(p.made, runs, best);
    figures["holdups"] = c::holdups_to_json(held);
    add_arena(figures, engine);
    if (trace.is_wanted()) figures["trace"] = given.trace_file;
    print(c::to_text(figures));
    return 0;
  }
  std::string page = heading_of(p.made, paint) + "\n" + runs_table(p.made, runs) + "\n";
  if (best != 0)
    page += wrap("Ratio of the best single backend, " + single_text(p.made, runs[best].name) + ", to the plan: " +
                     format_number("%.3f", runs[best].ratio) + " (median over rounds; above 1 the plan is faster).",
                 0);
  page += wrap("A run of the plan needs an " + arena_text(engine) + ".", 0);
  page += borrowed_text(p.made, 12);
  if (trace.is_wanted()) page += wrap(trace.sentence(), 0);
  print(page);
  return 0;
}

}  // namespace program
