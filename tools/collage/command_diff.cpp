#include "commands.hpp"
#include "diff_file.hpp"
#include "diff_precision.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/run/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

std::string labels_of(const std::vector<const file_group*>& groups) {
  std::string text;
  for (const file_group* g : groups) text += (text.empty() ? "" : "+") + g->label;
  return text;
}

struct header_line {
  std::string what;
  both<std::string> is;
};

/// The differences of two plans of one network.
struct comparison {
  both<file_plan> plan;
  std::vector<header_line> header;
  std::vector<compared_region> other_kernels, other_costs;
  std::size_t same = 0;  ///< groups that the same kernel runs in both plans
  std::vector<std::pair<std::string, both<backend_total>>> totals;
  std::vector<std::pair<std::string, both<double>>> runs;  ///< median ms; below 0: not run

  comparison(const std::string& first, const std::string& second)
      : plan{read_file_plan(first), read_file_plan(second)} {
    if (plan.first.fingerprint != plan.second.fingerprint)
      throw c::error(c::error_kind::invalid_argument,
                     "is a plan for another network or other shapes (" + plan.second.made.network + ", fingerprint " +
                         plan.second.fingerprint + ") than " + first + " (" + plan.first.made.network + ", " +
                         plan.first.fingerprint + ")",
                     second, "compare two plans of one network");
    compare_headers();
    compare_groups();
    add_totals();
    add_runs();
  }

 private:
  void compare_headers() {
    const auto add = [&](const std::string& what, const std::string& a, const std::string& b) {
      if (a != b) header.push_back({what, {a, b}});
    };
    const c::plan &a = plan.first.made, &b = plan.second.made;
    add("network", a.network, b.network);
    add("threads", std::to_string(a.threads), std::to_string(b.threads));
    add("precision", a.precision, b.precision);
    add("processor", a.processor, b.processor);
    add("waiting", a.waiting, b.waiting);
    const auto find = [](const c::plan& in, const std::string& name) {
      const auto at = std::ranges::find(in.backends, name, &c::plan_backend::name);
      return at == in.backends.end() ? c::plan_backend{name, "absent", "absent"} : *at;
    };
    for (const std::string& name : names_in([](const c::plan& p) { return p.backends; })) {
      const c::plan_backend one = find(a, name), other = find(b, name);
      add(name, one.version, other.version);
      if (one.version == other.version) add(name + "'s adapter", one.details, other.details);
    }
  }

  /// The names in a list of both plans: those of the first plan, then those that only the second has.
  template <class List>
  std::vector<std::string> names_in(List list) const {
    std::vector<std::string> names;
    for (std::size_t which = 0; which < 2; ++which)
      for (const auto& entry : list(plan[which].made))
        if (std::ranges::find(names, entry.name) == names.end()) names.push_back(entry.name);
    return names;
  }

  void compare_groups() {
    both<std::vector<const c::report::compared_group*>> groups;
    for (std::size_t which = 0; which < 2; ++which)
      for (const file_group& g : plan[which].groups) groups[which].push_back(&g);
    const c::report::compared_regions found =
        c::report::compare(groups.first, groups.second, {plan.first.file, plan.second.file});
    for (const c::report::compared_region& r : found.other_kernels) other_kernels.push_back(with_groups(r));
    for (const c::report::compared_region& r : found.other_costs) other_costs.push_back(with_groups(r));
    same = found.same;
  }

  compared_region with_groups(const c::report::compared_region& r) const {
    compared_region made;
    for (const std::uint32_t g : r.first) made.first.push_back(&plan.first.groups[g]);
    for (const std::uint32_t g : r.second) made.second.push_back(&plan.second.groups[g]);
    return made;
  }

  void add_totals() {
    std::map<std::string, both<backend_total>> by_name;
    for (std::size_t which = 0; which < 2; ++which) {
      for (const file_group& g : plan[which].groups) {
        if (g.is_inner || g.backend == c::view_runner) continue;
        by_name[g.backend][which].add_group(g.nodes.size(), g.cost_ms);
      }
      for (const auto& [backend, cost_ms] : plan[which].conversions) by_name[backend][which].cost_ms += cost_ms;
    }
    for (const std::string& name : names_in([](const c::plan& p) { return p.backends; }))
      totals.emplace_back(name, by_name[name]);
    if (const auto control = by_name.find(c::control_runner); control != by_name.end()) totals.emplace_back(*control);
  }

  void add_runs() {
    for (const std::string& name : names_in([](const c::plan& p) { return p.runs; })) {
      both<double> median{-1, -1};
      for (std::size_t which = 0; which < 2; ++which)
        for (const c::plan_run& r : plan[which].made.runs)
          if (r.name == name) median[which] = r.median_ms;
      runs.emplace_back(name, median);
    }
  }
};

