#include "placing.hpp"

#include "backends.hpp"
#include "network.hpp"
#include "terminal.hpp"

#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/processor.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace program {

namespace c = collage;

namespace {

std::vector<refusal> merged(const std::vector<c::place_refusal>& list) {
  std::vector<refusal> merged;
  for (const c::place_refusal& r : list) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const refusal& m) {
      return m.backend == r.backend && m.pattern == r.pattern && m.reason == r.reason;
    });
    if (same == merged.end()) merged.push_back({r.backend, r.pattern, r.reason, r.where, 1});
    else ++same->count;
  }
  return merged;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

placed read_plan(const options& given) {
  placed p;
  p.network = load_ready_network(given);
  p.made = c::load_plan(given.plan_file, p.network);
  if (given.threads != 0 && given.threads != p.made.threads)
    throw c::error(
        c::error_kind::invalid_argument,
        "is a plan for --threads " + std::to_string(p.made.threads) + ", not " + std::to_string(given.threads),
        given.plan_file, "leave --threads out, or tune for that number");
  std::set<std::string> made_of;
  for (const c::plan_backend& b : p.made.backends) made_of.insert(b.name);
  const std::set<std::string> wanted(given.backends.begin(), given.backends.end());
  if (!wanted.empty() && wanted != made_of)
    throw c::error(c::error_kind::invalid_argument,
                   "is a plan over --backends " + joined(made_of) + ", not " + joined(wanted), given.plan_file,
                   "leave --backends out, or tune over those");
  if (const std::string here = c::processor_name(); here != p.made.processor && !given.quiet)
    complain("note: " + given.plan_file + " was measured on " + p.made.processor + ", and this is " + here);
  const c::backend_table table = backends();
  std::vector<bool> use;
  for (const c::backend_entry& b : table) use.push_back(made_of.count(b.name) != 0);
  p.refusals = merged(c::find_candidates(p.network, table, use).refusals);
  return p;
}

}  // namespace

void check(const options& given) {
  check_backend_names(given.backends);
  if (const int most = c::available_threads(); given.threads > most && !given.quiet)
    complain("note: " + std::to_string(given.threads) + " threads share " + std::to_string(most) + " processors here");
}

placed place_now(const options& given) {
  placed p;
  p.network = load_ready_network(given);
  progress_line line(given.quiet);
  c::place_report report;
  c::place_options how;
  how.network = given.network;
  how.backends = given.backends;
  how.threads = given.threads;
  how.seed = given.seed;
  how.measure = given.measure;
  how.report = &report;
  if (!given.quiet)
    how.progress = [&](const c::place_progress& now) {
      if (now.remaining == 0) return;
      std::string text = now.stage;
      if (now.done + now.remaining > 1)
        text += " " + std::to_string(now.done + 1) + " of " + std::to_string(now.done + now.remaining) + ", " +
                std::to_string(now.remaining) + " remain";
      if (now.best_ms > 0) text += ", best so far " + format_number("%.3f ms", now.best_ms);
      line.show(text + ": " + now.what);
    };
  p.made = c::place(p.network, backends(), how);
  line.clear();
  p.fresh = true;
  p.refusals = merged(report.refusals);
  p.candidates = report.candidates;
  p.kernels = report.measured;
  p.refused_kernels = report.distinct - report.measured;
  p.states = report.states;
  p.seconds = report.measuring_s + report.comparing_s + report.search_ms / 1e3;
  return p;
}

placed get_plan(const options& given) { return given.plan_file.empty() ? place_now(given) : read_plan(given); }

std::string title_of(const c::plan& made) {
  return made.network + " on " + std::to_string(made.threads) + (made.threads == 1 ? " thread of " : " threads of ") +
         made.processor + ", " + made.precision;
}

}  // namespace program
