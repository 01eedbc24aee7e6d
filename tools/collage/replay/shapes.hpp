// Infers what the published placements lack: shapes between operators, strides, padding, axes. The sources are the
// records of cost files and the shape rules.
#pragma once

#include "placement_file.hpp"
#include "published_costs.hpp"
#include "shape_rules.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace program::replay {

namespace detail {

/// The attributes in records of single operators. The index is by operator and shape of the first operand.
struct known_attributes {
  attribute_list list;
  double dearest_ms = 0;
};
using attribute_index = std::map<std::pair<std::string, extents>, std::vector<known_attributes>>;

inline attribute_index index_attributes(const published_costs& table) {
  attribute_index index;
  for (const cost_record& r : table.records) {
    if (r.operators.size() != 1) continue;
    std::vector<known_attributes>& known = index[{r.operators[0].name, r.data}];
    auto same = std::ranges::find(known, r.operators[0].attributes, &known_attributes::list);
    if (same == known.end()) same = known.insert(known.end(), {r.operators[0].attributes, 0});
    same->dearest_ms = std::max(same->dearest_ms, r.mean_ms);
  }
  return index;
}

/// The attributes of a convolution that the shapes of its operands determine: channels, groups and kernel size.
inline attribute_list known_of_conv(const operator_call& c) {
  const extents& weight = c.shapes[1];
  const std::int64_t groups = weight[1] > 0 && c.shapes[0][1] % weight[1] == 0 ? c.shapes[0][1] / weight[1] : 0;
  return {{"channels", {weight[0]}}, {"groups", {groups}}, {"kernel_size", {weight.begin() + 2, weight.end()}}};
}

/// The attributes that are assumed for an operator without records. Windows keep the extents; if that does not fit,
/// they halve the extents.
inline std::vector<attribute_list> usual_attributes(const operator_call& c) {
  const bool conv = c.op == "nn.conv2d" || c.op == "nn.conv3d";
  if (c.op == "concatenate") return {{{"axis", {1}}}};
  if (!conv && c.op != "nn.avg_pool2d" && c.op != "nn.max_pool2d") return {{}};
  attribute_list known = conv ? known_of_conv(c) : attribute_list{{"pool_size", {3, 3}}, {"ceil_mode", {0}}};
  if (c.op == "nn.avg_pool2d") known["count_include_pad"] = {0};
  const extents kernel = conv ? known["kernel_size"] : known["pool_size"];
  if (conv) known["dilation"] = extents(kernel.size(), 1);
  for (int side = 0; side < 2; ++side)
    for (const std::int64_t k : kernel) known["padding"].push_back((k - 1) / 2);
  std::vector<attribute_list> both(2, known);
  both[0]["strides"] = extents(kernel.size(), 1);
  both[1]["strides"] = extents(kernel.size(), 2);
  return both;
}

/// Chooses attributes for each call in order so that all shapes fit. Backtracks if they do not.
class inferrer {
 public:
  inferrer(const placed_network& placed, std::span<const published_costs* const> tables) {
    for (const published_costs* t : tables) known_.push_back(index_attributes(*t));
    std::vector<std::int32_t> call_of(placed.nodes.size(), -1);
    for (std::uint32_t n = 0; n < placed.nodes.size(); ++n) {
      if (placed.nodes[n].is != placed_node::kind::call) continue;
      call_of[n] = static_cast<std::int32_t>(calls_.size());
      operator_call c;
      c.op = placed.nodes[n].op;
      c.group = placed.nodes[n].group;
      c.backend = placed.nodes[n].backend;
      std::vector<std::uint32_t> from;
      for (const std::uint32_t o : placed.nodes[n].operands) {
        if (placed.nodes[o].is == placed_node::kind::tuple)
          from.insert(from.end(), placed.nodes[o].operands.begin(), placed.nodes[o].operands.end());
        else from.push_back(o);
      }
      for (const std::uint32_t o : from) {
        c.operands.push_back(call_of[o]);
        c.shapes.push_back(placed.nodes[o].shape);
      }
      check_arity(c, n);
      calls_.push_back(std::move(c));
      node_of_.push_back(n);
    }
  }

  std::vector<operator_call> run() {
    if (const search_end end = search(); end != search_end::found)
      throw collage::error(collage::error_kind::unsupported,
                           (end == search_end::stopped ? "the search for strides, padding and axes was stopped after " +
                                                             std::to_string(most_steps) + " steps, without a fit"
                                                       : "no strides, padding and axes of the records fit") +
                               " at node " + std::to_string(node_of_[furthest_]) + " (" + calls_[furthest_].op + ")",
                           "placement", "use a table with records of this network");
    for (operator_call& c : calls_) c.flops = flops_of(c);
    settle_widths();
    return std::move(calls_);
  }

 private:
  static constexpr std::size_t most_steps = 100'000;

  enum class search_end { found, none_fits, stopped };

