#include "budget_curve.hpp"

#include "backends.hpp"
#include "lower_precision.hpp"
#include "output_file.hpp"
#include "placing.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <collage/place.hpp>
#include <collage/run/precision.hpp>
#include <report/curve_chart.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace program {

namespace c = collage;

namespace {

std::string percent_text(double part, const char* format = "%.3g %%") { return format_number(format, 100 * part); }

c::json to_json(const c::error_point& p) {
  return {{"most_error", p.most_error},         {"predicted", p.predicted},
          {"cost_ms", c::rounded(p.cost_ms)},   {"lower_bound_ms", c::rounded(p.lower_bound_ms)},
          {"gap", c::rounded(p.gap())},         {"groups", p.chosen.groups.size()},
          {"rounded_groups", p.rounded_groups}, {"rounded_share", c::rounded(p.rounded_share)}};
}

}  // namespace

void check_curve(const options& given) {
  if (given.curve_file.empty()) return;
  if (precision_options_of(given).elements == c::precisions::f32)
    throw c::error(c::error_kind::invalid_argument, "it shows plans of lower precision", "--curve",
                   "add --precision bf16, or leave it out");
  check_output(given.curve_file, given);
}

c::error_curve make_curve(const options& given, const c::graph& network) {
  progress_line line(given.quiet);
  c::place_options how = place_options_of(given);
  if (!given.quiet) how.progress = [&](const c::place_progress& now) { line.show(text_of(now)); };
  set_errors(given, network, how, [&](const std::string& what) { line.show(what); });
  const c::error_curve curve = c::curve_of_errors(network, backends(), how);
  c::write_file(given.curve_file, c::report::curve_picture(curve, given.network));
  return curve;
}

std::string curve_page(const c::error_curve& curve) {
  const time_unit unit(curve.exact.cost_ms);
  table page({{"error allowed", align::right},
              {"predicted", align::right},
              {unit.name, align::right},
              {"times as fast", align::right},
              {"lower precision: groups", align::right},
              {"of the time", align::right},
              {"gap", align::right}});
  const auto add = [&](const c::error_point& p) {
    page.add({p.most_error > 0 ? percent_text(p.most_error) : "fp32", p.predicted > 0 ? percent_text(p.predicted) : "-",
              unit.number(p.cost_ms, 4), p.cost_ms > 0 ? format_number("%.3f", curve.exact.cost_ms / p.cost_ms) : "-",
              std::to_string(p.rounded_groups), percent_text(p.rounded_share, "%.1f %%"),
              percent_text(p.gap(), "%.2f %%")});
  };
  add(curve.exact);
  for (const c::error_point& p : curve.points) add(p);
  return "\n" + paint(colour::bold, "The fastest plans within other errors") + "\n" + page.text() +
         wrap(
             curve.points.empty()
                 ? "No plan that rounds values is faster than the best one in float32."
                 : "They were found by searches over the times of kernels alone, and predicted by the errors of single "
                   "values. None of them ran. The gap is how much faster a plan of these kernels could be.",
             0);
}

c::json curve_to_json(const c::error_curve& curve) {
  c::json points = c::json::array();
  for (const c::error_point& p : curve.points) points.push_back(to_json(p));
  return {{"exact", to_json(curve.exact)}, {"points", points}};
}

}  // namespace program
