// Tables and sentences about plans, in the target collage::place.
#include "plan_text.hpp"
#include <algorithm>
#include <cmath>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/explain.hpp>
#include <collage/place/kept_parts.hpp>
#include <set>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

namespace {

const placement* placement_of(const plan& made, const std::string& name) {
  if (name == made.chosen.name) return &made.chosen;
  for (const placement& s : made.singles)
    if (s.name == name) return &s;
  return nullptr;
}

std::string remark_on(const plan& made, const std::string& name) {
  const placement* p = placement_of(made, name);
  if (p == nullptr || p == &made.chosen) return "";
  if (same_steps(*p, made.chosen)) return "runs the same steps as the plan";
  for (const placement& other : made.singles) {
    if (&other == p) break;
    if (same_steps(*p, other)) return "runs the same steps as " + other.name;
  }
  return p->borrowed.empty() ? "" : "leaves " + count_of(p->borrowed.size(), "node") + " to others";
}

/// A name or reason whose line breaks appear as \u000a. It may come from a file, and must not look like several lines.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (c == '\n') line += "\\u000a";
    else line += c;
  return line;
}

/// A cost as a percentage of the whole.
std::string percentage(double cost_ms, double whole_ms) {
  return format_number("%.1f", whole_ms > 0 ? 100 * cost_ms / whole_ms : 0);
}

/// Adds a line for each group. After a group of control flow come the groups of its subgraphs. The groups of the second
/// subgraph of group 7 have the numbers 7.2.1, 7.2.2, ...
void add_groups(table& page, const graph& network, const placement& groups, const std::string& prefix,
                double whole_ms) {
  const time_unit unit(whole_ms);
  std::size_t number = 0;
  for (const plan_group& g : groups.groups) {
    if (g.is_view()) continue;
    std::string other, behind;  // empty where no placement without the kernel is known
    if (g.regret_ms >= 0) {
      other = g.instead;
      behind = unit.number(g.regret_ms, 4);
    }
    const std::string name = prefix + std::to_string(++number);
    page.add({name, in_one_line(label_of(network, g.nodes)), g.backend(), g.kernel, unit.number(g.cost_ms, 4),
              percentage(g.cost_ms, whole_ms), other, behind});
    for (std::size_t i = 0; i < g.bodies().size(); ++i)
      add_groups(page, *network.bodies_of(g.nodes[0])[i], g.bodies()[i], name + "." + std::to_string(i + 1) + ".",
                 whole_ms);
  }
}

std::string groups_table(const graph& network, const plan& made, painter paint) {
  const std::string unit = time_unit(made.chosen.cost_ms).name;
  table page({{"#", align::right},
              {"group", align::left, 16},
              {"backend"},
              {"kernel", align::left, 16},
              {unit, align::right},
              {"%", align::right},
              {"runner-up", align::left, 12},
              {"+" + unit, align::right}});
  add_groups(page, network, made.chosen, "", made.chosen.cost_ms);
  return page.text(paint);
}

/// The conversions of values between groups.
std::string conversions_table(const graph& network, const plan& made, painter paint) {
  const time_unit unit(made.chosen.cost_ms);
  table page({{"value", align::left, 16},
              {"from"},
              {"to"},
              {"backend"},
              {"kernel", align::left, 16},
              {unit.name, align::right},
              {"%", align::right}});
  for (const plan_conversion& x : made.chosen.conversions)
    page.add({in_one_line(network.value_name(x.value)), x.step.from, x.step.to, x.step.backend, x.kernel,
              unit.number(x.cost_ms, 4), percentage(x.cost_ms, made.chosen.cost_ms)});
  return page.text(paint);
}

