// Boxes and ways as SVG.
#include "drawing.hpp"

#include <collage/graph/totals.hpp>
#include <place/text.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::report {
namespace {

constexpr double font = 12, bold_font = 13, small_font = 11,  // bold letters are as wide as those of a larger font
    band = 14, least_height = 40, more_height = 104, thin_height = 24;

bool has_runner(const facts& all, std::size_t runner) {
  return all.runners[runner] != view_runner && all.runners[runner] != control_runner;
}

/// One box: its texts, and how it looks.
struct box {
  const item* of = nullptr;
  std::string title;   // the first line
  std::string remark;  // the second line; empty: none
  double width = 0, height = 0;
  double cost_ms = -1;  // below 0: it takes no time
};

class painter {
 public:
  painter(const facts& all, const scene& of, const item_graph& items) : all_(all), scene_(of), items_(items) {
    double longest = all.longest_ms;
    for (const repeated_block& b : all.blocks)
      if (has_blocks()) longest = std::max(longest, cost_of(b));
    for (const item& one : items.items) {
      box b = box_of(one);
      const double most = one.what == item::kind::block ? 260 : 236;
      b.width =
          std::clamp(std::max(width_of(b.title, bold_font), width_of(b.remark, small_font)) + band + 18, 76.0, most);
      b.height = b.remark.empty() ? thin_height : least_height;
      // A part of a loop that never runs may take longer than the longest group of the network.
      if (b.cost_ms > 0 && longest > 0) b.height += more_height * std::min(b.cost_ms / longest, 1.0);
      boxes_.push_back(std::move(b));
    }
  }

  drawn paint(const html& name, bool is_hidden) {
    layered_graph graph;
    for (const box& b : boxes_) graph.boxes.push_back({b.width, b.height});
    for (const item_net& net : items_.nets) graph.nets.push_back({net.from, net.to});
    const layered_drawing laid = lay_out(graph);
    drawn made;
    made.boxes = boxes_.size();
    made.crossings = laid.crossings;
    html& to = made.svg;
    to.raw("<svg class=\"net\" data-view=\"").add(name).raw("\" viewBox=\"0 0 ").length(laid.width).raw(" ");
    to.length(laid.height).raw("\" width=\"").length(laid.width).raw("\" height=\"").length(laid.height);
    to.raw("\" role=\"group\" aria-label=\"").text(scene_.name).raw("\"");
    to.raw(is_hidden ? html::literal(" hidden>\n") : html::literal(">\n")).raw("<g class=\"ways\">\n");
    for (std::size_t n = 0; n < items_.nets.size(); ++n) add_way(to, items_.nets[n], laid.ways[n], laid.is_straight[n]);
    to.raw("</g>\n<g class=\"boxes\">\n");
    for (std::size_t b = 0; b < boxes_.size(); ++b) add_box(to, b, laid.boxes[b].x, laid.boxes[b].y);
    to.raw("</g>\n</svg>\n");
    return made;
  }

 private:
  bool has_blocks() const {
    return std::ranges::any_of(items_.items, [](const item& i) { return i.what == item::kind::block; });
  }
  double cost_of(const repeated_block& b) const {
    double sum = 0;
    for (const std::uint32_t i : b.items) sum += std::max(0.0, cost_of(scene_.items.items[i]));
    return sum;
  }
  const group_facts& group_of(const item& one) const { return all_.groups[scene_.first_group + one.number]; }
  const plan_conversion& conversion_of(const item& one) const { return scene_.placed->conversions[one.number]; }
  double cost_of(const item& one) const {
    if (one.what == item::kind::group) return group_of(one).group->cost_ms;
    if (one.what == item::kind::conversion) return conversion_of(one).cost_ms;
    return -1;
  }

  /// A text and a time; the text alone if the plan has no times, or this box has none.
  std::string timed(const std::string& text, const char* between, double ms) const {
    return all_.is_measured() && ms >= 0 ? text + between + time_text(ms) : text;
  }

