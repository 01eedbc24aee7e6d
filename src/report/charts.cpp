// Charts: the arena, the roofline, times end to end, shares of backends.
#include "charts.hpp"

#include "chart_parts.hpp"
#include "drawing.hpp"
#include "tables.hpp"

#include <place/text.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace collage::inline v0::report {
namespace {

constexpr double chart_width = 960;

std::string number_text(const char* format, double number) { return detail::format_number(format, number); }

/// Bytes as "6.02 MB".
std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return number_text("%.2f GB", bytes / 1e9);
  if (bytes >= 1e6) return number_text("%.2f MB", bytes / 1e6);
  return number_text("%.1f KB", bytes / 1e3);
}

void begin_chart(html& to, double height, html::literal about) {
  to.raw("<svg class=\"chart\" viewBox=\"0 0 ")
      .length(chart_width)
      .raw(" ")
      .length(height)
      .raw("\" role=\"img\" aria-label=\"");
  to.raw(about).raw("\">\n");
}
/// A logarithmic axis over whole decades.
struct log_axis {
  double low = 0, high = 1;  // exponents of ten
  double from = 0, to = 1;   // pixels
  log_axis(double least, double most, double first, double last)
      : low(std::floor(std::log10(least))),
        high(std::max(low + 1, std::ceil(std::log10(most)))),
        from(first),
        to(last) {}
  double at(double number) const { return from + (std::log10(number) - low) / (high - low) * (to - from); }
};

std::string power_text(double exponent) {
  return exponent >= 0 && exponent <= 4   ? number_text("%.0f", std::pow(10, exponent))
         : exponent < 0 && exponent >= -3 ? number_text("%.3g", std::pow(10, exponent))
                                          : number_text("1e%.0f", exponent);
}

/// The mark of a backend: its form and its colour differ from those of the others.
void add_mark(html& to, const facts& all, std::size_t runner, double x, double y, double r) {
  to.raw("<path class=\"m ").add(class_of(all, runner)).raw("\" d=\"");
  const auto move = [&](html::literal how, double dx, double dy) {
    to.raw(how).length(x + dx).raw(" ").length(y + dy);
  };
  switch (runner % runner_styles) {
    case 0:
      move("M", -r, 0);
      to.raw("a").length(r).raw(" ").length(r).raw(" 0 1 0 ").length(2 * r).raw(" 0a").length(r).raw(" ").length(r).raw(
          " 0 1 0 ");
      to.length(-2 * r).raw(" 0");
      break;
    case 1: move("M", -r, -r), move("L", r, -r), move("L", r, r), move("L", -r, r); break;
    case 2: move("M", 0, -1.2 * r), move("L", 1.2 * r, r), move("L", -1.2 * r, r); break;
    case 3: move("M", 0, -1.4 * r), move("L", 1.4 * r, 0), move("L", 0, 1.4 * r), move("L", -1.4 * r, 0); break;
    case 4: move("M", 0, 1.2 * r), move("L", 1.2 * r, -r), move("L", -1.2 * r, -r); break;
    case 5: move("M", -1.2 * r, 0), move("L", r, -1.2 * r), move("L", r, 1.2 * r); break;
    case 6: move("M", 1.2 * r, 0), move("L", -r, -1.2 * r), move("L", -r, 1.2 * r); break;
    case 7:
      move("M", -1.4 * r, -0.6 * r), move("L", 1.4 * r, -0.6 * r), move("L", 1.4 * r, 0.6 * r),
          move("L", -1.4 * r, 0.6 * r);
      break;
    default:
      move("M", -0.6 * r, -1.4 * r), move("L", 0.6 * r, -1.4 * r), move("L", 0.6 * r, 1.4 * r),
          move("L", -0.6 * r, 1.4 * r);
      break;
  }
  to.raw("Z\"");
}

void add_arena_axes(html& to, double most, std::size_t steps, double left, double top, double right, double bottom) {
  const double tick = tick_of(most);
  for (double bytes = 0; bytes <= most * 1.001; bytes += tick) {
    const double y = bottom - bytes / most * (bottom - top);
    add_line(to, "grid", left, y, right, y);
    add_label(to, "tick end", left - 8, y + 4, bytes_text(bytes));
  }
  const auto tick_steps =
      std::max<std::size_t>(1, static_cast<std::size_t>(tick_of(static_cast<double>(std::max<std::size_t>(steps, 8)))));
  for (std::size_t s = 0; s <= steps; s += tick_steps)
    add_label(to, "tick mid", left + (right - left) * static_cast<double>(s) / static_cast<double>(steps), bottom + 18,
              std::to_string(s));
  add_label(to, "tick end", right, bottom + 34, "steps of a run");
}

}  // namespace

