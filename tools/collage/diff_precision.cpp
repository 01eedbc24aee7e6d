#include "diff_precision.hpp"

#include "table.hpp"
#include "terminal.hpp"

#include <collage/backend.hpp>
#include <collage/run/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace program {

namespace {

c::json error_to_json(const std::optional<c::plan_error>& error) {
  if (!error) return {};
  return {{"most", error->most},
          {"predicted", error->predicted},
          {"measured", error->measured},
          {"upper", error->upper},
          {"samples", error->samples}};
}

std::string percent_of_error(double error) { return format_number("%.3g %%", 100 * error); }

}  // namespace

std::string elements_of(const std::vector<const file_group*>& groups) {
  std::set<std::string> elements;
  for (const file_group* g : groups)
    if (g->backend != c::view_runner) elements.insert(g->element);
  std::string text;
  for (const std::string& element : elements) text += (text.empty() ? "" : ", ") + element;
  return text.empty() ? c::fp32 : text;
}

bool changes_precision(const compared_region& region) {
  return elements_of(region.first) != elements_of(region.second);
}

std::vector<precision_change> changes_in(const std::vector<compared_region>& regions) {
  std::vector<precision_change> list;
  for (const compared_region& r : regions) {
    if (!changes_precision(r)) continue;
    const std::string from = elements_of(r.first), to = elements_of(r.second);
    auto at = std::ranges::find_if(list, [&](const precision_change& one) { return one.from == from && one.to == to; });
    if (at == list.end()) {
      list.push_back({.from = from, .to = to});
      at = list.end() - 1;
    }
    ++at->places;
    for (const file_group* g : r.first) at->nodes += g->nodes.size();
    at->more_ms += cost_of(r.second) - cost_of(r.first);
  }
  return list;
}

std::string precision_changes_page(const both<file_plan>& plans, const std::vector<precision_change>& changes) {
  const std::optional<c::plan_error>&a = plans.first.made.error, &b = plans.second.made.error;
  std::string text;
  if (a || b) {
    table page({{"error"}, {"first", align::right}, {"second", align::right}, {"difference", align::right}});
    // A plan that was confirmed at once has no prediction, which is 0 in its file.
    const auto text_of_error = [](const std::optional<c::plan_error>& of, double c::plan_error::* part) {
      return !of ? std::string(c::fp32) : (*of).*part > 0 ? percent_of_error((*of).*part) : "-";
    };
    const auto add = [&](const char* what, double c::plan_error::* part) {
      const double one = a ? (*a).*part : 0, other = b ? (*b).*part : 0;
      if (one == 0 && other == 0) return;
      const bool is_known = (!a || one > 0) && (!b || other > 0);
      page.add({what, text_of_error(a, part), text_of_error(b, part),
                is_known ? format_number("%+.3g %%", 100 * (other - one)) : "-"});
    };
    add("allowed", &c::plan_error::most);
    add("predicted", &c::plan_error::predicted);
    add("measured", &c::plan_error::measured);
    add("at most, with 95 %", &c::plan_error::upper);
    text += "\n" + page.text();
  }
  if (changes.empty()) return text;
  table page({{"changes from"}, {"to"}, {"places", align::right}, {"nodes", align::right}, {"+ms", align::right}});
  for (const precision_change& one : changes)
    page.add({one.from,
              one.to,
              std::to_string(one.places),
              std::to_string(one.nodes),
              {format_number("%+.4f", one.more_ms), one.more_ms > 0 ? colour::red : colour::green}});
  return text + "\n" + page.text();
}

c::json precision_to_json(const both<file_plan>& plans, const std::vector<precision_change>& changes) {
  c::json list = c::json::array();
  for (const precision_change& one : changes)
    list.push_back({{"from", one.from},
                    {"to", one.to},
                    {"places", one.places},
                    {"nodes", one.nodes},
                    {"more_ms", c::rounded(one.more_ms)}});
  return {{"first", error_to_json(plans.first.made.error)},
          {"second", error_to_json(plans.second.made.error)},
          {"changes", list}};
}

}  // namespace program
