#include "placing.hpp"

#include "backends.hpp"
#include "lower_precision.hpp"
#include "memory_option.hpp"
#include "network.hpp"
#include "plan_keeper.hpp"
#include "signals.hpp"
#include "terminal.hpp"

#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>
#include <collage/run/plan_fit.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>
#include <front_end.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

/// How long commands place that are called for something else.
constexpr double budget_once_s = 20;

void note_shared_processors(int threads, const options& given) {
  if (const int most = c::available_threads(); threads > most && !given.quiet)
    complain("note: " + std::to_string(threads) + " threads share " +
             count_of(static_cast<std::size_t>(most), "processor") + " here");
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

/// The file of the store that the options name, or of the user's store.
std::string store_of(const options& given) {
  std::string problem;
  std::string file = c::store_named(given.store_file.empty() ? nullptr : &given.store_file, problem);
  if (!problem.empty() && !given.quiet) complain("note: measured costs are not stored: " + problem);
  return file;
}

/// The placement constraints of --pin and --exclude, each given as WHAT=BACKEND.
std::vector<c::place_rule> rules_of(const options& given) {
  std::vector<c::place_rule> rules;
  const auto add = [&](const std::vector<std::string>& list, c::place_rule::action act, const char* option) {
    for (const std::string& text : list) {
      const std::size_t equals = text.rfind('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
        throw c::error(c::error_kind::invalid_argument, "'" + text + "' is not WHAT=BACKEND", option,
                       "name a node, an operator or a pattern, and a backend, as in softmax=eigen");
      check_backend_names({text.substr(equals + 1)});
      rules.push_back({act, text.substr(equals + 1), text.substr(0, equals)});
    }
  };
  add(given.pins, c::place_rule::action::pin, "--pin");
  add(given.exclusions, c::place_rule::action::exclude, "--exclude");
  return rules;
}

/// The algorithms that a plan may have; `otherwise` if none are named.
c::algorithms algorithms_of(const options& given, c::algorithms otherwise) {
  return c::algorithms_named(given.algorithms).value_or(otherwise);
}

/// The precision that a plan must have; empty: any.
std::string precision_of(const options& given) {
  if (given.keep_non_finite) return c::fp32_non_finite;
  if (given.precision.empty()) return {};
  const c::precision_options how = precision_options_of(given);
  return how.elements == c::precisions::f32 ? c::fp32 : c::precision_text(how, kept_parts_of(given));
}

/// Says how many kernels were used without a comparison, and what to do.
std::string unchecked_text(const c::place_report& report, double seconds) {
  const std::size_t all = report.checked + report.unchecked;
  return std::to_string(report.unchecked) + " of " + count_of(all, "kernel") +
         (report.unchecked == 1 ? " was" : " were") + " not compared with the reference: there was no time (" +
         format_number("%.0f s", seconds) + ") or no memory for it; collage verify compares the whole plan";
}

/// The plan in the file that will be overwritten, if that plan can still be run.
std::optional<c::plan> previous_plan(const options& given, const c::graph& network) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(given.plan_file, ignored)) return {};
  try {
    c::plan previous = c::load_plan(given.plan_file, network);
    const int threads = given.threads != 0 ? given.threads : c::available_threads();
    c::check_plan_fits(previous, network, backends(),
                       {.threads = threads,
                        .precision = given.precision.empty() && !given.keep_non_finite ? c::fp32 : precision_of(given),
                        .algorithms = algorithms_of(given, c::algorithms::accurate)},
                       given.plan_file);
    return previous;
  } catch (const c::error& e) {
    if (!given.quiet) complain(std::string("note: the previous plan in the file is not compared: ") + e.what());
    return {};
  }
}

