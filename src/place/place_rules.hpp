// Applies the user's placement constraints: which backends may run which nodes, and which may convert between layouts.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/kept_parts.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/views.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "candidate_index.hpp"
#include "place_task.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Whether `what` is the name of a node or operator kind in a network or its subgraphs.
inline bool is_named(const graph& network, const std::string& what) {
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    if (network.node_name(n) == what || network.node(n).kind->name == what) return true;
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n))
      if (is_named(*body, what)) return true;
  }
  return false;
}

inline bool is_pattern_of(backend_table backends, const place_rule& rule) {
  for (const backend_entry& b : backends)
    if (rule.backend == b.name)
      return b.find(rule.what) != nullptr || (b.build_group != nullptr && rule.what == by_rule);
  return false;
}

/// The constraints that a subgraph inherits. They name a node or operator kind in it or in its own subgraphs, or a pattern.
inline std::vector<place_rule> rules_in(const graph& body, backend_table backends,
                                        const std::vector<place_rule>& rules) {
  std::vector<place_rule> list;
  for (const place_rule& rule : rules)
    if (is_named(body, rule.what) || is_pattern_of(backends, rule)) list.push_back(rule);
  return list;
}

/// By node: the forms in which it can be a view, as ascending numbers in place_task::forms. A reshape always is a view; for other
/// nodes the search decides.
using view_layouts = std::vector<std::vector<std::uint32_t>>;

inline view_layouts views_in(const place_task& task) {
  const graph& network = task.network;
  const value_scales* const scales = task.options.precision.scales.get();
  view_layouts list(network.nodes().size());
  for (std::uint32_t n = 0; n < list.size(); ++n)
    for (std::uint32_t order = 0; order < task.forms.size(); ++order) {
      const std::vector<value_view> views = views_of(network, n, task.forms[order]);
      const auto has_scale = [&](const value_view& v) {
        return has_one_scale(scales, task.forms[order], v.value, v.of);
      };
      if (!views.empty() && std::ranges::all_of(views, has_scale)) list[n].push_back(order);
    }
  return list;
}

/// The candidates, conversions and views that the constraints allow.
struct allowed_candidates {
  place_candidates candidates;
  std::vector<std::vector<bool>> forbidden;  ///< by backend and node: no region of the backend may hold the node
  std::vector<bool> may_convert;             ///< by backend
  view_layouts views;
};

/// Applies a constraint to regions. `meant` are its backend and the variants of it; `named` are the nodes that it names, or that its
/// pinned pattern matches.
inline void forbid_regions(const place_rule& rule, const std::vector<bool>& meant, const std::vector<bool>& named,
                           bool is_pattern, std::vector<std::vector<bool>>& forbidden) {
  const bool pins = rule.act == place_rule::action::pin;
  const bool means_regions = is_pattern && rule.what == by_rule;
  for (std::uint32_t b = 0; b < forbidden.size(); ++b)
    for (std::uint32_t n = 0; n < named.size(); ++n) {
      const bool is_meant = meant[b] && (!is_pattern || means_regions);
      const bool is_named = named[n] || (means_regions && !pins);
      if (is_named && is_meant != pins) forbidden[b][n] = true;
    }
}

/// Removes the candidates, conversions and views that a constraint forbids. Errors: an unknown backend; a constraint that names
/// nothing.
inline void apply_rule(const place_task& task, const place_rule& rule, allowed_candidates& left) {
  const graph& network = task.network;
  const bool pins = rule.act == place_rule::action::pin;
  const std::string where = std::string(pins ? "pin " : "exclude ") + rule.what;
  const auto backend = std::find_if(task.backends.begin(), task.backends.end(),
                                    [&](const backend_entry& b) { return rule.backend == b.name; });
  if (backend == task.backends.end())
    throw error(error_kind::invalid_argument, "there is no backend " + rule.backend, where, "name one of this program");
  const auto number = static_cast<std::uint32_t>(backend - task.backends.begin());
  std::vector<bool> meant;
  for (const backend_entry& b : task.backends)
    meant.push_back(rule.backend == b.name || (b.variant_of != nullptr && rule.backend == b.variant_of));
  if (rule.what == decltype(ops::convert_layout)::name && backend->find(rule.what) != nullptr) {
    for (std::uint32_t b = 0; b < task.backends.size(); ++b)
      if ((b == number) != pins) left.may_convert[b] = false;
    return;
  }
  std::vector<bool> named(network.nodes().size());
  bool any = false;
  for (std::uint32_t n = 0; n < named.size(); ++n)
    if (network.node_name(n) == rule.what || network.node(n).kind->name == rule.what) any = named[n] = true;
  // A pattern of a single operator has the operator's name. Such a name means the operator, in any group.
  const bool is_pattern = !any && !is_named(network, rule.what) && is_pattern_of(task.backends, rule);
  const auto has_pattern = [&](const place_candidate& c) {
    return is_pattern && meant[c.backend] && pattern_name(task.backends, c.backend, c.pattern) == rule.what;
  };
  place_candidates& candidates = left.candidates;
  if (is_pattern && pins)  // where the pattern matches, no other kernel runs the nodes
    for (const place_candidate& c : candidates.list)
      if (has_pattern(c))
        for (const std::uint32_t n : candidates.groups[c.group].nodes) named[n] = true;
  if (!any && !is_pattern && !is_named(network, rule.what))
    throw error(error_kind::invalid_argument,
                "is neither a node nor an operator of the network, nor a pattern of " + rule.backend, where,
                "see `collage inspect` and `collage backends`");
  forbid_regions(rule, meant, named, is_pattern, left.forbidden);
  for (std::uint32_t n = 0; pins && n < named.size(); ++n)
    if (named[n] && !task.is_alias[n]) left.views[n].clear();
  std::erase_if(candidates.list, [&](const place_candidate& c) {
    const auto& nodes = candidates.groups[c.group].nodes;
    const bool touches = std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t n) { return named[n]; });
    if (is_pattern) return pins ? touches && !has_pattern(c) : has_pattern(c);
    return touches && meant[c.backend] != pins;
  });
}