  void check_arity(const operator_call& c, std::uint32_t node) const {
    static constexpr std::array one{"nn.relu",   "sigmoid",       "tanh",         "reshape",
                                    "transpose", "nn.avg_pool2d", "nn.max_pool2d"};
    static constexpr std::array two{"add", "multiply", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.batch_matmul"};
    const bool is_one = std::ranges::find(one, c.op) != one.end();
    const bool is_two = std::ranges::find(two, c.op) != two.end();
    if (is_one ? c.shapes.size() == 1 : is_two ? c.shapes.size() == 2 : c.op == "concatenate") return;
    throw collage::error(collage::error_kind::unsupported,
                         "there is no shape rule for " + c.op + " of " + std::to_string(c.shapes.size()) + " operands",
                         "placement, node " + std::to_string(node), "replay networks of the published operators");
  }

  /// The attributes and result shapes from the first table with fitting records of the operator, else the usual ones.
  /// If several attributes give the same shape, the most expensive are kept: the right ones are unknown, and no cost may
  /// be too low.
  std::vector<std::pair<attribute_list, extents>> choices(operator_call& c) const {
    std::vector<std::pair<attribute_list, extents>> list;
    std::vector<double> dearest;
    const bool conv = c.op == "nn.conv2d" || c.op == "nn.conv3d";
    if (conv && (c.shapes[0].size() < 3 || c.shapes[1].size() != c.shapes[0].size())) return list;
    for (const attribute_index& index : known_) {
      const auto found = index.find({c.op, c.shapes[0]});
      if (found == index.end()) continue;
      for (const known_attributes& k : found->second) {
        if (conv) {
          bool same = true;
          for (const auto& [name, value] : known_of_conv(c)) {
            const extents* stated = find(k.list, name.c_str());
            same = same && stated != nullptr && *stated == value;
          }
          if (!same) continue;
        }
        const auto result = result_of(c, k.list);
        if (!result) continue;
        const auto twin = std::ranges::find(list, *result, &std::pair<attribute_list, extents>::second);
        const auto at = static_cast<std::size_t>(twin - list.begin());
        if (twin == list.end()) {
          list.emplace_back(k.list, *result);
          dearest.push_back(k.dearest_ms);
        } else if (k.dearest_ms > dearest[at]) {
          twin->first = k.list;
          dearest[at] = k.dearest_ms;
        }
      }
      if (!list.empty()) break;
    }
    c.assumed = list.empty();
    if (list.empty()) {
      for (const attribute_list& usual : usual_attributes(c)) {
        if (const auto result = result_of(c, usual)) list.emplace_back(usual, *result);
        c.assumed = c.assumed && !usual.empty();  // an operator without attributes has nothing to assume
      }
    }
    return list;
  }

  /// Chooses attributes and shapes for all calls. It stops after `most_steps`, because the number of combinations has no
  /// other bound.
  search_end search() {
    struct level {
      std::vector<std::pair<attribute_list, extents>> choices;
      std::size_t next = 0;
    };
    std::vector<level> levels;  // of the calls so far
    for (std::size_t steps = 0; levels.size() < calls_.size() && steps < most_steps; ++steps) {
      operator_call& c = calls_[levels.size()];
      furthest_ = std::max(furthest_, levels.size());
      for (std::size_t i = 0; i < c.operands.size(); ++i)
        if (c.operands[i] >= 0) c.shapes[i] = calls_[static_cast<std::size_t>(c.operands[i])].result;
      levels.push_back({choices(c)});
      while (!levels.empty() && levels.back().next == levels.back().choices.size()) levels.pop_back();
      if (levels.empty()) return search_end::none_fits;
      operator_call& chosen = calls_[levels.size() - 1];
      std::tie(chosen.attributes, chosen.result) = levels.back().choices[levels.back().next++];
    }
    return levels.size() == calls_.size() ? search_end::found : search_end::stopped;
  }

  /// Records of dense lack the width, so calls of several widths share one key, and a file keeps only the last record
  /// written. By their times, the records are for the widest call: 1024 to 4096 costs as much as with relu, which follows
  /// only the widest call. So the narrower calls have no record: the attribute `units`, which no record has, keeps them
  /// from matching.
  void settle_widths() {
    std::map<extents, std::int64_t> widest;
    for (const operator_call& c : calls_)
      if (c.op == "nn.dense") widest[c.shapes[0]] = std::max(widest[c.shapes[0]], c.shapes[1][0]);
    for (operator_call& c : calls_)
      if (c.op == "nn.dense" && c.shapes[1][0] != widest[c.shapes[0]]) c.attributes["units"] = {c.shapes[1][0]};
  }

  std::vector<attribute_index> known_;
  std::vector<operator_call> calls_;
  std::vector<std::uint32_t> node_of_;  // of each call
  std::size_t furthest_ = 0;
};

}  // namespace detail

/// Returns the operators of a placed network, in its order, with their shapes and attributes. Attributes come from the
/// first table whose records fit. Throws `collage::error` if none fit, or for an operator without a shape rule.
inline std::vector<operator_call> infer_shapes(const placed_network& placed,
                                               std::span<const published_costs* const> tables) {
  std::vector<operator_call> calls = detail::inferrer(placed, tables).run();
  bool knows_bias = false;
  for (const cost_record& r : tables.front()->records)
    for (const pattern_operator& o : r.operators) knows_bias = knows_bias || o.name == "nn.bias_add";
  for (operator_call& c : calls) {
    if (c.op != "add" || !knows_bias || c.operands[1] >= 0 || c.shapes[0].size() < 3) continue;
    extents per_channel(c.shapes[0].size() - 1, 1);
    per_channel[0] = c.shapes[0][1];
    if (c.shapes[1] != per_channel) continue;
    c.op = "nn.bias_add";
    c.attributes = {{"axis", {1}}};
  }
  return calls;
}

}  // namespace program::replay
