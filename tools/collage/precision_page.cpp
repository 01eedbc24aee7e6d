#include "precision_page.hpp"

#include "backends.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/measure/store.hpp>
#include <collage/place.hpp>
#include <collage/place/kept_errors.hpp>
#include <collage/place/kept_parts.hpp>
#include <collage/run/form.hpp>
#include <collage/run/precision.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>

namespace program {

namespace c = collage;

namespace {

constexpr std::size_t shown_groups = 16;

/// The options by which a plan was made, as far as the costs of its kernels depend on them.
c::place_options options_of(const c::plan& made, const std::string& store) {
  c::place_options how;
  how.network = made.network;
  for (const c::plan_backend& b : made.backends) how.backends.push_back(b.name);
  how.threads = made.threads;
  how.algorithms = made.algorithms;
  how.precision.elements =
      c::precisions_named(made.precision.substr(0, made.precision.find(','))).value_or(c::precisions::all);
  for (const std::string& what : c::kept_in(made.precision))
    if (!what.starts_with("pattern:")) how.kept.push_back({what});  // the type of a pattern is not known here
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(store, ignored)) return how;  // explaining makes no file
  how.store = store;
  how.store_is_optional = true;
  return how;
}

std::string number_or_dash(const char* format, const std::optional<double>& number) {
  return !number ? "-" : std::isfinite(*number) ? format_number(format, *number) : "free";
}

/// A squared error in percent of the bound.
std::optional<double> percent_of_bound(const std::optional<double>& nmse, const c::plan_error& error) {
  return nmse && error.most > 0 ? std::optional(100 * *nmse / (error.most * error.most)) : std::nullopt;
}

/// The time that the groups that round save in all, against the fastest kernels for their nodes that round nothing.
double saved_ms(const c::precision_prices& prices) {
  double sum = 0;
  for (const c::precision_price& p : prices.groups)
    if (p.exact_ms) sum += *p.exact_ms - p.cost_ms;
  return sum;
}

std::string sums_text(const placed& p, const c::precision_prices& prices) {
  const auto is_unknown = [](const c::precision_price& g) { return !g.exact_ms; };
  const auto unknown = static_cast<std::size_t>(std::ranges::count_if(prices.groups, is_unknown));
  const time_unit unit(p.made.chosen.cost_ms);
  std::string text = std::to_string(prices.groups.size()) + " of " + count_of(p.made.chosen.groups.size(), "group") +
                     " compute in lower precision. ";
  if (unknown == prices.groups.size()) text += "The store has no costs of other kernels for them. ";
  else
    text += "Alone, their kernels save " + unit.number(saved_ms(prices), 3) + " " + unit.name +
            " against the fastest ones for the same nodes that round nothing" +
            (unknown != 0 ? "; for " + count_of(unknown, "group") + " the store has no such kernel. " : ". ");
  const std::optional<double> all = percent_of_bound(prices.nmse, *p.made.error);
  if (!all)
    return text +
           "The store does not have the errors of all values that the plan rounds; collage tune with --curve measures them.";
  text += "The squared errors of all values that the plan rounds add up to " + format_number("%.3g %%", *all) +
          " of the square of the error allowed";
  if (const auto conversions = percent_of_bound(prices.conversions, *p.made.error); conversions && *conversions > 0)
    text += ", of which conversions add " + format_number("%.3g %%", *conversions);
  return text + ".";
}

/// The options of a plan, with the errors of values that the store has.
c::place_options priced_options(const options& given, const placed& p) {
  c::place_options how = options_of(p.made, p.fresh ? p.store : place_options_of(given).store);
  try {
    if (!how.store.empty())
      how.precision.errors = c::kept_errors_of(c::cost_store(how.store, c::store_mode::read_only), p.network);
  } catch (const c::error& e) {
    if (!given.quiet) complain(std::string("note: errors of values are not known: ") + e.what());
    how.store.clear();
  }
  return how;
}

}  // namespace

std::string element_text(c::dtype element) {
  if (element == c::dtype::f32) return c::fp32;
  for (const c::detail::element_name& e : c::detail::element_names)
    if (e.type == element) return e.name;
  return c::name_of(element);
}