std::string totals_table(const plan& made, painter paint) {
  const time_unit unit(made.chosen.cost_ms);
  std::map<std::string, backend_total> totals = totals_of(made);
  table page({{"backend"},
              {"groups", align::right},
              {"nodes", align::right},
              {unit.name, align::right},
              {"%", align::right},
              {"", align::left, 24, true}});
  for (const plan_backend& b : made.backends) {
    const backend_total t = totals[b.name];
    page.add({b.name,
              std::to_string(t.groups),
              std::to_string(t.nodes),
              unit.number(t.cost_ms, 4),
              percentage(t.cost_ms, made.chosen.cost_ms),
              {b.version, colour::dim}});
  }
  if (const auto views = totals.find(view_runner); views != totals.end())
    page.add({"none",
              std::to_string(views->second.groups),
              std::to_string(views->second.nodes),
              "",
              "",
              {"views: no kernel runs", colour::dim}});
  if (const auto control = totals.find(control_runner); control != totals.end())
    page.add({control_runner,
              std::to_string(control->second.groups),
              std::to_string(control->second.nodes),
              unit.number(control->second.cost_ms, 4),
              percentage(control->second.cost_ms, made.chosen.cost_ms),
              {"branches and loops, run by the engine", colour::dim}});
  return page.text(paint);
}

/// The sum of the switches in a sentence: the part of the cost that switching backends adds. Empty if there are none.
std::string switches_text(const placement& chosen) {
  double sum = 0;
  std::size_t groups = 0;
  for (const plan_group& g : chosen.groups) {
    sum += g.switch_ms;
    groups += g.switch_ms > 0;
  }
  return groups == 0 ? ""
                     : format_time(sum) + " of this are switches: " + std::to_string(groups) +
                           (groups == 1 ? " group takes longer because another backend wrote its operands."
                                        : " groups take longer because another backend wrote their operands.");
}

}  // namespace

std::string title_of(const plan& made) {
  return made.network + " on " + std::to_string(made.threads) + (made.threads == 1 ? " thread of " : " threads of ") +
         made.processor + ", " + made.precision;
}

std::string heading_of(const plan& made, painter paint) {
  std::string heading = wrap(in_one_line(title_of(made)), 2);
  heading.pop_back();  // the end of the line is not painted
  return paint(colour::bold, heading) + "\n";
}

