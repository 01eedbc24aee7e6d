// Tables: what runs, how long it takes, what is missing.
#include "tables.hpp"

#include "drawing.hpp"

#include <collage/place/compare.hpp>
#include <place/plan_text.hpp>
#include <place/text.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace collage::inline v0::report {
namespace {

std::string percent(double part, double whole) {
  return detail::format_number("%.1f", whole > 0 ? 100 * part / whole : 0);
}

constexpr const char* not_measured = "not measured";

html runner_cell(const facts& all, std::size_t runner) {
  html made;
  return made.raw("<span class=\"runner\">")
      .add(swatch_of(all, runner))
      .raw(" ")
      .text(all.runners[runner])
      .raw("</span>");
}

/// The next best: what runs the nodes in the best placement without the kernel, and how much more that costs. Empty where no such
/// placement is known.
std::pair<std::string, std::string> runner_up(const plan_group& g) {
  if (g.regret_ms >= 0) return {g.instead, ms_text(g.regret_ms)};
  return {};
}

std::string cost_text(const facts& all, double cost_ms) { return all.is_measured() ? ms_text(cost_ms) : not_measured; }

/// A percentage of the plan's cost.
std::string part_text(const facts& all, double cost_ms) {
  return all.is_measured() ? percent(cost_ms, all.made.chosen.cost_ms) : "";
}

/// The cost of a part of a plan, and what part of the whole it is.
void add_cost(table& page, const facts& all, double cost_ms) {
  page.number(cost_text(all, cost_ms));
  page.number(part_text(all, cost_ms));
}

html bar_of(double part) {
  html made;
  made.raw("<svg class=\"bar\" width=\"60\" height=\"8\" aria-hidden=\"true\"><rect width=\"")
      .length(60 * std::min(part, 1.0));
  return made.raw("\" height=\"8\"/></svg>");
}

}  // namespace

std::string ms_text(double ms) { return detail::format_number("%.4f", ms); }

table::table(html::literal look, std::initializer_list<column> columns) {
  made_.raw("<div class=\"wide\"><table class=\"").raw(look).raw("\"><thead><tr>");
  for (const column& c : columns)
    made_.raw(c.is_number ? html::literal("<th class=\"num\" scope=\"col\">") : html::literal("<th scope=\"col\">"))
        .raw(c.title)
        .raw("</th>");
  made_.raw("</tr></thead><tbody>\n");
}
void table::row(std::int64_t group) {
  if (is_open_) made_.raw("</tr>\n");
  is_open_ = true;
  if (group < 0) made_.raw("<tr>");
  else made_.raw("<tr data-g=\"").count(static_cast<std::size_t>(group)).raw("\">");
}
void table::cell(const std::string& text) {
  constexpr double longest = 12000;  // a reason or version may be long, but not a megabyte
  made_.raw("<td>").name(shortened(text, longest, 13)).raw("</td>");
}
void table::cell(const html& contents) { made_.raw("<td>").add(contents).raw("</td>"); }
void table::number(const std::string& text) { made_.raw("<td class=\"num\">").text(text).raw("</td>"); }
html table::done() && {
  if (is_open_) made_.raw("</tr>\n");
  made_.raw("</tbody></table></div>\n");
  return std::move(made_);
}

html groups_table(const facts& all) {
  table page("groups", {{"#", true},
                        {"Group"},
                        {"Backend"},
                        {"Kernel"},
                        {"Layout"},
                        {"ms", true},
                        {"95 % interval", true},
                        {"%", true},
                        {""},
                        {"Runner-up"},
                        {"+ ms", true}});
  for (const std::uint32_t i : all.rows) {
    const group_facts& g = all.groups[i];
    if (g.group->is_view()) continue;
    page.row(i);
    page.number(g.number);
    page.cell(shortened(g.label, 420, 13));
    page.cell(runner_cell(all, g.runner));
    page.cell(g.group->kernel);
    page.cell(g.group->layout);
    page.number(cost_text(all, g.group->cost_ms));
    page.number(g.group->high_ms > g.group->low_ms ? ms_text(g.group->low_ms) + " \u2013 " + ms_text(g.group->high_ms)
                                                   : "");
    page.number(part_text(all, g.group->cost_ms));
    page.cell(bar_of(all.longest_ms > 0 ? g.group->cost_ms / all.longest_ms : 0));
    const auto [who, more] = runner_up(*g.group);
    page.cell(shortened(who, 300, 13));
    page.number(more);
  }
  return std::move(page).done();
}

