#include "backends.hpp"
#include "commands.hpp"
#include "dot_file.hpp"
#include "network.hpp"
#include "output_file.hpp"
#include "placing.hpp"
#include "precision_page.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/io/file.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place/refusal.hpp>
#include <collage/run/engine.hpp>
#include <report/missing_patterns.hpp>
#include <report/refusals.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

/// The text shows the first few of each list, which cost the most.
constexpr std::size_t shown = 8;

std::string more_than(std::size_t count) {
  return count <= shown ? "" : wrap("and " + std::to_string(count - shown) + " more, see --json", 2, 2);
}

std::string operators_table(const std::vector<c::report::missing_operator>& list) {
  table page(
      {{"backend"}, {"operator"}, {"nodes", align::right}, {"ms now", align::right}, {"why", align::left, 20, true}});
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i) {
    const c::report::missing_operator& m = list[i];
    page.add({m.backend, m.kind, std::to_string(m.nodes), format_number("%.4f", m.cost_ms),
              m.reason.empty() ? "none of its patterns matches" : m.reason});
  }
  return page.text() + more_than(list.size());
}

std::string fusions_table(const std::vector<c::report::missing_fusion>& list) {
  table page({{"backend"},
              {"operators", align::left, 16},
              {"then", align::left, 16},
              {"places", align::right},
              {"ms to beat", align::right},
              {"first place", align::left, 12}});
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i) {
    const c::report::missing_fusion& m = list[i];
    page.add({m.backend, m.first, m.second, std::to_string(m.places), format_number("%.4f", m.cost_ms), m.example});
  }
  return page.text() + more_than(list.size());
}

c::json missing_to_json(const c::report::missing_patterns& missing) {
  c::json operators = c::json::array(), fusions = c::json::array();
  for (const c::report::missing_operator& m : missing.operators)
    operators.push_back({{"backend", m.backend},
                         {"operator", m.kind},
                         {"nodes", m.nodes},
                         {"cost_ms", c::rounded(m.cost_ms)},
                         {"refused", m.reason.empty() ? c::json() : c::json(m.reason)}});
  for (const c::report::missing_fusion& m : missing.fusions)
    fusions.push_back({{"backend", m.backend},
                       {"first", m.first},
                       {"second", m.second},
                       {"places", m.places},
                       {"cost_ms", c::rounded(m.cost_ms)},
                       {"example", m.example}});
  return {{"operators", operators}, {"fusions", fusions}};
}

/// Those that placing met; a plan file has none, so that they are found again.
std::vector<c::merged_refusal> refusals_of(const placed& p) {
  return c::merged(p.fresh ? p.report.refusals
                           : c::report::joined(c::report::find_refusals(p.network, p.made, backends())));
}

c::json to_json(const placed& p, const c::report::missing_patterns& missing) {
  c::json made = c::plan_to_json(p.made, p.network);
  c::json totals = c::json::array();
  for (const auto& [name, t] : totals_of(p.made))
    totals.push_back({{"backend", name}, {"groups", t.groups}, {"nodes", t.nodes}, {"cost_ms", c::rounded(t.cost_ms)}});
  made["totals"] = std::move(totals);
  made["additive_error"] = p.made.runs.empty() ? c::json() : c::json(c::rounded(prediction_error(p.made)));
  made["algorithms"] = algorithms_to_json(p);
  made["missing"] = missing_to_json(missing);
  c::json refusals = c::json::array();
  for (const c::merged_refusal& r : refusals_of(p))
    refusals.push_back({{"backend", r.backend},
                        {"pattern", r.pattern},
                        {"where", r.where},
                        {"count", r.places},
                        {"reason", r.reason}});
  made["refusals"] = std::move(refusals);
  return made;
}