  box box_of(const item& one) const {
    const graph& network = *scene_.network;
    box b{&one, {}, {}, 0, 0, cost_of(one)};
    switch (one.what) {
      case item::kind::input: {
        const std::uint32_t v = network.inputs()[one.number];
        b.title = network.value_name(v);
        b.remark = detail::to_string(network.type_of(v));
        break;
      }
      case item::kind::output:
        b.title = network.output_name(one.number);
        b.remark = detail::to_string(network.type_of(network.outputs()[one.number]));
        break;
      case item::kind::group: {
        const group_facts& g = group_of(one);
        b.title = g.drawn;
        if (!g.group->is_view()) b.remark = timed(all_.runners[g.runner], " \u00b7 ", g.group->cost_ms);
        else b.cost_ms = -1;
        break;
      }
      case item::kind::conversion: {
        const plan_conversion& x = conversion_of(one);
        b.title = timed("to " + x.step.to, " \u00b7 ", x.cost_ms);
        break;
      }
      case item::kind::block: {
        const repeated_block& r = all_.blocks[one.number];
        b.title = block_name(r);
        b.cost_ms = cost_of(r);
        b.remark = timed(count_of(groups_of(r), "group"), " \u00b7 ", b.cost_ms);
        break;
      }
    }
    return b;
  }

  static std::string block_name(const repeated_block& r) {
    std::string letters;
    for (std::uint32_t k = r.kind + 1; k != 0; k = (k - 1) / 26)
      letters.insert(letters.begin(), static_cast<char>('A' + (k - 1) % 26));
    return "Block " + letters + ", " + std::to_string(r.which + 1) + " of " + std::to_string(r.count);
  }
  std::size_t groups_of(const repeated_block& r) const {
    return static_cast<std::size_t>(std::ranges::count_if(r.items, [&](std::uint32_t i) {
      const item& one = scene_.items.items[i];
      return one.what == item::kind::group && !group_of(one).group->is_view();
    }));
  }

  void add_way(html& to, const item_net& net, const std::vector<layered_piece>& way, bool is_straight) const {
    to.raw("<path class=\"w")
        .raw(is_straight ? html::literal(" far") : html::literal(""))
        .raw("\" data-e=\"")
        .count(net.from);
    for (const std::uint32_t reader : net.to) to.raw(",").count(reader);
    to.raw("\" d=\"");
    for (const layered_piece& p : way) {
      to.raw("M").length(p.x1).raw(" ").length(p.y1);
      if (p.x1 == p.x2) {
        to.raw("V").length(p.y2);
        continue;
      }
      const double middle = (p.y1 + p.y2) / 2;
      to.raw("C").length(p.x1).raw(" ").length(middle).raw(" ").length(p.x2).raw(" ").length(middle).raw(" ");
      to.length(p.x2).raw(" ").length(p.y2);
    }
    to.raw("\"><title>").plain_name(title_of(scene_.network->value_name(net.value))).raw(": ");
    to.text(detail::to_string(scene_.network->type_of(net.value)));
    if (net.form != "plain") to.raw(", ").text(net.form);
    to.raw("</title></path>\n");
  }

  /// A name as titles have it, which a browser shows whole.
  static std::string title_of(const std::string& name) { return shortened(name, 4000, font); }

  /// The title of a box, which pointing at it shows.
  html tip_of(const box& b) const {
    html tip;
    if (b.of->what == item::kind::group) {
      const group_facts& g = group_of(*b.of);
      if (!g.number.empty()) tip.text(g.number).raw(". ");
      tip.plain_name(title_of(g.label));
      if (!g.group->has_kernel()) return tip;
      return tip.raw("\n").text(timed(all_.runners[g.runner] + " " + g.group->kernel, ", ", g.group->cost_ms));
    }
    if (b.of->what == item::kind::conversion) {
      const plan_conversion& x = conversion_of(*b.of);
      tip.plain_name(title_of(scene_.network->value_name(x.value)));
      tip.text(" from " + x.step.from + " to " + x.step.to).raw("\n");
      return tip.text(timed(x.step.backend + " " + x.kernel, ", ", x.cost_ms));
    }
    return tip.plain_name(title_of(b.title)).raw("\n").text(b.remark);
  }