html conversions_table(const facts& all) {
  table page("", {{"Value"}, {"Type"}, {"From"}, {"To"}, {"Backend"}, {"Kernel"}, {"ms", true}, {"%", true}});
  for (const auto& [in, conversion] : all.conversions) {
    const plan_conversion& x = *conversion;
    page.row();
    page.cell(shortened(in->value_name(x.value), 420, 13));
    page.cell(detail::to_string(in->type_of(x.value)));
    page.cell(x.step.from);
    page.cell(x.step.to);
    if (const std::size_t r = all.runner_of(x.step.backend); r < all.runners.size()) page.cell(runner_cell(all, r));
    else page.cell(x.step.backend);
    page.cell(x.kernel);
    add_cost(page, all, x.cost_ms);
  }
  return std::move(page).done();
}

html runs_table(const facts& all) {
  table page("", {{"Placement"},
                  {"Median ms", true},
                  {"10 %", true},
                  {"90 %", true},
                  {"Runs", true},
                  {"Time / plan", true},
                  {"95 % interval", true},
                  {"Remark"}});
  for (const plan_run& r : all.made.runs) {
    page.row();
    page.cell(r.name);
    page.number(detail::format_number("%.3f", r.median_ms));
    page.number(detail::format_number("%.3f", r.low_ms));
    page.number(detail::format_number("%.3f", r.high_ms));
    page.number(std::to_string(r.runs));
    page.number(detail::ratio_text(r.ratio));
    const bool is_plan = &r == &all.made.runs[0];
    page.number(is_plan      ? ""
                : r.runs > 1 ? detail::ratio_text(r.ratio_low) + " \u2013 " + detail::ratio_text(r.ratio_high)
                             : "one run");
    std::string remark;
    for (const placement& s : all.made.singles) {
      if (s.name != r.name) continue;
      if (same_steps(s, all.made.chosen)) remark = "runs the same steps as the plan";
      else if (!s.borrowed.empty()) remark = "leaves " + count_of(s.borrowed.size(), "node") + " to others";
    }
    if (r.name == previous_run) remark = "the plan that was in the file before";
    if (r.name == operators_run) remark = "the best placement without regions";
    if (r.name == unrounded_run) remark = "the best placement in float32";
    page.cell(remark);
  }
  return std::move(page).done();
}

html shares_table(const facts& all) {
  table page("", {{"Backend"}, {"Groups", true}, {"Nodes", true}, {"ms", true}, {"%", true}});
  for (const share& s : all.shares) {
    page.row();
    page.cell(runner_cell(all, s.runner));
    page.number(std::to_string(s.groups));
    page.number(std::to_string(s.nodes));
    add_cost(page, all, s.cost_ms);
  }
  return std::move(page).done();
}

html missing_tables(const facts& all) {
  html made;
  if (!all.from.missing.operators.empty()) {
    made.raw(
        "<h3>Operators that a backend does not run</h3>\n<p>A new pattern would compete with the time that the groups take now.</p>\n");
    table page("", {{"Backend"}, {"Operator"}, {"Nodes", true}, {"ms now", true}, {"Why"}});
    for (const missing_operator& m : all.from.missing.operators) {
      page.row();
      page.cell(m.backend);
      page.cell(m.kind);
      page.number(std::to_string(m.nodes));
      page.number(cost_text(all, m.cost_ms));
      page.cell(m.reason.empty() ? "none of its patterns matches" : m.reason);
    }
    made.add(std::move(page).done());
  }
  if (!all.from.missing.fusions.empty()) {
    made.raw(
        "<h3>Pairs of groups that a backend does not fuse</h3>\n<p>Only the second group reads the first. A fused kernel would have to take less time than both.</p>\n");
    table page("", {{"Backend"}, {"Operators"}, {"Then"}, {"Places", true}, {"ms to beat", true}, {"First place"}});
    for (const missing_fusion& m : all.from.missing.fusions) {
      page.row();
      page.cell(m.backend);
      page.cell(shortened(m.first, 360, 13));
      page.cell(shortened(m.second, 360, 13));
      page.number(std::to_string(m.places));
      page.number(cost_text(all, m.cost_ms));
      page.cell(shortened(m.example, 360, 13));
    }
    made.add(std::move(page).done());
  }
  return made;
}

