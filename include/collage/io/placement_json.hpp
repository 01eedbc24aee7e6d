// The groups, conversions and placements of a plan as JSON, for plan files.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/layout.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/form.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

namespace collage::inline v0::detail {

/// For times, ratios of times and the bounds of errors.
inline double not_negative(const json_place& from) {
  const double number = from.number();
  if (number < 0) from.wrong("is negative");
  return number;
}

/// The scales of values that are stored as integers of 8 bits.
inline json scales_to_json(const value_scales& scales, const graph& network) {
  json list = json::array();
  for (const value_scales::entry& e : scales.list())
    list.push_back({{"value", json::array({e.value, network.value_name(e.value)})},
                    {"element", e.element == dtype::i8 ? "i8" : "u8"},
                    {"scale", double{e.how.scale}},
                    {"zero_point", static_cast<std::uint32_t>(e.how.zero_point)}});
  return list;
}

inline json placement_to_json(const placement& p, const graph& network);

/// The step of a group, by its kind: "kernel", "group", "view" or "control". Conversions are in a list of their own.
inline json step_to_json(const plan_step& step, const graph& network, std::span<const std::uint32_t> nodes) {
  if (const auto* const s = std::get_if<kernel_step>(&step))
    return {{"step", "kernel"}, {"backend", s->backend}, {"pattern", s->pattern}, {"configuration", s->configuration}};
  if (const auto* const s = std::get_if<group_step>(&step)) return {{"step", "group"}, {"backend", s->backend}};
  if (const auto* const s = std::get_if<view_step>(&step)) return {{"step", "view"}, {"form", s->form}};
  json bodies = json::array();
  if (const auto* const s = std::get_if<control_step>(&step))
    for (std::size_t i = 0; i < s->bodies.size(); ++i)
      bodies.push_back(placement_to_json(s->bodies[i], *network.bodies_of(nodes[0])[i]));
  return {{"step", "control"}, {"bodies", bodies}};
}

inline json group_to_json(const plan_group& g, const graph& network) {
  json nodes = json::array();
  for (const std::uint32_t n : g.nodes) nodes.push_back(json::array({n, network.node_name(n)}));
  json runners_up = json::array();
  for (const plan_alternative& a : g.runners_up)
    runners_up.push_back(
        {{"backend", a.backend}, {"pattern", a.pattern}, {"kernel", a.kernel}, {"cost_ms", rounded(a.cost_ms)}});
  json written = {{"nodes", nodes}};
  written.update(step_to_json(g.step, network, g.nodes));
  written["kernel"] = g.kernel;
  written["layout"] = g.layout;
  written["cost_ms"] = rounded(g.cost_ms);
  written["low_ms"] = rounded(g.low_ms);
  written["high_ms"] = rounded(g.high_ms);
  written["alone_ms"] = rounded(g.alone_ms);
  written["switch_ms"] = rounded(g.switch_ms);
  written["runners_up"] = runners_up;
  written["regret_ms"] = g.regret_ms < 0 ? json() : json(rounded(g.regret_ms));
  written["instead"] = g.instead;
  written["why"] = g.why;
  if (!g.estimate.empty()) written["estimate"] = g.estimate;
  if (!g.algorithm.empty()) {
    written["algorithm"] = g.algorithm;
    written["error_bound"] = rounded(g.error_bound);
  }
  return written;
}

inline json placement_to_json(const placement& p, const graph& network) {
  json groups = json::array();
  for (const plan_group& g : p.groups) groups.push_back(group_to_json(g, network));
  json conversions = json::array();
  for (const plan_conversion& c : p.conversions)
    conversions.push_back({{"value", json::array({c.value, network.value_name(c.value)})},
                           {"from", c.step.from},
                           {"to", c.step.to},
                           {"backend", c.step.backend},
                           {"configuration", c.step.configuration},
                           {"kernel", c.kernel},
                           {"cost_ms", rounded(c.cost_ms)}});
  json written = {{"name", p.name},
                  {"cost_ms", rounded(p.cost_ms)},
                  {"borrowed", p.borrowed},
                  {"groups", groups},
                  {"conversions", conversions}};
  if (p.scales != nullptr) written["scales"] = scales_to_json(*p.scales, network);
  return written;
}

inline placement placement_from_json(const json_place& from, const graph& network);

/// Checks and returns the text of a form: "plain", "plain@cuda". The name of a memory space is not checked, because only the
/// engine knows the spaces.
inline std::string form_from_json(const json_place& from, const std::string& text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  const bool can_be_space = at == text.size() || (at + 1 != text.size() && text.find('\0') == std::string::npos);
  if (can_be_space && form_of(text.substr(0, at), shared_layouts, {})) return text;
  std::string known;
  for (const layout& l : shared_layouts) known += (known.empty() ? "" : ", ") + std::string(l.name);
  from.wrong("is " + text + "; known are " + known);
}

/// Checks and returns the text of a configuration. Whether the backend has it is not checked, because only the backend knows.
inline std::string configuration_from_json(const json_place& from, const std::string& who) {
  const json_place at = from["configuration"];
  const std::string text = at.text();
  if (const verdict can_be = configuration::judge(text); !can_be)
    at.wrong("is (" + on_one_line(text) + "), which is no configuration of " + who + ": " + can_be.rule);
  return text;
}

inline plan_step step_from_json(const json_place& from, const graph& network, std::uint32_t node) {
  const json_place kind = from["step"];
  if (kind.text() == "kernel") {
    kernel_step step{from["backend"].text(), from["pattern"].text(), {}};
    step.configuration = configuration_from_json(from, "pattern " + step.pattern + " of backend " + step.backend);
    return step;
  }
  if (kind.text() == "group") return group_step{from["backend"].text()};
  if (kind.text() == "view") return view_step{form_from_json(from["form"], from["form"].text())};
  if (kind.text() != "control") kind.wrong("is " + kind.text() + "; known are kernel, group, view, control");
  const auto owned = network.bodies_of(node);
  const json_place bodies = from["bodies"];
  if (bodies.size() != owned.size()) bodies.wrong("does not have one entry per subgraph");
  control_step step;
  for (std::size_t i = 0; i < owned.size(); ++i) step.bodies.push_back(placement_from_json(bodies[i], *owned[i]));
  return step;
}

inline plan_group group_from_json(const json_place& from, const graph& network) {
  plan_group g;
  const json_place nodes = from["nodes"];
  if (nodes.size() == 0) nodes.wrong("is empty");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const json_place id = nodes[i][std::size_t{0}];
    const json_place name = nodes[i][std::size_t{1}];
    if (network.nodes().empty()) id.wrong("names a node, but the network has none");
    const auto n = static_cast<std::uint32_t>(id.natural(0, network.nodes().size() - 1));
    if (name.text() != network.node_name(n))
      name.wrong("is " + name.text() + ", but the network's node " + std::to_string(n) + " is " + network.node_name(n));
    g.nodes.push_back(n);
  }
  g.step = step_from_json(from, network, g.nodes[0]);
  g.kernel = from["kernel"].text();
  g.layout = from["layout"].text();
  const std::size_t to = g.layout.find(" to ");
  for (const std::string& one : {g.layout.substr(0, to), to == std::string::npos ? g.layout : g.layout.substr(to + 4)})
    (void)form_from_json(from["layout"], one);
  g.cost_ms = not_negative(from["cost_ms"]);
  g.low_ms = not_negative(from["low_ms"]);
  g.high_ms = not_negative(from["high_ms"]);
  g.alone_ms = not_negative(from["alone_ms"]);
  g.switch_ms = not_negative(from["switch_ms"]);
  if (const json_place regret = from["regret_ms"]; !regret.is_null()) g.regret_ms = not_negative(regret);
  g.instead = from["instead"].text();
  g.why = from["why"].text();
  if (from.has("estimate")) g.estimate = from["estimate"].text();
  if (from.has("algorithm")) {
    g.algorithm = from["algorithm"].text();
    g.error_bound = not_negative(from["error_bound"]);
  }
  const json_place others = from["runners_up"];
  for (std::size_t i = 0; i < others.size(); ++i) {
    const json_place o = others[i];
    g.runners_up.push_back({o["backend"].text(), o["pattern"].text(), o["kernel"].text(), not_negative(o["cost_ms"])});
  }
  return g;
}