std::vector<std::size_t> arena_steps(const program& code) {
  using part = std::pair<std::size_t, std::size_t>;  // bytes from, to
  std::vector<std::vector<part>> parts(code.instructions.size());
  for (const program_region& r : code.regions) {
    if (r.where != program_region::home::arena || r.index != 0 || r.bytes == 0) continue;
    for (std::uint32_t s = r.first; s <= r.last && s < parts.size(); ++s)
      parts[s].emplace_back(r.offset, r.offset + r.bytes);
  }
  std::vector<std::size_t> steps;
  for (std::vector<part>& step : parts) {
    std::ranges::sort(step);
    std::size_t bytes = 0, end = 0;  // a result may lie where an argument lay, and counts once
    for (const auto& [from, to] : step) {
      bytes += std::max(to, end) - std::max(from, end);
      end = std::max(end, to);
    }
    steps.push_back(bytes);
  }
  return steps;
}

html arena_chart(const facts& all) {
  html to;
  if (all.from.code == nullptr || all.from.code->instructions.empty()) return to;
  const program& code = *all.from.code;
  const std::vector<std::size_t> steps = arena_steps(code);
  const std::size_t peak = static_cast<std::size_t>(std::ranges::max_element(steps) - steps.begin());
  const auto size = static_cast<double>(code.arenas[0].bytes);
  if (size <= 0) return to.raw("<p>A run needs no memory of its own besides inputs, outputs and weights.</p>\n");
  constexpr double left = 84, right = chart_width - 12, top = 22, bottom = 212;
  const double most = std::max(size, static_cast<double>(steps[peak]));
  const auto x_of = [&](std::size_t s) {
    return left + (right - left) * static_cast<double>(s) / static_cast<double>(steps.size());
  };
  const auto y_of = [&](double bytes) { return bottom - bytes / most * (bottom - top); };
  begin_chart(to, 252, "Bytes of the arena that are needed at each step of a run");
  add_arena_axes(to, most, steps.size(), left, top, right, bottom);
  to.raw("<path class=\"area\" d=\"M").length(left).raw(" ").length(bottom);
  for (std::size_t s = 0; s < steps.size(); ++s)
    to.raw("V").length(y_of(static_cast<double>(steps[s]))).raw("H").length(x_of(s + 1));
  to.raw("V").length(bottom).raw("Z\"/>");
  add_line(to, "limit", left, y_of(size), right, y_of(size));
  add_label(to, "tick end", right, y_of(size) - 6, "size of the arena, " + bytes_text(size));
  to.raw("\n</svg>\n<p>Most is needed at step ").count(peak).raw(", ");
  to.name(shortened(code.instructions[peak].label, 420, 13)).raw(": ");
  to.text(bytes_text(static_cast<double>(steps[peak]))).raw(". The arena has ").text(bytes_text(size)).raw(", ");
  const auto bound = static_cast<double>(code.arenas[0].bound);
  to.text(number_text("%.3f", bound > 0 ? size / bound : 1)).raw(" times the lower bound.</p>\n");
  return to;
}

namespace {

struct rated_group {
  std::uint32_t index = 0;
  double intensity = 0, rate = 0;  // FLOP per byte, FLOP per second
};

std::vector<rated_group> rated(const facts& all) {
  std::vector<rated_group> list;
  for (std::uint32_t i = 0; i < all.groups.size(); ++i) {
    const group_facts& g = all.groups[i];
    if (g.is_inner || !g.group->has_kernel() || g.flops <= 0 || g.bytes <= 0 || g.group->cost_ms <= 0) continue;
    list.push_back({i, g.flops / g.bytes, g.flops / g.group->cost_ms * 1e3});
  }
  // The small ones lie on top of the large ones.
  std::ranges::stable_sort(list, std::ranges::greater{},
                           [&](const rated_group& r) { return all.groups[r.index].group->cost_ms; });
  return list;
}

/// The limits that the machine sets, or those that the plan's own groups reached.
void add_roofs(html& to, const facts& all, const log_axis& x, const log_axis& y, double flops, double bytes) {
  const bool is_known = all.from.peak_flops > 0;
  const double ridge = bytes > 0 ? flops / bytes : std::pow(10, x.low);
  const double start = std::clamp(ridge, std::pow(10, x.low), std::pow(10, x.high));
  add_line(to, "limit", x.at(start), y.at(flops), x.to, y.at(flops));
  add_label(to, "tick end", x.to, y.at(flops) - 6,
            (is_known ? "peak, " : "fastest group, ") + number_text("%.1f GFLOP/s", flops / 1e9));
  if (bytes <= 0) return;
  const double least = std::max(std::pow(10, x.low), std::pow(10, y.low) / bytes);
  if (least >= ridge) return;
  add_line(to, "limit", x.at(least), y.at(least * bytes), x.at(start), y.at(start * bytes));
  add_label(to, "tick", x.at(least) + 44, y.at(least * bytes) - 6, number_text("memory, %.1f GB/s", bytes / 1e9));
}

}  // namespace