html refusals_table(const facts& all) {
  const std::vector<merged_refusal> list = merged(all.refusals);
  if (list.empty()) return {};
  table page("", {{"Backend"}, {"Pattern"}, {"Places", true}, {"First place"}, {"Reason"}});
  for (const merged_refusal& r : list) {
    page.row();
    page.cell(r.backend);
    page.cell(r.pattern);
    page.number(std::to_string(r.places));
    page.cell(shortened(r.where, 360, 13));
    page.cell(r.reason);
  }
  return std::move(page).done();
}

html backends_table(const facts& all) {
  table page("", {{"Backend"}, {"Version"}, {"Details"}});
  for (const plan_backend& b : all.made.backends) {
    page.row();
    page.cell(runner_cell(all, all.runner_of(b.name)));
    page.cell(b.version);
    page.cell(b.details);
  }
  return std::move(page).done();
}

html fallbacks_of(const facts& all) {
  constexpr std::size_t most = 20;
  html made;
  for (const placement& single : all.made.singles) {
    if (single.borrowed.empty()) continue;
    if (made.empty()) made.raw("<h3>Nodes that each single backend leaves to others</h3>\n");
    made.raw("<p>").text(detail::left_text(single)).raw(": ");
    const std::size_t named = std::min(most, single.borrowed.size());
    for (std::size_t i = 0; i < named; ++i) made.text(i == 0 ? "" : ", ").name(shortened(single.borrowed[i], 360, 13));
    if (single.borrowed.size() > named) made.text(" and " + std::to_string(single.borrowed.size() - named) + " more");
    made.raw(".</p>\n");
  }
  return made;
}

namespace {

/// The kernels of some groups of a plan, as "onednn conv, eigen relu".
std::string kernels_of(const std::vector<const plan_group*>& of, const std::vector<std::uint32_t>& groups) {
  std::string text;
  for (const std::uint32_t g : groups) text += (text.empty() ? "" : ", ") + of[g]->backend() + " " + of[g]->kernel;
  return text;
}

/// Times of both plans, and how much more the other one takes. A plan that was made without measuring has none.
struct both_times {
  bool has_first = false, has_second = false;

