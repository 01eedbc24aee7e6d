// The page: its head, its sections in order, and the data for its script.
#include "report.hpp"

#include "assets.hpp"
#include "charts.hpp"
#include "data.hpp"
#include "drawing.hpp"
#include "facts.hpp"
#include "markup.hpp"
#include "tables.hpp"

#include <collage/error.hpp>
#include <collage/fwd.hpp>
#include <collage/graph/totals.hpp>
#include <collage/io/json.hpp>
#include <collage/place/compare.hpp>
#include <place/plan_text.hpp>
#include <place/text.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace collage::inline v0::report {
namespace {

std::string number_text(const char* format, double number) { return detail::format_number(format, number); }

/// One line of the summary: its title, the most important figure, and a sentence.
void add_line(html& to, html::literal title, const std::string& figure, const std::string& sentence) {
  to.raw("<div><dt>")
      .raw(title)
      .raw("</dt><dd><strong>")
      .text(figure)
      .raw("</strong> <span>")
      .text(sentence)
      .raw("</span></dd></div>\n");
}

std::string network_sentence(const facts& all) {
  const graph_totals totals = totals_of(all.network);
  const std::size_t kernels = all.made.chosen.groups.size() - all.views;
  return count_of(all.network.nodes().size(), "node") + " in " + count_of(kernels, "group") +
         (all.views == 0 ? "" : " and " + count_of(all.views, "view")) + "; " +
         number_text("%.1f M parameters, ", static_cast<double>(totals.parameters) / 1e6) +
         number_text("%.2f GFLOP a run", totals.flops / 1e9);
}

void add_time(html& to, const facts& all) {
  if (all.made.runs.empty())
    return add_line(to, "Time", all.is_measured() ? time_text(all.made.chosen.cost_ms) : "not measured",
                    all.is_measured() ? "is the sum of the groups' costs; the plan did not run end to end"
                                      : "the plan was made without measuring; collage tune measures");
  const plan_run& r = all.made.runs[0];
  std::string text = r.runs > 1 ? "median of " + count_of(r.runs, "run") + "; 80 % took between " +
                                      time_text(r.low_ms) + " and " + time_text(r.high_ms)
                                : "one run, so no interval";
  constexpr double highest = 1e9;  // GFLOP/s; a plan file that was edited by hand may have any time
  if (const double rate = all.flops / r.median_ms / 1e6; rate > 0 && rate < highest)
    text += number_text("; %.1f GFLOP/s", rate);
  add_line(to, "Time", time_text(r.median_ms), text);
}

/// How sure it is that a placement and the plan differ in time.
std::string confidence_text(const plan_run& of) {
  if (of.runs <= 1) return "one run, so no interval";
  const bool is_clear = of.ratio_low > 1 || of.ratio_high < 1;
  return number_text("%.2f", of.ratio_low) + " to " + number_text("%.2f", of.ratio_high) +
         " with a confidence of 95 %" + (is_clear ? "" : ", so neither is clearly faster");
}

void add_against(html& to, const facts& all) {
  const plan_run* const best = all.best_single();
  if (best == nullptr)
    return add_line(to, "Against", "not compared", "no single backend ran end to end with this plan");
  for (const placement& single : all.made.singles)
    if (single.name == best->name && same_steps(single, all.made.chosen))
      return add_line(to, "Against", "the same as " + detail::single_text(all.made, best->name),
                      "the plan runs the steps of the best single backend");
  add_line(to, "Against", number_text("%.2f times as fast", best->ratio),
           "as " + detail::single_text(all.made, best->name) + ", the best single backend (" +
               time_text(best->median_ms) + "); " + confidence_text(*best));
}

void add_bound(html& to, const facts& all) {
  const double cost = all.made.chosen.cost_ms, least = all.made.lower_bound_ms;
  std::string figure = "no bound";
  if (least > 0) {
    const double gap = 100 * (cost / least - 1);
    figure = gap < 0.05 && all.made.optimal ? "optimal" : number_text("gap %.1f %%", std::max(gap, 0.0));
  }
  add_line(to, "Bound", figure, detail::certificate_text(all.made));
}

html header_of(const facts& all) {
  html to;
  to.raw("<header>\n<p class=\"kind\">collage report</p>\n<h1>")
      .text(all.made.network)
      .raw("</h1>\n<dl class=\"summary\">\n");
  add_line(to, "Network", count_of(all.network.nodes().size(), "node"),
           network_sentence(all).substr(network_sentence(all).find(" in ") + 1));
  add_line(to, "Machine", all.made.processor,
           count_of(static_cast<std::size_t>(all.made.threads), "thread") + ", " + all.made.precision);
  add_time(to, all);
  add_against(to, all);
  add_bound(to, all);
  to.raw("</dl>\n").add(shares_bar(all)).raw("</header>\n");
  return to;
}

void begin_section(html& to, html& menu, html::literal id, html::literal title) {
  to.raw("<section id=\"")
      .raw(id)
      .raw("\" aria-labelledby=\"")
      .raw(id)
      .raw("-title\">\n<h2 id=\"")
      .raw(id)
      .raw("-title\">");
  to.raw(title).raw("</h2>\n");
  menu.raw("<a href=\"#").raw(id).raw("\">").raw(title).raw("</a>\n");
}

/// The keys of a drawing: buttons, search, and a panel that the script fills.
void add_network(html& to, html& menu, const facts& all, summary& sizes) {
  const drawn full = draw(all, all.scenes[0], html().raw("full"), false);
  sizes.boxes = full.boxes;
  sizes.crossings = full.crossings;
  begin_section(to, menu, "network", "Network");
  to.raw(
      "<p>A box is a group of operators that one kernel runs; the taller, the longer it takes. Colour and pattern at its left side are the backend\u2019s. "
      "A line is a value. <span class=\"live\">Choose a box to see its figures.</span></p>\n");
  to.raw(
      "<div class=\"keys live\" role=\"toolbar\" aria-label=\"The drawing\">\n"
      "<label>Search <input id=\"search\" type=\"search\" placeholder=\"name, operator, kernel\" autocomplete=\"off\" spellcheck=\"false\"></label>"
      "<output id=\"found\"></output>\n"
      "<span class=\"gap\"></span>\n");
  if (all.scenes.size() > 1) {  // subgraphs of branches and loops
    to.raw("<label>Show <select id=\"part\"><option value=\"full\">the network</option>");
    for (std::size_t s = 1; s < all.scenes.size(); ++s)
      to.raw("<option value=\"part").count(s).raw("\">").text(all.scenes[s].name).raw("</option>");
    to.raw("</select></label>\n");
  }
  if (!all.blocks.empty())
    to.raw("<button id=\"fold\" type=\"button\" aria-pressed=\"false\">Fold repeated blocks</button>\n");
  to.raw(
      "<button id=\"less\" type=\"button\" aria-label=\"Smaller\">\u2212</button><button id=\"more\" type=\"button\" aria-label=\"Larger\">+</button>"
      "<button id=\"fit\" type=\"button\">Whole</button><button id=\"wide\" type=\"button\">Width</button>\n</div>\n");
  to.raw(
      "<div class=\"split\">\n<div id=\"canvas\" tabindex=\"0\" role=\"application\" aria-label=\"Drawing of the network. Arrow keys choose a box, Enter unfolds a block, plus and minus zoom.\">\n");
  to.add(full.svg);
  if (!all.blocks.empty()) {
    const item_graph folded = collapsed(all.scenes[0].items, all.blocks);
    to.add(draw(all, all.scenes[0], html().raw("folded"), true, &folded).svg);
  }
  for (std::size_t s = 1; s < all.scenes.size(); ++s)
    to.add(draw(all, all.scenes[s], html().raw("part").count(s), true).svg);
  to.raw(
      "</div>\n<aside id=\"panel\" class=\"live\" aria-live=\"polite\"><p class=\"hint\">Nothing is chosen.</p></aside>\n</div>\n</section>\n");
}

void add_times(html& to, html& menu, const facts& all) {
  begin_section(to, menu, "times", "Times");
  if (all.made.runs.empty()) {
    to.raw("<p>No placement ran end to end.</p>\n");
  } else {
    to.raw(
        "<h3>End to end</h3>\n<p>Placements of the same network ran in turns. A bar ends at the median; the whisker spans the middle 80 % of the runs.</p>\n");
    to.add(runs_chart(all)).add(runs_table(all));
  }
  if (all.is_measured()) {
    to.raw(
        "<h3>Sum of costs</h3>\n<p>The kernels\u2019 times, called alone again and again, and within the network; both with conversions.");
    if (!all.made.runs.empty()) {
      const double off = 100 * detail::prediction_error(all.made);
      to.raw(" The sum within the network is ").text(number_text("%.1f %%", std::abs(off)));
      to.raw(off < 0 ? html::literal(" below") : html::literal(" above")).raw(" the time of a whole run.");
    }
    if (all.switch_ms > 0)
      to.raw(" It has ").text(time_text(all.switch_ms)).raw(" because other backends wrote what kernels read.");
    if (all.conversions_ms > 0) to.raw(" Conversions take ").text(time_text(all.conversions_ms)).raw(".");
    to.raw("</p>\n").add(costs_chart(all));
  }
  if (const std::string text = detail::memory_text(all.made); !text.empty()) to.raw("<p>").text(text).raw("</p>\n");
  to.raw("<h3>By backend</h3>\n").add(shares_table(all)).raw("</section>\n");
}

void add_groups(html& to, html& menu, const facts& all) {
  begin_section(to, menu, "groups", "Groups");
  to.raw(
      "<p>The time of a group is that of its kernel within the network. The runner-up runs the nodes in the best placement without this kernel, "
      "and + ms is how much more that placement costs. ");
  const auto is_known = [&](std::uint32_t g) {
    return all.groups[g].group->is_view() || all.groups[g].group->regret_ms >= 0;
  };
  if (!std::ranges::all_of(all.rows, is_known)) to.raw("Both are empty where no such placement is known. ");
  to.raw("<span class=\"live\">Titles sort; a row shows its box.</span></p>\n");
  to.raw(
      "<p class=\"live\"><label>Filter <input id=\"filter\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\"></label> <output id=\"kept\"></output></p>\n");
  to.add(groups_table(all));
  if (!all.conversions.empty())
    to.raw("<h3>Conversions of values into another form</h3>\n").add(conversions_table(all));
  to.raw("</section>\n");
}

void add_roofline(html& to, html& menu, const facts& all) {
  const html chart = roofline_chart(all);
  if (chart.empty()) return;
  begin_section(to, menu, "roofline", "Roofline");
  to.raw(
      "<p>A mark is a group, the larger the longer it takes. Bytes are those of its operands, constants and results, each once. ");
  if (all.from.peak_flops > 0 && all.from.peak_bytes > 0) {
    to.raw("The lines are the limits that were given for the machine.");
  } else if (all.from.peak_flops > 0) {
    to.raw(
        "The line is the peak that was given for the machine; <code>--bandwidth</code> gives the limit of its memory.");
  } else if (all.from.peak_bytes > 0) {
    to.raw(
        "The sloping line is the bandwidth that was given for the machine. Its peak is not known, so the level line is the fastest group; <code>--peak</code> gives it.");
  } else {
    to.raw(
        "The machine\u2019s peak is not known, so the line is the fastest group; <code>--peak</code> and <code>--bandwidth</code> give the limits.");
  }
  to.raw("</p>\n").add(chart).raw("<ul class=\"legend marks\">");
  for (const share& s : all.shares)
    to.raw("<li>").add(mark_of(all, s.runner)).raw(" ").text(all.runners[s.runner]).raw("</li>");
  to.raw("</ul>\n</section>\n");
}

void add_arena(html& to, html& menu, const facts& all) {
  const html chart = arena_chart(all);
  if (chart.empty()) return;
  begin_section(to, menu, "memory", "Memory");
  to.raw("<p>The arena holds intermediate values and workspaces. The height is what is needed at each step.</p>\n")
      .add(chart)
      .raw("</section>\n");
}

void add_rest(html& to, html& menu, const facts& all) {
  if (all.from.against.made != nullptr) {
    begin_section(to, menu, "difference", "Difference");
    to.add(difference_tables(all)).raw("</section>\n");
  }
  if (const html tables = missing_tables(all); !tables.empty()) {
    begin_section(to, menu, "missing", "Missing patterns");
    to.add(tables).raw("</section>\n");
  }
  if (const html refused = refusals_table(all); !refused.empty()) {
    begin_section(to, menu, "refusals", "Refusals");
    to.raw(
          "<p>Kernels that are no candidates, and why. Equal refusals share a row. "
          "Plans do not name kernels that were refused while measuring; <code>collage store list --refused</code> does.</p>\n")
        .add(refused)
        .raw("</section>\n");
  }
  begin_section(to, menu, "plan", "Plan");
  to.raw("<p>The plan is ").name(all.from.name).raw(". Its fingerprint is ").text(detail::hex_of(all.made.fingerprint));
  to.raw(", its origin: ").text(all.made.origin).raw(". Its kernels were chosen from algorithms of the kind \u201c");
  to.text(name_of(all.made.algorithms)).raw("\u201d");
  if (!all.made.waiting.empty()) to.raw(", while threads waited by policy \u201c").text(all.made.waiting).raw("\u201d");
  to.raw(".</p>\n");
  if (const std::string text = detail::estimates_text(all.made); !text.empty())
    to.raw("<pre>").lines(text).raw("</pre>\n");
  to.add(backends_table(all)).add(fallbacks_of(all));
  to.raw("</section>\n");
}

void begin_page(html& to, const facts& all) {
  to.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  // Should a name ever become markup, it could neither run nor load anything: only the elements with this mark count.
  const std::string mark = detail::hex_of(all.made.fingerprint);
  to.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; script-src &#39;nonce-")
      .text(mark);
  to.raw("&#39;; style-src &#39;nonce-")
      .text(mark)
      .raw("&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n");
  to.raw(
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
  to.text(all.made.network)
      .raw(" \u2013 collage report</title>\n<style nonce=\"")
      .text(mark)
      .raw("\">\n")
      .trusted(style_sheet());
  to.raw("</style>\n</head>\n<body>\n").add(pattern_definitions());
}

}  // namespace

std::string page_of(const source& from, summary* sizes) {
  if (from.against.made != nullptr && from.against.made->fingerprint != from.made->fingerprint)
    throw error(error_kind::invalid_argument,
                "is a plan for another network or other shapes, " + from.against.made->network, from.against.name,
                "compare two plans of one network");
  const facts all(from);
  summary counts;
  counts.groups = all.made.chosen.groups.size() - all.views;
  counts.blocks = all.blocks.size();
  html body, menu;
  add_network(body, menu, all, counts);
  add_times(body, menu, all);
  add_groups(body, menu, all);
  add_roofline(body, menu, all);
  add_arena(body, menu, all);
  add_rest(body, menu, all);
  html page;
  begin_page(page, all);
  page.raw("<nav aria-label=\"Sections\"><div>\n")
      .add(menu)
      .raw("</div></nav>\n<main>\n")
      .add(header_of(all))
      .add(body);
  page.raw("</main>\n<footer>Made by collage ")
      .count(COLLAGE_VERSION_MAJOR)
      .raw(".")
      .count(COLLAGE_VERSION_MINOR)
      .raw(".");
  page.count(COLLAGE_VERSION_PATCH)
      .raw(".</footer>\n<script type=\"application/json\" id=\"data\">")
      .trusted(data_of(all));
  page.raw("</script>\n<script nonce=\"")
      .text(detail::hex_of(all.made.fingerprint))
      .raw("\">\n")
      .trusted(script())
      .raw("</script>\n</body>\n</html>\n");
  if (sizes != nullptr) *sizes = counts;
  return std::move(page).str();
}

}  // namespace collage::inline v0::report