/// Ends the listing with the budget, and reports its progress if it takes more than a tenth of a second.
inline listing_watch watch_listing(const place_task& task) {
  listing_watch watch;
  watch.stop = [&task] { return task.until.is_over(); };
  if (task.options.progress)
    watch.progress = [&task, told_ms = now_ms()](const char* what, std::size_t done, std::size_t all) mutable {
      if (now_ms() - told_ms < 100) return;
      told_ms = now_ms();
      place_progress now;
      now.stage = "listing";
      now.what = what;
      now.done = done;
      now.remaining = all - done;
      task.options.progress(now);
    };
  return watch;
}

/// The algorithms that candidates may compute by. Without costs, it is not known which are accurate.
inline algorithms wanted_algorithms(const place_options& options) {
  return options.algorithms == algorithms::accurate && options.costs == placing_costs::none ? algorithms::direct
                                                                                            : options.algorithms;
}

/// The element types in which candidates may store values.
inline precisions elements_in(const place_task& task) {
  return task.options.precision.may_round() ? task.options.precision.elements : precisions::f32;
}

/// Whether a candidate stores a value as integers of 8 bits that has no scale, or moves such integers to a value of another scale.
inline bool lacks_scale(const place_task& task, const place_candidates& all, const place_candidate& c) {
  const value_scales* const scales = task.options.precision.scales.get();
  const value_forms borders = forms_of(task.network, task.backends, all, c);
  if (const graph_view view = task.network.view(); moves_or_picks(view, c.root)) {
    const std::uint32_t x = view.inputs_of(c.root)[0], y = view.output_of(c.root);
    if (borders.of(x).element == borders.of(y).element && !has_one_scale(scales, borders.of(y), x, y)) return true;
  }
  return std::ranges::any_of(borders.list(), [&](const auto& said) {
    const auto& [v, stored] = said;
    return stored.element && is_8_bit_integer(*stored.element) && !is_8_bit_integer(task.network.type_of(v).type) &&
           (scales == nullptr || !scales->of(v, *stored.element));
  });
}

/// Removes the candidates and views that store or multiply values of kept nodes in other elements than the network's. Errors: as of
/// kept_nodes.
inline void keep_in_float32(const place_task& task, allowed_candidates& left) {
  const std::vector<bool> kept = kept_nodes(task.network, task.options.kept);
  std::erase_if(left.candidates.list, [&](const place_candidate& c) {
    const std::vector<std::uint32_t>& nodes = left.candidates.groups[c.group].nodes;
    return std::ranges::any_of(nodes, [&](std::uint32_t n) { return kept[n]; }) &&
           !rounds_nothing(task.network, task.backends, left.candidates, c);
  });
  for (std::uint32_t b = 0; b < task.backends.size(); ++b)
    for (std::uint32_t n = 0; task.backends[b].rounds_to && n < kept.size(); ++n)
      if (kept[n]) left.forbidden[b][n] = true;
  for (std::uint32_t n = 0; n < kept.size(); ++n)
    if (kept[n])
      std::erase_if(left.views[n], [&](std::uint32_t order) { return task.forms[order].element.has_value(); });
}

/// All candidates that the constraints, `place_options::algorithms`, `precision` and `kept` allow. Control flow and reshapes have none. Errors: as of
/// find_candidates, apply_rule and keep_in_float32.
inline allowed_candidates find_allowed_candidates(const place_task& task) {
  const std::vector<bool> nothing(task.network.nodes().size(), false);
  allowed_candidates left{
      find_candidates(task.network, task.backends, task.use, watch_listing(task), elements_in(task)),
      std::vector<std::vector<bool>>(task.backends.size(), nothing), task.use, views_in(task)};
  for (const place_rule& rule : task.options.rules) apply_rule(task, rule, left);
  const auto is_unwanted = [&](const place_candidate& c) {
    return !algorithm_of(task.network, task.backends, c).is_direct();
  };
  std::size_t removed = std::erase_if(left.candidates.list, [&](const place_candidate& c) {
    return elements_in(task) != precisions::f32 && lacks_scale(task, left.candidates, c);
  });
  if (wanted_algorithms(task.options) == algorithms::direct)
    removed += std::erase_if(left.candidates.list, is_unwanted);
  if (elements_in(task) != precisions::f32 && !task.options.kept.empty()) {
    const std::size_t before = left.candidates.list.size();
    keep_in_float32(task, left);
    removed += before - left.candidates.list.size();
  }
  if (!task.options.rules.empty() || removed != 0) renumber_structures(left.candidates);
  return left;
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