  explicit both_times(const facts& all)
      : has_first(all.is_measured()), has_second(all.from.against.made->chosen.cost_ms > 0) {}
  std::string first(double ms) const { return has_first ? ms_text(ms) : not_measured; }
  std::string second(double ms) const { return has_second ? ms_text(ms) : not_measured; }
  std::string more(double ms) const { return has_first && has_second ? detail::format_number("%+.4f", ms) : ""; }
};

/// Regions with the same kernels and costs, of which a network has dozens, share a row.
void add_regions(html& to, const facts& all, const std::vector<compared_region>& list) {
  struct place {
    const compared_region* first = nullptr;
    std::string mine, its;
    std::size_t count = 0;
  };
  std::vector<place> places;
  for (const compared_region& r : list) {
    place p{&r, kernels_of(all.other.first, r.first), kernels_of(all.other.second, r.second), 1};
    const auto same = std::ranges::find_if(places, [&](const place& known) {
      return known.mine == p.mine && known.its == p.its && known.first->first_ms == r.first_ms &&
             known.first->second_ms == r.second_ms;
    });
    if (same == places.end()) places.push_back(std::move(p));
    else ++same->count;
  }
  const both_times times(all);
  table page("", {{"Groups, first place"},
                  {"Places", true},
                  {"This plan"},
                  {"ms", true},
                  {"Other plan"},
                  {"ms", true},
                  {"+ ms, all places", true}});
  for (const place& p : places) {
    const compared_region& r = *p.first;
    page.row(r.first.front());
    std::string labels;
    for (const std::uint32_t g : r.first) labels += (labels.empty() ? "" : ", ") + all.groups[g].label;
    page.cell(shortened(labels, 420, 13));
    page.number(std::to_string(p.count));
    page.cell(shortened(p.mine, 420, 13));
    page.number(times.first(r.first_ms));
    page.cell(shortened(p.its, 420, 13));
    page.number(times.second(r.second_ms));
    page.number(times.more((r.second_ms - r.first_ms) * static_cast<double>(p.count)));
  }
  to.add(std::move(page).done());
}

void add_totals(html& to, const facts& all) {
  const plan& other = *all.from.against.made;
  const both_times times(all);
  const auto first = detail::totals_of(all.made), second = detail::totals_of(other);
  table page("", {{"Backend"}, {"Groups", true}, {"other", true}, {"ms", true}, {"other", true}, {"+ ms", true}});
  for (std::size_t r = 0; r < all.runners.size(); ++r) {
    const auto in = [&](const auto& totals) {
      const auto at = totals.find(all.runners[r]);
      return at == totals.end() ? detail::backend_total() : at->second;
    };
    if (all.runners[r] == view_runner) continue;
    page.row();
    page.cell(runner_cell(all, r));
    page.number(std::to_string(in(first).groups));
    page.number(std::to_string(in(second).groups));
    page.number(times.first(in(first).cost_ms));
    page.number(times.second(in(second).cost_ms));
    page.number(times.more(in(second).cost_ms - in(first).cost_ms));
  }
  to.raw("<h3>By backend</h3>\n").add(std::move(page).done());
}

void add_other_runs(html& to, const facts& all) {
  const plan& other = *all.from.against.made;
  if (all.made.runs.empty() || other.runs.empty()) return;
  table page("", {{"End to end"}, {"This plan's ms", true}, {"Other plan's ms", true}, {"Ratio", true}});
  for (const plan_run& r : all.made.runs) {
    const auto at = std::ranges::find(other.runs, r.name, &plan_run::name);
    if (at == other.runs.end()) continue;
    page.row();
    page.cell(r.name);
    page.number(detail::format_number("%.3f", r.median_ms));
    page.number(detail::format_number("%.3f", at->median_ms));
    page.number(r.median_ms > 0 ? detail::ratio_text(at->median_ms / r.median_ms) : "");
  }
  to.raw("<h3>End to end</h3>\n").add(std::move(page).done());
  to.raw("<p>These times were measured when each plan was made. <code>collage bench</code> compares them now.</p>\n");
}

}  // namespace

html difference_tables(const facts& all) {
  html made;
  const difference& d = all.other;
  made.raw("<p>The other plan is ").name(all.from.against.name).raw(". ");
  made.text(count_of(d.same, "group") + (d.same == 1 ? " has" : " have"))
      .raw(" the same kernel in both plans; other kernels run the nodes at ");
  made.text(count_of(d.other_kernels.size(), "place")).raw(".</p>\n");
  if (!d.other_kernels.empty()) {
    made.raw("<h3>Other kernels</h3>\n");
    add_regions(made, all, d.other_kernels);
  }
  if (!d.other_costs.empty()) {
    made.raw("<h3>The same kernels with other costs</h3>\n<p>Their 95 % intervals do not overlap.</p>\n");
    add_regions(made, all, d.other_costs);
  }
  add_totals(made, all);
  add_other_runs(made, all);
  if (!d.made_with.empty()) {
    table page("", {{"Made with"}, {"This plan"}, {"Other plan"}});
    for (const auto& [what, values] : d.made_with) {
      page.row();
      page.cell(what);
      page.cell(values.first);
      page.cell(values.second);
    }
    made.raw("<h3>Made with</h3>\n").add(std::move(page).done());
  }
  return made;
}

}  // namespace collage::inline v0::report