c::json to_json(const std::vector<const file_group*>& groups) {
  c::json list = c::json::array();
  for (const file_group* g : groups)
    list.push_back({{"group", g->label},
                    {"backend", g->backend},
                    {"pattern", g->pattern},
                    {"configuration", g->configuration},
                    {"kernel", g->kernel},
                    {"layout", g->layout},
                    {"element", g->element},
                    {"cost_ms", c::rounded(g->cost_ms)},
                    {"low_ms", c::rounded(g->low_ms)},
                    {"high_ms", c::rounded(g->high_ms)}});
  return list;
}

c::json to_json(const backend_total& t) {
  return {{"groups", t.groups}, {"nodes", t.nodes}, {"cost_ms", c::rounded(t.cost_ms)}};
}

c::json to_json(const file_plan& p) {
  return {{"file", p.file},
          {"cost_ms", c::rounded(p.cost_ms)},
          {"lower_bound_ms", c::rounded(p.made.lower_bound_ms)},
          {"optimal", p.made.optimal},
          {"origin", p.made.origin}};
}

c::json to_json(const comparison& found) {
  c::json header = c::json::array(), totals = c::json::array(), runs = c::json::array();
  for (const header_line& h : found.header)
    header.push_back({{"what", h.what}, {"first", h.is.first}, {"second", h.is.second}});
  for (const auto& [name, t] : found.totals)
    totals.push_back({{"backend", name}, {"first", to_json(t.first)}, {"second", to_json(t.second)}});
  const auto median = [](double ms) { return ms < 0 ? c::json() : c::json(c::rounded(ms)); };
  for (const auto& [name, ms] : found.runs)
    runs.push_back({{"name", name}, {"first_ms", median(ms.first)}, {"second_ms", median(ms.second)}});
  const auto regions = [](const std::vector<compared_region>& list) {
    c::json all = c::json::array();
    for (const compared_region& r : list) all.push_back({{"first", to_json(r.first)}, {"second", to_json(r.second)}});
    return all;
  };
  return {{"network", found.plan.first.made.network},
          {"fingerprint", found.plan.first.fingerprint},
          {"same", found.other_kernels.empty() && found.plan.first.converted == found.plan.second.converted},
          {"first", to_json(found.plan.first)},
          {"second", to_json(found.plan.second)},
          {"header", header},
          {"other_kernels", regions(found.other_kernels)},
          {"same_kernels", found.same},
          {"other_costs", regions(found.other_costs)},
          {"totals", totals},
          {"runs", runs},
          {"precision", precision_to_json(found.plan, changes_in(found.other_kernels))}};
}

cell difference(double first, double second, const char* format) {
  return {format_number(format, second - first), second > first   ? colour::red
                                                 : second < first ? colour::green
                                                                  : colour::none};
}

std::string who_runs(const std::vector<const file_group*>& groups) {
  std::string text;
  for (const file_group* g : groups) text += (text.empty() ? "" : ", ") + g->backend + " " + g->kernel;
  return text;
}

/// Counts regions with the same kernels and costs, of which a network has dozens. Returns the first one of each and its
/// count.
std::vector<std::pair<const compared_region*, std::size_t>> counted(const std::vector<compared_region>& list) {
  std::vector<std::pair<const compared_region*, std::size_t>> rows;
  for (const compared_region& r : list) {
    const auto alike = [&](const auto& row) {
      for (std::size_t which = 0; which < 2; ++which)
        if (!std::ranges::equal((*row.first)[which], r[which], [](const file_group* a, const file_group* b) {
              return c::report::is_same_kernel(*a, *b) && a->nodes.size() == b->nodes.size() &&
                     a->cost_ms == b->cost_ms;
            }))
          return false;
      return true;
    };
    const auto row = std::ranges::find_if(rows, alike);
    if (row == rows.end()) rows.emplace_back(&r, 1);
    else ++row->second;
  }
  return rows;
}

std::string interval(const file_group& g) {
  return format_number("%.4f", g.low_ms) + ".." + format_number("%.4f", g.high_ms);
}

std::string heading(const std::string& text) { return "\n" + paint(colour::bold, text) + "\n"; }

std::string header_page(const comparison& found) {
  if (found.header.empty()) return "";
  table page({{""}, {"first", align::left, 20}, {"second", align::left, 20}});
  for (const header_line& h : found.header) page.add({h.what, h.is.first, h.is.second});
  return heading("Made with") + page.text();
}

/// A table of regions that other kernels run. Where their element types differ, these come before the kernels.
std::string regions_table(const std::vector<compared_region>& list, bool has_elements) {
  table page({{"nodes", align::left, 16},
              {"places", align::right},
              {"first", align::left, 16},
              {"ms", align::right},
              {"second", align::left, 16},
              {"ms", align::right},
              {"+ms, all places", align::right}});
  const auto words = [&](const std::vector<const file_group*>& groups) {
    return (has_elements ? elements_of(groups) + ": " : "") + who_runs(groups);
  };
  for (const auto& [r, places] : counted(list)) {
    const double a = cost_of(r->first), b = cost_of(r->second);
    page.add({labels_of(r->first), std::to_string(places), words(r->first), format_number("%.4f", a), words(r->second),
              format_number("%.4f", b),
              difference(a * static_cast<double>(places), b * static_cast<double>(places), "%+.4f")});
  }
  return page.text();
}