std::optional<c::precision_prices> prices_of(const options& given, const placed& p) {
  if (!p.made.error) return {};
  return c::prices_of_precision(p.network, backends(), p.made, priced_options(given, p));
}

c::json greedy_to_json(const options& given, const placed& p) {
  c::json list = c::json::array();
  for (const c::greedy_step& s : c::greedy_steps(p.network, backends(), p.made, priced_options(given, p)))
    list.push_back({{"group", s.group},
                    {"label", label_of(p.network, p.made.chosen.groups[s.group].nodes)},
                    {"cost_ms", c::rounded(s.cost_ms)},
                    {"nmse", s.nmse}});
  return list;
}

std::string precision_page(const placed& p, const c::precision_prices& prices) {
  const time_unit unit(p.made.chosen.cost_ms);
  const std::string ms = unit.name;
  table page({{"group", align::left, 16},
              {"in"},
              {ms, align::right},
              {"saved", align::right},
              {"error", align::right},
              {"next"},
              {"+" + ms, align::right},
              {"-error", align::right},
              {"error/" + ms, align::right}});
  const std::size_t all = prices.groups.size();
  const bool is_least =
      std::ranges::any_of(prices.groups, [](const c::precision_price& g) { return g.next && g.next->is_least; });
  for (const c::precision_price& g : std::span(prices.groups).first(std::min(all, shown_groups))) {
    const c::plan_error& bound = *p.made.error;
    std::optional<double> less, more, rate;
    if (g.next) {
      less = percent_of_bound(g.next->less, bound);
      more = g.next->more_ms;
      if (less) rate = *percent_of_bound(g.next->error_per_ms(), bound) / unit.in_one_ms;
    }
    page.add({label_of(p.network, p.made.chosen.groups[g.group].nodes), element_text(g.element),
              unit.number(g.cost_ms, 4), g.exact_ms ? unit.number(*g.exact_ms - g.cost_ms, 4) : "-",
              number_or_dash("%.3f %%", percent_of_bound(g.nmse, bound)), g.next ? element_text(g.next->element) : "-",
              more ? (g.next->is_least ? ">" : "") + unit.number(*more, 4) : "-", number_or_dash("%.3f %%", less),
              number_or_dash("%.2f %%", rate)});
  }
  return page.text() +
         (all > shown_groups ? wrap("and " + std::to_string(all - shown_groups) + " more, see --json", 2, 2) : "") +
         wrap(sums_text(p, prices) +
                  " An error is a part of the square of the error allowed. Next: the next precision up, for this group "
                  "alone; the groups at the top give back most error for the time that this takes." +
                  (is_least ? " Where > stands, the store lacks the cost of a conversion." : ""),
              0);
}

c::json prices_to_json(const placed& p, const c::precision_prices& prices) {
  const auto number_or_null = [](const std::optional<double>& number) {
    return number && std::isfinite(*number) ? c::json(*number) : c::json();
  };
  c::json groups = c::json::array();
  for (const c::precision_price& g : prices.groups) {
    c::json next;
    if (g.next)
      next = {{"element", element_text(g.next->element)},
              {"more_ms", c::rounded(g.next->more_ms)},
              {"is_least", g.next->is_least},
              {"less_nmse", number_or_null(g.next->less)}};
    groups.push_back({{"group", g.group},
                      {"label", label_of(p.network, p.made.chosen.groups[g.group].nodes)},
                      {"element", element_text(g.element)},
                      {"cost_ms", c::rounded(g.cost_ms)},
                      {"exact_ms", g.exact_ms ? c::json(c::rounded(*g.exact_ms)) : c::json()},
                      {"nmse", number_or_null(g.nmse)},
                      {"next", next}});
  }
  return {{"groups", groups},
          {"saved_ms", c::rounded(saved_ms(prices))},
          {"nmse", number_or_null(prices.nmse)},
          {"conversions_nmse", number_or_null(prices.conversions)}};
}

}  // namespace program
