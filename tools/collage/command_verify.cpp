#include "backends.hpp"
#include "commands.hpp"
#include "network.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"
#include "verify_buckets.hpp"

#include <collage/io/json.hpp>
#include <collage/run/quantised_agreement.hpp>
#include <collage/run/verify.hpp>

#include <string>
#include <utility>

namespace program {

namespace c = collage;

namespace {

c::json to_json(const placed& of, const c::verification& found) {
  c::json checks = c::json::array();
  for (const c::verified_placement& p : found.placements)
    checks.push_back({{"plan", p.name},
                      {"worst_relative", c::rounded(p.worst_relative())},
                      {"passed", p.passed()},
                      {"first_differing_node", p.fault ? c::json(p.fault->node) : c::json()}});
  return {{"network", of.made.network},
          {"passed", static_cast<bool>(found)},
          {"checks", checks},
          {"algorithms", algorithms_to_json(of)}};
}

/// The rule for networks that quantise values, in which a step of one integer passes on to all that follows.
std::string rule_of_steps(const c::graph& network) {
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    if (c::is_quantised(network, network.view().output_of(n)))
      return " The network quantises values, so the allowance is 2 % of max|r|, and four steps for integers of 8 bits.";
  return "";
}

std::string to_page(const placed& of, const c::verification& found) {
  table page({{"placement"},
              {"largest relative error", align::right},
              {"verdict"},
              {"first differing node", align::left, 20}});
  for (const c::verified_placement& p : found.placements)
    page.add({p.name,
              format_number("%.2e", p.worst_relative()),
              {p.passed() ? "passed" : "FAILED", p.passed() ? colour::green : colour::red},
              p.fault ? p.fault->node : std::string()});
  const c::tolerance allowed = c::tolerance_of(c::dtype::f32);
  std::string text = heading_of(of.made, paint) + "\n" + page.text() + "\n";
  for (const c::verified_placement& p : found.placements)
    if (!p.passed()) text += wrap(p.name + ": " + p.why(), 2);
  if (const std::string used = algorithms_table(of); !used.empty()) text += used + "\n";
  return text + wrap("Compared with the reference in double precision (" + format_number("%.1f s", found.reference_s) +
                         "); passed means max|a - r| <= " + format_number("%.0e", allowed.relative) + " max|r| + " +
                         format_number("%.0e", allowed.absolute) + " for every output." + rule_of_steps(of.network),
                     0);
}

}  // namespace

int verify(const options& asked) {
  check(asked);
  if (!asked.buckets.empty()) return verify_buckets(asked);
  for (const auto& [list, option] :
       {std::pair(&asked.paddings, "--pad"), std::pair(&asked.cuts, "--cut"), std::pair(&asked.inputs, "--input")})
    if (!list->empty())
      throw c::error(c::error_kind::invalid_argument, "it only affects a comparison of buckets", option,
                     "give --bucket, or leave it out");
  const options given = with_shapes(asked);
  const placed p = get_plan(given);
  progress_line line(given.quiet);
  c::verify_options how;
  how.seed = given.seed;
  how.progress = [&](const std::string& what) { line.show(what); };
  const c::verification found = c::verify(p.network, p.made, backends(), how);
  line.clear();
  print(given.json ? c::to_text(to_json(p, found)) : to_page(p, found));
  if (const c::verified_placement* failed = found.failed(); failed != nullptr)
    complain("verify: " + failed->name + " differs from the reference" +
             (failed->fault ? ", first at node " + failed->fault->node + "; leave " + failed->fault->backend +
                                  " out there with --exclude, and report the fault to its authors"
                            : std::string()));
  return found ? 0 : 1;
}

}  // namespace program
