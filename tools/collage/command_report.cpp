#include "backends.hpp"
#include "commands.hpp"
#include "network.hpp"
#include "output_file.hpp"
#include "placing.hpp"
#include "terminal.hpp"

#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/run/engine.hpp>
#include <report/report.hpp>

#include <string>

namespace program {

namespace c = collage;

namespace {

/// Throws if an option is missing: a report shows a finished plan, and is a file.
void check_given(const options& given) {
  const auto refuse = [](const char* what, const char* where, const char* remedy) {
    throw c::error(c::error_kind::invalid_argument, what, where, remedy);
  };
  if (given.plan_file.empty())
    refuse("--plan is required", "report", "make a plan with collage tune NET --plan FILE, and give it by --plan FILE");
  if (given.report_file.empty()) refuse("-o is required", "report", "name the file to write, as in -o report.html");
  if (given.report_file == "-") refuse("is no file", "-o -", "name one, or /dev/stdout for standard output");
}

}  // namespace

int report(const options& asked) {
  check_given(asked);
  const options given = with_shapes(asked);
  check_output(given.report_file, given);
  const placed p = get_plan(given, plan_use::show);
  c::plan other;
  if (!given.other_plan_file.empty()) other = c::load_plan(given.other_plan_file, p.network);
  const c::dynamic_engine engine(p.network, p.made.chosen, backends(), p.made.threads);
  c::report::source from;
  from.network = &p.network;
  from.made = &p.made;
  from.name = given.plan_file;
  from.code = &engine.code();
  from.refusals = c::report::find_refusals(p.network, p.made, backends());
  from.missing = c::report::find_missing_patterns(p.network, p.made, backends());
  if (!given.other_plan_file.empty()) from.against = {&other, given.other_plan_file};
  from.peak_flops = given.peak_gflops * 1e9;
  from.peak_bytes = given.bandwidth_gbytes * 1e9;
  c::report::summary sizes;
  const std::string page = c::report::page_of(from, &sizes);
  c::write_file(given.report_file, page);
  if (given.json) {
    print(c::to_text({{"network", p.made.network},
                      {"plan", given.plan_file},
                      {"against", given.other_plan_file.empty() ? c::json() : c::json(given.other_plan_file)},
                      {"file", given.report_file},
                      {"bytes", page.size()},
                      {"groups", sizes.groups},
                      {"boxes", sizes.boxes},
                      {"blocks", sizes.blocks},
                      {"crossings", sizes.crossings}}));
  } else if (!given.quiet && given.report_file != "/dev/stdout") {
    print(wrap("The report is in " + given.report_file + ", " +
                   format_number("%.2f MB", static_cast<double>(page.size()) / 1e6) + "; open it in a browser.",
               0));
  }
  return 0;
}

}  // namespace program