inline plan_conversion conversion_from_json(const json_place& from, const graph& network) {
  plan_conversion c;
  const json_place value = from["value"];
  if (network.values().empty()) value.wrong("refers to a value of the network, but the network has no values");
  c.value = static_cast<std::uint32_t>(value[std::size_t{0}].natural(0, network.values().size() - 1));
  if (const json_place name = value[std::size_t{1}]; name.text() != network.value_name(c.value))
    name.wrong("is " + name.text() + ", but the network's value " + std::to_string(c.value) + " is " +
               network.value_name(c.value));
  c.step.from = form_from_json(from["from"], from["from"].text());
  c.step.to = form_from_json(from["to"], from["to"].text());
  c.step.backend = from["backend"].text();
  c.step.configuration = configuration_from_json(from, "a conversion of backend " + c.step.backend);
  c.kernel = from["kernel"].text();
  c.cost_ms = not_negative(from["cost_ms"]);
  return c;
}

inline value_scales scales_from_json(const json_place& from, const graph& network) {
  value_scales scales;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const json_place value = from[i]["value"], element = from[i]["element"], scale = from[i]["scale"];
    if (network.values().empty()) value.wrong("names a value, but the network has none");
    const auto v = static_cast<std::uint32_t>(value[std::size_t{0}].natural(0, network.values().size() - 1));
    if (value[1].text() != network.value_name(v))
      value.wrong("is " + value[1].text() + ", but the network's value " + std::to_string(v) + " is " +
                  network.value_name(v));
    if (element.text() != "u8" && element.text() != "i8") element.wrong("is " + element.text() + "; known are u8, i8");
    const auto number = static_cast<float>(scale.number());
    if (!(number > 0) || !std::isfinite(number)) scale.wrong("is not positive and finite");
    const auto zero = static_cast<std::int32_t>(from[i]["zero_point"].natural(0, 255));
    scales.set(v, element.text() == "i8" ? dtype::i8 : dtype::u8, {number, zero});
  }
  return scales;
}

inline placement placement_from_json(const json_place& from, const graph& network) {
  placement p;
  p.name = from["name"].text();
  p.cost_ms = not_negative(from["cost_ms"]);
  const json_place borrowed = from["borrowed"];
  for (std::size_t i = 0; i < borrowed.size(); ++i) p.borrowed.push_back(borrowed[i].text());
  const json_place groups = from["groups"];
  for (std::size_t i = 0; i < groups.size(); ++i) p.groups.push_back(group_from_json(groups[i], network));
  const json_place conversions = from["conversions"];
  for (std::size_t i = 0; i < conversions.size(); ++i)
    p.conversions.push_back(conversion_from_json(conversions[i], network));
  if (from.has("scales")) p.scales = std::make_shared<const value_scales>(scales_from_json(from["scales"], network));
  try {
    check_cover(network, p);
  } catch (const error& e) {
    const std::string text = e.what();  // without the engine's remedy: the file has its own
    groups.wrong("do not fit the network (" + text.substr(0, text.rfind("; ")) + ")");
  }
  return p;
}

}  // namespace collage::inline v0::detail