html roofline_chart(const facts& all) {
  html to;
  const std::vector<rated_group> list = rated(all);
  if (list.empty()) return to;
  double least_x = list[0].intensity, most_x = least_x, least_y = list[0].rate, most_y = least_y;
  for (const rated_group& r : list) {
    least_x = std::min(least_x, r.intensity), most_x = std::max(most_x, r.intensity);
    least_y = std::min(least_y, r.rate), most_y = std::max(most_y, r.rate);
  }
  const double fastest = most_y, flops = all.from.peak_flops > 0 ? all.from.peak_flops : fastest;
  least_y = std::max(least_y, std::max(most_y, flops) * 1e-6);
  constexpr double left = 84, right = chart_width - 20, top = 34, bottom = 346;
  const log_axis x(least_x, most_x, left, right), y(least_y / 1e9, std::max(most_y, flops) / 1e9, bottom, top);
  begin_chart(to, 390, "Arithmetic per second against arithmetic per byte, for each group");
  for (double e = x.low; e <= x.high; ++e) {
    add_line(to, "grid", x.at(std::pow(10, e)), top, x.at(std::pow(10, e)), bottom);
    add_label(to, "tick mid", x.at(std::pow(10, e)), bottom + 18, power_text(e));
  }
  for (double e = y.low; e <= y.high; ++e) {
    add_line(to, "grid", left, y.at(std::pow(10, e)), right, y.at(std::pow(10, e)));
    add_label(to, "tick end", left - 8, y.at(std::pow(10, e)) + 4, power_text(e));
  }
  add_label(to, "tick end", right, bottom + 36, "FLOP per byte");
  add_label(to, "tick end", left - 8, top - 18, "GFLOP/s");
  const log_axis y_flops(least_y, std::max(most_y, flops), bottom, top);
  for (const rated_group& r : list) {
    const group_facts& g = all.groups[r.index];
    const double radius = 3.5 + 9 * std::sqrt(g.group->cost_ms / std::max(all.longest_ms, 1e-12));
    add_mark(to, all, g.runner, x.at(r.intensity), y_flops.at(std::max(r.rate, least_y)), radius);
    to.raw(" data-g=\"")
        .count(r.index)
        .raw("\"><title>")
        .text(g.number + ". ")
        .plain_name(shortened(g.label, 1200, 12))
        .raw("\n");
    to.text(all.runners[g.runner] + ", " + time_text(g.group->cost_ms)).raw("\n");
    to.text(number_text("%.3g GFLOP/s", r.rate / 1e9) + number_text(", %.3g FLOP per byte", r.intensity))
        .raw("</title></path>\n");
  }
  add_roofs(to, all, x, y_flops, flops, all.from.peak_bytes);
  return to.raw("</svg>\n");
}

html mark_of(const facts& all, std::size_t runner) {
  html to;
  to.raw("<svg class=\"chart-mark\" width=\"18\" height=\"18\" aria-hidden=\"true\">");
  add_mark(to, all, runner, 9, 9, 5);
  return to.raw("/></svg>");
}