/// Throws if an option is given that only placing uses.
void refuse_what_makes_plans(const options& given) {
  std::string names, which;
  const auto add = [&](bool is_given, const char* name) {
    if (is_given) names += (names.empty() ? "" : " and ") + std::string(name);
  };
  add(!given.pins.empty(), "--pin");
  add(!given.exclusions.empty(), "--exclude");
  add(given.recheck, "--recheck");
  add(given.complete, "--complete");
  add(!given.memory.empty(), "--memory");
  add(!given.precision.empty(), "--precision");
  add(!given.error.empty(), "--error");
  add(!given.kept.empty(), "--keep");
  add(!given.data.empty(), "--data");
  add(!given.known_ranges.empty(), "--ranges");
  add(given.requantise, "--requantise");
  if (names.empty()) return;
  const bool is_one = names.find(" and ") == std::string::npos;
  throw c::error(
      c::error_kind::invalid_argument,
      "is a finished plan, and " + names + (is_one ? " only affects" : " only affect") + " placing", given.plan_file,
      is_one ? "leave it out, or run collage tune with it" : "leave them out, or run collage tune with them");
}

/// Throws if the plan does not fit. An accepted change of versions is printed as a note.
void check_fits(const placed& p, const options& given) {
  c::plan_fit_options must{.threads = given.threads,
                           .precision = precision_of(given),
                           .algorithms = algorithms_of(given, c::algorithms::all),
                           .all_backends = true};
  const std::optional<c::plan_misfit> wrong = c::misfit_of(p.made, p.network, backends(), must);
  if (!wrong) return;
  const bool is_version = wrong->of == c::plan_misfit::kind::version;
  if (!is_version || !given.accept_version_change)
    throw c::error(c::error_kind::invalid_argument, wrong->what, given.plan_file,
                   is_version
                       ? "make a new plan with collage tune, or add --accept-version-change to use this plan as it is"
                       : wrong->remedy);
  if (!given.quiet) complain("note: " + given.plan_file + " " + wrong->what);
}

/// Says what makes the times of runs differ from those in the plan.
void note_other_times(const c::plan& made, const options& given) {
  if (const std::string now = c::waiting_policy(); made.threads > 1 && made.waiting != now && !given.quiet)
    complain("note: " + given.plan_file + " was measured while threads waited by policy \"" + made.waiting +
             "\", which is \"" + now + "\" here: times may differ; collage tune compares again");
  if (given.threads == 0) note_shared_processors(made.threads, given);
}

placed read_plan(const options& given, plan_use use) {
  refuse_what_makes_plans(given);
  placed p;
  p.network = load_planned_network(given);
  p.made = c::load_plan(given.plan_file, p.network);
  std::set<std::string> made_of;
  for (const c::plan_backend& b : p.made.backends) made_of.insert(b.name);
  const std::set<std::string> wanted(given.backends.begin(), given.backends.end());
  if (!wanted.empty() && wanted != made_of)
    throw c::error(c::error_kind::invalid_argument,
                   "was made with --backends " + joined(made_of) + ", not " + joined(wanted), given.plan_file,
                   "leave --backends out, or tune with these backends");
  check_fits(p, given);
  if (use == plan_use::run) note_other_times(p.made, given);
  return p;
}

}  // namespace

void check(const options& given, plan_use use) {
  check_backend_names(given.backends);
  (void)rules_of(given);
  (void)precision_options_of(given);
  if (use == plan_use::run || given.plan_file.empty()) note_shared_processors(given.threads, given);
  if (given.accept_version_change && given.plan_file.empty())
    throw c::error(c::error_kind::invalid_argument, "it needs --plan", "--accept-version-change",
                   "give --plan FILE, or leave it out");
  if (given.keep_non_finite && given.costs != c::placing_costs::measured)
    throw c::error(c::error_kind::invalid_argument,
                   std::string("it needs measuring, and --place ") +
                       (given.costs == c::placing_costs::none ? "priority" : "estimate") + " does not measure",
                   "--keep-non-finite", "leave one of them out");
}