std::string groups_page(const comparison& found) {
  std::string text;
  std::vector<compared_region> other_elements, same_elements;
  for (const compared_region& r : found.other_kernels)
    (changes_precision(r) ? other_elements : same_elements).push_back(r);
  if (!other_elements.empty())
    text += heading("Groups that compute in other element types, with the cost at each place") +
            regions_table(other_elements, true);
  if (!same_elements.empty())
    text += heading("Groups that other kernels run, with the cost at each place") + regions_table(same_elements, false);
  if (!found.other_costs.empty()) {
    table page({{"group", align::left, 16},
                {"places", align::right},
                {"kernel", align::left, 16},
                {"first ms", align::right},
                {"95 % interval", align::right},
                {"second ms", align::right},
                {"95 % interval", align::right}});
    for (const auto& [r, places] : counted(found.other_costs)) {
      const file_group &a = *r->first[0], &b = *r->second[0];
      page.add({a.label, std::to_string(places), a.backend + " " + a.kernel, format_number("%.4f", a.cost_ms),
                interval(a), format_number("%.4f", b.cost_ms), interval(b)});
    }
    text += heading("Groups that the same kernels run, with costs whose 95 % intervals do not overlap") + page.text();
  }
  const std::size_t other = found.other_kernels.size();
  std::string sentence = (other == 0 ? "All " : "") + std::to_string(found.same) +
                         (found.same == 1 ? " group has" : " groups have") + " the same kernel in both plans";
  if (other != 0)
    sentence += "; other kernels run the nodes at " + std::to_string(other) + (other == 1 ? " place" : " places");
  return text + "\n" + wrap(sentence + ".", 0);
}

std::string totals_page(const comparison& found) {
  table page({{"backend"},
              {"groups", align::right},
              {"", align::right},
              {"nodes", align::right},
              {"", align::right},
              {"ms", align::right},
              {"", align::right},
              {"+ms", align::right}});
  const auto add = [&](const std::string& name, const backend_total& a, const backend_total& b) {
    page.add({name, std::to_string(a.groups), std::to_string(b.groups), std::to_string(a.nodes),
              std::to_string(b.nodes), format_number("%.4f", a.cost_ms), format_number("%.4f", b.cost_ms),
              difference(a.cost_ms, b.cost_ms, "%+.4f")});
  };
  both<backend_total> all;
  for (const auto& [name, t] : found.totals) {
    add(name, t.first, t.second);
    for (std::size_t which = 0; which < 2; ++which) {
      all[which].groups += t[which].groups;
      all[which].nodes += t[which].nodes;
    }
  }
  all.first.cost_ms = found.plan.first.cost_ms;
  all.second.cost_ms = found.plan.second.cost_ms;
  add("all", all.first, all.second);
  return "\n" + page.text();
}

std::string runs_page(const comparison& found) {
  if (found.runs.empty()) return "";
  table page({{"end to end"}, {"first ms", align::right}, {"second ms", align::right}, {"ratio", align::right}});
  const auto number = [](double ms) { return ms < 0 ? std::string("-") : format_number("%.3f", ms); };
  for (const auto& [name, ms] : found.runs)
    page.add({name, number(ms.first), number(ms.second),
              ms.first > 0 && ms.second >= 0 ? format_number("%.3f", ms.second / ms.first) : ""});
  return "\n" + page.text() +
         wrap("These times were measured when each plan was made; to compare now, run collage bench.", 0);
}

std::string certificate(const file_plan& p) {
  return "its groups cost " + format_time(p.cost_ms) + "; no placement of its kernels costs less than " +
         format_time(p.made.lower_bound_ms) + " (origin: " + p.made.origin + ").";
}

}  // namespace

int diff(const options& given) {
  const comparison found(given.plan_file, given.other_plan_file);
  if (given.json) {
    print(c::to_text(to_json(found)));
    return 0;
  }
  std::string page = wrap("first:  " + found.plan.first.file + ", " + title_of(found.plan.first.made), 8) +
                     wrap("second: " + found.plan.second.file + ", " + title_of(found.plan.second.made), 8);
  page += header_page(found) + groups_page(found) +
          precision_changes_page(found.plan, changes_in(found.other_kernels)) + totals_page(found) + runs_page(found);
  page +=
      "\n" + wrap("first:  " + certificate(found.plan.first), 8) + wrap("second: " + certificate(found.plan.second), 8);
  print(page);
  return 0;
}

}  // namespace program