/// The program of an engine, with the facts of to_text(program): `regions` of memory, and `instructions` in order.
c::json to_json(const c::program& code, const c::graph& network) {
  using home = c::program_region::home;
  const auto number_or_null = [](std::uint32_t region) {
    return region == c::program_region::none ? c::json() : c::json(region);
  };
  const char* const homes[] = {"nowhere", "input", "output", "constant", "arena", "part"};
  c::json regions = c::json::array(), instructions = c::json::array(), arenas = c::json::array();
  for (std::uint32_t i = 0; i < code.regions.size(); ++i) {
    const c::program_region& r = code.regions[i];
    if (r.where == home::nowhere) continue;
    c::json one = {{"region", i},
                   {"value", r.value == c::program_region::none ? c::json() : c::json(network.value_name(r.value))},
                   {"form", c::to_text(r.stored)},
                   {"bytes", r.bytes},
                   {"where", homes[static_cast<std::size_t>(r.where)]},
                   {"index", r.index},
                   {"offset", r.offset}};
    if (r.where == home::arena) one.update({{"first", r.first}, {"last", r.last}});
    regions.push_back(std::move(one));
  }
  for (const c::program_instruction& it : code.instructions) {
    c::json in = c::json::array(), out = c::json::array();
    bool is_in_place = false;
    for (const c::program_operand& o : it.in) in.push_back(number_or_null(o.region));
    for (const c::program_operand& o : it.out) {
      out.push_back(number_or_null(o.region));
      is_in_place = is_in_place || o.how == c::access::inout;
    }
    instructions.push_back({{"runs", c::runner_of(it.step)},
                            {"kernel", it.kernel},
                            {"label", it.label},
                            {"in", in},
                            {"out", out},
                            {"in_place", is_in_place},
                            {"workspace", number_or_null(it.workspace)}});
  }
  for (const c::program_arena& a : code.arenas)
    arenas.push_back({{"space", a.space->name}, {"bytes", a.bytes}, {"lower_bound", a.bound}});
  return {{"threads", code.threads}, {"arenas", arenas}, {"regions", regions}, {"instructions", instructions}};
}

}  // namespace

int explain(const options& asked) {
  check(asked, plan_use::show);
  const options given = with_shapes(asked);
  if (!given.dot_file.empty()) check_output(given.dot_file, given);
  const placed p = get_plan(given, plan_use::show);
  if (!given.dot_file.empty()) write_dot_file(given.dot_file, p.network, &p.made.chosen);
  const c::dynamic_engine engine(p.network, p.made.chosen, backends(), p.made.threads);
  if (given.program) {
    print(given.json ? c::to_text(to_json(engine.code(), p.network)) : c::to_text(engine.code(), p.network));
    return 0;
  }
  const c::report::missing_patterns missing = c::report::find_missing_patterns(p.network, p.made, backends());
  const std::optional<c::precision_prices> prices = prices_of(given, p);
  if (given.json) {
    c::json all = to_json(p, missing);
    add_arena(all, engine);
    if (prices) {
      all["precision_prices"] = prices_to_json(p, *prices);
      all["greedy_steps"] = prices->nmse ? greedy_to_json(given, p) : c::json::array();
    }
    print(c::to_text(all));
    return 0;
  }
  const c::detail::plan_page parts{p.network, p.made, paint};
  std::string page = parts.placement();
  page += wrap("A run needs an " + arena_text(engine) + ".", 0) + parts.times();
  if (prices)
    page += parts.heading("What lower precision saves, and the next precision up") + precision_page(p, *prices);
  if (const std::string used = algorithms_table(p); !used.empty())
    page += parts.heading("Algorithms other than the operator's definition") + used;
  if (!missing.operators.empty())
    page +=
        parts.heading("Operators that a backend does not run, and their cost now") + operators_table(missing.operators);
  if (!missing.fusions.empty())
    page += parts.heading(
                "Pairs of groups that a backend does not fuse, and the cost that a fused kernel would have to beat") +
            fusions_table(missing.fusions);
  page += parts.fallbacks() + parts.refusals(refusals_of(p));
  print(page);
  return 0;
}

}  // namespace program