std::string runs_table(const plan& made, const std::vector<plan_run>& runs, painter paint) {
  const time_unit unit(runs.empty() ? 0 : runs[0].median_ms);
  table page({{"end to end"},
              {std::string("median ") + unit.name, align::right},
              {"10 %", align::right},
              {"90 %", align::right},
              {"runs", align::right},
              {"ratio", align::right},
              {"95 % interval", align::right},
              {"", align::left, 16}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const plan_run& r = runs[i];
    const bool has_interval = i != 0 && r.runs > 1;
    page.add({{r.name, i == 0 ? colour::bold : colour::none},
              unit.number(r.median_ms, 3),
              unit.number(r.low_ms, 3),
              unit.number(r.high_ms, 3),
              std::to_string(r.runs),
              {ratio_text(r.ratio), !has_interval    ? colour::none
                                    : r.ratio < 0.99 ? colour::red
                                                     : colour::green},
              has_interval ? ratio_text(r.ratio_low) + ".." + ratio_text(r.ratio_high)
              : i == 0     ? ""
                           : "one run",
              {remark_on(made, r.name), colour::dim}});
  }
  return page.text(paint);
}

std::string left_text(const placement& single) {
  if (single.borrowed.empty()) return {};
  std::set<std::string> lenders;
  for (const plan_group& g : single.groups)
    if (!g.is_view() && g.backend() != single.name) lenders.insert(g.backend());
  std::string text = single.name + " leaves " + count_of(single.borrowed.size(), "node") + " to ";
  for (auto lender = lenders.begin(); lender != lenders.end(); ++lender)
    text += (lender == lenders.begin() ? "" : " and ") + *lender;
  return text;
}

std::string borrowed_text(const plan& made, std::size_t most) {
  std::string page;
  for (const placement& single : made.singles) {
    if (single.borrowed.empty()) continue;
    std::string text = left_text(single) + ":";
    for (std::size_t i = 0; i < std::min(most, single.borrowed.size()); ++i)
      text += (i == 0 ? " " : ", ") + in_one_line(single.borrowed[i]);
    if (single.borrowed.size() > most) text += " and " + std::to_string(single.borrowed.size() - most) + " more";
    page += wrap(text, 2);
  }
  return page;
}

double prediction_error(const plan& made) {
  if (made.runs.empty() || made.runs[0].median_ms <= 0) return 0;
  return made.chosen.cost_ms / made.runs[0].median_ms - 1;
}

std::string prediction_text(const plan& made) {
  if (made.runs.empty()) return {};
  const double off = prediction_error(made);
  return "The sum of the groups' costs is " + format_number("%.1f %%", 100 * std::abs(off)) +
         (off < 0 ? " below" : " above") + " the plan's time end to end. With kernels measured alone, the sum was " +
         format_time(made.first_cost_ms) + ".";
}

std::string single_text(const plan& made, const std::string& backend) {
  const placement* const p = placement_of(made, backend);
  return backend + (p == nullptr || p->borrowed.empty() ? " alone" : " first (others where it cannot)");
}

std::string origin_text(const plan& made) {
  if (made.origin == previous_run) return "the previous plan";
  if (made.origin == operators_run) return "the best placement without regions";
  if (made.origin == unrounded_run) return "the best placement in float32";
  if (made.origin == regions_run) return "a division into regions";
  return single_text(made, made.origin);
}

std::string error_text(const plan& made) {
  if (!made.error) return {};
  const plan_error& e = *made.error;
  const std::string allowed = format_number("%g %% are allowed", 100 * e.most);
  if (e.samples == 0)
    return format_number("It may round values: its outputs err %.2g %% by the errors of single values, and ",
                         100 * e.predicted) +
           allowed + ".";
  return "It rounds values. On " + count_of(e.samples, "sample") + " that were held back, its outputs differ by " +
         format_number("%.2g %%", 100 * e.measured) + " from float32 (root mean square, relative to the outputs), " +
         format_number("at most %.2g %%", 100 * e.upper) + " with a confidence of 95 %; " + allowed +
         (e.predicted > 0 ? format_number(", and %.2g %% were predicted.", 100 * e.predicted) : ".");
}

std::string kept_text(const plan& made, const graph& network) {
  std::string text;
  for (const std::string& what : kept_in(made.precision)) {
    text += (text.empty() ? "By your choice, these stay in float32: " : ", ") + what;
    if (what.starts_with("pattern:")) continue;  // only its type knows its nodes
    try {
      const kept_part part{what};
      const std::vector<bool> nodes = kept_nodes(network, {&part, 1});
      const auto count = static_cast<std::size_t>(std::ranges::count(nodes, true));
      if (count != 1 || what.find_first_of(":*") != std::string::npos) text += " (" + count_of(count, "node") + ")";
    } catch (const error&) {  // a part of a name with a comma
    }
  }
  return text.empty() ? text : text + ".";
}

std::string certificate_text(const plan& made) {
  if (made.origin == "priority")
    return "The network was placed by the order of the backends: nothing was measured, and no bound was proved.";
  const bool is_estimated = made.origin == by_estimates_run;
  // The placement that won end to end may cost more than the one that the search found.
  const double cost = made.chosen.cost_ms;
  const double gap = made.lower_bound_ms > 0 ? (cost / made.lower_bound_ms - 1) * 100 : 0;
  const std::string least = format_time(made.lower_bound_ms);
  std::string text = is_estimated ? "By estimates, the groups" : "The groups";
  text += " cost " + format_time(cost) + " in all; ";
  if (!made.optimal && made.lower_bound_ms <= 0) return text + "placing ended before a search could prove a bound.";
  if (made.origin != "search" && !is_estimated)
    return text + "no placement costs less than " + least + ". End to end, " + origin_text(made) +
           " was faster than the placement that the last search found, and is the plan.";
  if (!made.optimal)
    return text + "the search stopped early; it proved that no placement costs less than " + least +
           format_number(" (gap %.1f %%).", gap);
  if (gap < 1e-3) return text + "the search proved that no placement of these kernels costs less.";
  return text + "the search proved that no placement of these kernels costs less than " + least +
         format_number(" (gap %.1f %%)", gap) + "; end to end, no placement that it found was significantly faster.";
}

std::string estimates_text(const plan& made) {
  std::vector<std::pair<std::string, std::string>> groups;  // estimate; numbers, by first appearance
  double measured_ms = 0;
  const auto add = [&](const auto& self, const placement& p, const std::string& prefix) -> void {
    std::size_t number = 0;
    for (const plan_group& g : p.groups) {
      if (g.is_view()) continue;
      const std::string name = prefix + std::to_string(++number);
      if (g.estimate.empty() && g.has_kernel() && prefix.empty()) measured_ms += g.cost_ms;
      for (std::size_t i = 0; i < g.bodies().size(); ++i)
        self(self, g.bodies()[i], name + "." + std::to_string(i + 1) + ".");
      if (g.estimate.empty()) continue;
      const auto same = std::ranges::find(groups, g.estimate, &std::pair<std::string, std::string>::first);
      if (same == groups.end()) groups.emplace_back(g.estimate, name);
      else same->second += ", " + name;
    }
  };
  add(add, made.chosen, "");
  std::string page;
  for (const auto& [estimate, numbers] : groups) page += wrap(numbers + ": " + in_one_line(estimate), 4, 2);
  if (page.empty()) return page;
  return wrap("Kernels that were measured at this shape make up " +
                  format_number("%.0f %%", made.chosen.cost_ms > 0 ? 100 * measured_ms / made.chosen.cost_ms : 0) +
                  " of the cost. The costs of the others, by the numbers of their groups, are:",
              0) +
         page;
}

std::string memory_text(const plan& made) {
  if (!made.memory || made.memory->network == 0) return {};
  const weight_memory& m = *made.memory;
  return "Its weights take " + size_text(m.weights) +
         format_number(", %.2f times", static_cast<double>(m.weights) / static_cast<double>(m.network)) +
         " the network's " + size_text(m.network) + "; at most " + size_text(m.bound) + " are allowed.";
}

std::string label_of(const graph& network, const std::vector<std::uint32_t>& nodes) {
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

std::map<std::string, backend_total> totals_of(const plan& made) {
  std::map<std::string, backend_total> totals;
  for (const plan_conversion& x : made.chosen.conversions) totals[x.step.backend].cost_ms += x.cost_ms;
  for (const plan_group& g : made.chosen.groups) totals[g.backend()].add_group(g.nodes.size(), g.cost_ms);
  return totals;
}

std::string refusals_text(const std::vector<merged_refusal>& list) {
  std::string page;
  for (const merged_refusal& r : list) {
    std::string text = r.backend + (r.pattern.empty() ? "" : " " + r.pattern) + " at " + in_one_line(r.where);
    if (r.places > 1) text += " and " + std::to_string(r.places - 1) + " more";
    page += wrap(text + ": " + in_one_line(r.reason), 4, 2);
  }
  return page;
}

std::string plan_page::placement() const {
  std::string page = heading_of(made, paint) + "\n" + groups_table(network, made, paint);
  if (!made.chosen.conversions.empty())
    page += heading("Conversions of values into another form") + conversions_table(network, made, paint);
  page += "\n" + totals_table(made, paint) + "\n" + wrap(certificate_text(made), 0);
  for (const std::string& text :
       {error_text(made), kept_text(made, network), switches_text(made.chosen), memory_text(made)})
    if (!text.empty()) page += wrap(text, 0);
  if (const std::string text = estimates_text(made); !text.empty()) page += heading("Estimated costs") + text;
  return page;
}

std::string plan_page::times() const {
  std::string page;
  if (!made.runs.empty()) page += "\n" + runs_table(made, made.runs, paint);
  if (const std::string error = prediction_text(made); !error.empty()) page += "\n" + wrap(error, 0);
  return page;
}

std::string plan_page::fallbacks() const {
  const std::string nodes = borrowed_text(made, static_cast<std::size_t>(-1));
  return nodes.empty() ? "" : heading("Nodes that each single backend leaves to others") + nodes;
}

std::string plan_page::refusals(const std::vector<merged_refusal>& list) const {
  return list.empty() ? "" : heading("Refusals") + refusals_text(list);
}

}  // namespace detail

std::string explain(const graph& network, const plan& made) {
  const detail::plan_page page{network, made, detail::plain_text};
  return page.placement() + page.times() + page.fallbacks();
}

std::string explain(const graph& network, const placed_plan& made) {
  const detail::plan_page page{network, made, detail::plain_text};
  return explain(network, static_cast<const plan&>(made)) + page.refusals(merged(made.report.refusals));
}

}  // namespace collage::inline v0
