#include "report.hpp"

#include "table.hpp"
#include "terminal.hpp"

#include <collage/place/compare.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace program {

namespace c = collage;

namespace {

/// The placement of a row of the table; null if the plan lacks it.
const c::placement* placement_of(const c::plan& made, const std::string& name) {
  if (name == made.chosen.name) return &made.chosen;
  for (const c::placement& s : made.singles)
    if (s.name == name) return &s;
  return nullptr;
}

std::string remark_on(const c::plan& made, const std::string& name) {
  const c::placement* p = placement_of(made, name);
  if (p == nullptr || p == &made.chosen) return "";
  if (c::same_steps(*p, made.chosen)) return "runs the same steps as the plan";
  for (const c::placement& other : made.singles) {
    if (&other == p) break;
    if (c::same_steps(*p, other)) return "runs the same steps as " + other.name;
  }
  const std::size_t borrowed = p->borrowed.size();
  return borrowed == 0 ? ""
                       : "leaves " + std::to_string(borrowed) + (borrowed == 1 ? " node" : " nodes") + " to others";
}

}  // namespace

std::string runs_table(const c::plan& made, const std::vector<c::plan_run>& runs) {
  table page({{"end to end"},
              {"median ms", align::right},
              {"10 %", align::right},
              {"90 %", align::right},
              {"runs", align::right},
              {"ratio", align::right},
              {"95 % interval", align::right},
              {"", align::left, 16}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const c::plan_run& r = runs[i];
    page.add({{r.name, i == 0 ? colour::bold : colour::none},
              format_number("%.3f", r.median_ms),
              format_number("%.3f", r.low_ms),
              format_number("%.3f", r.high_ms),
              std::to_string(r.runs),
              {format_number("%.3f", r.ratio), i == 0           ? colour::none
                                               : r.ratio < 0.99 ? colour::red
                                                                : colour::green},
              i == 0 ? "" : format_number("%.3f", r.ratio_low) + ".." + format_number("%.3f", r.ratio_high),
              {remark_on(made, r.name), colour::dim}});
  }
  return page.text();
}

void note_spread(const std::vector<c::plan_run>& runs) {
  const auto spread =
      std::find_if(runs.begin(), runs.end(), [](const c::plan_run& r) { return r.high_ms > 1.5 * r.low_ms; });
  if (spread != runs.end())
    complain("note: the times of " + spread->name + " vary from " + format_number("%.3f", spread->low_ms) + " to " +
             format_number("%.3f ms", spread->high_ms) + "; end other programs that use the processors, and repeat");
}

void note_slower(const c::plan& made, double median_ms) {
  if (made.runs.empty() || median_ms <= 1.5 * made.runs[0].median_ms) return;
  complain("note: the plan took " + format_number("%.3f ms", median_ms) + ", but " +
           format_number("%.3f ms", made.runs[0].median_ms) +
           " when it was made; end other programs that use the processors, or tune again");
}

std::string borrowed_text(const c::plan& made, std::size_t most) {
  std::string page;
  for (const c::placement& single : made.singles) {
    std::set<std::string> lenders;
    for (const c::plan_group& g : single.groups)
      if (!g.is_view() && g.backend() != single.name) lenders.insert(g.backend());
    if (single.borrowed.empty()) continue;
    std::string text = single.name + " leaves " + std::to_string(single.borrowed.size()) +
                       (single.borrowed.size() == 1 ? " node to " : " nodes to ");
    for (auto lender = lenders.begin(); lender != lenders.end(); ++lender)
      text += (lender == lenders.begin() ? "" : " and ") + *lender;
    text += ":";
    for (std::size_t i = 0; i < std::min(most, single.borrowed.size()); ++i)
      text += (i == 0 ? " " : ", ") + single.borrowed[i];
    if (single.borrowed.size() > most) text += " and " + std::to_string(single.borrowed.size() - most) + " more";
    page += wrap(text, 2);
  }
  return page;
}

double prediction_error(const c::plan& made) {
  if (made.runs.empty() || made.runs[0].median_ms <= 0) return 0;
  return made.chosen.cost_ms / made.runs[0].median_ms - 1;
}

std::string prediction_text(const c::plan& made) {
  if (made.runs.empty()) return {};
  const double off = prediction_error(made);
  return "The sum of the groups' costs is " + format_number("%.1f %%", 100 * std::abs(off)) +
         (off < 0 ? " below" : " above") + " the plan's time end to end. With kernels measured alone, the sum was " +
         format_number("%.3f ms", made.first_cost_ms) + ".";
}

std::string origin_text(const std::string& origin) {
  if (origin == c::previous_run) return "the previous plan";
  if (origin == c::operators_run) return "the best placement without regions";
  if (origin == c::regions_run) return "a division into regions";
  return origin + " alone";
}

std::string certificate_text(const c::plan& made) {
  if (made.origin == "priority")
    return "The network was placed by the order of the backends: nothing was measured, and no bound was proved.";
  // The placement that won end to end may cost more than the one that the search found.
  const double cost = made.chosen.cost_ms;
  const double gap = made.lower_bound_ms > 0 ? (cost / made.lower_bound_ms - 1) * 100 : 0;
  const std::string least = format_number("%.3f ms", made.lower_bound_ms);
  std::string text = "The groups cost " + format_number("%.3f ms", cost) + " in all; ";
  if (made.origin != "search")
    return text + "no placement costs less than " + least + ". End to end, " + origin_text(made.origin) +
           " was faster than the placement that the last search found, and is the plan.";
  if (!made.optimal)
    return text + "the search stopped early; it proved that no placement costs less than " + least +
           format_number(" (gap %.1f %%).", gap);
  if (gap < 1e-3) return text + "the search proved that no placement of these kernels costs less.";
  return text + "the search proved that no placement of these kernels costs less than " + least +
         format_number(" (gap %.1f %%)", gap) + "; end to end, no placement that it found was significantly faster.";
}

std::string arena_text(const c::dynamic_engine& engine) {
  const auto bytes = static_cast<double>(engine.arena_bytes()), least = static_cast<double>(engine.arena_lower_bound());
  return "arena of " + format_number("%.1f MB", bytes / 1e6) + ", " +
         format_number("%.3f", least > 0 ? bytes / least : 1) + " times the lower bound of " +
         format_number("%.1f MB", least / 1e6) + " (the most that one step uses)";
}
void add_arena(c::json& to, const c::dynamic_engine& engine) {
  to["arena_bytes"] = engine.arena_bytes();
  to["arena_lower_bound"] = engine.arena_lower_bound();
}

std::string label_of(const c::graph& network, const std::vector<std::uint32_t>& nodes) {
  std::string names, kinds;
  bool telling = true;  // every name begins with its operator kind
  for (const std::uint32_t n : nodes) {
    const std::string kind = network.node(n).kind->name;
    telling = telling && network.node_name(n).rfind(kind, 0) == 0;
    names += (names.empty() ? "" : "+") + network.node_name(n);
    kinds += (kinds.empty() ? "" : "+") + kind;
  }
  return telling ? names : network.node_name(nodes.back()) + " " + kinds;
}

}  // namespace program
