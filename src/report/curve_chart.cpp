// The curve of time over error budgets, as SVG.
#include "curve_chart.hpp"

#include "chart_parts.hpp"
#include "markup.hpp"

#include <place/text.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace collage::inline v0::report {
namespace {

using detail::format_number;
using detail::format_time;

constexpr double picture_width = 960, picture_height = 440;
constexpr double plot_left = 92, plot_right = picture_width - 24, plot_top = 64, plot_bottom = picture_height - 64;

/// A picture of its own has its colours with it, for light and dark pages.
constexpr html::literal style = R"(<style>
svg { background: #fcfcfb; --ink: #1d2126; --soft: #5c6570; --line: #d9dce0; --c: #2f6db3; }
@media (prefers-color-scheme: dark) {
  svg { background: #14171a; --ink: #e5e8eb; --soft: #9aa4ae; --line: #333a41; --c: #6ba4e6; }
}
text { font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: var(--soft); }
.title { font-size: 16px; font-weight: 600; fill: var(--ink); }
.mid { text-anchor: middle; } .end { text-anchor: end; }
.gain { fill: var(--ink); text-anchor: middle; }
.grid { stroke: var(--line); fill: none; }
.limit { stroke: var(--soft); stroke-dasharray: 6 4; fill: none; }
.curve { stroke: var(--c); stroke-width: 2; fill: none; }
.mark { fill: var(--c); }
</style>
)";

std::string percent_text(double error) { return format_number("%.3g %%", 100 * error); }

/// Budgets from left to right, by the ratios between them.
struct budget_axis {
  double low, high;  // logarithms
  budget_axis(double least, double most) : low(std::log(least)), high(std::log(most)) {
    const double margin = std::max(0.04 * (high - low), 0.02);
    low -= margin;
    high += margin;
  }
  double at(double error) const {
    return plot_left + (std::log(error) - low) / (high - low) * (plot_right - plot_left);
  }
  /// Round numbers between the ends: 1, 2 and 5 times a power of ten.
  std::vector<double> ticks() const {
    std::vector<double> list;
    for (double decade = std::pow(10, std::floor(low / std::log(10.0))); std::log(decade) <= high; decade *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (std::log(factor * decade) >= low && std::log(factor * decade) <= high) list.push_back(factor * decade);
    if (list.empty()) list.push_back(std::exp((low + high) / 2));
    return list;
  }
};

/// Times from the bottom, which is 0, up to a little more than that in float32.
double y_at(double ms, double most_ms) { return plot_bottom - ms / most_ms * (plot_bottom - plot_top); }

void add_axes(html& to, const budget_axis& x, double most_ms) {
  const double tick = tick_of(most_ms);
  const bool is_small = most_ms < 0.01;  // as in format_time
  for (double ms = 0; ms <= most_ms * 1.001; ms += tick) {
    add_line(to, "grid", plot_left, y_at(ms, most_ms), plot_right, y_at(ms, most_ms));
    add_label(to, "end", plot_left - 8, y_at(ms, most_ms) + 4, format_number("%.4g", is_small ? 1e3 * ms : ms));
  }
  add_label(to, "end", plot_left - 8, plot_top - 12, is_small ? "µs" : "ms");
  for (const double error : x.ticks()) {
    add_line(to, "grid", x.at(error), plot_top, x.at(error), plot_bottom);
    add_label(to, "mid", x.at(error), plot_bottom + 20, percent_text(error));
  }
  add_label(to, "end", plot_right, plot_bottom + 42, "error allowed, relative to the outputs");
  add_label(to, "start", plot_left, plot_bottom + 42,
            "predicted by a search over kernels' times and values' errors; not run");
  to.raw("\n");
}

/// A plan within a budget is within all larger ones, so the curve falls at each budget and is level between them.
void add_curve(html& to, const error_curve& curve, const budget_axis& x, double most_ms) {
  to.raw("<path class=\"curve\" d=\"M").length(plot_left).raw(" ").length(y_at(curve.exact.cost_ms, most_ms));
  for (const error_point& p : curve.points)
    to.raw("H").length(x.at(p.most_error)).raw("V").length(y_at(p.cost_ms, most_ms));
  to.raw("H").length(plot_right).raw("\"/>\n");
  for (const error_point& p : curve.points) {
    const double at = x.at(p.most_error), y = y_at(p.cost_ms, most_ms);
    to.raw("<circle class=\"mark\" r=\"4.5\" cx=\"").length(at).raw("\" cy=\"").length(y).raw("\"><title>");
    to.text(percent_text(p.most_error) + " allowed, " + percent_text(p.predicted) +
            " predicted: " + format_time(p.cost_ms));
    to.text(format_number(", %.1f %% of the time in lower precision", 100 * p.rounded_share));
    to.text(format_number(", gap %.2f %%", 100 * p.gap())).raw("</title></circle>");
    add_label(to, "gain", at, y + 22, format_number("%.2f", curve.exact.cost_ms / p.cost_ms));
    to.raw("\n");
  }
}

}  // namespace

std::string curve_picture(const error_curve& curve, const std::string& network) {
  html to;
  to.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ")
      .length(picture_width)
      .raw(" ")
      .length(picture_height);
  to.raw("\" role=\"img\">\n<title>").text("Time over error budgets of " + network).raw("</title>\n").raw(style);
  add_label(to, "title", plot_left, 28,
            shortened(network, 360, 16) + ": time of the fastest plan within an error, and times as fast as float32");
  const double most_ms = std::max(1.12 * curve.exact.cost_ms, 1e-6);
  const bool is_empty = curve.points.empty();
  const budget_axis x(is_empty ? 1e-3 : curve.points.front().most_error,
                      is_empty ? 1e-1 : curve.points.back().most_error);
  add_axes(to, x, most_ms);
  const double exact = y_at(curve.exact.cost_ms, most_ms);
  add_line(to, "limit", plot_left, exact, plot_right, exact);
  add_label(to, "end", plot_right, exact - 8, "float32, " + format_time(curve.exact.cost_ms));
  add_curve(to, curve, x, most_ms);
  return to.raw("</svg>\n").str();
}

}  // namespace collage::inline v0::report