namespace {

struct bar {
  std::string name;
  std::size_t runner = 0;  // beyond the last: none
  double ms = 0, low_ms = 0, high_ms = 0;
  bool is_main = false;
};

/// Horizontal bars, with whiskers where low and high differ. A line continues the end of the main bar.
html bars_chart(const facts& all, const std::vector<bar>& bars, html::literal about) {
  html to;
  double most = 0;
  for (const bar& b : bars) most = std::max({most, b.ms, b.high_ms});
  if (most <= 0) return to;
  constexpr double left = 150, right = chart_width - 96, row = 26;
  const double height = row * static_cast<double>(bars.size()) + 8;
  begin_chart(to, height, about);
  const auto x_of = [&](double ms) { return left + ms / most * (right - left); };
  for (const bar& b : bars)
    if (b.is_main) add_line(to, "limit", x_of(b.ms), 2, x_of(b.ms), height - 2);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const bar& b = bars[i];
    const double y = 4 + row * static_cast<double>(i);
    add_label(to, b.is_main ? html::literal("name end main") : html::literal("name end"), left - 10, y + 16,
              shortened(b.name, left - 20, 13));
    to.raw("<g class=\"");
    if (b.runner < all.runners.size()) to.add(class_of(all, b.runner));
    else to.raw(b.is_main ? html::literal("main") : html::literal("engine"));
    to.raw("\"><rect class=\"run\" x=\"").length(left).raw("\" y=\"").length(y + 3).raw("\" width=\"");
    to.length(x_of(b.ms) - left).raw("\" height=\"").length(row - 9).raw("\"/>");
    if (b.low_ms < b.high_ms) {
      add_line(to, "whisker", x_of(b.low_ms), y + 11.5, x_of(b.high_ms), y + 11.5);
      add_line(to, "whisker", x_of(b.low_ms), y + 6, x_of(b.low_ms), y + 17);
      add_line(to, "whisker", x_of(b.high_ms), y + 6, x_of(b.high_ms), y + 17);
    }
    to.raw("</g>");
    add_label(to, "tick", x_of(std::max(b.high_ms, b.ms)) + 8, y + 16, time_text(b.ms));
    to.raw("\n");
  }
  return to.raw("</svg>\n");
}

}  // namespace

html runs_chart(const facts& all) {
  std::vector<bar> bars;
  for (const plan_run& r : all.made.runs)
    bars.push_back({r.name, all.runner_of(r.name), r.median_ms, r.low_ms, r.high_ms, bars.empty()});
  return bars_chart(all, bars, "Times end to end");
}

html costs_chart(const facts& all) {
  std::vector<bar> bars;
  const std::size_t none = all.runners.size();
  bars.push_back({"kernels alone", none, all.alone_ms + all.conversions_ms, 0, 0, false});
  bars.push_back({"in the network", none, all.made.chosen.cost_ms, 0, 0, false});
  if (!all.made.runs.empty()) {
    const plan_run& r = all.made.runs[0];
    bars.push_back({"whole run", none, r.median_ms, r.low_ms, r.high_ms, true});
  }
  return bars_chart(all, bars, "The sum of costs beside the time of a run");
}

html shares_bar(const facts& all) {
  html to;
  double sum = 0;
  for (const share& s : all.shares) sum += s.cost_ms;
  if (sum > 0) {
    begin_chart(to, 30, "Shares of the backends in the sum of the costs");
    double x = 0;
    for (const share& s : all.shares) {
      const double part = chart_width * s.cost_ms / sum;
      if (part < 0.05) continue;
      to.raw("<g class=\"").add(class_of(all, s.runner)).raw("\"><title>").text(all.runners[s.runner]).raw("</title>");
      for (int layer = 0; layer < 2; ++layer) {
        to.raw(layer == 0 ? html::literal("<rect class=\"s\" x=\"") : html::literal("<rect class=\"p\" x=\""))
            .length(x);
        to.raw("\" y=\"2\" height=\"26\" width=\"").length(std::max(part - 1.5, 0.5));
        if (layer == 1) to.raw("\" fill=\"url(#p").count(s.runner % runner_styles).raw(")");
        to.raw("\"/>");
      }
      to.raw("</g>");
      x += part;
    }
    to.raw("\n</svg>\n");
  }
  to.raw("<ul class=\"legend\">");
  for (const share& s : all.shares) {
    to.raw("<li>").add(swatch_of(all, s.runner)).raw(" <b>").text(all.runners[s.runner]).raw("</b> ");
    if (sum > 0) to.text(number_text("%.1f %%", 100 * s.cost_ms / sum));
    to.raw(" <span>").text(count_of(s.groups, "group")).raw("</span></li>");
  }
  return to.raw("</ul>\n");
}

}  // namespace collage::inline v0::report