c::place_options place_options_of(const options& given) {
  c::place_options how;
  how.network = given.network;
  how.backends = given.backends;
  how.threads = given.threads;
  how.seed = given.seed;
  how.costs = given.costs;
  how.store = store_of(given);
  how.store_is_optional = given.store_file.empty();
  how.budget_s = given.budget_s;
  how.autotune.seconds = given.autotune_s;
  how.regions.seconds = given.regions_s;
  how.rules = rules_of(given);
  how.comparing.recheck = given.recheck;
  how.measuring.complete = given.complete;
  how.keep_non_finite = given.keep_non_finite;
  how.algorithms = algorithms_of(given, c::algorithms::accurate);
  how.precision = precision_options_of(given);
  how.kept = kept_parts_of(given);
  if (const std::optional<c::weight_bound> bound = read_memory(given.memory)) how.memory = *bound;
  return how;
}

std::string text_of(const c::place_progress& now) {
  std::string text = now.stage;
  if (now.remaining != 0 && now.done + now.remaining > 1)
    text += " " + std::to_string(now.done + 1) + " of " + std::to_string(now.done + now.remaining) + ", " +
            std::to_string(now.remaining) + " remain";
  if (now.remaining_s >= 1) text += format_number(", about %.0f s", now.remaining_s);
  if (now.best_ms > 0) text += ", best so far " + format_time(now.best_ms);
  return text + ": " + now.what;
}

placed place_network(const options& given, c::graph network, plan_keeper* keeper) {
  placed p;
  p.network = std::move(network);
  std::optional<c::plan> previous;
  if (keeper != nullptr) previous = previous_plan(given, p.network);
  progress_line line(given.quiet);
  c::place_options how = place_options_of(given);
  if (keeper == nullptr && given.budget_s <= 0) how.budget_s = budget_once_s;
  if (previous) how.previous = &*previous;
  plan_keeper::scope keeping(keeper, p.network);
  if (keeper != nullptr) {
    how.cancel = [] { return ending_signal() != 0; };
    // A plan that was not compared with the previous one does not replace it.
    how.improved = [&](const c::plan& better) {
      if (!previous || !better.runs.empty()) keeper->keep(better);
    };
  }
  if (!given.quiet) how.progress = [&](const c::place_progress& now) { line.show(text_of(now)); };
  const bool may_round = how.precision.elements != c::precisions::f32;
  c::placed_within_error made;
  if (may_round)
    made = place_in_lower_precision(
        given, p.network, how,
        given.quiet ? std::function<void(const std::string&)>() : [&](const std::string& what) { line.show(what); });
  else static_cast<c::placed_plan&>(made) = c::place(p.network, backends(), how);
  keeping.end();
  p.report = std::move(made.report);
  if (may_round && !made.why_unrounded.empty() && !given.quiet)
    complain("note: the plan is in float32: " + made.why_unrounded);
  p.made = std::move(made);
  line.clear();
  p.fresh = true;
  p.is_worth_keeping = !previous || !p.report.interrupted || !p.made.runs.empty();
  p.store = how.store;
  const std::string& where = p.report.where;
  if (!given.quiet && !where.empty() && where != c::in_a_worker)
    complain("note: kernels were measured " + where + "; a kernel that crashes there ends the program");
  if (p.report.interrupted && given.budget_s <= 0 && keeper == nullptr && !given.quiet)
    complain("note: placing ended after " + format_number("%.0f s", budget_once_s) +
             ", so the plan may not be the fastest; collage tune goes on to the end, and --budget sets another time");
  if (keeper == nullptr && !given.quiet && !p.report.holdups.advice.empty())
    complain("note: " + p.report.holdups.advice);  // `tune` has it among its results
  if (!p.report.unstored.empty() && !given.quiet)
    complain("note: measured costs were not stored: " + p.report.unstored);
  if (p.report.unchecked != 0 && !given.quiet) complain("note: " + unchecked_text(p.report, how.check_s));
  return p;
}

placed place_now(const options& given, plan_keeper* keeper) {
  return place_network(given, load_ready_network(given), keeper);
}

placed get_plan(const options& given, plan_use use) {
  return given.plan_file.empty() ? place_now(given) : read_plan(given, use);
}

}  // namespace program