  void add_box(html& to, std::size_t index, double x, double y) const {
    const box& b = boxes_[index];
    const item& one = *b.of;
    to.raw("<g class=\"n ");
    std::size_t runner = all_.runners.size();
    switch (one.what) {
      case item::kind::input: to.raw("in"); break;
      case item::kind::output: to.raw("out"); break;
      case item::kind::block: to.raw("block"); break;
      case item::kind::conversion:
        to.raw("conversion ");
        runner = all_.runner_of(conversion_of(one).step.backend);
        break;
      case item::kind::group:
        runner = group_of(one).runner;
        to.raw(group_of(one).group->is_view() ? html::literal("view ") : html::literal("group "));
    }
    if (runner < all_.runners.size()) to.add(class_of(all_, runner));
    to.raw("\" data-i=\"").count(index).raw("\"");
    if (one.what == item::kind::group) to.raw(" data-g=\"").count(scene_.first_group + one.number).raw("\"");
    if (one.what == item::kind::conversion) to.raw(" data-c=\"").count(scene_.first_conversion + one.number).raw("\"");
    if (one.what == item::kind::block) to.raw(" data-b=\"").count(one.number).raw("\"");
    to.raw(" transform=\"translate(").length(x).raw(" ").length(y).raw(")\"><title>");
    to.add(tip_of(b));
    to.raw("</title>");
    add_frame(to, b, runner);
    add_texts(to, b, runner < all_.runners.size() && has_runner(all_, runner) && one.what != item::kind::conversion);
    to.raw("</g>\n");
  }

  void add_rectangle(html& to, html::literal look, double x, double y, double width, double height,
                     double corner) const {
    to.raw("<rect class=\"")
        .raw(look)
        .raw("\" x=\"")
        .length(x)
        .raw("\" y=\"")
        .length(y)
        .raw("\" width=\"")
        .length(width);
    to.raw("\" height=\"").length(height).raw("\" rx=\"").length(corner).raw("\"/>");
  }

  void add_frame(html& to, const box& b, std::size_t runner) const {
    const bool is_round = b.of->what != item::kind::group && b.of->what != item::kind::block;
    if (b.of->what == item::kind::block) add_rectangle(to, "f back", 5, -5, b.width, b.height, 4);
    // The ends of a tall conversion are those of a thin one, so that it stays a pill and becomes no ellipse.
    add_rectangle(to, "f", 0, 0, b.width, b.height, is_round ? std::min(b.height, least_height) / 2 : 4);
    if (b.of->what == item::kind::block) return add_parts(to, b);
    if (b.of->what != item::kind::group || runner >= all_.runners.size() || !has_runner(all_, runner)) return;
    add_rectangle(to, "s", 0.5, 0.5, band, b.height - 1, 3.5);
    to.raw("<rect class=\"p\" x=\"0.5\" y=\"0.5\" width=\"").length(band).raw("\" height=\"").length(b.height - 1);
    to.raw("\" fill=\"url(#p").count(runner % runner_styles).raw(")\"/>");
  }

