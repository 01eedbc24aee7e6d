// Scales of the values in trials of kernels that read or write integers of 8 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/run/views.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// Whether a value is never negative, as its operator alone shows.
inline bool is_never_negative(const graph& network, std::uint32_t v) {
  const graph_view view = network.view();
  while (network.at(v).producer >= 0) {
    const auto node = static_cast<std::uint32_t>(network.at(v).producer);
    const std::uint64_t kind = view.kind_id_of(node);
    if (kind == kind_id<struct ops::relu> || kind == kind_id<struct ops::sigmoid> ||
        kind == kind_id<struct ops::softmax>)
      return true;
    if (kind == kind_id<struct ops::clip>) {
      const value_record& low = network.at(view.inputs_of(node)[1]);
      return low.has_scalar && low.scalar >= 0;
    }
    if (!moves_or_picks(view, node)) return false;
    v = view.inputs_of(node)[0];
  }
  return false;
}
/// Makes all numbers of float32 positive.
inline void remove_signs(const tensor& t) {
  if (t.type().type != dtype::f32) return;
  auto* const x = t.as<float>().data();
  for (std::int64_t i = 0; i < t.type().dims.elements(); ++i) x[i] = std::abs(x[i]);
}
/// Whether all numbers of a tensor of float32 are finite.
inline bool is_finite(const tensor& t) {
  return t.type().type == dtype::f32 && std::ranges::all_of(t.as<float>(), [](float x) { return std::isfinite(x); });
}

/// The values that regions among the candidates store as integers, each once. Constants are left out: regions scale these themselves.
inline std::vector<rounded_value> integers_inside(const graph& network, backend_table backends,
                                                  const place_candidates& all, std::span<const std::uint32_t> asked) {
  const value_scales any(integer_scale{});
  std::set<rounded_value> found;
  for (const std::uint32_t i : asked) {
    const place_candidate& c = all.list[i];
    if (!c.is_by_rule() || backends[c.backend].rounds == nullptr) continue;
    const node_group group = group_of(network, all.groups[c.group].nodes);
    for (const rounded_value& one : backends[c.backend].rounds(network, group, &any))
      if (is_8_bit_integer(one.element) && network.at(one.value).role != value_role::constant) found.insert(one);
  }
  return {found.begin(), found.end()};
}
/// A list of values, and others after them.
inline std::vector<std::uint32_t> with_values(std::vector<std::uint32_t> list, std::span<const rounded_value> others) {
  for (const rounded_value& one : others) list.push_back(one.value);
  return list;
}

/// The scales of one trial. They are made for its data, so that a comparison shows as much as it can; a kernel's time does not depend on
/// them. All rivals of a trial have the same.
class trial_scales {
 public:
  explicit trial_scales(const graph& network) : network_(&network) {}

  const value_scales& all() const { return scales_; }
  /// The scale of a value in a form; nothing if the form has no integers that stand for other numbers.
  std::optional<integer_scale> of(std::uint32_t v, const form& stored) const {
    return stored.element && is_8_bit_integer(*stored.element) ? scales_.of(v, *stored.element) : std::nullopt;
  }
  /// Gives a value inside a region a scale: the reference computed numbers between `extremes`.
  void scale_inside(std::uint32_t v, dtype element, const std::pair<double, double>& extremes) {
    if (!scales_.of(v, element)) scales_.set(v, element, scale_for(element, extremes.first, extremes.second));
  }
  /// Rounds an argument to what a form stores. Integers get a scale by its contents. Those of a value that is never negative have no
  /// zero point, as in the network.
  void round_argument(std::uint32_t v, const form& stored, const tensor& contents) {
    const dtype element = element_in(contents.type(), stored);
    if (stored.element && is_8_bit_integer(element)) {
      if (!is_finite(contents) || contents.bytes() == 0) return;  // no integer stands for NaN or infinity
      if (!scales_.of(v, element)) {
        if (is_never_negative(*network_, v)) remove_signs(contents);
        const auto [low, high] = std::ranges::minmax(contents.as<float>());
        scales_.set(v, element, scale_for(element, low, high));
      }
    }
    const std::optional<integer_scale> how = of(v, stored);
    round_elements(element, contents, how ? &*how : nullptr);
  }
  /// Gives a result that is stored as integers a scale. The reference computed numbers between `extremes`. A result that only moves its
  /// argument has the argument's scale.
  void scale_result(std::uint32_t v, const form& stored, const std::pair<double, double>& extremes) {
    if (!stored.element || !is_8_bit_integer(*stored.element) || scales_.of(v, *stored.element)) return;
    const graph_view view = network_->view();
    const auto node = static_cast<std::uint32_t>(network_->at(v).producer);
    const bool moves = moves_or_picks(view, node) || view.kind_id_of(node) == kind_id<struct ops::convert_layout>;
    const std::optional<integer_scale> moved =
        moves ? scales_.of(view.inputs_of(node)[0], *stored.element) : std::nullopt;
    scales_.set(v, *stored.element, moved ? *moved : scale_for(*stored.element, extremes.first, extremes.second));
  }

 private:
  const graph* network_;
  value_scales scales_;
};

}  // namespace collage::inline v0::detail