  /// The parts that backends have in the time of a block, as a bar at its left side.
  void add_parts(html& to, const box& b) const {
    std::vector<double> parts(all_.runners.size(), 0);
    for (const std::uint32_t i : all_.blocks[b.of->number].items) {
      const item& one = scene_.items.items[i];
      if (one.what == item::kind::group)
        parts[group_of(one).runner] += all_.is_measured()             ? group_of(one).group->cost_ms
                                       : group_of(one).number.empty() ? 0
                                                                      : 1;
    }
    double sum = 0, y = 0.5;
    for (const double part : parts) sum += part;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      if (parts[r] <= 0) continue;
      const double height = (b.height - 1) * parts[r] / sum;
      to.raw("<g class=\"").add(class_of(all_, r)).raw("\">");
      add_rectangle(to, "s", 0.5, y, band, height, 0);
      to.raw("<rect class=\"p\" x=\"0.5\" y=\"")
          .length(y)
          .raw("\" width=\"")
          .length(band)
          .raw("\" height=\"")
          .length(height);
      to.raw("\" fill=\"url(#p").count(r % runner_styles).raw(")\"/></g>");
      y += height;
    }
  }

  void add_texts(html& to, const box& b, bool has_band) const {
    const double left = has_band || b.of->what == item::kind::block ? band + 7 : 0,
                 room = b.width - left - (left > 0 ? 8 : 22);
    const auto add = [&](html::literal look, const std::string& text, double size, double y) {
      to.raw("<text class=\"")
          .raw(look)
          .raw("\" x=\"")
          .length(left > 0 ? left : b.width / 2)
          .raw("\" y=\"")
          .length(y)
          .raw("\">");
      to.text(shortened(text, room, size)).raw("</text>");
    };
    const html::literal title = left > 0 ? html::literal("t") : html::literal("t mid");
    const html::literal remark = left > 0 ? html::literal("r") : html::literal("r mid");
    if (b.remark.empty()) return add(title, b.title, bold_font, b.height / 2 + 4);
    add(title, b.title, bold_font, b.height / 2 - 3);
    add(remark, b.remark, small_font, b.height / 2 + 12);
  }

  const facts& all_;
  const scene& scene_;
  const item_graph& items_;
  std::vector<box> boxes_;
};

}  // namespace

std::string time_text(double ms) { return detail::format_time(ms); }

html class_of(const facts& all, std::size_t runner) {
  html made;
  if (!has_runner(all, runner)) return made.raw("engine");
  return made.raw("b").count(runner % runner_styles);
}

html pattern_definitions() {
  html made;
  made.raw("<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>");
  static constexpr html::literal marks[runner_styles] = {
      "",
      "<path d=\"M0 8L8 0M-2 2L2 -2M6 10L10 6\"/>",
      "<circle cx=\"2\" cy=\"2\" r=\"1.4\"/><circle cx=\"6\" cy=\"6\" r=\"1.4\"/>",
      "<path d=\"M0 2H8M0 6H8\"/>",
      "<path d=\"M0 0L8 8M-2 6L2 10M6 -2L10 2\"/>",
      "<path d=\"M2 0V8M6 0V8\"/>",
      "<path d=\"M0 0L8 8M0 8L8 0\"/>",
      "<path d=\"M0 4H8M4 0V8\"/>",
      "<path d=\"M0 6L4 2L8 6\"/>"};
  for (std::size_t p = 0; p < runner_styles; ++p)
    made.raw("<pattern id=\"p")
        .count(p)
        .raw("\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">")
        .raw(marks[p])
        .raw("</pattern>");
  return made.raw("</defs></svg>\n");
}

html swatch_of(const facts& all, std::size_t runner) {
  html made;
  made.raw("<svg class=\"swatch ")
      .add(class_of(all, runner))
      .raw("\" width=\"26\" height=\"14\" aria-hidden=\"true\">");
  made.raw("<rect class=\"s\" width=\"26\" height=\"14\" rx=\"2\"/>");
  if (has_runner(all, runner))
    made.raw("<rect class=\"p\" width=\"26\" height=\"14\" fill=\"url(#p").count(runner % runner_styles).raw(")\"/>");
  return made.raw("</svg>");
}

drawn draw(const facts& all, const scene& of, const html& name, bool is_hidden, const item_graph* folded) {
  return painter(all, of, folded == nullptr ? of.items : *folded).paint(name, is_hidden);
}

}  // namespace collage::inline v0::report
